"""The report's parts on calibration, tuning ledger, manifest and raw files."""

from __future__ import annotations

import datetime
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from loadlab.analysis import calibration_reuse
from loadlab.core import formatting
from loadlab.core.formatting import ms
from loadlab.generators.registry import CLOSED_LOOP, OUTPUTS
from loadlab.hosts import hardware
from loadlab.report.html import link, table

STATES = {
    "applied": "changed to what was asked",
    "already": "was so before",
    "absent": "this kernel has no such key",
    "read_only": "may not be written here",
    "clamped": "written, but reads otherwise",
    "host_global": "belongs to the machine, not to this host: left alone",
    "restored": "put back to what was found",
    "unavailable": "cannot be had here",
}
AS_ASKED = ("applied", "already", "restored")
ROLES = ("server", "client")
# Programs whose versions are listed first; the full list has the others.
PROGRAMS = ("nginx", "postgresql", "python3", "wrk", "iperf3", "prometheus-node-exporter",
            "openssl", "libc6", "systemd")  # fmt: skip


def _newest(run_dir: Path, part: str, *names: str) -> list[dict[str, str]]:
    """Return links to files of the newest repetition of a part of the calibration."""
    folders = sorted(run_dir.glob(f"calibration/{part}/rep-*"), key=lambda p: int(p.name[4:]))
    paths = [folders[-1] / name for name in names] if folders else []
    return [link(path.relative_to(run_dir).as_posix()) for path in paths if path.exists()]


