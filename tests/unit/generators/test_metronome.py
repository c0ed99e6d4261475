"""metronome's plan, and its files as a Measurement. The files are of real loads."""

import dataclasses
import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.generators import merge, metronome, metronome_records
from loadlab.generators.attribution import Schedule
from loadlab.generators.generator import Kind, Lanes, Replayed, Request
from loadlab.generators.measurement import GeneratorError, Measurement
from loadlab.model import Arrivals, LaneTurns, Opened, SessionStep, Switching
from loadlab.report import words
from loadlab.results.repetitions import latencies_due, response_time
from loadlab.stats import histograms
from tests.unit import builders
from tests.unit.builders import present

FIXTURES = Path(__file__).parents[2] / "fixtures/metronome"
FLAKY, OVERLOAD = Schedule(400, 2.5, 8), Schedule(400, 2, 1)
# One of two, of a load of 400 requests/s.
LANE = builders.load(
    generator="metronome", rate=200, duration_s=2, connections=8, lanes=LaneTurns()
)
LIMITS = builders.thresholds()


def measured(name: str, schedule: Schedule = FLAKY) -> Measurement:
    return metronome.measure(FIXTURES / name, schedule)[0]


def said(folder: Path) -> dict[str, Any]:
    """Return what the program itself computed of a load."""
    summary: dict[str, Any] = json.loads((folder / "metronome.json").read_text())
    return summary


def changed(folder: Path, summary: dict[str, Any], schedule: Schedule = FLAKY) -> Measurement:
    """Return the measurement of a load with another summary."""
    (folder / "metronome.json").write_text(json.dumps(summary))
    return metronome.measure(folder, schedule)[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURES / "records", tmp_path / "load"))


@pytest.mark.parametrize("name", ["records", "seconds"])
def test_each_outcome_has_its_class(name: str) -> None:
    measurement = measured(name)
    assert (measurement.requests, measurement.responses, measurement.ok) == (1000, 976, 916)
    assert {kind: count for kind, count in measurement.errors.items() if count} == {
        "read": 20,
        "timeout": 4,
        "status_4xx": 20,
        "status_5xx": 20,
        "body": 20,
    }
    assert (measurement.scheduled, measurement.unsent, measurement.aborted) == (1000, 0, 0)
    assert measurement.rate_achieved == pytest.approx(976 / 2.5, rel=0.01)
    assert measurement.goodput == pytest.approx(916 / 2.5, rel=0.01)
    series = present(measurement.per_second)
    assert (series.scheduled, sum(series.responses), sum(series.ok)) == ([400, 400, 200], 976, 916)


@pytest.mark.parametrize(("name", "error"), [("records", 3e-3), ("seconds", 5e-3)])
def test_the_percentiles_are_those_that_the_program_computes(name: str, error: float) -> None:
    measurement, summary = measured(name), said(FIXTURES / name)
    ideal = histograms.summary(present(measurement.ideal))
    for key in ("p50", "p90", "mean", "max"):
        latency, added = summary["latency_us"][key], summary["added_us"][key]
        assert measurement.latency_us[key] == pytest.approx(latency, rel=error, abs=1)
        assert ideal[key] == pytest.approx(latency - added, rel=error + 1e-3, abs=2)


@pytest.mark.parametrize("files", ["records", "seconds"])
def test_each_lane_is_measured_alone(files: str) -> None:
    folder = FIXTURES / "lanes" / files
    lanes = {name: metronome.of_lane(folder / name, LANE)[0] for name in ("base", "head")}
    for name, wrong in (("base", 0), ("head", 20)):
        lane = lanes[name]
        assert (lane.scheduled, lane.requests, lane.responses) == (400, 400, 400)
        assert (lane.ok, lane.errors["status_5xx"]) == (400 - wrong, wrong)
        # Half of the load's rate.
        assert lane.rate_achieved == pytest.approx(200, rel=0.01)
        assert lane.histogram.get_total_count() == 400
        series = present(lane.per_second)
        assert series.scheduled == series.responses == [200, 200]
        computed = said(folder / name)["latency_us"]
        for key in ("p50", "p90", "mean", "max"):
            assert lane.latency_us[key] == pytest.approx(computed[key], rel=5e-3, abs=1)
    # The servers sleep 0.3 and 0.6 ms.
    medians = {name: lane.latency_us["p50"] or 0 for name, lane in lanes.items()}
    assert medians["head"] - medians["base"] > 250


