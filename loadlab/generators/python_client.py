"""Turn the result of files/clients/client.py into a Measurement.

The load is a batch: a number of requests, started as the client's own design has it, that ends with
the last of them. It has no schedule, so a latency counts from the send and includes connecting. In
the bounded client a request that waits for the semaphore has not been sent yet. aiohttp itself
repeats a request whose connection was lost before the answer; the server counts two.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from loadlab.generators.measurement import ERROR_CLASSES, GeneratorError, Measurement
from loadlab.stats import histograms

FORMAT = "lab python client/1"

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


def measure(packed: bytes, load: Mapping[str, Any], body_bytes: int) -> Measurement:
    """Return the Measurement of the client's compressed result.

    ``load`` is the cell's and ``body_bytes`` the expected length of a body; the client must have
    run with both. Rates cover the whole batch, from before the first request to after the last.
    Latencies are those of the ok answers. Raises GeneratorError for a file that is truncated, was
    made with other settings, or contradicts itself.
    """
    found = _document(packed)
    _check_settings(found, load, body_bytes)
    start, duration, outcome = _requests(found)
    outcomes: list[str] = found["outcomes"]
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
    seconds = float(found["seconds"])
    return Measurement(
        generator=str(load["generator"]),
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
        span=(float(found["started"]), float(found["finished"])),
        client={
            "seconds": seconds,
            "cpu_s": {name: float(found["cpu_s"][name]) for name in ("user", "system")},
            "max_rss_bytes": 1024 * int(found["max_rss_kb"]),
            "open_files": int(found["open_files"]),
            "local_ports": [int(port) for port in found["local_ports"]],
            "versions": {str(name): str(value) for name, value in found["versions"].items()},
            "failures": dict(sorted(failures.items())),
        },
    )


def _document(packed: bytes) -> dict[str, Any]:
    try:
        found = json.loads(gzip.decompress(packed))
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise GeneratorError(
            f"the client's result is truncated or no compressed JSON: {error}"
        ) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise GeneratorError(f"the client's result is not in the format {FORMAT!r}")
    return found


def _check_settings(found: dict[str, Any], load: Mapping[str, Any], body_bytes: int) -> None:
    told = {
        "generator": f"python-{found['client']}",
        **{name: found[name] for name in ("requests", "connections", "reuse", "body_bytes")},
    }
    asked = {name: load[name] for name in ("generator", "requests", "connections", "reuse")}
    if told != {**asked, "body_bytes": body_bytes}:
        raise GeneratorError(f"the client was run with {told}, the cell says {asked}")


def _requests(
    found: dict[str, Any],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return (start in s, duration in s, index of the outcome) of every request, checked."""
    try:
        start, duration = (np.array(found[f"{n}_s"], np.float64) for n in ("start", "duration"))
        outcome = np.array(found["outcome"], np.int64)
    except (TypeError, ValueError) as error:
        raise GeneratorError(f"the client's result has what is no number: {error}") from error
    sizes = {len(start), len(duration), len(outcome), found["requests"]}
    if len(sizes) > 1 or len(outcome) == 0:
        raise GeneratorError(
            f"the client's result has {len(start)} starts, {len(duration)} durations and "
            f"{len(outcome)} outcomes of {found['requests']} requests"
        )
    if not found["seconds"] > 0:
        raise GeneratorError(f"the client took {found['seconds']} s, which must be above 0")
    # The file has six decimals, each rounded separately.
    wrong = ~((start >= 0) & (duration >= 0) & (start + duration <= found["seconds"] + 2e-6))
    wrong |= (outcome < 0) | (outcome >= len(found["outcomes"]))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise GeneratorError(
            f"{int(wrong.sum())} requests cannot be, the first: start {start[i]} s, duration "
            f"{duration[i]} s of {found['seconds']} s, outcome {outcome[i]} of "
            f"{len(found['outcomes'])}"
        )
    return start, duration, outcome


def _per_second(
    start: npt.NDArray[np.float64],
    end: npt.NDArray[np.float64],
    us: histograms.Integers,
    whole: npt.NDArray[np.bool_],
    good: npt.NDArray[np.bool_],
) -> dict[str, list[Any]]:
    """Return series by second of the end, as a client may start all its requests in the first
    second."""
    seconds = int(end.max()) + 1
    begun, over = start.astype(np.int64), end.astype(np.int64)
    series: dict[str, list[Any]] = {
        "second": list(range(seconds)),
        "intended": np.bincount(begun, minlength=seconds).tolist(),
        "responses": np.bincount(over[whole], minlength=seconds).tolist(),
        "ok": np.bincount(over[good], minlength=seconds).tolist(),
        "p50_us": [],
        "p99_us": [],
        "max_us": [],
    }
    order = np.argsort(over[good], kind="stable")
    values = us[good][order]
    places = np.searchsorted(over[good][order], np.arange(seconds + 1))
    for low, high in pairwise(places.tolist()):
        figures: list[int] | list[None] = [None, None, None]
        if low < high:
            levels = np.percentile(values[low:high], [50, 99, 100], method="inverted_cdf")
            figures = [int(value) for value in levels]
        for name, value in zip(("p50_us", "p99_us", "max_us"), figures, strict=True):
            series[name].append(value)
    return series
