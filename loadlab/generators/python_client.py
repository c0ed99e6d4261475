"""Turn the result of files/clients/client.py into a Measurement.

The load is a batch: a number of requests, started as the client's own design has it, that ends with
the last of them. It has no schedule, so a latency counts from the send and includes connecting. In
the bounded client a request that waits for the semaphore has not been sent yet. aiohttp itself
repeats a request whose connection was lost before the answer; the server counts two.
"""

import gzip
import re
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from loadlab.generators import tally
from loadlab.generators.generator import Answer, Generator, Request
from loadlab.generators.measurement import ERROR_CLASSES, GeneratorError, Measurement
from loadlab.model import ClientCpu, Load, PerSecond, PythonClient
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.run.formatting import plain, plural
from loadlab.run.run_dir import STATUS
from loadlab.stats import histograms, latency_bins

FORMAT = "lab python client/1"

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.bool_]

# Outcomes of a request without an answer: the errno in the library's exception, or else the name of
# the exception. First those of aiohttp, then those of requests.
_CLASSES = {
    "timeout": "timeout",
    "ETIMEDOUT": "timeout",
    **dict.fromkeys(
        ("EMFILE", "ENFILE", "EADDRNOTAVAIL", "EADDRINUSE", "ECONNREFUSED", "EHOSTUNREACH",
         "ENETUNREACH", "ENETDOWN", "ENOBUFS", "ENOMEM", "EACCES", "EPERM",
         "ClientConnectorDNSError"),
        "connect",
    ),
    **dict.fromkeys(
        ("ECONNRESET", "ECONNABORTED", "ServerDisconnectedError", "ClientPayloadError",
         "ClientResponseError", "ClientOSError", "ClientConnectionError",
         "ConnectionError", "ChunkedEncodingError", "ContentDecodingError", "InvalidHeader"),
        "read",
    ),
    **dict.fromkeys(("EPIPE", "ENOTCONN", "ClientConnectionResetError"), "write"),
}  # fmt: skip
_STATUS = re.compile(r"HTTP (\d{3})")


class Head(Struct):
    """What tells which format the rest has."""

    format: str = ""


class Batch(Head, kw_only=True):
    """The result of files/clients/client.py.

    start_s, duration_s and outcome (an index of outcomes) have an item for each request.
    """

    client: str
    requests: int
    connections: int
    reuse: bool
    body_bytes: int
    seconds: float
    started: float
    finished: float
    cpu_s: ClientCpu
    max_rss_kb: int
    open_files: int
    local_ports: list[int]
    versions: dict[str, str]
    outcomes: list[str]
    start_s: list[float]
    duration_s: list[float]
    outcome: list[Annotated[int, Meta(ge=-1, lt=2**31)]]


def classify(outcome: str) -> str:
    """Return "ok" or the class of ERROR_CLASSES for a request's outcome.

    Raises GeneratorError quoting an unknown outcome.
    """
    if outcome in ("ok", "body"):
        return outcome
    status = _STATUS.fullmatch(outcome)
    if status:
        return f"status_{status[1][0]}xx" if status[1][0] in "45" else "status_other"
    if outcome in _CLASSES:
        return _CLASSES[outcome]
    raise GeneratorError(
        f"outcome not understood: {outcome!r}; add it to python_client.py's classes"
    )


def answered(outcome: str) -> bool:
    """Return whether a request with that outcome had a complete answer, right or wrong."""
    return outcome in ("ok", "body") or _STATUS.fullmatch(outcome) is not None


def measure(packed: bytes, load: Load, body_bytes: int) -> Measurement:
    """Return the Measurement of the client's compressed result.

    ``load`` is the cell's and ``body_bytes`` the expected length of a body; the client must have
    run with both. Rates cover the whole batch, from before the first request to after the last.
    Latencies are those of the ok answers. Raises GeneratorError for a file that is truncated, was
    made with other settings, or contradicts itself.
    """
    batch = _document(packed)
    _check_settings(batch, load, body_bytes)
    start, duration, outcome = _requests(batch)
    outcomes = batch.outcomes
    counts = np.bincount(outcome, minlength=len(outcomes)).tolist()
    errors = dict.fromkeys(ERROR_CLASSES, 0)
    failures: dict[str, int] = {}
    responses = ok = 0
    for name, count in zip(outcomes, counts, strict=True):
        responses += count if answered(name) else 0
        kind = classify(name)
        if kind == "ok":
            ok += count
        elif count:
            errors[kind] += count
            failures[name] = count
    us = np.rint(duration * 1e6).astype(np.int64)
    good = np.isin(outcome, [i for i, name in enumerate(outcomes) if name == "ok"])
    whole = np.isin(outcome, [i for i, name in enumerate(outcomes) if answered(name)])
    exact = histograms.count_values(us[good])
    histogram = histograms.from_counts(*exact)
    seconds = batch.seconds
    return Measurement(
        generator=load.generator,
        requests=len(outcome),
        responses=responses,
        ok=ok,
        errors=errors,
        aborted=0,
        scheduled=None,
        unsent=None,
        duration_s=seconds,
        rate_achieved=responses / seconds,
        goodput=ok / seconds,
        mean_service_us=float(us[whole].mean()) if responses else None,
        histogram=histogram,
        latency_us=histograms.summary(histogram, exact),
        latency_from="sent",
        per_second=_per_second(start, start + duration, us, whole, good),
        span=(batch.started, batch.finished),
        client=PythonClient(
            seconds=seconds,
            cpu_s=batch.cpu_s,
            max_rss_bytes=1024 * batch.max_rss_kb,
            open_files=batch.open_files,
            local_ports=batch.local_ports,
            versions=batch.versions,
            failures=dict(sorted(failures.items())),
        ),
    )


