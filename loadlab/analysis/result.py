"""One repetition: from its raw files to result.json."""

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
# nginx's counters are read before and after the load.
_WHEN = ("before", "after")
# What is null where a repetition failed.
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
# What result.json tells of each of several clients.
_OF_A_CLIENT = (
    "requests", "responses", "rate_achieved", "errors", "unsent", "latency_us",
)  # fmt: skip


def build(
    rep_dir: Path,
    thresholds: dict[str, Any],
    *calibrations: dict[str, Any] | None,
) -> dict[str, Any]:
    """Return result.json of a repetition's directory; thresholds is files/verdict.yml.

    ``calibrations``: calibration.json of each client, in the order of cell.json; None without one.

    Whatever cannot be read or understood, and an error.txt of the controller, becomes a record
    with `error`, a void verdict and null numbers. Only a cell.json that is absent or names no
    cell raises (ResultError): such a record could not be told from another.
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
        # lacks something. An OSError's own text would hold a path.
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
    """Replace oha.sqlite, once result.json is there, by what result.json can be made from again.

    That is the reduction (requests.json.gz), or the file itself compressed (requests.sqlite.gz)
    where keep_requests asks for it or the repetition failed, for then it is evidence. Does
    nothing where there is no oha.sqlite: another generator's repetition, or one reduced already.
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
    """What one client offered, and what came of it; a cell's only client, or one of several.

    cell          the repetition's, with this client's share of the load
    counters      nginx's requests before and after, None where it is not in the path
    window        the load by the server's clock
    clock_offset  the client's clock less the controller's, seconds
    raw           the raw files of its own, by their names below the repetition
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
    """The folder of each client's raw files, and cell.json as it would be of that client alone.

    An only client's are the repetition's own. Raises ResultError for a client whose name is none.
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

    # Once, and not before a client's own files.
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
            # Of several the one that came closest to its limit.
            "client": max(offered, key=lambda one: float(one.client["cpu_busy"])).client,
        },
        "raw": dict(sorted(hashes.items())),
    }


def _alone(one: _Part, verdict: dict[str, Any], waited: dict[str, Any] | None) -> dict[str, Any]:
    """What a client alone says of its load."""
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
    """What several say of theirs as one, and `clients`. Times are of the clock of the first."""
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
    """One client's part of a repetition, from the raw files in its folder; ``server``: the scrapes
    of the server. Raises ResultError with the client's name where it is one of several."""
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
    # The server's clock is had by way of the controller's.
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
            # Several wait for each other after the warm-up.
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
    """The requests that nginx counted from the last reading before the load to the last after it,
    less those for the pages that were fetched after it, each of which counts itself."""
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
    """Return the measurement, and {file: SHA-256} of the per-request file it was made from."""
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
    """Return the reduction and the SHA-256 of the SQLite file, whichever form of it is there."""
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
    """Return when the load began, when telemetry's part ends, and when the load ended.

    Telemetry is for the duration asked and not up to the finish: the answers waited for after
    the deadline would make a full machine look idle. A batch has no deadline, and its client
    knows best when it began: not when its process did. Unix seconds of the client's clock.
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
