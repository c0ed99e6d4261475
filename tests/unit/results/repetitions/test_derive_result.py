import dataclasses
import gzip
import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.generators import oha_database, wrk
from loadlab.model import HostTelemetry, Reason, RepetitionSetup, Result, Saturated
from loadlab.report import words
from loadlab.results.repetitions import client_part, derive_result
from loadlab.results.summaries import summarize
from loadlab.run import documents
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import CELL, QUEUES, RepetitionDir
from loadlab.stats import histograms
from loadlab.telemetry import node_exporter
from tests.unit import builders
from tests.unit.builders import present
from tests.unit.results import recorded
from tests.unit.results.recorded import FIXTURES, change, change_cell
from tests.unit.results.validity.judging import codes

# The recordings come from a shared machine with some steal, and wrk filled its core in one of four
# seconds, which is not what is tested here.
LIMITS = builders.thresholds(steal_max=1.0, generator_cpu_seconds_max=0.25, late_max=0.02)


@pytest.fixture
def oha_dir(tmp_path: Path) -> Path:
    return recorded.copy("oha", tmp_path / "rep-1")


@pytest.fixture
def wrk_dir(tmp_path: Path) -> Path:
    return recorded.copy("wrk", tmp_path / "rep-1")


@pytest.fixture
def python_dir(tmp_path: Path) -> Path:
    return recorded.copy("python", tmp_path / "rep-1")


def reduce(directory: Path, found: Result) -> None:
    """Keep the result and what a generator's file of requests is reduced to."""
    derive_result.keep(directory, LIMITS)
    documents.write(directory / "result.json", documents.encode(found))
    derive_result.discard(directory, LIMITS)


def build(directory: Path) -> Result:
    found = derive_result.build(directory, LIMITS, None)
    documents.encode(found)
    return found


def test_a_mix_has_a_result_of_each_kind(oha_dir: Path) -> None:
    shutil.copytree(FIXTURES / "metronome/mix", oha_dir, dirs_exist_ok=True)
    began = json.loads((oha_dir / "run.json").read_text())["started"]
    change(oha_dir / "metronome.json", started=began, finished=began + 2.2)
    asked = {"generator": "metronome", "rate": 100, "connections": 3, "duration_s": 2}
    change_cell(oha_dir, asked, endpoint="fast:14,slow:5,flaky:1")
    found = build(oha_dir)
    assert found.error is None
    fast, slow, flaky = present(found.kinds)
    assert [kind.name for kind in (fast, slow, flaky)] == ["fast", "slow", "flaky"]
    assert (flaky.weight, flaky.requests, flaky.ok, flaky.errors.status_5xx) == (1, 8, 4, 4)
    assert (fast.scheduled, fast.unsent, fast.latency_us.censored) == (140, 28, 28)
    assert histograms.decode(present(slow.histogram).data).total_count == slow.responses == 40
    # The waits of a kind's unsent requests go as far back as those of all.
    longest = [
        histograms.decode(present(part.censored).data).max_value for part in (found, fast, slow)
    ]
    assert max(longest) - min(longest) < 100_000

    again = summarize.merge([found, replace(found, repetition=2)])
    if not again.n:
        valid = replace(found, validity=builders.valid())
        again = summarize.merge([valid, replace(valid, repetition=2)])
    kinds = present(again.kinds)
    assert [(kind.name, kind.requests, kind.ok) for kind in kinds] == [
        ("fast", 224, 224),
        ("slow", 80, 80),
        ("flaky", 16, 8),
    ]
    # Too few for a p99, and the whole has it.
    assert kinds[2].latency_us.p99 is None
    assert kinds[1].goodput.median == slow.goodput
    assert present(summarize.short(found).kinds)[0].histogram is None


