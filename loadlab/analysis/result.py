"""Build result.json of one repetition from its raw files."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from loadlab.analysis import response_time
from loadlab.analysis.verdict import judge, judge_together
from loadlab.core import documents
from loadlab.core.documents import SCHEMA
from loadlab.core.errors import ResultError
from loadlab.core.run_dir import NAME
from loadlab.generators import merge, oha, oha_database, python_client, wrk, wrk2
from loadlab.generators.measurement import GeneratorError, Measurement
from loadlab.generators.registry import OUTPUTS
from loadlab.stats import histograms
from loadlab.telemetry import node_exporter, processes, pyspy

DATABASE = "oha.sqlite"
REDUCED = "requests.json.gz"
KEPT = "requests.sqlite.gz"

_STUB_STATUS = re.compile(
    r"Active connections: \d+ \nserver accepts handled requests\n \d+ \d+ (\d+) \n"
    r"Reading: \d+ Writing: \d+ Waiting: \d+ \n"
)
# When nginx's counters are read: before and after the load.
_WHEN = ("before", "after")
# Keys that are null where a repetition failed.
_NUMBERS = (
    "requests",
    "responses",
    "ok",
    "rate_achieved",
    "goodput",
    "errors",
    "aborted",
    "scheduled",
    "unsent",
    "duration_s",
    "server_requests",
    "mean_service_us",
    "latency_us",
    "latency_from",
    "reactivity",
    "jitter_us",
    "histogram",
    "per_second",
    "telemetry",
    "client",
    "profile",
    "started",
    "finished",
)
# Keys that result.json has for each of several clients.
_OF_A_CLIENT = (
    "requests", "responses", "rate_achieved", "errors", "unsent", "latency_us",
)  # fmt: skip


def build(
    rep_dir: Path,
    thresholds: dict[str, Any],
    *calibrations: dict[str, Any] | None,
) -> dict[str, Any]:
    """Return result.json of a repetition's directory.

    ``thresholds``: files/verdict.yml. ``calibrations``: calibration.json of each client, in the
    order of cell.json; None for a client without one. The keys are described in
    files/schema/lab-1.schema.json, definition `result`.

    A raw file that cannot be read or understood, or the controller's error.txt, gives a record with
    `error`, a void verdict and null numbers. Raises ResultError only where cell.json is absent or
    incomplete: such a record could not be identified.
    """
    description = documents.load(rep_dir / "cell.json")
    absent = {"cell_id", "repetition", "cell", "purpose"} - set(description)
    if absent:
        raise ResultError(f"cell.json lacks {', '.join(sorted(absent))}")
    base = {
        "schema": SCHEMA,
        **{key: description[key] for key in ("cell_id", "repetition", "purpose", "cell")},
        **{key: description.get(key) for key in ("pair", "definition")},
        "error": None,
        **dict.fromkeys(_NUMBERS),
        "raw": {},
    }
    try:
        return {**base, **_measured(rep_dir, description, thresholds, calibrations)}
    except (ValueError, LookupError, TypeError, OSError) as error:
        # Every error of this package is a ValueError; a LookupError or TypeError is a raw file that
        # lacks something. The text of an OSError would contain a path.
        words = (
            f"{type(error).__name__}: {error}"
            if isinstance(error, LookupError | TypeError)
            else str(error)
        )
        if isinstance(error, OSError):
            words = f"{error.strerror}: {Path(str(error.filename)).name}"
        return {
            **base,
            "error": words,
            "verdict": {"valid": False, "reasons": [f"failed: {words}"], "findings": []},
        }


def reduce(rep_dir: Path, keep_requests: bool) -> None:
    """Replace oha.sqlite, once result.json exists, with data from which result.json can be rebuilt.

    This is the reduction (requests.json.gz), or the compressed file itself (requests.sqlite.gz)
    where keep_requests asks for it or the repetition failed and the file is evidence. Does nothing
    without an oha.sqlite: another generator, or reduced already.
    """
    for folder, alone in parts(rep_dir, documents.load(rep_dir / "cell.json")):
        database = folder / DATABASE
        if not database.exists():
            continue
        failed = documents.load(rep_dir / "result.json")["error"] is not None
        if keep_requests or failed:
            documents.write(folder / KEPT, gzip.compress(database.read_bytes(), mtime=0))
        else:
            load = alone["cell"]["load"]
            reduction = {
                **oha_database.reduce(database, float(load["rate"]), float(load["duration_s"])),
                "sha256": documents.digest(database.read_bytes()),
            }
            packed = json.dumps(reduction, sort_keys=True, allow_nan=False).encode()
            documents.write(folder / REDUCED, gzip.compress(packed, mtime=0))
        database.unlink()


@dataclass(frozen=True)
class _Part:
    """The load of one client and its results; the client is a cell's only one, or one of several.

    - name: the client's folder; cell: the repetition's, with this client's share of the load
    - counters: nginx's requests before and after, None where nginx is not used
    - server, client: telemetry of each host during this client's load
    - window: the load by the server's clock
    - started, finished: unix seconds of the client's clock
    - clock_offset: the client's clock minus the controller's, in seconds
    - raw: SHA-256 of its own raw files, by name below the repetition
    """

    name: str
    cell: dict[str, Any]
    measurement: Measurement
    counters: tuple[int, int] | None
    server: dict[str, Any]
    client: dict[str, Any]
    window: processes.Window
    started: float
    finished: float
    clock_offset: float
    exit_code: int
    raw: dict[str, str]


def parts(rep_dir: Path, description: dict[str, Any]) -> list[tuple[Path, dict[str, Any]]]:
    """Return (folder of raw files, cell.json as if for that client alone) of each client.

    The folder of an only client is the repetition's. Raises ResultError for an invalid client name.
    """
    if "clients" not in description:
        return [(rep_dir, description)]
    whole = {key: value for key, value in description["cell"]["load"].items() if key != "clients"}
    found = []
    for one in description["clients"]:
        if not NAME.fullmatch(one["name"]):
            raise ResultError(f"cell.json has a client {one['name']!r}, which names no folder")
        load = {**whole, "rate": one["rate"], "connections": one["connections"]}
        alone = {**description, "cell": {**description["cell"], "load": load}}
        for key in ("cpus", "interface"):
            alone[key] = {**description[key], "client": one[key]}
        found.append((rep_dir / "clients" / one["name"], alone))
    return found


def _measured(
    rep_dir: Path,
    description: dict[str, Any],
    thresholds: dict[str, Any],
    calibrations: Sequence[dict[str, Any] | None],
) -> dict[str, Any]:
    if (rep_dir / "error.txt").exists():
        raise ResultError(documents.text(rep_dir / "error.txt").strip() or "error.txt is empty")
    recording = rep_dir / "telemetry-server.prom.gz"

    # Read once, and only after a client's own files.
    @cache
    def server() -> list[node_exporter.Sample]:
        return node_exporter.read(_there(recording))

    offered = [
        _part(rep_dir, folder, alone, server) for folder, alone in parts(rep_dir, description)
    ]
    verdicts = [
        judge(
            one.measurement,
            one.cell,
            one.server,
            one.client,
            calibration,
            one.exit_code,
            thresholds,
        )
        for one, calibration in zip(offered, calibrations, strict=True)
    ]
    waits = [
        response_time.summarise(
            one.measurement.waited,
            one.cell["load"]["rate"],
            thresholds["timeout_s"],
            thresholds["pacer_p99_max_us"],
        )
        for one in offered
    ]
    raw = {"cell.json", recording.name} | processes.raw(rep_dir)
    profile = None
    if description["purpose"] == "profile":
        profile = pyspy.reduce(rep_dir)
        raw |= {pyspy.STACKS, pyspy.LOG}
    hashes = _hashes(rep_dir, raw)
    for one in offered:
        hashes |= one.raw
    first = offered[0]
    cores = len(description["cpus"]["server"])
    if len(offered) == 1:
        whole = _alone(first, verdicts[0], waits[0])
    else:
        whole = _together(offered, verdicts, waits, calibrations, description["cell"], thresholds)
    return {
        **whole,
        "server_requests": _counted(offered),
        "profile": profile,
        "telemetry": {
            "server": {**first.server, **processes.server(rep_dir, first.window, cores)},
            # Of several clients, the one closest to its limit.
            "client": max(offered, key=lambda one: float(one.client["cpu_busy"])).client,
        },
        "raw": dict(sorted(hashes.items())),
    }


def _alone(one: _Part, verdict: dict[str, Any], waited: dict[str, Any] | None) -> dict[str, Any]:
    """Return the keys of result.json that come from a load of one client."""
    return {
        **_numbers(one.measurement),
        "reactivity": waited,
        "verdict": verdict,
        "started": one.started,
        "finished": one.finished,
    }


def _together(
    offered: Sequence[_Part],
    verdicts: Sequence[dict[str, Any]],
    waits: Sequence[dict[str, Any] | None],
    calibrations: Sequence[dict[str, Any] | None],
    cell: dict[str, Any],
    thresholds: dict[str, Any],
) -> dict[str, Any]:
    """Return the merged results of several clients, and `clients`. Times are by the
    first's clock."""
    merged = merge.merge([one.measurement for one in offered])
    first = offered[0]
    spread = merge.spread_s([(one.started, one.clock_offset) for one in offered])
    named = dict(zip((one.name for one in offered), verdicts, strict=True))
    ended = max(one.finished - one.clock_offset for one in offered) + first.clock_offset
    return {
        **_numbers(merged),
        "reactivity": response_time.add_up(waits),
        "verdict": judge_together(
            named,
            merged,
            cell,
            first.server,
            [one.client for one in offered],
            calibrations,
            spread,
            thresholds,
        ),
        "started": first.started,
        "finished": ended,
        "clients": [
            {
                "name": one.name,
                **{key: one.cell["load"][key] for key in ("rate", "connections")},
                **{key: getattr(one.measurement, key) for key in _OF_A_CLIENT},
                "telemetry": one.client,
                "verdict": verdict,
                "started": one.started,
                "clock_offset_s": one.clock_offset,
            }
            for one, verdict in zip(offered, verdicts, strict=True)
        ],
    }


