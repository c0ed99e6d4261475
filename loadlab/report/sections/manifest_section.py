"""The part of the page on what was run, by what and on what, and the list of its files."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from loadlab.generators import registry
from loadlab.hosts import hardware
from loadlab.model import CertificateReference, CloudInstance, Hardware, Manifest, ManifestHost, Nic
from loadlab.model.study import OptionValue
from loadlab.report.html import (
    Block,
    Code,
    Column,
    Facts,
    Number,
    Section,
    Table,
    Text,
    columns,
    link,
    present,
    table,
)
from loadlab.report.words import cost_words, labels
from loadlab.run import formatting
from loadlab.run.run_dir import MANIFEST, RESULT, RunDir

# Programs whose versions are listed first; the full list has the others.
PROGRAMS = ("nginx", "postgresql", "python3", registry.saturating(), "iperf3",
            "prometheus-node-exporter", "openssl", "libc6", "systemd")  # fmt: skip

T = TypeVar("T")


def section(manifest: Manifest | None, options: Mapping[str, OptionValue]) -> Section:
    """Return the section; ``options``: the main variables of the run; None: not given."""
    blocks = (
        [Text(f"No {MANIFEST}.", css="missing")] if manifest is None else _blocks(manifest, options)
    )
    return Section("Manifest", blocks, "manifest", "Manifest", folded=True)


def _blocks(manifest: Manifest, options: Mapping[str, OptionValue]) -> list[Block]:
    hosts = dict(
        sorted(manifest.hosts.items(), key=lambda item: (item[1].role != "server", item[0]))
    )
    controller = sorted(manifest.controller.items())
    facts = {
        "started": manifest.started,
        "finished": manifest.finished or "not finished",
        "lab": labels.lab(manifest.lab),
        "certificate": certificate(manifest.certificate),
        "cost": cost_words.sentence(manifest.instances) if manifest.instances else "",
        "controller": ", ".join(f"{name} {value}" for name, value in controller),
    }
    return present(
        Facts({name: value for name, value in facts.items() if name != "cost" or value}),
        Text("To repeat it:"),
        Code(shlex.join(manifest.command.argv)),
        Text("", sources=[link(MANIFEST)]),
        table(
            "Warnings about this hardware, as it was when the load began.",
            [Column("hosts, setting, effect and remedy", str)],
            hardware.warnings(hosts),
        ),
        _hosts(hosts),
        table("The instances that were its hosts.", _INSTANCE, manifest.instances or []),
        _options(options),
        _pins(manifest),
        _packages(hosts),
    )


def certificate(reference: CertificateReference | None) -> str:
    """Return the newest certificate of a run's hosts in words."""
    if reference is None:
        return (
            "hosts like these have no certificate (ansible-playbook playbooks/certify.yml makes "
            "one in about ten minutes)"
        )
    untrue = [name for name in reference.failed if name not in reference.void]
    passed = reference.tests - len(reference.failed)
    tests = formatting.plural(reference.tests, "test")
    right = f"right in {'all' if passed == reference.tests else f'{passed} of'} {tests}"
    wrong = f" and wrong in {', '.join(untrue) or 'none'}" if reference.failed else ""
    void = len(reference.void)
    without = f"; {void} {'has' if void == 1 else 'have'} no valid measurement" if void else ""
    finished = formatting.minute(reference.finished)
    return (
        f"certificate of {finished} (run {reference.run_id}): tested with known faults, the lab "
        f"was {right}{wrong}{without}"
    )


# A property of the hosts, such as their kernel: its name, and what shows it.
Property: TypeAlias = tuple[str, Callable[[ManifestHost], str]]


def _by_host(head: str, hosts: Mapping[str, ManifestHost]) -> list[Column[Property]]:
    """Return the columns of a table of properties: their name, and each host."""
    return [
        Column(head, lambda row: row[0]),
        *columns(hosts, str, lambda row, host: row[1](hosts[host]), numeric=False),
    ]