def calibration(run_dir: Path, document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the table of what the network and the generators can do; None without
    calibration.json."""
    if document is None:
        return None
    rows: list[list[Any]] = []
    for direction, words in (
        ("client_to_server", "Link, client to server"),
        ("server_to_client", "Link, server to client"),
    ):
        found = document["iperf3"][direction]
        value = (
            f"{formatting.bits(found['bits_per_second'])}, "
            f"{formatting.plural(found['retransmits'], 'segment')} sent again in "
            f"{found['seconds']:.0f} s"
        )
        files = _newest(run_dir, "link", f"iperf3-{direction}.json")
        rows.append([words, value, "what the network carries (iperf3)", {"links": files}])
    trip = document["round_trip_us"]
    rows.append([
        "Round trip",
        f"mean {formatting.significant(trip['mean'])} µs, {formatting.significant(trip['min'])} to "
        f"{formatting.significant(trip['max'])}",
        "in every latency at least once (ping)",
        {"links": _newest(run_dir, "link", "ping.txt")},
    ])  # fmt: skip
    ceiling = document["ceiling"]
    busy = {role: formatting.percent(ceiling[f"{role}_cpu_busy"]) for role in ROLES}
    rows.append([
        "Ceiling",
        f"{formatting.rate(ceiling['requests_per_second'])} requests/s with "
        f"{ceiling['generator']}, {ceiling['connections']} connections; "
        f"client {busy['client']} busy, server {busy['server']}",
        "the most to be had from nginx's own static answer",
        {"links": _newest(run_dir, "ceiling", "result.json", OUTPUTS[CLOSED_LOOP])},
    ])  # fmt: skip
    for key, words, meaning in (
        ("floor_us", "Floor", f"latency of {document['generator']} from nginx's own static "
         "answer: nothing below it is the stack's"),
        ("jitter_us", "Jitter", f"how late {document['generator']} issues requests; in no "
         "latency"),
    ):  # fmt: skip
        found = document[key]
        value = "not measured" if not found or found["p50"] is None else ", ".join(
            f"{name.replace('_', '.')} {ms(found[name])}" for name in ("p50", "p99", "p99_9", "max")
        ) + " ms"  # fmt: skip
        output = OUTPUTS[document["generator"]]
        files = _newest(run_dir, "floor", "result.json", output) if found else []
        rows.append([words, value, meaning, {"links": files}])
    offset = document["clock_offset_s"]
    rows.append([
        "Clocks",
        ", ".join(f"{role} {1000 * offset[role]:+.1f} ms" for role in ROLES),
        "each host's less the controller's",
        {"links": []},
    ])  # fmt: skip
    if origin := document.get("origin"):
        measured = datetime.datetime.fromtimestamp(origin["measured"], datetime.UTC)
        again = "" if origin["run_id"] == run_dir.resolve().name else ", and used again"
        rows.append([
            "Measured",
            f"{measured:%Y-%m-%d %H:%M:%S} UTC by run {origin['run_id']}{again}",
            "under the same hosts, programs, tuning, network and load",
            {"links": _newest(run_dir, "link", calibration_reuse.CONDITIONS)},
        ])  # fmt: skip
    return table("Measured before any stack.", ["what", "value", "meaning", "from"], rows,
                 sources=[link("calibration.json")])  # fmt: skip


def tuning(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return {profile, states, hosts, sources} of a ledger, which is the file ``name``.

    states: [{name, words}] of the states that occur; hosts: a table for each host.
    """
    tables = []
    for host, ledger in sorted(document["hosts"].items(), key=_server_first):
        counts = Counter(row["state"] for row in ledger)
        rows = [
            {
                "class": "" if row["state"] in AS_ASKED else "other",
                "cells": [
                    row["key"] + (" (required)" if row["required"] else ""),
                    *(formatting.NONE if row[key] is None else row[key]
                      for key in ("requested", "before", "after")),
                    row["state"],
                    row["reason"],
                ],
            }
            for row in ledger
        ]  # fmt: skip
        said = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
        tables.append(
            table(
                f"What was asked of the {host}, what was found, and what it reads now.",
                ["key", "requested", "before", "after", "state", "reason"],
                rows,
                title=f"{host}: {said}",
                open=any(row["class"] for row in rows),
            )
        )
    used = {row["state"] for ledger in document["hosts"].values() for row in ledger}
    states = [{"name": name, "words": words} for name, words in STATES.items() if name in used]
    return {
        "profile": document["profile"],
        "states": states,
        "hosts": tables,
        "sources": [link(name)],
    }


def _server_first(item: tuple[str, Any]) -> tuple[bool, str]:
    return item[0] != "server", item[0]


def manifest(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return {facts, command, tables, sources}; None without manifest.json.

    facts: [[name, value]]; command: the command line; tables: hosts, options, pins and packages.
    """
    if document is None:
        return None
    hosts = dict(
        sorted(document["hosts"].items(), key=lambda item: (item[1]["role"] != "server", item[0]))
    )
    names = list(hosts)
    rows = [[words, *(show(host) for host in hosts.values())] for words, show in _HOST_ROWS]
    # Runs of an older lab lack it.
    looked = [host.get("hardware") or {} for host in hosts.values()]
    rows += [[words, *map(show, looked)] for words, show in _HARDWARE_ROWS if any(looked)]
    packages = sorted({name for host in hosts.values() for name in host["packages"]})
    versions = [
        [name, *(host["packages"].get(name, formatting.NONE) for host in hosts.values())]
        for name in packages
    ]
    rows += [row for row in versions if row[0] in PROGRAMS]
    spoilers = [[line] for line in hardware.spoilers(hosts)]
    lab = document["lab"]
    revision = lab["revision"] or "not from a git repository"
    controller = document["controller"]
    facts = [
        ["begun", document["started"]],
        ["ended", document["finished"] or "not ended"],
        ["lab", revision + (" with changes of its own" if lab["dirty"] else "")],
        ["controller", ", ".join(f"{name} {value}" for name, value in sorted(controller.items()))],
    ]
    options = [
        [name, "not given" if value is None else _plain(value)]
        for name, value in sorted(document["plan"].get("options", {}).items())
    ]
    given = ("option", "value")
    return {
        "facts": facts,
        "command": shlex.join(document["command"]["argv"]),
        "tables": [
            *([table("What spoils a measurement here, as it was when the load began.",
                     ["whose, what, why, and the remedy"], spoilers)] if spoilers else []),
            table("Both hosts, as found.", ["", *names], rows),
            table("What the run was asked to do; what was not given was left to the lab.",
                  list(given), options, title="Options", open=False),
            table("Versions that the lab pins or resolved.", ["pin", "version"],
                  [[name, version] for name, version in sorted(document["pins"].items())],
                  title=f"Pins: {len(document['pins'])}", open=False),
            table("Every package installed on the hosts.", ["package", *names], versions,
                  title=f"Packages: {len(packages)}", open=False),
        ],
        "sources": [link("manifest.json")],
    }  # fmt: skip


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


_HOST_ROWS: list[tuple[str, Any]] = [
    ("role", lambda host: host["role"]),
    ("CPU", lambda host: host["cpu_model"]),
    ("cores used", lambda host: f"{len(host['cpus'])} of {host['cores']} "
     f"(number {', '.join(map(str, host['cpus']))})"),
    ("memory of the machine", lambda host: formatting.size(host["memory_bytes"])),
    ("kernel", lambda host: host["kernel"]),
    ("operating system", lambda host: host["os"]),
    ("virtualisation", lambda host: host["virtualisation"]),
    ("clock source", lambda host: host["clock_source"]),
    ("frequency governor", lambda host: host["governor"] or "none shown"),
    ("open files granted", lambda host: f"{host['nofile']:,}"),
]  # fmt: skip


def _known(value: Any, show: Callable[[Any], str] = str) -> str:
    return "not told" if value is None else show(value)


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _link(nic: Mapping[str, Any]) -> str:
    speed = _known(nic["speed_mbit"], lambda mbit: formatting.bits(mbit * 1e6))
    return (
        f"{nic['name']} ({_known(nic['driver'])}): {speed}, {_known(nic['duplex'])} duplex, "
        f"{_known(nic['queues'], lambda n: formatting.plural(n, 'queue'))}"
    )


def _interrupts(interrupts: Mapping[str, list[int]]) -> str:
    takers = sorted({cpu for cpus in interrupts.values() for cpu in cpus})
    return f"{len(interrupts)}, to processor {', '.join(map(str, takers))}"


def _offloads(offloads: Mapping[str, bool]) -> str:
    return ", ".join(f"{name} {_switch(on)}" for name, on in sorted(offloads.items()))


def _of_nic(name: str, show: Callable[[Any], str]) -> Callable[[Mapping[str, Any]], str]:
    return lambda found: _known((found.get("nic") or {}).get(name), show)


# Rows on a host's hardware, as it was when the load began.
_HARDWARE_ROWS: list[tuple[str, Callable[[Mapping[str, Any]], str]]] = [
    ("card of the load", lambda found: _known(found.get("nic"), _link)),
    ("its interrupts", _of_nic("interrupts", _interrupts)),
    ("its offloads", _of_nic("offloads", _offloads)),
    ("card of management", lambda found: _known(found.get("management_nic"))),
    ("governor under load", lambda found: _known(found.get("governors"), ", ".join)),
    ("turbo", lambda found: _known(found.get("turbo"), _switch)),
    ("SMT", lambda found: _known(found.get("smt"), _switch)),
    ("NUMA nodes", lambda found: _known(found.get("numa_nodes"))),
    ("clock synchronised", lambda found: _known(found.get("clock_synchronised"),
                                                lambda yes: "yes" if yes else "no")),
]  # fmt: skip


def raw_files(run_dir: Path) -> dict[str, Any]:
    """Return the table of every file of the run, without the report and files written after it."""
    later = {run_dir / name for name in ("report.html", "lesson.md")}
    later.update(run_dir.glob("compare-*.json"))
    paths = [
        path
        for path in sorted(run_dir.rglob("*"))
        if path.is_file() and not path.name.startswith(".") and path not in later
    ]
    rows = [
        [link(path.relative_to(run_dir).as_posix()), f"{path.stat().st_size:,}"] for path in paths
    ]
    return table(
        "Each result.json names the SHA-256 of the raw files it was made from.",
        ["file", "bytes"],
        rows,
        " n",
        title=f"{len(rows)} files",
        open=False,
    )