def _part(
    rep_dir: Path,
    folder: Path,
    description: dict[str, Any],
    server: Callable[[], list[node_exporter.Sample]],
) -> _Part:
    """Return one client's part of a repetition, from the raw files in its folder.

    ``server``: returns the server's scrapes. Raises ResultError, with the client's name if there
    are several.
    """
    if folder == rep_dir:
        return _read(rep_dir, folder, description, server)
    try:
        if (folder / "error.txt").exists():
            raise ResultError(documents.text(folder / "error.txt").strip() or "error.txt is empty")
        return _read(rep_dir, folder, description, server)
    except ValueError as problem:
        raise ResultError(f"{folder.name}: {problem}") from problem


def _read(
    rep_dir: Path,
    folder: Path,
    description: dict[str, Any],
    server: Callable[[], list[node_exporter.Sample]],
) -> _Part:
    cell, run = description["cell"], documents.load(folder / "run.json")
    recording = folder / "telemetry-client.prom.gz"
    raw = {"run.json", recording.name}
    if run["exit_code"] != 0 and not (folder / _output(cell)).exists():
        raise ResultError(f"generator_failed: exit code {run['exit_code']}, no {_output(cell)}")
    measurement, database = _measurement(folder, description)
    raw.add(_output(cell))
    started, end, finished = _times(run, cell["load"], measurement)
    samples = {"server": server(), "client": node_exporter.read(_there(recording))}
    offsets = {name: node_exporter.clock_offset(found) for name, found in samples.items()}
    # The server's clock relative to the client's, by way of the controller's.
    ahead = {name: offset - offsets["client"] for name, offset in offsets.items()}
    hosts = {
        name: node_exporter.summarise(
            found,
            description["cpus"][name],
            start=started + ahead[name],
            end=end + ahead[name],
            interface=description["interface"][name],
        )
        for name, found in samples.items()
    }
    counters = None
    if cell.get("front") == "none":
        measurement.findings.append(
            "uncounted: nginx is not in the path, and nobody else counts requests at the server"
        )
    else:
        before, after = (_stub_requests(folder / f"nginx-{when}.txt") for when in _WHEN)
        counters = before, after
        raw |= {f"nginx-{when}.txt" for when in _WHEN}
    hashes = {**_hashes(folder, raw), **database}
    below = "" if folder == rep_dir else f"{folder.relative_to(rep_dir).as_posix()}/"
    return _Part(
        name=folder.name,
        cell=cell,
        measurement=measurement,
        counters=counters,
        server=hosts["server"],
        client=hosts["client"],
        window=processes.Window(
            started + ahead["server"],
            end + ahead["server"],
            # Several clients wait for each other after the warm-up.
            warmed=float(cell["load"]["warmup_s"]) > 0 and folder == rep_dir,
        ),
        started=started,
        finished=finished,
        clock_offset=offsets["client"],
        exit_code=int(run["exit_code"]),
        raw={f"{below}{name}": sha256 for name, sha256 in hashes.items()},
    )