def test_the_closed_loops_of_lanes_have_the_server_of_their_own_time(oha_dir: Path) -> None:
    whole = present(build(oha_dir).telemetry).server
    setup = documents.read(oha_dir / CELL, RepetitionSetup)
    folder = RepetitionDir(oha_dir)
    scrapes = node_exporter.read(folder.server_telemetry)
    part = client_part.read(oha_dir, folder, setup, LIMITS, lambda: scrapes)

    def saturated(started: float, finished: float) -> Saturated:
        own = Saturated(
            goodput=1.0, right=1, slices=1, seconds=1.0, cut=0, started=started, finished=finished
        )
        measurement = dataclasses.replace(part.measurement, saturated=own)
        lane = dataclasses.replace(part, measurement=measurement)
        return present(derive_result._saturated(folder, lane, lambda: scrapes))

    during = present(saturated(part.started, part.finished).server)
    assert during.cpu_busy == pytest.approx(whole.cpu_busy, abs=0.05)
    assert during.per_second is None
    # The recording had ended.
    assert saturated(part.finished + 100, part.finished + 103).server is None


def test_an_oha_repetition(oha_dir: Path) -> None:
    found = build(oha_dir)
    assert found.error is None
    assert found.validity.valid
    assert (found.requests, found.scheduled, found.unsent) == (1594, 1600, 6)
    # What nginx counted, less the page that told it.
    assert found.reverse_proxy_requests == found.requests
    assert found.latency_basis == "scheduled"
    assert found.client is None
    histogram = histograms.decode(present(found.histogram).data)
    assert histogram.total_count == found.responses
    assert present(found.telemetry).client.cores == 1
    for name, sha256 in found.raw_sha256.items():
        assert hashlib.sha256((oha_dir / name).read_bytes()).hexdigest() == sha256
    assert len(found.raw_sha256) == 8


def test_accept_queues_have_the_intervals_of_the_host(oha_dir: Path) -> None:
    assert present(build(oha_dir).telemetry).server.accept_queues is None
    # The recording, as of this load.
    lines = gzip.decompress((FIXTURES / "queues" / QUEUES).read_bytes()).splitlines()
    readings = [json.loads(line) for line in lines]
    begun = documents.load(oha_dir / "run.json")["started"]
    later = [{**one, "t": one["t"] - readings[0]["t"] + begun} for one in readings]
    text = "".join(f"{json.dumps(one)}\n" for one in later)
    (oha_dir / QUEUES).write_bytes(gzip.compress(text.encode()))
    found = build(oha_dir)
    telemetry = present(found.telemetry)
    recorded = present(telemetry.server.accept_queues)
    assert [(one.service, one.limit, max(map(present, one.depth))) for one in recorded] == [
        ("application", 64, 65), ("reverse_proxy", 511, 38), ("reverse_proxy", 511, 0),
    ]  # fmt: skip
    times = present(telemetry.server.per_second).t
    assert {len(one.depth) for one in recorded} == {len(times)}
    assert telemetry.client.accept_queues is None
    assert QUEUES in found.raw_sha256


def test_a_wrk_repetition(wrk_dir: Path) -> None:
    found = build(wrk_dir)
    assert found.validity.valid
    assert found.latency_basis == "sent"
    assert (found.unsent, found.per_second, found.send_delay_us) == (None, None, None)
    # wrk does not count what was under way at its end: at most one a connection.
    assert 0 <= present(found.reverse_proxy_requests) - present(found.requests) <= 8
    assert "wrk.txt" in found.raw_sha256
    before = sorted(path.name for path in wrk_dir.iterdir())
    reduce(wrk_dir, found)
    assert sorted(path.name for path in wrk_dir.iterdir()) == sorted([*before, "result.json"])


def test_a_closed_loop_whose_rate_and_latencies_contradict_each_other(wrk_dir: Path) -> None:
    """Little's law: wrk's own output, with each latency half as long again."""
    path = wrk_dir / "wrk.txt"
    text, marker, report = path.read_text().rpartition(wrk.MARKER)
    before = build(wrk_dir)
    (law,) = (one for one in before.validity.findings if one.code == "littles_law")
    # wrk needs 12 % of the time between an answer and its next request: it is in no latency.
    assert float(str(law.facts["by_latency"])) == pytest.approx(7.02, abs=0.01)
    assert words.reason(law).endswith("leave out the time between an answer and the next request")
    told = json.loads(report)
    # Of those that came; wrk had added invented ones.
    real = histograms.counts_of(histograms.decode(present(before.histogram).data))
    told["latency_us"] = [[int(1.5 * us), int(count)] for us, count in zip(*real, strict=True)]
    path.write_text(f"{text}{marker}{json.dumps(told)}\n")
    after = build(wrk_dir)
    assert after.error is None
    assert after.rate_achieved == before.rate_achieved
    (law,) = (one for one in after.validity.findings if one.code == "littles_law")
    assert (law.limit, law.facts["counted"]) == (0.05, 8)
    assert words.reason(law).endswith("rate and latency do not agree")