def test_a_lane_of_another_load_is_refused() -> None:
    folder = FIXTURES / "lanes/records/base"
    lane, beside = metronome.of_lane(folder, LANE)
    assert (lane.scheduled, beside) == (400, {"metronome.requests"})
    with pytest.raises(
        GeneratorError, match="400 requests, not of about 1600, the share of one of"
    ):
        metronome.of_lane(folder, replace(LANE, rate=800))


def test_a_lane_of_a_closed_loop_has_its_goodput() -> None:
    base, head = (
        metronome.closed_loop(FIXTURES / "closed" / name / "metronome.json")
        for name in ("base", "head")
    )
    # Without the first, of 9. Of the head every 20th answer is wrong.
    assert (head.slices, base.slices, head.right, head.cut) == (8, 8, 823, 0)
    # In slices of 0.1 s, of which the last answer is after the end.
    assert head.seconds == pytest.approx(8 * 0.1, abs=0.01)
    assert head.goodput == pytest.approx(823 / 0.809353713)
    assert base.goodput > head.goodput
    length = present(head.finished) - present(head.started)
    assert present(head.turns) * length == pytest.approx(9 * 0.1, abs=0.01)


def test_a_generator_that_limits_the_closed_loop_of_a_lane_says_so(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FIXTURES / "lanes/records/base", tmp_path / "base"))
    text = (FIXTURES / "closed/base/metronome.json").read_text()
    slow = text.replace('"turnaround", "kept": true', '"turnaround", "kept": false')
    (folder / "saturation.json").write_text(slow)
    lane, _ = metronome.of_lane(folder, replace(LANE, lanes=LaneTurns(closed_s=2)))
    assert words.coded(lane.findings[-1]).endswith(
        "that it, not the server, may have been the limit, fraction: 0.0130, limit 0.2"
    )


def test_a_lane_that_is_a_closed_loop_is_measured_as_any_closed_loop() -> None:
    folder = FIXTURES / "closed/whole"
    load = replace(LANE, mode="closed", rate=None, connections=4)
    lane, beside = metronome.of_lane(folder, load)
    assert beside == {"metronome.seconds"}
    assert (lane.requests, lane.responses, lane.ok) == (938, 938, 892)
    assert lane.errors["status_5xx"] == 46
    assert (lane.scheduled, lane.unsent, lane.latency_from) == (None, None, "sent")
    # In eight of its slices, not in the whole time; wrong answers came as fast.
    assert lane.goodput == pytest.approx(793 / 0.816070399)
    assert lane.rate_achieved == pytest.approx(793 / 0.816070399 * 938 / 892)
    series = present(lane.per_second)
    assert (series.responses, series.ok) == ([500, 438], [475, 417])
    for key in ("p50", "p99", "mean", "max"):
        computed = said(folder)["latency_us"][key]
        assert lane.latency_us[key] == pytest.approx(computed, rel=5e-3, abs=1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"slices": 9', '"slices": 8', "its slices do not add up"),
        ('"right": 965', '"right": 966', "its slices do not add up"),
        ('"right": 988', '"right": 964', "its slices do not add up"),
        ('"closed": {', '"opened": {', "is of a load at a rate"),
        (", [1.760992759, 0.100149925, 39, 0.000277644]", "", "its slices do not add up"),
        ('"format": "metronome summary/1"', '"format": "2"', "not 'metronome summary/1'"),
    ],
)
def test_a_closed_loop_that_does_not_add_up_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    shutil.copytree(FIXTURES / "closed/head", tmp_path / "head")
    path = tmp_path / "head/metronome.json"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(GeneratorError, match=message):
        metronome.closed_loop(path)


