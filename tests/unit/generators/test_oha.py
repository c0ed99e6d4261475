import gzip
import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from loadlab.generators import oha, oha_database, tally
from loadlab.generators.attribution import Schedule
from loadlab.generators.measurement import GeneratorError, Lateness, Measurement
from loadlab.stats import histograms
from tests.unit.builders import present

FIXTURES = Path(__file__).parents[2] / "fixtures" / "oha"
COLUMNS = "url, start, start_latency_correction, end, duration, status, len_bytes, run"
TABLE = (
    "CREATE TABLE oha (url TEXT NOT NULL, start REAL NOT NULL, start_latency_correction REAL, "
    "end REAL NOT NULL, duration REAL NOT NULL, status INTEGER NOT NULL, "
    "len_bytes INTEGER NOT NULL, run INTEGER NOT NULL)"
)
LIMITS = oha_database.Limits(least_s=0.005, least_fraction=0.1, tail_s=0.01, opening_s=0.0)
Row = tuple[float | None, float, float, int, int]  # intended, start, end, status, body bytes


def unpack(name: str, directory: Path) -> Path:
    path = directory / "oha.sqlite"
    path.write_bytes(gzip.decompress((FIXTURES / f"{name}.sqlite.gz").read_bytes()))
    return path


def recorded(
    name: str, directory: Path, rate: float, seconds: float, body: int | None, connections: int = 64
) -> Measurement:
    schedule = Schedule(rate, seconds, connections)
    text = (FIXTURES / f"{name}.json").read_text()
    return measured(text, unpack(name, directory), schedule, body)


def measured(text: str, path: Path, schedule: Schedule, body: int | None) -> Measurement:
    said = oha.report(text, schedule)
    reduction = oha_database.reduce(path, schedule, said.missing, LIMITS)
    return oha.measure(said, reduction, body)


def reduced(path: Path, rate: float, seconds: float, missing: int = 0) -> oha_database.Reduction:
    schedule = Schedule(rate, seconds, 64)
    return oha_database.reduce(path, schedule, missing, LIMITS)


def database(path: Path, rows: Iterable[Row], run: int = 1) -> Path:
    with sqlite3.connect(path) as base:
        base.execute(TABLE.replace("TABLE oha", "TABLE IF NOT EXISTS oha"))
        base.executemany(
            f"INSERT INTO oha ({COLUMNS}) VALUES ('http://x/', ?, ?, ?, ?, ?, ?, {run})",
            [
                (s, i, e, e - (s if i is None else i), status, size)
                for i, s, e, status, size in rows
            ],
        )
    base.close()
    return path


def document(
    total: float, statuses: dict[str, int], rows: Iterable[Row] = (), **errors: int
) -> str:
    """Return oha's JSON; of its latencies only the mean and the p99.99."""
    spans = [end - (start if issued is None else issued) for issued, start, end, _, _ in rows]
    return json.dumps(
        {
            "summary": {"total": total, "average": sum(spans) / len(spans) if spans else None},
            "latencyPercentiles": {
                "p99.99": sorted(spans)[int(0.9999 * len(spans))] if spans else None
            },
            "statusCodeDistribution": statuses,
            "errorDistribution": {k.replace("_", " "): v for k, v in errors.items()},
        }
    )


def test_a_normal_run(tmp_path: Path) -> None:
    found = recorded("normal", tmp_path, 500, 3, 13)
    assert (found.requests, found.responses, found.ok) == (1500, 1500, 1500)
    assert (found.scheduled, found.unsent, found.aborted) == (1500, 0, 0)
    assert set(found.errors.values()) == {0}
    assert found.goodput == found.rate_achieved == pytest.approx(500, rel=1e-3)
    assert found.latency_from == "intended"
    # oha's own arithmetic over the same requests, in its JSON.
    said = json.loads((FIXTURES / "normal.json").read_text())
    summary = found.latency_us
    # From the schedule each is later, by up to a tick of the pacer's timer of 1 ms, less what all
    # requests share.
    for name, seconds in (
        ("mean", said["summary"]["average"]),
        ("p50", said["latencyPercentiles"]["p50"]),
        ("p90", said["latencyPercentiles"]["p90"]),
        ("max", said["summary"]["slowest"]),
    ):
        assert 500 < (summary[name] or 0) - seconds * 1e6 < 3000, name
    assert found.duration_s == said["summary"]["total"]
    assert found.per_second is not None
    assert found.per_second.scheduled == [500, 500, 500]
    assert sum(found.per_second.responses) == sum(found.per_second.ok) == 1500
    bins = present(found.per_second.latency_bins)
    assert [sum(counts) for counts in bins.counts] == found.per_second.responses
    assert found.lateness == Lateness(0, 0, 0, hidden=False)
    # Sleeps end on the next tick of 1 ms.
    assert present(found.send_delay_us)["p50"] == pytest.approx(1000, rel=0.5)