def test_a_python_clients_repetition(python_dir: Path) -> None:
    """2000 requests at once by a client that may have 1024 open files."""
    found = build(python_dir)
    assert found.validity.valid
    assert (found.requests, found.ok, present(found.errors).connect) == (2000, 1015, 985)
    assert found.reverse_proxy_requests == 1015
    assert present(found.client).failures == {"EMFILE": 985}
    assert present(found.client).seconds == found.duration_s
    # The client's own times, not those of its process, which also starts Python and writes a file.
    run = documents.load(python_dir / "run.json")
    started, finished = present(found.started), present(found.finished)
    assert run["started"] + 0.2 < started < finished < run["finished"]
    duration_s = present(found.duration_s)
    assert finished - started == pytest.approx(duration_s, abs=0.01)
    times = present(present(found.telemetry).client.per_second).t
    assert times[-2] < duration_s <= times[-1]
    assert "python-async.json.gz" in found.raw_sha256
    (python_dir / "result.json").write_bytes(documents.encode(found))
    before = content(python_dir)
    reduce(python_dir, found)
    assert content(python_dir) == before


def test_a_request_without_an_answer_waited_for_the_timeout_of_its_own_load(oha_dir: Path) -> None:
    waits = []
    # 6 of 1,600 requests were not sent.
    for seconds in (None, 60, 120):
        change_cell(oha_dir, {"timeout_s": seconds})
        waits.append(present(build(oha_dir).response_time))
    failed = waits[0].failed
    assert failed > 0
    added = [(two.mean_us - one.mean_us) * one.requests for one, two in itertools.pairwise(waits)]
    assert added == pytest.approx([failed * (60 - LIMITS.timeout_s) * 1e6, failed * 60e6])


def test_a_wrk2_repetition(wrk_dir: Path) -> None:
    """A published output of wrk2 beside the telemetry of another load."""
    load = {"generator": "wrk2", "mode": "constant", "rate": 2000, "connections": 100}
    change_cell(wrk_dir, {**load, "duration_s": 30, "warmup_s": 0})
    shutil.copy(FIXTURES / "wrk2" / "saturated.txt", wrk_dir / "wrk2.txt")
    found = build(wrk_dir)
    assert found.error is None
    assert (found.requests, found.scheduled, found.unsent) == (7477, 59_800, 52_223)
    assert (found.latency_basis, found.send_delay_us) == ("scheduled", None)
    assert histograms.decode(present(found.histogram).data).total_count == 5011
    # All connections were in use: the server was the limit and not the generator.
    assert codes(found.validity.findings) == [
        *("body", "uncalibrated", "saturated", "unsent", "counts_differ", "littles_law")
    ]
    assert "rate_missed" not in codes(found.validity.reasons)
    assert "wrk2.txt" in found.raw_sha256
    # A server that never answered is a result.
    mute = re.sub(r"  Socket errors.*\n", "", (FIXTURES / "wrk2" / "mute.txt").read_text())
    mute = mute.replace("1 connections", "100 connections").replace("in 10.00s", "in 30.00s")
    (wrk_dir / "wrk2.txt").write_text(mute)
    found = build(wrk_dir)
    assert (found.error, found.goodput, found.aborted) == (None, 0, 100)
    assert present(found.latency_us).p50 == pytest.approx(15e6, rel=0.01)
    assert "rate_missed" not in codes(found.validity.reasons)
    (wrk_dir / "wrk2.txt").write_text("unable to connect to 10.0.0.1:80 Connection refused\n")
    error = present(build(wrk_dir).error)
    assert error.startswith("wrk2 line 1, it did not run: 'unable to connect")


