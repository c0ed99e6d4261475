"""Several clients of one server, from recorded raw files to one result."""

import gzip
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.generators import merge, oha_database
from loadlab.generators.measurement import ERROR_CLASSES, Measurement, Waited
from loadlab.kinds import derive_run
from loadlab.model import (
    Calibration,
    CalibrationOrigin,
    HostTelemetry,
    PerSecond,
    Reason,
    Result,
    Validity,
)
from loadlab.plan import records
from loadlab.report import words
from loadlab.report.sections import clients
from loadlab.results.calibrations import judge_calibration
from loadlab.results.repetitions import derive_result, response_time
from loadlab.results.repetitions.latencies_due import DueRequests
from loadlab.results.summaries.summarize import summary
from loadlab.results.validity.judge_validity import judge_together
from loadlab.results.validity.validity_evidence import LoadEvidence
from loadlab.run import documents
from loadlab.run.errors import ResultError
from loadlab.stats import histograms
from tests.unit import builders
from tests.unit.builders import present

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
# The recordings come from a shared machine with some steal, which is not what is tested here.
LIMITS = builders.thresholds(steal_max=1.0, late_max=0.02)
CLIENTS = ("client", "clientb")
# The second one's clock is that much ahead, and it began that much later, seconds.
AHEAD, LATER = 100.0, 0.05
SAMPLES = st.lists(st.integers(1, 10_000_000), min_size=1, max_size=200)


CALIBRATION = builders.calibration_at(1e9)


def link(tx: float, rx: float) -> HostTelemetry:
    """A client's telemetry with what its link carried."""
    network = {"tx_bits_per_second": tx, "rx_bits_per_second": rx}
    return builders.telemetry(network=network)


def codes(reasons: list[Reason]) -> list[str]:
    return [reason.code for reason in reasons]


def measurement(values: list[int], **changed: Any) -> Measurement:
    histogram = histograms.from_values(np.array(values))
    found = Measurement(
        generator="oha",
        requests=len(values) + 1,
        responses=len(values),
        ok=len(values),
        errors={**dict.fromkeys(ERROR_CLASSES, 0), "timeout": 1},
        aborted=0,
        scheduled=len(values) + 3,
        unsent=2,
        duration_s=10.0,
        rate_achieved=len(values) / 10,
        goodput=len(values) / 10,
        mean_service_us=float(np.mean(values)),
        histogram=histogram,
        latency_us=histograms.summary(histogram),
        latency_from="intended",
    )
    return replace(found, **changed)


@given(st.lists(SAMPLES, min_size=2, max_size=4))
def test_merged_histograms_are_the_histogram_of_all_samples(several: list[list[int]]) -> None:
    every = [value for values in several for value in values]
    merged = merge.merge([measurement(values) for values in several])
    whole = histograms.from_values(np.array(every))
    for one, other in zip(
        histograms.counts_of(merged.histogram), histograms.counts_of(whole), strict=True
    ):
        assert np.array_equal(one, other)
    assert merged.latency_us == histograms.summary(whole)
    assert merged.responses == merged.ok == len(every)
    assert (merged.scheduled, merged.unsent) == (len(every) + 3 * len(several), 2 * len(several))
    assert merged.errors["timeout"] == len(several)
    assert merged.rate_achieved == pytest.approx(len(every) / 10)
    assert merged.mean_service_us == pytest.approx(np.mean(every))


def test_what_a_client_does_not_tell_the_whole_does_not_know() -> None:
    closed = measurement([5], scheduled=None, unsent=None)
    merged = merge.merge([closed, measurement([7])])
    assert (merged.scheduled, merged.unsent, merged.per_second) == (None, None, None)
    none = replace(closed, responses=0, mean_service_us=None)
    assert merge.merge([none, none]).mean_service_us is None
    assert merge.merge([none, measurement([7])]).mean_service_us == 7


def test_series_are_added_and_percentiles_are_not() -> None:
    def series(*seconds: tuple[int, int | None]) -> PerSecond:
        counts = [count for count, _ in seconds]
        largest = [most for _, most in seconds]
        return PerSecond(
            second=list(range(len(seconds))),
            scheduled=counts,
            responses=counts,
            ok=counts,
            p50_us=largest,
            p99_us=largest,
            max_us=largest,
        )

    parts = [
        measurement([1], per_second=series((3, 10), (4, None))),
        measurement([1], per_second=series((5, 90), (6, None), (1, 7))),
    ]
    none: list[int | None] = [None, None, None]
    assert merge.merge(parts).per_second == PerSecond(
        second=[0, 1, 2],
        scheduled=[8, 10, 1],
        responses=[8, 10, 1],
        ok=[8, 10, 1],
        p50_us=none,
        p99_us=none,
        max_us=[90, None, 7],
    )