def test_what_is_kept_gives_the_same(folder: Path) -> None:
    before, name = metronome.measure(folder, FLAKY)
    assert name == "metronome.requests"
    entry = metronome.GENERATORS[0]
    load = builders.load(generator="metronome", rate=400, duration_s=2.5, connections=8)
    present(entry.keep)(folder, load, LIMITS, False)
    present(entry.discard)(folder)
    assert [path.name for path in sorted(folder.iterdir())] == [
        *("metronome.json", "metronome.requests.gz")
    ]
    after, name = metronome.measure(folder, FLAKY)
    assert name == "metronome.requests.gz"
    assert after.latency_us == before.latency_us
    # Less than the 16 bytes a request that are asked of it.
    assert (folder / name).stat().st_size < 16 * 1000


def test_a_load_that_one_connection_cannot_carry(tmp_path: Path) -> None:
    measurement = measured("overload", OVERLOAD)
    assert measurement.scheduled == 800
    assert measurement.unsent == 800 - measurement.requests > 0
    waited, lateness = present(measurement.waited), present(measurement.lateness)
    assert (waited.unsent, lateness.unsent) == (measurement.unsent, 0)
    # A request holds the connection from when it could use it.
    held_us = (measurement.mean_service_us or 0) + ((measurement.send_delay_us or {})["mean"] or 0)
    assert measurement.services_us.mean() == pytest.approx(held_us, abs=1)
    # What waited, waited for the server: the generator has a small part of it.
    latency = latencies_due.over_due(
        measurement.latency_us, measurement.histogram, histograms.empty(), []
    )
    own = latencies_due.own_part(latency, present(measurement.ideal), histograms.empty())
    assert present(own.p50) < 0.05 * present(latency.p50)


def test_a_truncated_file_is_refused(folder: Path) -> None:
    path = folder / "metronome.requests"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(GeneratorError, match="truncated: "):
        metronome.measure(folder, FLAKY)
    path.unlink()
    (folder / "metronome.requests.gz").write_bytes(gzip.compress(whole)[:-9])
    with pytest.raises(GeneratorError, match=r"metronome\.requests\.gz is truncated"):
        metronome.measure(folder, FLAKY)
    (folder / "metronome.requests.gz").unlink()
    with pytest.raises(GeneratorError, match=r"none of metronome\.requests, metronome\.seconds"):
        metronome.measure(folder, FLAKY)


@pytest.mark.parametrize(
    ("name", "alter", "words"),
    [
        ("metronome.requests", lambda raw: b"", "metronome.requests is truncated"),
        ("metronome.requests", lambda raw: b"{" + raw, "metronome.requests is truncated"),
        ("metronome.json", lambda raw: b"\xff" + raw, "metronome.json is truncated"),
        ("metronome.json", lambda raw: raw.replace(b'"write"', b'"wrote"'), "has the outcomes"),
        ("metronome.json", lambda raw: raw.replace(b'"total_s"', b'"total"'), "truncated or not"),
        ("metronome.json", lambda raw: raw.replace(b'"404":', b'"4o4":'), "truncated or not"),
    ],
)
def test_a_file_that_is_not_understood_is_no_bug(
    folder: Path, name: str, alter: Callable[[bytes], bytes], words: str
) -> None:
    path = folder / name
    path.write_bytes(alter(path.read_bytes()))
    with pytest.raises(GeneratorError, match=words):
        metronome.measure(folder, FLAKY)


def test_records_of_another_load_are_refused(folder: Path) -> None:
    shutil.copy(FIXTURES / "overload" / "metronome.requests", folder)
    with pytest.raises(GeneratorError, match=r"metronome\.requests has \[511, "):
        metronome.measure(folder, FLAKY)


RAMP = [(0.0, 1.0), (1.0, 3.0)]
POISSON = Schedule(200, 2, 8, Arrivals(smoothness=1))