def test_only_a_batch_has_requests_and_no_duration(python_dir: Path) -> None:
    right = (python_dir / CELL).read_bytes()
    for wrong in ({"duration_s": 5}, {"rate": 5}, {"mode": "closed"}, {"reuse": "yes"}):
        (python_dir / CELL).write_bytes(right)
        change_cell(python_dir, wrong)
        with pytest.raises(ResultError, match=r"cell.json: .* at `\$.cell.load"):
            build(python_dir)
    lacking = json.loads(right)
    del lacking["cell"]["load"]["open_files"]
    (python_dir / CELL).write_text(json.dumps(lacking))
    with pytest.raises(ResultError, match="open_files"):
        build(python_dir)


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_same_result_after_reducing(oha_dir: Path) -> None:
    left = oha_database.REDUCED
    first = build(oha_dir)
    documents.write(oha_dir / "result.json", documents.encode(first))
    size = (oha_dir / oha_database.DATABASE).stat().st_size
    derive_result.keep(oha_dir, LIMITS)
    again = build(oha_dir)
    # The hash is of the file that is kept.
    kept = {left: documents.digest((oha_dir / left).read_bytes())}
    hashes = {name: sha for name, sha in first.raw_sha256.items() if name != "oha.sqlite"}
    assert again == replace(first, raw_sha256={**hashes, **kept})
    for _ in range(2):  # again changes nothing
        derive_result.discard(oha_dir, LIMITS)
        assert not (oha_dir / oha_database.DATABASE).exists()
        assert (oha_dir / left).stat().st_size < size * 0.6
        assert build(oha_dir) == again
        derive_result.keep(oha_dir, LIMITS)


@pytest.mark.parametrize(
    ("name", "text", "is_reduced"),
    [("oha.json", "{", False), ("reverse_proxy-after.txt", "<html>", True)],
)
def test_requests_of_a_failed_repetition_are_kept_whole(
    oha_dir: Path, name: str, text: str, is_reduced: bool
) -> None:
    (oha_dir / name).write_text(text)
    derive_result.keep(oha_dir, LIMITS)
    assert (oha_dir / oha_database.REDUCED).exists() is is_reduced
    reduce(oha_dir, build(oha_dir))
    assert (oha_dir / oha_database.KEPT).exists()
    assert not (oha_dir / oha_database.DATABASE).exists()
    assert not (oha_dir / oha_database.REDUCED).exists()


def altered(directory: Path, change: Callable[[dict[str, Any]], None]) -> Result:
    """Return the result after a change of the reduction, with its own SQLite file gone."""
    derive_result.keep(directory, LIMITS)
    (directory / oha_database.DATABASE).unlink()
    path = directory / oha_database.REDUCED
    document = json.loads(gzip.decompress(path.read_bytes()))
    change(document)
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return build(directory)