def _there(path: Path) -> Path:
    if not path.exists():
        raise ResultError(f"{path.name} is not there")
    return path


def _hashes(folder: Path, names: set[str]) -> dict[str, str]:
    return {name: documents.digest((folder / name).read_bytes()) for name in names}


def _counted(offered: Sequence[_Part]) -> int | None:
    """Return the requests that nginx counted from the last page before the load to the last after
    it.

    Each page fetched after the load counts itself, so these are subtracted. None without nginx.
    """
    counters = [one.counters for one in offered if one.counters is not None]
    if not counters:
        return None
    last_before = max(before for before, _ in counters)
    last_after = max(after for _, after in counters)
    return last_after - last_before - len(counters)


def _output(cell: dict[str, Any]) -> str:
    generator = cell["load"]["generator"]
    if generator not in OUTPUTS:
        raise GeneratorError(f"no parser for generator {generator!r}, only {', '.join(OUTPUTS)}")
    return OUTPUTS[generator]


def _measurement(rep_dir: Path, description: dict[str, Any]) -> tuple[Measurement, dict[str, str]]:
    """Return the measurement, and {file: SHA-256} of the file of requests behind it."""
    load = description["cell"]["load"]
    path = rep_dir / _output(description["cell"])
    if load["mode"] == "batch":
        if not path.exists():
            raise ResultError(f"{path.name} is not there")
        return python_client.measure(path.read_bytes(), load, description["body_bytes"]), {}
    output = documents.text(path)
    if load["generator"] == "wrk":
        return wrk.measure(output, int(load["connections"]), description["wire_bytes"]), {}
    if load["generator"] == "wrk2":
        return wrk2.measure(output, load, description["wire_bytes"]), {}
    reduction, sha256 = _reduction(rep_dir, float(load["rate"]), float(load["duration_s"]))
    measured = oha.measure(
        output, reduction, description["body_bytes"], http2=load.get("http2", False)
    )
    return measured, {DATABASE: sha256}