@pytest.mark.parametrize("files", ["records", "seconds"])
def test_random_arrivals_have_their_due_times(files: str) -> None:
    measurement = measured(f"poisson/{files}", POISSON)
    series, sent = present(measurement.per_second), present(measurement.sent_shape)
    assert (measurement.scheduled, sum(series.responses), sent.seed) == (400, 400, 5)
    assert series.scheduled == series.responses != [200, 200]
    assert measurement.latency_us["p50"] == pytest.approx(
        said(FIXTURES / "poisson" / files)["latency_us"]["p50"], rel=5e-3
    )


def planned_load(**changes: Any) -> dict[str, Any]:
    """Return metronome's plan of a load of 6 s at 10/s, with these changes of the request."""
    request = Request(
        url="http://10.0.0.1/index", connections=1, threads=1, timeout_s=2, body_bytes=None, rate=10
    )
    changed = dataclasses.replace(request, **changes)
    plan: dict[str, Any] = json.loads(metronome.GENERATORS[0].command(changed, 6, "metronome")[1])
    return plan


@pytest.mark.parametrize(
    ("arrivals", "planned"),
    [
        (Arrivals(smoothness=0.5), {"arrivals": {"smoothness": 0.5, "seed": 7}}),
        (Arrivals(burst=2, ramp=RAMP), {"arrivals": {"burst": 2}, "ramp": [[0, 1], [1, 3]]}),
        (
            Arrivals(switching=Switching(ratio=9, calm_s=2, busy_s=0.5)),
            {"arrivals": {"switching": {"ratio": 9, "calm_s": 2, "busy_s": 0.5}, "seed": 7}},
        ),
        (Arrivals(ramp=RAMP), {"ramp": [[0, 1], [1, 3]]}),
    ],
)
def test_a_plan_has_its_arrivals(arrivals: Arrivals, planned: dict[str, object]) -> None:
    plan = planned_load(arrivals=arrivals, seed=7)
    assert plan["schedule"] == {"rate": 10, "duration_s": 6, **planned}


MIX = Schedule(100, 2, 3, kinds={"fast": 14, "slow": 5, "flaky": 1})


def test_each_kind_of_a_mix_has_its_own_figures() -> None:
    """Slow answers hold the three connections, so 40 requests were not sent."""
    measurement = measured("mix", MIX)
    counts = {
        name: (own.scheduled, own.requests, own.unsent, own.ok)
        for name, own in measurement.kinds.items()
    }
    assert counts == {"fast": (140, 112, 28, 112), "slow": (50, 40, 10, 40), "flaky": (10, 8, 2, 4)}
    assert (measurement.scheduled, measurement.requests, measurement.ok) == (200, 160, 156)
    flaky = measurement.kinds["flaky"].errors
    assert flaky == measurement.errors
    assert flaky["status_5xx"] == 4
    service = {name: own.mean_service_us or 0 for name, own in measurement.kinds.items()}
    assert service["fast"] < 20_000 < 150_000 < service["slow"]
    goodput = sum(own.goodput for own in measurement.kinds.values())
    assert goodput == pytest.approx(measurement.goodput)
    sent = present(measurement.sent_shape)
    assert (sent.seed, sent.mix_off) == (5, 0)
    assert merge.merge([measurement, measurement]).kinds["fast"].unsent == 56


def test_a_lane_has_the_kinds_of_its_mix() -> None:
    load = replace(LANE, rate=40, duration_s=1, connections=4, lanes=LaneTurns(closed_s=1))
    folder, weights = FIXTURES / "mixed_lane", {"short": 3, "long": 1}
    lane, _ = metronome.of_lane(folder, load, weights)
    assert {name: own.ok for name, own in lane.kinds.items()} == {"short": 30, "long": 10}
    assert present(lane.saturated).right > 0
    with pytest.raises(GeneratorError, match=r"is of a mix \{'short': 3, 'long': 1\}, not of \{\}"):
        metronome.of_lane(folder, load)
    # As if two kinds of four were long.
    with pytest.raises(GeneratorError, match="is of a mix"):
        metronome.of_lane(folder, load, {"short": 1, "long": 1})