def quarter(document: dict[str, Any]) -> None:
    for kind in document["latency_us"]:
        kind[2] = [[max(1, us // 4), count] for us, count in kind[2]]


def quarter_with_its_mean(document: dict[str, Any]) -> None:
    count = sum(n for *_, pairs in document["latency_us"] for _, n in pairs)
    mean = sum(us * n for *_, pairs in document["latency_us"] for us, n in pairs) / count
    quarter(document)
    document["issue_s"] -= 0.75 * mean / 1e6 * count


def longer(document: dict[str, Any]) -> None:
    for kind in document["latency_us"]:
        kind[2] = [[us + 50, count] for us, count in kind[2]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (quarter, "the latencies' mean is "),
        (quarter_with_its_mean, "percentile is "),
        (longer, "the latencies' mean is "),
        (lambda document: document["latency_us"][0][2].pop(), "truncated: SQLite has "),
        (lambda document: document.update(connections=9), "connections=9"),
        (lambda document: document.update(missing=1), "1 request without an answer"),
        (lambda document: document["limits"].update(least_s=1), "was reduced with "),
        (lambda document: document.update(format="oha requests/2"), "not 'oha requests/3'"),
    ],
)
def test_reduction_that_does_not_fit_is_refused(
    oha_dir: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    assert words in present(altered(oha_dir, change).error)


@pytest.mark.parametrize(
    ("kind", "name", "data", "words"),
    [
        ("oha", "error.txt", b"gunicorn did not start\n", "gunicorn did not start"),
        ("oha", "oha.json", None, "oha.json is not there"),
        ("oha", "oha.json", b"{", "truncated"),
        ("oha", "oha.sqlite", None, "none of oha.sqlite"),
        ("oha", "oha.sqlite", b"rubbish", "truncated or not oha's"),
        ("oha", "run.json", None, "run.json is not there"),
        ("oha", "run.json", b"{}", "run.json: Object missing required field `started`"),
        ("oha", "run.json", b'{"exit_code": 0, "started": null, "finished": 2}',
         "null` - at `$.started`"),
        ("oha", "run.json", b'{"exit_code": 3', "run.json is truncated"),
        ("oha", "reverse_proxy-after.txt", b"<html>",
         "reverse_proxy-after.txt is no page of counters"),
        ("oha", "telemetry-client.prom.gz", None, "telemetry-client.prom.gz is not there"),
        ("oha", "telemetry-server.prom.gz", b"x", "telemetry-server.prom.gz is truncated"),
        ("python", "python-async.json.gz", b"\x1f\x8b", "the client's result is truncated"),
        ("python", "python-async.json.gz", None, "python-async.json.gz is not there"),
        ("python", "error.txt", b"python-async ended with 137: Killed", "with 137: Killed"),
    ],
)  # fmt: skip
def test_what_fails_is_a_record_with_its_error(
    request: pytest.FixtureRequest, kind: str, name: str, data: bytes | None, words: str
) -> None:
    directory: Path = request.getfixturevalue(f"{kind}_dir")
    (directory / name).unlink(missing_ok=True)
    if data is not None:
        (directory / name).write_bytes(data)
    found = build(directory)
    assert words in present(found.error)
    assert str(directory) not in documents.encode(found).decode()
    assert not found.validity.valid
    assert found.validity.reasons == [Reason(code="failed", value=found.error)]
    assert (found.requests, found.goodput, found.histogram, found.client) == (None,) * 4
    assert found.cell.framework == "aiohttp"


def test_a_bug_of_the_lab_is_called_one(oha_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(derive_result, "_result", broken)
    error = present(build(oha_dir).error)
    assert error.startswith("a bug of the lab, ")
    place = r"ZeroDivisionError: division by zero at test_derive_result\.py:\d+ in "
    assert re.search(place, error)


def test_a_page_that_lacks_a_core_is_a_truncated_recording_and_no_bug(oha_dir: Path) -> None:
    path = oha_dir / "telemetry-server.prom.gz"
    pages = gzip.decompress(path.read_bytes()).decode().split("# scrape ")
    middle = len(pages) // 2
    pages[middle] = re.sub(r"node_cpu_seconds_total\{.*idle.*\n", "", pages[middle])
    path.write_bytes(gzip.compress("# scrape ".join(pages).encode()))
    assert "not on the page: node_cpu_seconds_total 0 idle" in present(build(oha_dir).error)


def test_a_figure_that_no_document_may_have_costs_one_repetition(oha_dir: Path) -> None:
    path = oha_dir / "telemetry-server.prom.gz"
    pages = gzip.decompress(path.read_bytes()).decode()
    odd = re.sub(r"(?m)^(node_memory_MemAvailable_bytes) .*$", r"\1 -1", pages)
    path.write_bytes(gzip.compress(odd.encode()))
    assert "$.telemetry.server.memory.available_min_bytes" in present(build(oha_dir).error)


def test_a_generator_that_failed_without_output_says_its_exit_code(oha_dir: Path) -> None:
    change(oha_dir / "run.json", exit_code=124)
    (reason,) = build(oha_dir).validity.reasons
    assert reason == Reason(code="generator_failed", value=124, limit=0)
    (oha_dir / "oha.json").unlink()
    assert build(oha_dir).error == ("the generator ended with exit code 124 and left no oha.json")


def test_an_unknown_generator_is_named(oha_dir: Path) -> None:
    change_cell(oha_dir, {"generator": "hey"})
    assert "'hey'" in present(build(oha_dir).error)


def test_without_a_cell_there_is_no_record(oha_dir: Path) -> None:
    (oha_dir / "cell.json").write_text("{}")
    with pytest.raises(ResultError, match="cell_id"):
        derive_result.build(oha_dir, LIMITS, None)


def server(directory: Path) -> HostTelemetry:
    return present(build(directory).telemetry).server


def test_the_servers_telemetry_is_read_by_its_own_clock(oha_dir: Path) -> None:
    """A server whose clock is 1000 s ahead has the same figures."""
    first = server(oha_dir)
    recorded.put_clock_ahead(oha_dir / "telemetry-server.prom.gz")
    ahead = server(oha_dir)
    assert ahead.cpu == first.cpu
    assert present(ahead.per_second).t == pytest.approx(present(first.per_second).t, abs=1e-3)


def set_clock(directory: Path, host: str, set_s: float, page: int) -> None:
    """Set a host's clock during the load, before a page of its exporter."""
    path = directory / f"telemetry-{host}.prom.gz"
    first, *pages = gzip.decompress(path.read_bytes()).decode().split("# scrape ")
    for number, text in enumerate(pages[page:], page):
        clock = present(re.search(r"^node_time_seconds (\S+)$", text, re.MULTILINE))
        pages[number] = text.replace(clock[0], f"node_time_seconds {float(clock[1]) + set_s!r}")
    path.write_bytes(gzip.compress("# scrape ".join([first, *pages]).encode()))
    if host == "client":
        finished = json.loads((directory / "run.json").read_text())["finished"]
        change(directory / "run.json", finished=finished + set_s)


@pytest.mark.parametrize("host", ["server", "client"])
@pytest.mark.parametrize("set_s", [-10.0, 10.0])
def test_a_clock_that_is_set_during_the_load_voids_it_and_loses_nothing(
    wrk_dir: Path, host: str, set_s: float
) -> None:
    before = build(wrk_dir)
    set_clock(wrk_dir, host, set_s, 3)
    after = build(wrk_dir)
    assert after.error is None
    (reason,) = [one for one in after.validity.reasons if one.code == "clock_jump"]
    assert reason.facts["host"] == host
    assert reason.value == pytest.approx(10, abs=0.1)
    assert after.goodput == before.goodput
    for role in ("server", "client"):
        told, was = (getattr(present(found.telemetry), role) for found in (after, before))
        assert told.samples == was.samples
        assert told.cpu_busy == pytest.approx(was.cpu_busy, abs=0.02)
        assert told.network == was.network


def test_a_clock_by_which_wrk_measures_its_duration_is_seen_until_the_end_that_was_asked(
    wrk_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(wrk_dir, "client", -1.0, 4)
    measure = wrk.measure
    monkeypatch.setattr(
        wrk, "measure", lambda *of: dataclasses.replace(measure(*of), duration_s=2.0)
    )
    (reason,) = [one for one in build(wrk_dir).validity.reasons if one.code == "clock_jump"]
    assert reason.value == pytest.approx(1, abs=0.1)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "result.json"
    documents.write(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        documents.write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]


def test_without_nginx_nobody_counts_at_the_server(oha_dir: Path) -> None:
    change_cell(oha_dir, reverse_proxy="none", upstream_keepalive=True)
    for when in ("before", "after"):
        (oha_dir / f"reverse_proxy-{when}.txt").unlink()
    found = build(oha_dir)
    assert found.error is None
    assert found.reverse_proxy_requests is None
    assert "uncounted" in codes(found.validity.findings)
    assert not [name for name in found.raw_sha256 if name.startswith("reverse_proxy")]


def test_percentiles_that_others_may_have_made_are_not_told(wrk_dir: Path) -> None:
    """Of the recording every second with steal counts as disturbed."""
    before = present(build(wrk_dir).latency_us)
    assert before.p99_9 is not None
    strict = replace(LIMITS, steal_disturbing=0.0)
    found = present(derive_result.build(wrk_dir, strict, None).latency_us)
    assert (found.p99, found.p99_9, found.p99_99) == (before.p99, None, None)