def _reduction(rep_dir: Path, rate: float, duration_s: float) -> tuple[dict[str, Any], str]:
    """Return the reduction and the SHA-256 of the SQLite file, from whichever form of it exists."""
    database, kept, reduced = (rep_dir / name for name in (DATABASE, KEPT, REDUCED))
    if database.exists():
        return oha_database.reduce(database, rate, duration_s), documents.digest(
            database.read_bytes()
        )
    try:
        if kept.exists():
            content = gzip.decompress(kept.read_bytes())
            with tempfile.TemporaryDirectory() as directory:
                copy = Path(directory) / DATABASE
                copy.write_bytes(content)
                return oha_database.reduce(copy, rate, duration_s), documents.digest(content)
        if reduced.exists():
            reduction: dict[str, Any] = json.loads(gzip.decompress(reduced.read_bytes()))
            if (reduction["rate"], reduction["duration_s"]) != (rate, duration_s):
                raise ResultError(
                    f"{REDUCED} is of {reduction['rate']}/s for {reduction['duration_s']} s, "
                    f"cell.json of {rate}/s for {duration_s} s"
                )
            return reduction, str(reduction.pop("sha256"))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ResultError(f"{kept.name} or {reduced.name} is truncated: {error}") from error
    raise ResultError(f"none of {DATABASE}, {KEPT}, {REDUCED} is there")


def _stub_requests(path: Path) -> int:
    page = documents.text(path)
    match = _STUB_STATUS.fullmatch(page)
    if match is None:
        raise ResultError(f"{path.name} is no stub_status page: {page[:120]!r}")
    return int(match[1])


def _times(
    run: dict[str, Any], load: dict[str, Any], measurement: Measurement
) -> tuple[float, float, float]:
    """Return the start of the load, the end for telemetry, and the finish.

    All are unix seconds of the client's clock. Telemetry ends with the duration asked, not at the
    finish: while the last answers arrive, a full machine would look idle. A batch has no deadline,
    and its client knows the start better than its process.
    """
    if measurement.span:
        started, finished = measurement.span
        return started, finished, finished
    started, finished = float(run["started"]), float(run["finished"])
    return started, min(finished, started + float(load["duration_s"])), finished


def _numbers(measurement: Measurement) -> dict[str, Any]:
    names = (
        "requests",
        "responses",
        "ok",
        "rate_achieved",
        "goodput",
        "errors",
        "aborted",
        "scheduled",
        "unsent",
        "duration_s",
        "mean_service_us",
        "latency_us",
        "latency_from",
        "jitter_us",
        "per_second",
        "client",
    )
    histogram = histograms.document(measurement.histogram)
    return {**{name: getattr(measurement, name) for name in names}, "histogram": histogram}