def test_a_mix_that_was_not_sent_is_told() -> None:
    """As if 13 requests of 20 were to be fast."""
    reader, _ = metronome_records.read(
        FIXTURES / "mix", replaced(MIX, kinds={"fast": 13, "slow": 5, "flaky": 2})
    )
    assert reader.mix_off == 8


# Visitors come in the first 1.5 s.
SESSION = Schedule(
    200,
    2,
    8,
    Arrivals(smoothness=1, ramp=[(0, 1), (1.5, 1), (1.5, 0), (2, 0)]),
    kinds={"login": 1, "cart": 2},
    steps=3,
)


def test_visits_have_their_times_and_break_where_the_server_breaks_them() -> None:
    """Of 400 visits the server forgets each tenth, and gives each twentieth no token."""
    measurement = measured("session", SESSION)
    visits = present(measurement.visits)
    assert (visits.scheduled, visits.started, visits.completed) == (400, 400, 340)
    assert visits.broken == [(0, 20), (40, 0), (0, 0)]
    requests = 400 + 380 + 340
    assert (measurement.scheduled, measurement.requests, measurement.unsent) == (
        requests,
        requests,
        0,
    )
    assert (measurement.ok, measurement.errors["status_4xx"]) == (requests - 40, 40)
    counts = {name: (own.scheduled, own.ok) for name, own in measurement.kinds.items()}
    assert counts == {"login": (400, 400), "cart": (720, 680)}
    # They think for 50 ms, and then for 30 ms on average.
    us = np.repeat(*visits.time_us)
    assert len(us) == 340
    assert us.min() > 50_000
    assert 75_000 < us.mean() < 95_000
    series = present(measurement.per_second)
    assert sum(series.scheduled) == requests
    shape = present(measurement.sent_shape)
    assert (shape.seed, shape.mix_off) == (7, None)
    both = present(merge.merge([measurement, measurement]).visits)
    assert (both.completed, both.broken[0], len(np.repeat(*both.time_us))) == (680, (0, 40), 680)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"completed": 340', '"completed": 341', "has 341 completed visits, .* has 340"),
        ('"scheduled": 400', '"scheduled": 401', "is of 401 visits, not of 400"),
        ('"steps": 3', '"steps": 2', "is of another session"),
    ],
)
def test_visits_that_contradict_their_records_are_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    folder = Path(shutil.copytree(FIXTURES / "session", tmp_path / "load"))
    text = (folder / "metronome.json").read_text()
    # A kind has as many.
    begin, visits, end = text.partition('"visits"')
    (folder / "metronome.json").write_text(begin + visits + end.replace(old, new))
    with pytest.raises(GeneratorError, match=words):
        metronome.measure(folder, SESSION)


REPLAY = Schedule(40, 2, 4, kinds={"/": 48, "/missing": 16, "other paths": 16}, replay=True)


def test_a_log_says_what_is_due_and_which_answers_are_right() -> None:
    measurement = measured("replay", REPLAY)
    counts = {name: (own.scheduled, own.ok) for name, own in measurement.kinds.items()}
    assert counts == {"/": (48, 48), "/missing": (16, 16), "other paths": (16, 12)}
    assert {name: count for name, count in measurement.errors.items() if count} == {"status_5xx": 4}
    assert present(measurement.per_second).scheduled == [30, 50]
    assert present(measurement.per_second).responses == [30, 50]
    sent = present(measurement.sent_shape)
    assert (sent.seed, sent.mix_off) == (None, 0)


@pytest.mark.parametrize(
    ("name", "schedule", "words"),
    [
        ("records", Schedule(1000, 2.5, 8), r"of 1000 requests, not of 2500"),
        ("poisson/records", Schedule(200, 2, 8), "is of poisson arrivals, not of constant ones"),
        ("records", replaced(FLAKY, arrivals=Arrivals(burst=5)), "constant arrivals, not of burst"),
        ("mix", replaced(MIX, kinds={}), r"of a mix \{'fast': 14, .*, not of \{\}"),
        ("records", replaced(FLAKY, kinds=MIX.kinds), r"of a mix \{\}, not of \{'fast': 14"),
        ("records", SESSION, "is of no session"),
        (
            "replay",
            replaced(REPLAY, kinds={"/": 49, "/missing": 15, "other paths": 16}),
            r"of a mix \{'/': 48, .*, not of \{'/': 49",
        ),
        ("replay", replaced(REPLAY, replay=False), r"metronome\.json is of a log"),
    ],
)
def test_another_load_is_refused(name: str, schedule: Schedule, words: str) -> None:
    with pytest.raises(GeneratorError, match=words):
        measured(name, schedule)


