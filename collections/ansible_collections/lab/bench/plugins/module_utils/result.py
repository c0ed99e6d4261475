"""One repetition: from its raw files to result.json."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
import zlib
from pathlib import Path
from typing import Any

from . import (
    files,
    latency,
    oha,
    oha_requests,
    processes,
    profiles,
    python_client,
    telemetry,
    wrk,
    wrk2,
)
from .files import ResultError
from .measurement import GeneratorError, Measurement
from .verdict import judge

SCHEMA = "lab/1"
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
    "jitter_us",
    "histogram",
    "per_second",
    "telemetry",
    "client",
    "profile",
    "started",
    "finished",
)


def build(
    rep_dir: Path, thresholds: dict[str, Any], calibration: dict[str, Any] | None
) -> dict[str, Any]:
    """Return result.json of a repetition's directory; thresholds is files/verdict.yml.

    Whatever cannot be read or understood, and an error.txt of the controller, becomes a record
    with `error`, a void verdict and null numbers. Only a cell.json that is absent or names no
    cell raises (ResultError): such a record could not be told from another.
    """
    description = files.load(rep_dir / "cell.json")
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
        return {**base, **_measured(rep_dir, description, thresholds, calibration)}
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
    database = rep_dir / DATABASE
    if not database.exists():
        return
    failed = files.load(rep_dir / "result.json")["error"] is not None
    if keep_requests or failed:
        files.write(rep_dir / KEPT, gzip.compress(database.read_bytes(), mtime=0))
    else:
        load = files.load(rep_dir / "cell.json")["cell"]["load"]
        reduction = {
            **oha_requests.reduce(database, float(load["rate"]), float(load["duration_s"])),
            "sha256": files.digest(database.read_bytes()),
        }
        packed = json.dumps(reduction, sort_keys=True, allow_nan=False).encode()
        files.write(rep_dir / REDUCED, gzip.compress(packed, mtime=0))
    database.unlink()


def _measured(
    rep_dir: Path,
    description: dict[str, Any],
    thresholds: dict[str, Any],
    calibration: dict[str, Any] | None,
) -> dict[str, Any]:
    if (rep_dir / "error.txt").exists():
        raise ResultError(files.text(rep_dir / "error.txt").strip() or "error.txt is empty")
    cell, run = description["cell"], files.load(rep_dir / "run.json")
    raw = {"cell.json", "run.json"}
    if run["exit_code"] != 0 and not (rep_dir / _output(cell)).exists():
        raise ResultError(f"generator_failed: exit code {run['exit_code']}, no {_output(cell)}")
    measurement, database = _measurement(rep_dir, description)
    raw.add(_output(cell))
    hosts = {name: rep_dir / f"telemetry-{name}.prom.gz" for name in ("server", "client")}
    started, end, finished = _times(run, cell["load"], measurement)
    summaries = _telemetry(rep_dir, hosts, description, started, end)
    raw |= {path.name for path in hosts.values()} | processes.raw(rep_dir)
    requests = None
    if cell.get("front") == "none":
        measurement.findings.append(
            "uncounted: nginx is not in the path, and nobody else counts requests at the server"
        )
    else:
        before, after = (_stub_requests(rep_dir / f"nginx-{when}.txt") for when in _WHEN)
        # The page fetched afterwards counts itself.
        requests = after - before - 1
        raw |= {f"nginx-{when}.txt" for when in _WHEN}
    profile = None
    if description["purpose"] == "profile":
        profile = profiles.reduce(rep_dir)
        raw |= {profiles.STACKS, profiles.LOG}
    hashes = {name: files.digest((rep_dir / name).read_bytes()) for name in raw}
    return {
        **_numbers(measurement),
        "server_requests": requests,
        "profile": profile,
        "telemetry": summaries,
        "verdict": judge(
            measurement,
            cell,
            summaries["server"],
            summaries["client"],
            calibration,
            int(run["exit_code"]),
            thresholds,
        ),
        "started": started,
        "finished": finished,
        "raw": dict(sorted({**hashes, **database}.items())),
    }


def _output(cell: dict[str, Any]) -> str:
    generator = cell["load"]["generator"]
    names = {
        "oha": "oha.json",
        "wrk": "wrk.txt",
        "wrk2": "wrk2.txt",
        **{name: f"{name}.json.gz" for name in python_client.GENERATORS},
    }
    if generator not in names:
        raise GeneratorError(f"no parser for generator {generator!r}, only {', '.join(names)}")
    return names[generator]


def _measurement(rep_dir: Path, description: dict[str, Any]) -> tuple[Measurement, dict[str, str]]:
    """Return the measurement, and {file: SHA-256} of the per-request file it was made from."""
    load = description["cell"]["load"]
    path = rep_dir / _output(description["cell"])
    if load["mode"] == "batch":
        if not path.exists():
            raise ResultError(f"{path.name} is not there")
        return python_client.measure(path.read_bytes(), load, description["body_bytes"]), {}
    output = files.text(path)
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
        return oha_requests.reduce(database, rate, duration_s), files.digest(database.read_bytes())
    try:
        if kept.exists():
            content = gzip.decompress(kept.read_bytes())
            with tempfile.TemporaryDirectory() as directory:
                copy = Path(directory) / DATABASE
                copy.write_bytes(content)
                return oha_requests.reduce(copy, rate, duration_s), files.digest(content)
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
    page = files.text(path)
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


def _telemetry(
    rep_dir: Path, hosts: dict[str, Path], description: dict[str, Any], start: float, end: float
) -> dict[str, Any]:
    """Summarise both hosts from start to end, which are of the client's clock.

    The server's clock is had by way of the controller's.
    """
    samples = {}
    for name, path in hosts.items():
        if not path.exists():
            raise ResultError(f"{path.name} is not there")
        samples[name] = telemetry.read(path)
    offsets = {name: telemetry.clock_offset(found) for name, found in samples.items()}
    summaries = {
        name: telemetry.summarise(
            found,
            description["cpus"][name],
            start + offsets[name] - offsets["client"],
            end + offsets[name] - offsets["client"],
            description["interface"][name],
        )
        for name, found in samples.items()
    }
    ahead = offsets["server"] - offsets["client"]
    warmed = float(description["cell"]["load"]["warmup_s"]) > 0
    window = processes.Window(start + ahead, end + ahead, warmed)
    cores = len(description["cpus"]["server"])
    return {
        **summaries,
        "server": {**summaries["server"], **processes.server(rep_dir, window, cores)},
    }


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
    histogram = {
        "format": latency.FORMAT,
        "unit": "us",
        "data": latency.encode(measurement.histogram),
    }
    return {**{name: getattr(measurement, name) for name in names}, "histogram": histogram}