def _hosts(hosts: Mapping[str, ManifestHost]) -> Table:
    generators = sorted({name for host in hosts.values() for name in host.generators or {}})
    rows: list[Property] = [
        *_HOST_ROWS,
        *((name, _of(show)) for name, show in _HARDWARE_ROWS),
        *((f"generator {name}", partial(_program, name)) for name in generators),
        *(row for row in _versions(hosts) if row[0] in PROGRAMS),
    ]
    return table("The hosts, as found.", _by_host("", hosts), rows)


def _program(name: str, host: ManifestHost) -> str:
    program = (host.generators or {}).get(name)
    if program is None:
        return formatting.NONE
    snap = f", revision {program.snap_revision} of its snap" if program.snap_revision else ""
    return f"{program.version}{snap}, SHA-256 {program.sha256}"


_INSTANCE: Sequence[Column[CloudInstance]] = [
    Column("host", lambda instance: instance.host),
    Column("instance", lambda instance: instance.instance_id),
    Column("type", lambda instance: instance.type),
    Column("image", lambda instance: instance.image),
    Column("zone", lambda instance: instance.zone),
    Column("tenancy", lambda instance: instance.tenancy),
    Column("bought", lambda instance: "spot" if instance.spot else "on demand"),
    Column("launched", lambda instance: instance.launched),
    Column("hours", lambda instance: f"{instance.hours:.2f}"),
    Column("USD", lambda instance: "unknown" if instance.usd is None else f"{instance.usd:.2f}"),
]


def _versions(hosts: Mapping[str, ManifestHost]) -> list[Property]:
    """Return each package with its version on each host."""
    names = sorted({name for host in hosts.values() for name in host.packages})
    return [(name, partial(_version, name)) for name in names]


def _version(name: str, host: ManifestHost) -> str:
    return host.packages.get(name, formatting.NONE)


def _options(options: Mapping[str, OptionValue]) -> Table:
    def value(name: str) -> str:
        option = options[name]
        return "not given" if option is None else _plain(option)

    return table(
        "The options of the run. The lab chose a value for each that was not given.",
        [Column("option", str), Column("value", value)],
        sorted(options),
        title="Options",
        open=False,
    )


def _pins(manifest: Manifest) -> Table:
    return table(
        "Versions that the lab pins or resolved.",
        [Column("pin", str), Column("version", manifest.pins.__getitem__)],
        sorted(manifest.pins),
        title=f"Pins: {len(manifest.pins)}",
        open=False,
    )


def _packages(hosts: Mapping[str, ManifestHost]) -> Table:
    rows = _versions(hosts)
    return table(
        "Every package installed on the hosts.",
        _by_host("package", hosts),
        rows,
        title=f"Packages: {len(rows)}",
        open=False,
    )


def _plain(value: OptionValue) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


_HOST_ROWS: list[Property] = [
    ("role", lambda host: host.role),
    ("CPU", lambda host: host.cpu_model),
    ("cores used", lambda host: f"{len(host.cpus)} of {host.cores} "
     f"(number {', '.join(map(str, host.cpus))})"),
    ("memory of the machine", lambda host: formatting.size(host.memory_bytes)),
    ("kernel", lambda host: host.kernel),
    ("operating system", lambda host: host.os),
    ("virtualisation", lambda host: host.virtualisation),
    ("clock source", lambda host: host.clock_source),
    ("frequency governor", lambda host: host.governor or "none shown"),
    ("open files granted", lambda host: f"{host.nofile:,}"),
]  # fmt: skip


def _of(show: Callable[[Hardware], str]) -> Callable[[ManifestHost], str]:
    return lambda host: show(host.hardware)


def _known(value: T | None, show: Callable[[T], str]) -> str:
    return "unknown" if value is None else show(value)


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _link(nic: Nic) -> str:
    speed = _known(nic.speed_mbit, lambda mbit: formatting.bits(mbit * 1e6))
    return (
        f"{nic.name} ({_known(nic.driver, str)}): {speed}, {_known(nic.duplex, str)} duplex, "
        f"{_known(nic.queues, lambda n: formatting.plural(n, 'queue'))}, MTU {_known(nic.mtu, str)}"
    )