def test_a_plan_has_its_log() -> None:
    """The first of the kinds has the headers of the requests that the log alone names."""
    log = Replayed("/log", {"Host": "localhost"})
    plan = planned_load(body_bytes=17, body_file="answer.body", replay=log)
    assert plan["schedule"] == {"replay": "/log", "duration_s": 6}
    assert [(kind["path"], kind["headers"], kind["answer"]) for kind in plan["kinds"]] == [
        ("/", [["Host", "localhost"]], {"status": 200, "bytes": None, "body": None}),
        ("/index", [], {"status": 200, "bytes": 17, "body": "answer.body"}),
    ]


def test_a_plan_has_its_session() -> None:
    kinds = [
        Kind(name, 1, f"http://10.0.0.1/{name}", "GET", "", {}, 200, None, None)
        for name in ("login", "cart")
    ]
    steps = [
        SessionStep(request="login", take={"token": "$.token"}),
        SessionStep(request="cart", think_s=2),
        SessionStep(request="login", think_mean_s=3),
    ]
    plan = planned_load(seed=7, mix=kinds, session=steps)
    assert plan["schedule"] == {
        "rate": 10,
        "duration_s": 6,
        "think_seed": 7,
        "session": [
            {"kind": 0, "think_s": 0, "think_mean_s": None, "take": [["token", "$.token"]]},
            {"kind": 1, "think_s": 2, "think_mean_s": None, "take": []},
            {"kind": 0, "think_s": 0, "think_mean_s": 3, "take": []},
        ],
    }


def test_a_plan_has_its_mix() -> None:
    kind = Kind("index", 3, "http://10.0.0.1/index", "GET", "", {}, 200, 17, "answer-index.body")
    write = Kind("new", 1, "http://10.0.0.1/new?a=1", "POST", "x", {"A": "b"}, 201, None, None)
    plan = planned_load(seed=7, mix=[kind, write])
    assert plan["schedule"] == {"rate": 10, "duration_s": 6, "mix_seed": 7}
    assert plan["kinds"] == [
        {
            "name": "index",
            "weight": 3,
            "method": "GET",
            "path": "/index",
            "headers": [],
            "body": "",
            "answer": {"status": 200, "bytes": 17, "body": "answer-index.body"},
        },
        {
            "name": "new",
            "weight": 1,
            "method": "POST",
            "path": "/new?a=1",
            "headers": [["A", "b"]],
            "body": "x",
            "answer": {"status": 201, "bytes": None, "body": None},
        },
    ]


def test_a_plan_has_what_was_asked_for() -> None:
    request = Request(
        url="https://10.0.0.1:8443/agents?a=1",
        connections=64,
        threads=2,
        timeout_s=2,
        body_bytes=17,
        rate=0.5,
        method="POST",
        body="{}",
        headers={"X-b": "it's"},
        keepalive=False,
        status=201,
        body_file="answer.body",
        keep_requests=False,
    )
    name, text = metronome.GENERATORS[0].command(request, 2.5, "warmup")
    assert (name, json.loads(text)) == (
        "metronome",
        {
            "format": "metronome plan/1",
            "output": "warmup",
            "lanes": [{"url": "https://10.0.0.1:8443"}],
            "kinds": [
                {
                    "method": "POST",
                    "path": "/agents?a=1",
                    "headers": [["X-b", "it's"]],
                    "body": "{}",
                    "answer": {"status": 201, "bytes": 17, "body": "answer.body"},
                }
            ],
            "schedule": {"rate": 0.5, "duration_s": 2.5},
            "connections": 64,
            "on_demand": False,
            "threads": 2,
            "keepalive": False,
            "timeout_s": 2,
            "keep_requests": False,
        },
    )