def test_a_saturated_run(tmp_path: Path) -> None:
    found = recorded("saturated", tmp_path, 2000, 3, 13)
    assert (found.scheduled, found.requests, found.unsent) == (6000, 1562, 4438)
    # A server of 500/s: neither the 62 answers after the deadline nor the wait for them count.
    assert found.goodput == pytest.approx(500, rel=0.005)
    assert found.duration_s > 3.1
    # All 64 connections waited.
    assert found.mean_service_us == pytest.approx(64 / 500 * 1e6, rel=0.05)
    assert found.latency_us["max"] == pytest.approx(2_345_454, rel=1e-3)
    # What was not sent waited for the server.
    assert found.lateness == Lateness(0, 0, 0, hidden=False)
    assert (present(found.send_delay_us)["p99"] or 0) < 5000
    assert present(found.per_second).scheduled == [2000, 2000, 2000]
    assert present(found.per_second).responses == [1562, 0, 0]
    assert present(found.per_second).p99_us[1:] == [None, None]


@pytest.mark.parametrize(
    ("name", "kind"), [("missing", "status_4xx"), ("broken", "status_5xx"), ("refused", "connect")]
)
def test_failures_are_counted_by_class(tmp_path: Path, name: str, kind: str) -> None:
    found = recorded(name, tmp_path, 100, 1, 13)
    assert found.requests == 100
    assert {k: v for k, v in found.errors.items() if v} == {kind: 100}
    assert (found.ok, found.goodput) == (0, 0.0)


def test_nothing_answered_has_null_latencies(tmp_path: Path) -> None:
    found = recorded("refused", tmp_path, 100, 1, None)
    assert (found.responses, set(found.latency_us.values())) == (0, {None})
    assert (found.mean_service_us, found.send_delay_us) == (None, None)


def test_each_request_is_in_one_class(tmp_path: Path) -> None:
    found = recorded("flaky", tmp_path, 100, 3, 13)
    assert {k: v for k, v in found.errors.items() if v} == {"read": 66, "timeout": 18, "body": 13}
    assert found.requests == found.ok + sum(found.errors.values()) == 300
    assert found.unsent == 0
    # The requests that failed may have held every connection.
    assert found.lateness == Lateness(0, 0, 0, hidden=True)
    assert found.send_delay_us is None
    assert sum(present(found.per_second).ok) == found.ok
    assert recorded("flaky", tmp_path, 100, 3, None).ok == 216


def test_requests_cut_off_are_aborted_not_errors(tmp_path: Path) -> None:
    found = recorded("aborted", tmp_path, 20, 1, None)
    assert (found.aborted, found.requests, found.scheduled) == (4, 4, 20)
    assert found.unsent == 16
    assert sum(found.errors.values()) == 0


def test_a_stall_is_in_the_percentiles_as_it_was(tmp_path: Path) -> None:
    """2 s without answers in 20 s at 2000/s, after which all that waited are answered at once."""
    intended = np.arange(40_000) / 2000
    stalled = (intended >= 8) & (intended < 10)
    ends = np.where(stalled, 10.0, intended) + 0.0001
    rows = [(i, i, e, 200, 13) for i, e in zip(intended.tolist(), ends.tolist(), strict=True)]
    path = database(tmp_path / "stall.sqlite", rows)
    text = document(20.0, {"200": 40_000}, rows)
    found = measured(text, path, Schedule(2000, 20, 5000), 13).latency_us
    assert found["p95"] == pytest.approx(1.0e6, rel=0.01)
    assert found["p99"] == pytest.approx(1.8e6, rel=0.01)
    assert found["max"] == pytest.approx(2.0e6, rel=0.01)
    assert found["mean"] == pytest.approx(0.1e6, rel=0.01)