@given(SAMPLES, SAMPLES)
def test_response_time_is_that_of_all_requests(one: list[int], other: list[int]) -> None:
    def found(values: list[int]) -> Any:
        waited = Waited(histograms.count_values(np.array(values)), unanswered=1)
        return response_time.summarise(waited, 10, builders.thresholds())

    whole = found([*one, *other])
    merged = present(response_time.add_up([found(one), found(other)]))
    assert merged.requests == whole.requests + 1
    assert merged.failed == 2
    assert response_time.add_up([found(one), None]) is None
    timeouts = 30e6 * (merged.failed - whole.failed)
    assert merged.mean_us * merged.requests == pytest.approx(
        whole.mean_us * whole.requests + timeouts
    )


def scrapes(path: Path, change: Callable[[float], float]) -> None:
    """Change the host's clock in a recording."""
    text = re.sub(
        r"(?m)^(node_time_seconds) (.*)$",
        lambda line: f"{line[1]} {change(float(line[2]))!r}",
        gzip.decompress(path.read_bytes()).decode(),
    )
    path.write_bytes(gzip.compress(text.encode()))


def nginx(path: Path, change: int) -> None:
    """Change how many requests a page of nginx's counters tells of."""

    def counted(found: re.Match[str]) -> str:
        return f"{int(found[1]) + change} \n"

    path.write_text(re.sub(r"(\d+) \n(?=Reading)", counted, path.read_text()))


@pytest.fixture
def rep_dir(tmp_path: Path) -> Path:
    """What two clients left that each did as the recorded one, on a run's own place."""
    place = tmp_path / "a-run" / "cells" / "two" / "rep-1"
    recorded = FIXTURES / "rep-oha"
    for client in CLIENTS:
        folder = Path(shutil.copytree(recorded, place / "clients" / client))
        for name in ("cell.json", "telemetry-server.prom.gz"):
            (folder / name).unlink()
        (folder / oha_database.DATABASE).write_bytes(
            gzip.decompress((folder / oha_database.KEPT).read_bytes())
        )
        (folder / oha_database.KEPT).unlink()
    shutil.copy(recorded / "telemetry-server.prom.gz", place)
    description = documents.load(recorded / "cell.json")
    share = {"rate": 400, "connections": 8, "cpus": [1], "interface": "eth0"}
    description["cell_id"] = "two"
    description["cell"]["load"] |= {"rate": 800, "connections": 16, "clients": 2}
    description["clients"] = [{"name": name, **share} for name in CLIENTS]
    (place / "cell.json").write_bytes(documents.dump(description))
    second = place / "clients" / "clientb"
    run = documents.load(second / "run.json")
    moved = {key: run[key] + AHEAD + LATER for key in ("started", "finished")}
    (second / "run.json").write_bytes(documents.dump({**run, **moved}))
    scrapes(second / "telemetry-client.prom.gz", lambda now: now + AHEAD)
    # Both readings before count themselves, and the last after has all requests and both readings.
    requests = 1594
    nginx(second / "reverse_proxy-before.txt", 1)
    nginx(second / "reverse_proxy-after.txt", 1 + requests + 1)
    return place


def build(rep_dir: Path) -> Result:
    found = derive_result.build(rep_dir, LIMITS, None, None)
    documents.encode(found)
    return found