def _document(packed: bytes) -> Batch:
    try:
        content = gzip.decompress(packed)
        if msgspec.json.decode(content, type=Head).format != FORMAT:
            raise GeneratorError(f"the client's result is not in the format {FORMAT!r}")
        return msgspec.json.decode(content, type=Batch)
    except msgspec.ValidationError as error:
        raise GeneratorError(f"the client's result is not understood: {error}") from error
    except (EOFError, OSError, zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise GeneratorError(
            f"the client's result is truncated or no compressed JSON: {error}"
        ) from error


def _check_settings(batch: Batch, load: Load, body_bytes: int) -> None:
    names = ("requests", "connections", "reuse")
    reported, expected = (
        {"generator": client, **{name: getattr(of, name) for name in names}, "body_bytes": size}
        for client, of, size in (
            (f"python-{batch.client}", batch, batch.body_bytes),
            (load.generator, load, body_bytes),
        )
    )
    if reported != expected:
        raise GeneratorError(f"the client was run with {reported}, the cell says {expected}")


def _requests(batch: Batch) -> tuple[Floats, Floats, histograms.Integers]:
    """Return (start in s, duration in s, index of the outcome) of every request, checked."""
    start, duration = (np.array(column, np.float64) for column in (batch.start_s, batch.duration_s))
    outcome = np.array(batch.outcome, np.int64)
    sizes = {len(start), len(duration), len(outcome), batch.requests}
    if len(sizes) > 1 or len(outcome) == 0:
        raise GeneratorError(
            f"the client's result has {len(start)} starts, {len(duration)} durations and "
            f"{len(outcome)} outcomes of {batch.requests} requests"
        )
    if not batch.seconds > 0:
        raise GeneratorError(f"the client took {batch.seconds} s, which must be above 0")
    # The file has six decimals, each rounded separately.
    wrong = ~((start >= 0) & (duration >= 0) & (start + duration <= batch.seconds + 2e-6))
    wrong |= (outcome < 0) | (outcome >= len(batch.outcomes))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise GeneratorError(
            f"{plural(int(wrong.sum()), 'request')} that cannot be, the first: start {start[i]} s, "
            f"duration {duration[i]} s of {batch.seconds} s, outcome {outcome[i]} of "
            f"{len(batch.outcomes)}"
        )
    return start, duration, outcome


def _per_second(
    start: Floats, end: Floats, us: histograms.Integers, whole: Bits, good: Bits
) -> PerSecond:
    """Return series by second of the end, as a client may start all its requests in the first
    second."""
    seconds = int(end.max()) + 1
    begun, over = start.astype(np.int64), end.astype(np.int64)
    order = np.argsort(over[good], kind="stable")
    ends = np.searchsorted(over[good][order], np.arange(1, seconds))
    by_second = np.split(us[good][order], ends)
    p50s, p99s, largest = map(list, zip(*map(tally.levels_us, by_second), strict=True))
    return PerSecond(
        second=list(range(seconds)),
        scheduled=np.bincount(begun, minlength=seconds).tolist(),
        responses=np.bincount(over[whole], minlength=seconds).tolist(),
        ok=np.bincount(over[good], minlength=seconds).tolist(),
        p50_us=p50s,
        p99_us=p99s,
        max_us=largest,
        latency_bins=latency_bins.record(map(latency_bins.counted, by_second)),
    )


def _command(client: str, request: Request, seconds: float, name: str) -> list[str]:
    return [
        *("/opt/loadlab/clients/venv/bin/python", "/opt/loadlab/clients/client.py"),
        *(client, request.url, "--requests", str(request.requests)),
        *("--connections", str(request.connections), "--open-files", str(request.open_files)),
        *("--reuse", str(request.reuse).lower(), "--body-bytes", str(request.body_bytes or 0)),
        *("--timeout", plain(request.timeout_s), "--output", f"{name}.json.gz"),
        *("--progress", STATUS),
        *request.header_options,
    ]


def _measured(
    folder: Path, load: Load, answer: Answer, thresholds: Thresholds
) -> tuple[Measurement, set[str]]:
    path = folder / f"{load.generator}.json.gz"
    if not path.exists():
        raise GeneratorError(f"{path.name} is not there")
    if answer.body_bytes is None:
        raise GeneratorError("the length of a right answer's body is not known")
    return measure(path.read_bytes(), load, answer.body_bytes), set()


def _client(
    kind: str,
    manner: str,
    at_once: Callable[[int, int], int],
    *options: str,
    connections: int | None = None,
) -> Generator:
    name = f"python-{kind}"
    return Generator(
        name=name,
        mode="batch",
        role="python_clients",
        options=("requests", "open_files", "python_keepalive", *options),
        output=f"{name}.json.gz",
        command=partial(_command, kind),
        measure=_measured,
        at_once=at_once,
        manner=manner,
        connections=connections,
    )


GENERATORS = (
    _client("sync", "one after another", lambda requests, connections: 1),
    _client("async", "at once", lambda requests, connections: requests),
    # The default is the published study's; that of the load generators would limit nothing but the
    # client.
    _client("bounded", "", lambda requests, connections: min(connections, requests), "connections",
            connections=1000),
)  # fmt: skip