@pytest.mark.parametrize(
    ("later_us", "shared_us"), [(0, 0), (700, 700), (1999, 1999), (9000, 2000)]
)
def test_delay_that_all_requests_share_moves_the_schedule(
    tmp_path: Path, later_us: int, shared_us: int
) -> None:
    """Each request is issued later by the same time; every tenth by a millisecond more."""
    due = np.arange(300) / 100
    issued = due + later_us / 1e6 + np.where(np.arange(300) % 10 == 9, 0.001, 0)
    rows = [(i, i, i + 0.05, 200, 13) for i in issued.tolist()]
    path = database(tmp_path / "later.sqlite", rows)
    found = measured(document(3.06, {"200": 300}, rows), path, Schedule(100, 3, 64), 13)
    latency, delay = found.latency_us, found.send_delay_us
    beyond = later_us - shared_us
    assert latency["p50"] == pytest.approx(50_000 + beyond, rel=1e-3)
    assert latency["p99"] == pytest.approx(51_000 + beyond, rel=1e-3)
    assert delay is not None
    assert delay["p50"] == pytest.approx(beyond, rel=1e-3, abs=1)


def test_delay_of_requests_around_a_lost_one_moves_no_request_before_its_turn(
    tmp_path: Path,
) -> None:
    rows = [(i / 100 + 0.0007, i / 100 + 0.0007, i / 100 + 0.05, 200, 13) for i in range(300)]
    lost = database(tmp_path / "lost.sqlite", [row for i, row in enumerate(rows) if i != 20])
    assert reduced(lost, 100, 3, missing=1).offset_s == pytest.approx(0.0007)


def test_a_slow_start_and_a_slow_end_leave_the_rate_alone(tmp_path: Path) -> None:
    """Each answer takes 3 s of a 30 s run at 10/s: none in the first 3 s, 30 after the end."""
    rows = [(i / 10, i / 10, i / 10 + 3, 200, 13) for i in range(300)]
    path = database(tmp_path / "slow.sqlite", rows)
    found = measured(document(33.0, {"200": 300}, rows), path, Schedule(10, 30, 64), 13)
    assert found.rate_achieved == pytest.approx(10, rel=0.01)
    assert (found.duration_s, found.unsent) == (33.0, 0)


def test_the_reduction_survives_json_unchanged(tmp_path: Path) -> None:
    said = oha.report((FIXTURES / "flaky.json").read_text(), Schedule(100, 3, 64))
    reduction = reduced(unpack("flaky", tmp_path), 100, 3, said.missing)
    text = msgspec.json.encode(reduction)
    again = oha.measure(said, msgspec.json.decode(text, type=oha_database.Reduction), 13)
    first = oha.measure(said, reduction, 13)
    for name in ("latency_us", "per_second", "goodput", "mean_service_us", "errors"):
        assert getattr(again, name) == getattr(first, name)
    assert histograms.encode(again.histogram) == histograms.encode(first.histogram)


@pytest.mark.parametrize(
    ("rate", "seconds", "count"), [(1000, 30, 30_000), (0.1, 30, 3), (3, 0.5, 2), (0.3, 10, 3)]
)
def test_schedule_counts_the_requests_that_are_due(rate: float, seconds: float, count: int) -> None:
    assert Schedule(rate, seconds, 1).scheduled == count


def test_a_fractional_rate_spreads_over_the_seconds(tmp_path: Path) -> None:
    rows = [(i / 2.5, i / 2.5, i / 2.5 + 0.01, 200, 1) for i in range(10)]
    reduction = reduced(database(tmp_path / "f.sqlite", rows), 2.5, 4)
    assert reduction.per_second.intended == [3, 2, 3, 2]
    assert [sum(c for _, _, c in s) for s in reduction.per_second.answers] == [3, 2, 3, 2]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Connection refused (os error 111)", "connect"),
        ("Cannot assign requested address (os error 99)", "connect"),
        ("Too many open files (os error 24)", "connect"),
        ("connection closed before message completed", "read"),
        ("error writing a body to connection", "write"),
        ("timeout", "timeout"),
        ("aborted due to deadline", "aborted"),
        ("http2 error", "read"),
        ("unexpected EOF", "connect"),
        (
            "error:0A000086:SSL routines:tls_post_process_server_certificate:certificate verify "
            "failed:../ssl/statem/statem_clnt.c:2123: (self-signed certificate)",
            "connect",
        ),
    ],
)
def test_error_message_is_classified_by_its_cause(message: str, kind: str) -> None:
    assert oha.classify(message) == kind


def test_an_unknown_error_is_quoted() -> None:
    with pytest.raises(GeneratorError, match="'the moon was full'"):
        oha.report(document(1.0, {}, the_moon_was_full=1), Schedule(10, 1, 64))


@pytest.mark.parametrize("total", ["0", "1e400", "NaN", '"1"'])
def test_a_load_without_a_length_is_refused(total: str) -> None:
    said = document(1.0, {}).replace('"total": 1.0', f'"total": {total}')
    with pytest.raises(GeneratorError, match=r"oha's total is .* s, it must be"):
        oha.report(said, Schedule(10, 1, 64))