def _of_cards(show: Callable[[Nic], str]) -> Callable[[Hardware], str]:
    """Return what shows a property of each card, with its name where there are several."""

    def shown(hardware: Hardware) -> str:
        # That of the test address, or those below a bond or a VLAN.
        cards = hardware.cards or ([hardware.nic] if hardware.nic else [])
        named = [f"{card.name}: {show(card)}" for card in cards]
        return "; ".join(named) if len(cards) > 1 else "".join(map(show, cards)) or "unknown"

    return shown


def _steering(nic: Nic) -> str:
    return (
        f"RPS on {_known(nic.rps_queues, lambda n: formatting.plural(n, 'queue'))}, "
        f"XPS on {_known(nic.xps_queues, lambda n: formatting.plural(n, 'queue'))}"
    )


def _coalescing(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(values.items()))


def _idle_states(hardware: Hardware) -> str:
    if hardware.idle_driver is None:
        return "unknown"
    if hardware.idle_states_us is None:
        return f"none (cpuidle driver: {hardware.idle_driver})"
    states = sorted(hardware.idle_states_us.items(), key=lambda item: item[1])
    shown = ", ".join(f"{name} {us} µs" for name, us in states) or "all off"
    return f"{shown}; while measuring only POLL" if hardware.kept_awake else shown


def _conntrack(hardware: Hardware) -> str:
    if hardware.conntrack_max is None:
        return "unknown"
    if hardware.conntrack_max == 0:
        return "not loaded"
    return f"{hardware.conntrack_entries or 0:,} of {hardware.conntrack_max:,}"


def _interrupts(interrupts: Mapping[str, Sequence[int]]) -> str:
    processors = sorted({cpu for cpus in interrupts.values() for cpu in cpus})
    return f"{len(interrupts)}, to processor {', '.join(map(str, processors))}"


def _offloads(offloads: Mapping[str, bool]) -> str:
    return ", ".join(f"{name} {_switch(on)}" for name, on in sorted(offloads.items()))


# Rows on a host's hardware, as it was when the load began.
_HARDWARE_ROWS: list[tuple[str, Callable[[Hardware], str]]] = [
    ("card of the load", lambda hardware: _known(hardware.nic, _link)),
    ("cards below it", lambda hardware: "; ".join(map(_link, hardware.cards or [])) or "none"),
    ("its interrupts", _of_cards(lambda card: _known(card.interrupts, _interrupts))),
    ("its offloads", _of_cards(lambda card: _known(card.offloads, _offloads))),
    ("its coalescing", _of_cards(lambda card: _known(card.coalescing, _coalescing))),
    ("its packet steering", _of_cards(_steering)),
    ("card of management", lambda hardware: _known(hardware.management_nic, str)),
    ("governor under load", lambda hardware: _known(hardware.governors, ", ".join)),
    ("turbo", lambda hardware: _known(hardware.turbo, _switch)),
    ("idle states", _idle_states),
    ("SMT", lambda hardware: _known(hardware.smt, _switch)),
    ("NUMA nodes", lambda hardware: _known(hardware.numa_nodes, str)),
    ("NUMA balancing", lambda hardware: _known(hardware.numa_balancing, _switch)),
    ("irqbalance", lambda hardware: _known(hardware.irqbalance, str)),
    ("firewall rules", lambda hardware: _known(hardware.firewall_rules, str)),
    ("connections tracked", _conntrack),
    ("clock synchronised", lambda hardware: _known(hardware.clock_synchronised,
                                                lambda yes: "yes" if yes else "no")),
]  # fmt: skip


def raw_files(run_dir: Path) -> Section:
    """Return every file of the run, without the report and files written after it."""
    run = RunDir(run_dir)
    pages = {run.report, run.comment, run.lesson_text, run.lesson_page}
    later = {*pages, run.crate, *run.comparisons()}
    paths = [
        path
        for path in sorted(run_dir.rglob("*"))
        if path.is_file() and not path.name.startswith(".") and path not in later
    ]
    files = table(
        f"Each {RESULT} names the SHA-256 of the raw files it was made from.",
        [
            Column("file", lambda path: link(path.relative_to(run_dir))),
            Number("bytes", lambda path: f"{path.stat().st_size:,}"),
        ],
        paths,
        title=formatting.plural(len(paths), "file"),
        open=False,
    )
    return Section("Raw files", [files], "files", "Raw files", folded=True)