def test_two_clients_make_one_result(rep_dir: Path) -> None:
    alone = derive_result.build(FIXTURES / "rep-oha", LIMITS, None)
    found = build(rep_dir)
    assert found.error is None
    assert found.validity.valid, found.validity
    for name in ("requests", "responses", "ok", "scheduled", "unsent", "rate_achieved", "goodput"):
        assert getattr(found, name) == pytest.approx(2 * getattr(alone, name)), name
    # What nginx counted, less the pages that told it.
    assert found.reverse_proxy_requests == found.requests
    assert present(found.latency_us).p99 == present(alone.latency_us).p99
    total = histograms.decode(present(found.histogram).data).total_count
    assert total == sum(one.responses for one in present(found.clients)) == found.responses
    assert present(found.response_time).requests == 2 * present(alone.response_time).requests
    series = present(alone.per_second)
    assert present(found.per_second).ok == [2 * count for count in series.ok]
    assert [one.name for one in present(found.clients)] == list(CLIENTS)
    for one in present(found.clients):
        assert (one.rate, one.connections, one.validity.valid) == (400, 8, True)
        assert one.latency_us == alone.latency_us
    first, second = present(found.clients)
    assert second.clock_offset_s - first.clock_offset_s == pytest.approx(AHEAD, abs=1e-3)
    # Times are by the clock of the first.
    assert found.started == first.started
    assert found.finished == pytest.approx(present(alone.finished) + LATER, abs=1e-3)
    assert {name for name in found.raw_sha256 if "/" not in name} == {
        "cell.json",
        "telemetry-server.prom.gz",
    }
    assert "clients/clientb/oha.sqlite" in found.raw_sha256


def test_it_comes_out_the_same_from_what_is_kept(rep_dir: Path) -> None:
    found = build(rep_dir)
    name = oha_database.REDUCED
    copy = Path(shutil.copytree(rep_dir, rep_dir.parent / name))
    (copy / "result.json").write_bytes(documents.encode(found))
    derive_result.keep(copy, LIMITS)
    derive_result.discard(copy, LIMITS)
    for client in CLIENTS:
        assert (copy / "clients" / client / name).exists()
        assert not (copy / "clients" / client / oha_database.DATABASE).exists()
    again = build(copy)
    assert f"clients/clientb/{name}" in again.raw_sha256
    assert msgspec.structs.replace(again, raw_sha256=found.raw_sha256) == found


def test_clients_that_began_apart_are_void(rep_dir: Path) -> None:
    limit = LIMITS.start_spread_max_s
    path = rep_dir / "clients" / "clientb" / "run.json"
    run = documents.load(path)
    run["started"] += limit
    path.write_bytes(documents.dump(run))
    found = build(rep_dir)
    assert all(one.validity.valid for one in present(found.clients))
    (reason,) = found.validity.reasons
    assert (reason.code, reason.limit) == ("start_spread", limit)
    assert reason.value == pytest.approx(limit + LATER, abs=1e-3)


def test_a_client_that_is_void_voids_by_its_name(rep_dir: Path) -> None:
    path = rep_dir / "clients" / "clientb" / "telemetry-client.prom.gz"
    # Near the end, so that what it is ahead of the controller's most of the time stays as it was.
    late = documents.load(rep_dir / "clients" / "clientb" / "run.json")["started"] + 3.5
    scrapes(path, lambda now: now + 0.35 if now > late else now)
    found = build(rep_dir)
    (reason,) = found.validity.reasons
    assert (reason.code, reason.facts["client"]) == ("clock_jump", "clientb")
    assert words.coded(reason).startswith("clock_jump: clientb: 0.")
    assert [one.validity.valid for one in present(found.clients)] == [True, False]


def test_what_is_missing_is_told_with_the_clients_name(rep_dir: Path) -> None:
    (rep_dir / "clients" / "clientb" / "run.json").unlink()
    assert build(rep_dir).error == "clientb: run.json is not there"
    (rep_dir / "clients" / "client" / "error.txt").write_text("http://x does not answer\n")
    assert build(rep_dir).error == "client: http://x does not answer"


def test_a_client_cannot_name_another_folder(rep_dir: Path) -> None:
    description = documents.load(rep_dir / "cell.json")
    for name in ("../../elsewhere", "", ".hidden", "a/b"):
        description["clients"][1]["name"] = name
        (rep_dir / "cell.json").write_bytes(documents.dump(description))
        with pytest.raises(ResultError, match=r"\$\.clients\[1\]\.name"):
            build(rep_dir)