def test_a_lost_row_is_refused(tmp_path: Path) -> None:
    path = unpack("normal", tmp_path)
    with sqlite3.connect(path) as base:
        base.execute("DELETE FROM oha WHERE rowid = (SELECT max(rowid) FROM oha)")
    base.close()
    with pytest.raises(GeneratorError, match=r"SQLite has 1499 .* JSON has 1500"):
        measured((FIXTURES / "normal.json").read_text(), path, Schedule(500, 3, 8), 13)


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    path = unpack("normal", tmp_path)
    text = (FIXTURES / "normal.json").read_text()
    with pytest.raises(GeneratorError, match="truncated"):
        measured(text[: len(text) // 2], path, Schedule(500, 3, 8), 13)
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(GeneratorError, match="truncated"):
        reduced(path, 500, 3)
    with pytest.raises(GeneratorError, match="is not there"):
        reduced(tmp_path / "none.sqlite", 500, 3)


def test_two_runs_in_one_file_are_refused(tmp_path: Path) -> None:
    path = database(tmp_path / "two.sqlite", [(0.0, 0.0, 0.1, 200, 1)], run=1)
    database(path, [(0.0, 0.0, 0.1, 200, 1)], run=2)
    with pytest.raises(GeneratorError, match="holds 2 runs"):
        reduced(path, 10, 1)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((None, 0.0, 0.1, 200, 1), "--latency-correction"),
        ((0.2, 0.1, 0.3, 200, 1), "contradict"),
        ((0.1, 0.3, 0.2, 200, 1), "contradict"),
        ((-0.1, 0.3, 0.4, 200, 1), "contradict"),
        ((0.0, 0.0, 0.1, 200, "x"), "truncated or not oha's"),
    ],
)
def test_impossible_rows_are_refused(tmp_path: Path, row: Any, words: str) -> None:
    with pytest.raises(GeneratorError, match=words):
        reduced(database(tmp_path / "r.sqlite", [row]), 10, 1)


def test_a_schedule_of_another_rate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match="before its turn"):
        reduced(unpack("normal", tmp_path), 400, 3)


@pytest.mark.parametrize(
    ("rows", "said", "aborted", "unsent"),
    [
        # Each connection says that it was cut off, and none had a request under way.
        (10, 4, 0, 0),
        (8, 4, 2, 0),
        # More are missing than there are connections: the rest were never sent.
        (3, 4, 4, 3),
    ],
)
def test_over_http2_a_deadline_is_told_by_each_connection(
    tmp_path: Path, rows: int, said: int, aborted: int, unsent: int
) -> None:
    answers = [(i / 10, i / 10, i / 10 + 0.01, 200, 13) for i in range(rows)]
    path = database(tmp_path / "oha.sqlite", answers)
    text = document(1.0, {"200": rows}, answers, aborted_due_to_deadline=said)
    schedule = Schedule(10, 1, 64)
    found = measured(text, path, schedule, 13)
    assert (found.responses, found.aborted, found.unsent) == (rows, aborted, unsent)
    assert (found.requests, found.scheduled) == (10 - unsent, 10)


@pytest.mark.parametrize(
    ("us", "kept"),
    [(0, 0), (9_999, 9_999), (10_004, 10_000), (10_005, 10_010), (123_449, 123_400),
     (999_951, 1_000_000), (30_004_999, 30_000_000)],
)  # fmt: skip
def test_long_latencies_are_kept_with_four_digits(us: int, kept: int) -> None:
    assert tally.rounded(np.array([us])).tolist() == [kept]


def test_parts_of_a_file_give_what_the_whole_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With failed requests, whose turns later rows decide, and seconds across the parts."""
    for name, rate, seconds, missing in (("flaky", 100, 3, 84), ("normal", 500, 3, 0)):
        path = unpack(name, tmp_path)
        schedule = Schedule(rate, seconds, 100)
        whole = oha_database.reduce(path, schedule, missing, LIMITS)
        monkeypatch.setattr(oha_database, "PART", 7)
        parts = oha_database.reduce(path, schedule, missing, LIMITS)
        monkeypatch.undo()
        assert parts.service_s.sum == pytest.approx(whole.service_s.sum)
        assert parts.issue_s == pytest.approx(whole.issue_s)
        parts.service_s, parts.issue_s = whole.service_s, whole.issue_s
        assert parts == whole
