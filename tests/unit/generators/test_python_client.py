"""The Python clients' own part, and the parser of what they recorded against real servers."""

import argparse
import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from msgspec import structs

from loadlab.generators import python_client
from loadlab.generators.measurement import ERROR_CLASSES, GeneratorError, Measurement
from loadlab.model import Load
from loadlab.stats import histograms
from tests.unit.builders import present

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "python-client"


def load(generator: str, requests: int, connections: int, reuse: bool = True) -> Load:
    return Load(
        generator=generator,
        mode="batch",
        rate=None,
        requests=requests,
        connections=connections,
        open_files=1024,
        reuse=reuse,
        duration_s=None,
        warmup_s=0,
    )


LOADS = {
    "normal": load("python-bounded", 300, 100),
    "sync": load("python-sync", 5, 1, reuse=False),
    "emfile": load("python-async", 200, 200),
    "ports": load("python-bounded", 300, 50, reuse=False),
    "refused": load("python-async", 5, 5),
    "broken": load("python-bounded", 27, 3),
    "broken-sync": load("python-sync", 18, 1),
}


def packed(name: str) -> bytes:
    return (FIXTURES / f"{name}.json.gz").read_bytes()


def changed(name: str, **parts: Any) -> bytes:
    document = {**json.loads(gzip.decompress(packed(name))), **parts}
    return gzip.compress(json.dumps(document).encode())


def measure(name: str) -> Measurement:
    return python_client.measure(packed(name), LOADS[name], 1000)


def counted(found: Measurement) -> dict[str, int]:
    return {name: count for name, count in found.errors.items() if count}


def test_a_normal_batch() -> None:
    found = measure("normal")
    assert (found.requests, found.responses, found.ok) == (300, 300, 300)
    assert (found.generator, found.latency_from) == ("python-bounded", "sent")
    assert (found.scheduled, found.unsent, found.aborted) == (None, None, 0)
    assert found.send_delay_us is None
    # The server waited 0 to 1.2 s, evenly, and 100 requests were under way at once.
    assert found.latency_us["mean"] == pytest.approx(600_000, rel=0.1)
    assert found.mean_service_us == found.latency_us["mean"]
    assert 1_150_000 < (found.latency_us["max"] or 0) < 1_250_000
    assert 300 * 0.6 / 100 < found.duration_s < 3
    assert found.rate_achieved == found.goodput == 300 / found.duration_s
    assert found.histogram.total_count == 300
    assert histograms.decode(histograms.encode(found.histogram)).total_count == 300
    assert found.span is not None
    assert found.span[1] - found.span[0] == pytest.approx(found.duration_s, abs=0.01)


def test_what_the_client_used() -> None:
    client = present(measure("normal").client)
    assert client.failures == {}
    assert set(client.versions) == {"python", "aiohttp"}
    assert 20e6 < client.max_rss_bytes < 100e6
    assert 0 < client.cpu_s.user < client.seconds
    assert (client.open_files, client.local_ports) == (1024, [32768, 60999])


def test_seconds_are_those_in_which_requests_were_over() -> None:
    series = present(measure("normal").per_second)
    bins = series.latency_bins
    assert bins
    by_second = structs.asdict(structs.replace(series, latency_bins=None))
    columns = [values for values in by_second.values() if values is not None]
    assert {len(values) for values in [*columns, bins.first]} == {3}
    assert [sum(counts) for counts in bins.counts] == series.ok
    assert sum(series.scheduled) == sum(series.responses) == sum(series.ok) == 300
    # All 100 that the semaphore admits are begun before any is over.
    assert series.scheduled[0] > series.responses[0]
    assert series.scheduled[-1] < series.responses[-1]
    assert max(value or 0 for value in series.max_us) == measure("normal").latency_us["max"]


def test_one_after_another_takes_the_sum() -> None:
    found = measure("sync")
    assert (found.ok, found.client and set(found.client.versions)) == (5, {"python", "requests"})
    assert found.latency_us["mean"] == pytest.approx(found.duration_s / 5 * 1e6, rel=0.01)


def test_out_of_open_files() -> None:
    found = measure("emfile")
    # Some 8 of the 64 are the process's own.
    assert present(found.client).failures == {"EMFILE": 144}
    assert (present(found.client).open_files, found.ok) == (64, 56)
    assert counted(found) == {"connect": 144}
    # Those that failed at once are in no latency, and in no series of answers.
    assert found.histogram.total_count == 56
    assert sum(present(found.per_second).responses) == 56
    assert sum(present(found.per_second).scheduled) == 200


def test_out_of_local_ports() -> None:
    found = measure("ports")
    assert present(found.client).failures == {"EADDRNOTAVAIL": 200}
    assert present(found.client).local_ports == [40000, 40099]
    assert (found.ok, counted(found)) == (100, {"connect": 200})


def test_requests_to_a_closed_port_count_as_connect_errors() -> None:
    found = measure("refused")
    assert (found.requests, found.responses, counted(found)) == (5, 0, {"connect": 5})
    assert found.mean_service_us is None
    assert found.latency_us["p50"] is None
    assert (present(found.per_second).scheduled, present(found.per_second).p99_us) == ([5], [None])