def test_connections_on_demand_are_counted(folder: Path) -> None:
    assert metronome.measure(folder, FLAKY)[0].opened is None
    summary = said(folder)
    summary["plan"]["on_demand"] = True
    summary["connects"] |= {"count": 31, "most_open": 9, "waited": 2}
    measurement = changed(folder, summary)
    assert measurement.opened == Opened(count=31, most=9, waited=2)
    both = merge.merge([measurement, measurement])
    assert both.opened == Opened(count=62, most=18, waited=4)


TWO_URLS = {"base": "http://10.0.0.1:8001", "head": "http://10.0.0.1:8002"}


@pytest.mark.parametrize(
    ("rate", "schedule"), [(750, {"rate": 750}), (None, {"closed": True, "slice_s": 0.2})]
)
def test_a_plan_has_its_lanes(rate: float | None, schedule: dict[str, float]) -> None:
    turns = LaneTurns(closed_s=3, slice_s=0.2)
    plan = planned_load(rate=rate, lanes=Lanes(TWO_URLS, turns))
    assert plan["lanes"] == [{"name": name, "url": url} for name, url in TWO_URLS.items()]
    assert plan["schedule"] == {"duration_s": 6, **schedule}
    plan = planned_load(rate=rate, lanes=Lanes({"base": TWO_URLS["base"]}, turns))
    assert plan["lanes"] == [{"url": TWO_URLS["base"]}]


def test_a_wait_of_more_than_the_histograms_hour_is_an_hour() -> None:
    """As of a load of days that a server cannot carry."""
    counted = metronome_records.Counted()
    counted.add(np.array([5, 2 * 3600]) * metronome_records.UNITS_S)
    histogram = histograms.from_counts(*counted.exact)
    assert histograms.summary(histogram, counted.exact)["max"] == histograms.HIGHEST_US


@given(st.lists(st.integers(0, 2**62)))
def test_numbers_are_read_as_they_were_written(numbers: list[int]) -> None:
    raw = bytearray()
    for number in numbers:
        rest = number
        while rest > 127:
            raw.append(rest & 127 | 128)
            rest >>= 7
        raw.append(rest)
    assert metronome_records.leb128(bytes(raw), len(numbers)).tolist() == numbers


@given(st.lists(st.integers(-(2**61), 2**61)))
def test_differences_keep_their_sign(numbers: list[int]) -> None:
    signed = np.array(numbers, np.int64)
    assert metronome_records.zigzag((signed << 1) ^ (signed >> 63)).tolist() == numbers


def test_an_expected_404_is_no_error(folder: Path) -> None:
    """As if the contract had said so: all right answers of these records have status 200."""
    summary = said(folder)
    # An earlier metronome counted all answers by status.
    summary["statuses"]["404"] += summary["outcomes"]["right"]
    errors = changed(folder, summary).errors
    assert (errors["status_4xx"], errors["status_5xx"], errors["status_other"]) == (20, 20, 0)


def test_what_was_never_sent_of_a_mix_waited_as_its_summary_says(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FIXTURES / "mix", tmp_path / "mix"))
    summary = said(folder)
    waits = {"fast": [[1000, 8], [5000, 20]], "slow": [[3000, 10]], "flaky": [[4000, 2]]}
    for kind in summary["kinds"]:
        kind["unsent_waits_us"] = waits[kind["name"]]
    summary["unsent_waits_us"] = sorted(pair for own in waits.values() for pair in own)
    measurement = changed(folder, summary, MIX)
    load = builders.load(generator="metronome", rate=200, duration_s=1, connections=3)
    for own, most_us, count in ((measurement, 5000, 40), (measurement.kinds["slow"], 3000, 10)):
        censored = response_time.censored(own, load, LIMITS)
        assert histograms.counts_of(censored)[0].max() == pytest.approx(most_us, rel=1e-3)
        assert censored.total_count == count