def test_the_validity_of_several() -> None:
    def own(*reasons: Reason, findings: tuple[Reason, ...] = ()) -> Validity:
        return Validity(valid=not reasons, reasons=[*reasons], findings=[*findings])

    def whole(measured: Measurement, cpu_busy: float) -> LoadEvidence:
        load = builders.load(rate=120.0, connections=4, duration_s=10.0)
        server = builders.telemetry(cpu_busy=cpu_busy)
        requests = DueRequests(measured, histograms.empty(), LIMITS)
        return LoadEvidence(requests, builders.cell(load=load), server)

    steal = Reason(code="steal", value=0.1, limit=0.01, facts={"host": "server"})
    cpu = Reason(code="generator_cpu", value=0.95, limit=0.9)
    error = Reason(code="errors", value=1, facts={"class": "timeout", "requests": 9})
    found = judge_together(
        {
            "a": own(steal, findings=(error, Reason(code="ticks", value=1))),
            "b": own(steal, cpu, findings=(Reason(code="uncalibrated"),)),
        },
        whole(measurement([1000] * 1000, unsent=200, scheduled=1201, mean_service_us=1e6), 0.95),
        [link(1e6, 1e6)] * 2,
        [CALIBRATION, None],
        0.0,
    )
    assert found.reasons == [steal, msgspec.structs.replace(cpu, facts={"client": "b"})]
    # Counts are told of the whole.
    assert codes(found.findings) == ["ticks", "uncalibrated", "saturated", "unsent", "errors"]
    assert [one.facts.get("client") for one in found.findings[:3]] == ["a", "b", None]
    assert not found.valid
    good = measurement([1], errors=dict.fromkeys(ERROR_CLASSES, 0), unsent=0)
    parts = {"a": own(), "b": own()}

    def judged(
        *each: tuple[float, float], known: Sequence[Calibration | None] = (CALIBRATION, CALIBRATION)
    ) -> Validity:
        used = [link(*rates) for rates in each]
        return judge_together(parts, whole(good, 0.1), used, known, 0.1)

    assert judged((4e8, 1e8), (4e8, 1e8)) == own()
    # Each has room on its own link, and the server has one for both.
    (reason,) = judged((4.5e8, 1e8), (4.5e8, 1e8)).reasons
    assert words.coded(reason) == (
        "link: 900 Mb/s of 2 clients client_to_server of 1.00 Gb/s measured by iperf3, limit 0.8"
    )
    busy = judged((1e8, 4.5e8), (1e8, 4.5e8), known=(None, CALIBRATION))
    assert codes(busy.reasons) == ["link"]
    faster = builders.calibration_at(2e9)
    assert judged((4.5e8, 1e8), (4.5e8, 1e8), known=(CALIBRATION, faster)) == own()
    assert judged((4.5e8, 1e8), (4.5e8, 1e8), known=(None, None)) == own()


def test_each_client_is_judged_by_its_own_calibration(rep_dir: Path) -> None:
    run_dir = rep_dir.parents[2]
    for name in ("calibration", "calibration+clientb"):
        ceiling = run_dir / name / "ceiling" / "rep-1"
        ceiling.mkdir(parents=True)
        (ceiling / "run.json").write_text('{"started": 0, "finished": 1, "exit_code": 0}')
        document = builders.calibration()
        most = msgspec.structs.replace(document.ceiling, requests_per_second=20_000.0)
        origin = CalibrationOrigin(run_id=name, measured=1.0)
        document = msgspec.structs.replace(document, ceiling=most, origin=origin)
        (run_dir / f"{name}.json").write_bytes(documents.encode(document))
    found = judge_calibration.in_force(run_dir, rep_dir, builders.thresholds())
    origins = [present(present(one).origin).run_id for one in found]
    assert origins == ["calibration", "calibration+clientb"]
    # What they can offer together.
    assert records.rate_ceiling(run_dir) == 40_000


def test_a_repetition_is_cut_off_where_a_client_did_not_end(rep_dir: Path) -> None:
    run_dir = rep_dir.parents[2]
    assert derive_run.unfinished(run_dir) == []
    second = rep_dir / "clients" / "clientb"
    (second / "run.json").unlink()
    (second / "progress.txt").write_text("warming up\n")
    (found,) = derive_run.unfinished(run_dir)
    assert (found.repetition.path, found.step) == (rep_dir, "warming up")


def test_the_report_has_a_row_for_each(rep_dir: Path) -> None:
    (rep_dir / "result.json").write_bytes(documents.encode(build(rep_dir)))
    found = summary(rep_dir.parents[2])
    documents.encode(found)
    (cell,) = found.cells
    table = clients.section(cell)
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    assert [row[:4] for row in rows] == [["1", name, "400", "8"] for name in CLIENTS]
    assert [row[-2] for row in rows] == ["0", "50.0"]
    assert {row[-1] for row in rows} == {"valid"}
    alone = [msgspec.structs.replace(rep, clients=None) for rep in cell.repetitions]
    assert not clients.section(msgspec.structs.replace(cell, repetitions=alone)).has_data