def test_a_server_that_answers_wrongly_in_turn() -> None:
    """In both libraries: 503, another body, closed, silent, reset, cut short, no HTTP, 404."""
    found = measure("broken-sync")
    assert counted(found) == {
        "read": 8, "timeout": 2, "status_4xx": 2, "status_5xx": 2, "body": 2,
    }  # fmt: skip
    assert (found.responses, found.ok) == (8, 2)
    assert present(found.client).failures == {
        "ChunkedEncodingError": 2,
        "ConnectionError": 4,
        "ECONNRESET": 2,
        "HTTP 404": 2,
        "HTTP 503": 2,
        "body": 2,
        "timeout": 2,
    }
    # aiohttp asks a second time, by itself, where the connection is lost before the answer.
    found = measure("broken")
    assert counted(found) == {
        "read": 8, "timeout": 4, "status_4xx": 3, "status_5xx": 4, "body": 4,
    }  # fmt: skip
    assert (found.requests, found.responses, found.ok) == (27, 15, 4)


@pytest.mark.parametrize("size", [0, 5, 100, -9, -1])
def test_a_truncated_file_is_refused(size: int) -> None:
    with pytest.raises(GeneratorError, match="truncated"):
        python_client.measure(packed("normal")[:size], LOADS["normal"], 1000)


def test_a_file_that_is_no_text_is_refused() -> None:
    other = gzip.decompress(packed("normal")).replace(b"aiohttp", b"aiohtt\xff")
    with pytest.raises(GeneratorError, match="truncated or no compressed JSON"):
        python_client.measure(gzip.compress(other), LOADS["normal"], 1000)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"format": "lab python client/2"}, "not in the format"),
        ({"requests": 299}, "was run with"),
        ({"reuse": False}, "was run with"),
        ({"body_bytes": 999}, "was run with"),
        ({"client": "async"}, "was run with"),
        ({"start_s": [0.0] * 299}, "299 starts"),
        ({"outcome": [0] * 299 + [1]}, "outcome 1 of 1"),
        ({"outcome": [-1] * 300}, "300 requests that cannot be"),
        ({"duration_s": [0.1] * 299 + [-0.1]}, "1 request that cannot be"),
        ({"duration_s": [0.1] * 299 + [None]}, "not understood: Expected `float`, got `null`"),
        ({"duration_s": [0.1] * 299 + ["x"]}, "not understood: Expected `float`, got `str`"),
        ({"outcome": [10**20] * 300}, "not understood: Expected `int` <= 2147483647"),
        ({"seconds": 0}, "above 0"),
        ({"seconds": 0.5}, "of 0.5 s"),
        ({"outcomes": ["teapot"]}, "'teapot'; add it"),
    ],
)
def test_record_with_impossible_values_is_refused(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(GeneratorError, match=words):
        python_client.measure(changed("normal", **parts), LOADS["normal"], 1000)


def test_every_outcome_has_a_class() -> None:
    assert set(python_client._CLASSES.values()) <= set(ERROR_CLASSES)
    found = [python_client.classify(f"HTTP {status}") for status in (302, 404, 418, 500, 599)]
    assert found == ["status_other", "status_4xx", "status_4xx", "status_5xx", "status_5xx"]


@pytest.fixture(scope="module")
def client() -> ModuleType:
    spec = importlib.util.spec_from_file_location("client", ROOT / "files/clients/client.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wrapped(inner: BaseException, how: str) -> BaseException:
    if how == "argument":
        return OSError(inner)
    outer = ValueError("outer")
    setattr(outer, f"__{how}__", inner)
    return outer


@pytest.mark.parametrize("how", ["argument", "cause", "context"])
@pytest.mark.parametrize(
    ("inner", "outcome"),
    [
        (OSError(24, "Too many open files"), "EMFILE"),
        (OSError(99, "Cannot assign requested address"), "EADDRNOTAVAIL"),
        (TimeoutError(110, "Connection timed out"), "ETIMEDOUT"),
        (TimeoutError("timed out"), "timeout"),
    ],
)
def test_client_classifies_a_failure_by_its_innermost_exception(
    client: ModuleType, inner: BaseException, outcome: str, how: str
) -> None:
    assert client.cause(inner) == outcome
    assert client.cause(wrapped(wrapped(inner, how), "context")) == outcome


def test_a_cause_without_errno_is_named(client: ModuleType) -> None:
    circular = ConnectionResetError()
    circular.__cause__ = wrapped(circular, "context")
    assert client.cause(circular) == "ConnectionResetError"
    # A resolver's number is none of the kernel's.
    assert client.cause(OSError(-2, "Name or service not known")) == "OSError"


def test_client_classifies_an_answer_by_status_and_length(client: ModuleType) -> None:
    load = argparse.Namespace(body_bytes=10)
    found = [client.check(load, *answer) for answer in ((200, 10), (204, 9), (302, 10), (503, 10))]
    assert found == ["ok", "body", "HTTP 302", "HTTP 503"]


def test_progress_tells_requests_done_and_time_left(client: ModuleType) -> None:
    record = client.Record(4000)
    assert client.progress(record) == "0 of 4,000 requests over"
    for number in range(1000):
        record.add(number, record.begun, "ok" if number % 2 else "EMFILE")
    record.begun -= 10
    assert client.progress(record) == "1,000 of 4,000 requests over, about 30 s to go"
    assert record.outcomes == {"ok": 0, "EMFILE": 1}
    assert list(record.outcome[:3]) == [1, 0, 1]


def test_headers_come_beside_the_clients_own(
    client: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "sync http://x/ --requests 1 --connections 1 --open-files 64 --reuse true"
    words += " --body-bytes 1 --timeout 1 --output o --progress p"
    lines = ["X-Lab: a: b", "Accept-Encoding: br"]
    asked = [word for line in lines for word in ("-H", line)]
    monkeypatch.setattr("sys.argv", ["client.py", *words.split(), *asked])
    assert client.arguments().headers == {
        "Accept-Encoding": "br",
        "Connection": "keep-alive",
        "X-Lab": "a: b",
    }
