from __future__ import annotations

import copy
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from loadlab.analysis import claim_text, claims, result
from loadlab.core import documents as files
from loadlab.core.errors import ResultError
from loadlab.core.schema import validate
from loadlab.planning import claims as planning_claims
from loadlab.report import claims as report_claims
from loadlab.report import lesson
from loadlab.stats import inference

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "files" / "schema" / "lab-1.schema.json"
LESSONS = sorted((ROOT / "files" / "lessons").glob("*.yml"))


def cell(*goodputs: float, valid: bool = True, **more: Any) -> dict[str, Any]:
    """A cell of summary.json, as far as claims read it."""
    verdict = {"valid": valid, "reasons": [] if valid else ["steal: 0.2"]}
    return {
        "cell": {"endpoint": "index", "load": {"rate": 100, "connections": 8}},
        "repetitions": [{"goodput": one, "verdict": verdict, **more} for one in goodputs],
    }


def judge(
    claim: dict[str, Any],
    cells: dict[str, Any],
    kind: str = "study",
    twins: Sequence[claims.Twin] = (),
) -> dict[str, Any]:
    claim = {"says": "so", **({} if "all" in claim else {"metric": "goodput"}), **claim}
    planning_claims.check([claim], {name: [name] for name in cells})
    levels = {name: one if isinstance(one, list) else [one] for name, one in cells.items()}
    return claims.judge(claim, levels, kind, (), twins)


def part(found: dict[str, Any]) -> dict[str, Any]:
    """The only statement of a judged claim."""
    (one,) = found["parts"]
    assert (one["verdict"], one["why"]) == (found["verdict"], found["why"])
    return dict(one)


FAST, SLOW = cell(100, 101, 102, 103, 104), cell(50, 51, 52, 53, 54)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ({"cell": "fast", "at_least": 99}, "confirmed"),
        ({"cell": "fast", "at_least": 100, "at_most": 104}, "confirmed"),
        ({"cell": "fast", "at_least": 102}, "undecided"),
        ({"cell": "fast", "at_most": 102}, "undecided"),
        ({"cell": "fast", "at_least": 105}, "refuted"),
        ({"cell": "fast", "at_most": 99}, "refuted"),
        ({"ratio": ["fast", "slow"], "at_least": 1.8, "at_most": 2.2}, "confirmed"),
        ({"ratio": ["fast", "slow"], "at_least": 2.2}, "refuted"),
        ({"ratio": ["slow", "fast"], "at_most": 0.6}, "confirmed"),
        ({"order": ["fast", "slow"]}, "confirmed"),
        ({"order": ["slow", "fast"]}, "refuted"),
        # No faster than itself.
        ({"order": ["fast", "again"]}, "undecided"),
        # Twice as much, as fast over slow is of fast over slow: as often as itself.
        ({"ratio": ["fast", "slow"], "against": ["slow", "fast"], "at_least": 3}, "confirmed"),
        ({"ratio": ["fast", "slow"], "against": ["slow", "fast"], "at_most": 3}, "refuted"),
        ({"ratio": ["fast", "slow"], "against": ["fast", "slow"], "at_least": 1}, "undecided"),
        # Against the rate that was offered, 100.
        ({"over": "load.rate", "cell": "fast", "at_least": 0.99}, "confirmed"),
        ({"over": "load.rate", "cell": "slow", "at_least": 0.99}, "refuted"),
    ],
)
def test_a_study_goes_by_intervals(claim: dict[str, Any], verdict: str) -> None:
    found = judge(claim, {"fast": FAST, "slow": SLOW, "again": FAST})
    assert found["verdict"] == verdict
    low, high = part(found)["interval"]
    assert low <= part(found)["value"] <= high
    assert (found["why"] == "") == (verdict == "confirmed")


@pytest.mark.parametrize(
    ("order", "verdict", "by"),
    [
        ("fast near far", "confirmed", ""),
        # The smallest ratio, of fast over near, is well told: that of near over wide is not.
        ("fast near wide", "undecided", "near > wide"),
        ("fast wide far", "undecided", "fast > wide"),
        # Refuted by a step, though another has a smaller ratio and is open.
        ("low-wide near fast far", "refuted", "near > fast"),
        ("far fast wide", "refuted", "far > fast"),
    ],
)
def test_every_step_of_an_order_is_judged(order: str, verdict: str, by: str) -> None:
    cells = {
        "fast": cell(*(105 * n for n in (0.998, 1, 1, 1, 1.002))),
        "near": cell(*(100 * n for n in (0.998, 1, 1, 1, 1.002))),
        "wide": cell(65, 70, 83, 105, 115),
        "low-wide": cell(60, 65, 90, 110, 130),
        "far": cell(20, 20, 21, 20, 20),
    }
    names = order.split()
    found = judge({"order": names}, cells)
    assert [part["wanted"] for part in found["parts"]] == [
        f"{above} > {below}" for above, below in pairwise(names)
    ]
    assert found["verdict"] == verdict
    assert claim_text.failing_step(found) == by
    assert by in found["why"]
    document = {"claims": [found], "unmeasured": []}
    (line,) = claim_text.lines(document)
    # One step is in it, and how many there are.
    assert line.count(" > ") == 1
    assert f"{by}, which decides of {len(names) - 1} steps" in line
    # An order of two is its only step.
    for part in found["parts"]:
        alone = judge({"order": part["wanted"].split(" > ")}, cells)
        assert alone["verdict"] == part["verdict"]
        assert (claim_text.failing_step(alone), alone["parts"][0]["order"]) == ("", None)


NUMBERS = st.lists(st.floats(1, 1e3), min_size=3, max_size=5)


@given(st.lists(NUMBERS, min_size=3, max_size=5))
@settings(max_examples=30)
def test_an_order_says_no_more_than_its_steps(samples: list[list[float]]) -> None:
    cells = {f"c{at}": cell(*values) for at, values in enumerate(samples)}
    whole = judge({"order": list(cells)}, cells)["verdict"]
    steps = {judge({"order": list(step)}, cells)["verdict"] for step in pairwise(cells)}
    assert whole == next(word for word in ("refuted", "undecided", "confirmed") if word in steps)


def twin(name: str, factor: float, pair: str | None = None, **changed: Any) -> claims.Twin:
    """A cell and itself once more, so many times as fast; on another pair where one is given."""
    one, other = (cell(*(f * n for n in (100, 101, 102, 103, 104))) for f in (1, factor))
    for part, suffix in ((one, ""), (other, "-twin")):
        part["cell_id"] = name + suffix
        part["cell"] |= changed
        for rep in part["repetitions"]:
            rep["pair"] = (pair if suffix else "server") if pair else None
    return one, other


def on(pair: str, one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "repetitions": [{**rep, "pair": pair} for rep in one["repetitions"]]}


CLOSE = cell(*(95 * n for n in (0.998, 1, 1, 1, 1.002)))
EVEN = cell(*(100 * n for n in (0.998, 1, 1, 1, 1.002)))


@pytest.mark.parametrize(
    ("claim", "quiet"),
    [
        ({"order": ["even", "close"]}, "confirmed"),
        ({"order": ["close", "even"]}, "refuted"),
        ({"ratio": ["even", "close"], "at_least": 1.02}, "confirmed"),
        ({"ratio": ["even", "close"], "at_least": 0.5, "at_most": 1.1}, "confirmed"),
        ({"ratio": ["even", "close"], "at_least": 1.1}, "refuted"),
        ({"ratio": ["even", "close"], "at_most": 1.0}, "refuted"),
        ({"ratio": ["even", "close"], "against": ["close", "even"], "at_least": 1.0}, "confirmed"),
    ],
)
def test_what_noise_explains_decides_nothing(claim: dict[str, Any], quiet: str) -> None:
    cells = {"even": EVEN, "close": CLOSE}
    assert judge(claim, cells)["verdict"] == quiet
    still, loud = judge(claim, cells, "study", [twin("t", 1)]), twin("t", 1.25)
    again = inference.difference([100, 101, 102, 103, 104], [100, 101, 102, 103, 104])
    floor = inference.noise_floor([again])
    assert floor
    assert 0.02 < floor < 0.05
    assert part(still)["noise_floor"] == pytest.approx(
        (1 + floor) ** 2 - 1 if "against" in claim else floor
    )
    found = judge(claim, cells, "study", [loud])
    assert found["verdict"] == "undecided"
    assert "than the noise floor of " in found["why"]
    # A lesson goes by what it measured once.
    assert judge(claim, cells, "lesson", [loud])["verdict"] == quiet


def test_the_floor_is_no_matter_of_one_cell_nor_of_a_bound_far_away() -> None:
    cells, loud = {"fast": FAST, "slow": SLOW}, [twin("t", 1.25)]
    alone = judge({"cell": "fast", "at_least": 99}, cells, "study", loud)
    assert (alone["verdict"], part(alone)["noise_floor"]) == ("confirmed", None)
    assert judge({"order": ["fast", "slow"]}, cells, "study", loud)["verdict"] == "confirmed"


def test_the_floor_is_of_the_claims_own_metric_and_of_a_like_load() -> None:
    """Twins whose goodput is the same, and whose answers differ by half."""
    one, other = twin("t", 1)
    for half, rep in [(1, rep) for rep in one["repetitions"]] + [
        (1.5, rep) for rep in other["repetitions"]
    ]:
        rep["latency_us"] = {"p99": half * 1000}
    cells = {"a": cell(100, 100, 100, latency_us={"p99": 1300})}
    cells["b"] = cell(100, 100, 100, latency_us={"p99": 1000})
    claim = {"metric": "latency_us.p99", "order": ["a", "b"]}
    assert judge(claim, cells, "study", [(one, other)])["verdict"] == "undecided"
    # Another load is gone by only where there is no twin of this one.
    quiet = twin("u", 1)
    for rep in [*quiet[0]["repetitions"], *quiet[1]["repetitions"]]:
        rep["latency_us"] = {"p99": 1000}
    one["cell"]["endpoint"] = "agents"
    assert judge(claim, cells, "study", [(one, other)])["verdict"] == "undecided"
    assert judge(claim, cells, "study", [(one, other), quiet])["verdict"] == "confirmed"


def test_what_two_pairs_of_hosts_differ_by_is_noise_between_them() -> None:
    here, there = on("server", EVEN), on("server2", CLOSE)
    claim = {"order": ["even", "close"]}
    own, far = twin("t", 1, "server"), twin("t", 1.25, "server2")
    cells = {"even": here, "close": there}
    assert judge(claim, cells, "study", [own, far])["verdict"] == "undecided"
    # On one pair the other is no matter.
    alone = {"even": here, "close": on("server", CLOSE)}
    assert judge(claim, alone, "study", [own, far])["verdict"] == "confirmed"
    # Alike pairs tell stacks apart as one does; where no twin says so, nothing does.
    alike = twin("t", 1, "server2")
    assert judge(claim, cells, "study", [own, alike])["verdict"] == "confirmed"
    found = judge(claim, cells, "study", [own])
    assert (found["verdict"], found["why"][:24]) == ("undecided", "on several pairs of host")


@given(NUMBERS, NUMBERS, st.floats(0.5, 2), st.floats(1, 1.5))
@settings(max_examples=30)
def test_noise_never_decides(
    above: list[float], below: list[float], bound: float, factor: float
) -> None:
    """Whatever a twin differs by, a claim comes out as without it, or undecided."""
    cells = {"above": cell(*above), "below": cell(*below)}
    claim = {"ratio": ["above", "below"], "at_least": bound}
    without = judge(claim, cells)["verdict"]
    found = judge(claim, cells, "study", [twin("t", factor)])
    one = part(found)
    far = abs(one["value"] - bound) > one["noise_floor"] * bound
    assert found["verdict"] == (without if far else "undecided")


def test_the_report_has_a_row_for_each_step_and_names_the_one_that_decided() -> None:
    names = ["fast", "slow", "even", "close"]
    claim = {"says": "so", "metric": "goodput", "order": names}
    shown = summary(fast=FAST, slow=SLOW, even=EVEN, close=CLOSE)
    study = {**STUDY, "claims": [claim], "cells": {name: [name] for name in names}}
    judged = claims.document(shown, study)
    validate(judged, "claims", SCHEMA)
    page = report_claims.build(judged)
    assert page is not None
    title, *rows = page["table"]["rows"]
    assert title["title"] == "so: refuted, by slow > even"
    cells = [[one["text"] for one in row["cells"]] for row in rows]
    assert [row[1] for row in cells] == ["fast > slow", "slow > even", "even > close"]
    assert [row[-1] for row in cells] == ["confirmed", "refuted", "confirmed"]
    assert [row[2] for row in cells] == ["4.00 (page 3)", "", ""]
    assert all("(95 % interval)" in row[4] for row in cells)
    assert inference.levels_told() in page["table"]["caption"]


def test_intervals_are_told_with_the_level_that_they_have() -> None:
    three = cell(100, 101, 102)
    told = judge({"cell": "three", "at_least": 1}, {"three": three})
    assert claim_text.figure(told) == "measured 101, 100 to 102 (75 % interval)"
    assert part(told)["level"] == 0.75
    ratio = judge({"ratio": ["fast", "slow"], "at_least": 1}, {"fast": FAST, "slow": SLOW})
    assert "(95 % interval)" in claim_text.figure(ratio)
    ratio = judge({"ratio": ["three", "slow"], "at_least": 1}, {"three": three, "slow": SLOW})
    assert "(90 % interval)" in claim_text.figure(ratio)
    # As claims.json was before levels were told.
    (old,) = [{k: v for k, v in one.items() if k != "level"} for one in told["parts"]]
    assert claim_text.measured(old) == "measured 101, 100 to 102 (- interval)"


def test_a_study_of_two_repetitions_decides_nothing_and_a_lesson_of_one_does() -> None:
    claim = {"cell": "one", "at_least": 1}
    found = judge(claim, {"one": cell(5, 6)})
    assert (found["verdict"], part(found)["interval"]) == ("undecided", None)
    assert found["why"] == "2 valid repetitions, 3 are needed for an interval"
    assert judge(claim, {"one": cell(5)}, "lesson")["verdict"] == "confirmed"
    assert judge(claim, {"one": cell(0.5)}, "lesson")["verdict"] == "refuted"


def test_void_repetitions_and_cells_that_were_not_measured_decide_nothing() -> None:
    void = cell(5, 6, 7, valid=False)
    found = judge({"ratio": ["one", "void"], "at_least": 0.1}, {"one": cell(5), "void": void})
    assert (found["verdict"], found["why"]) == ("undecided", "no valid repetition of void")
    claim = {"says": "so", "metric": "goodput", "cell": "gone", "at_least": 0}
    assert claims.judge(claim, {}, "lesson")["verdict"] == "undecided"


def test_a_ratio_over_nothing_is_undecided() -> None:
    for kind in ("study", "lesson"):
        found = judge({"ratio": ["a", "b"], "at_least": 1}, {"a": FAST, "b": cell(0, 0, 0)}, kind)
        assert (found["verdict"], part(found)["value"]) == ("undecided", None)
        assert "is 0" in claim_text.figure(found)


def test_a_metric_is_a_path() -> None:
    (rep,) = cell(1, client={"failures": {"EMFILE": 3}}, telemetry=None)["repetitions"]
    assert claims.value(rep, "client.failures.EMFILE") == 3
    # What did not happen was counted 0 times.
    assert claims.value(rep, "client.failures.EADDRNOTAVAIL") == 0
    assert claims.value(rep, "telemetry.server.tcp.retransmits") is None
    with pytest.raises(ResultError, match=r"goodness: a repetition has no 'goodness'"):
        claims.value(rep, "goodness")
    # At several numbers it ends in their sum; what was not recorded there is not measured.
    assert claims.value({"errors": {"connect": 2, "read": 3}}, "errors") == 5
    assert (
        claims.value({"telemetry": {"server": {}}}, "telemetry.server.processes.nginx.cpu") is None
    )
    # What was due and never sent had no right answer either.
    late = {"scheduled": 100, "requests": 60, "ok": 30}
    assert claims.value(late, "failed_share") == pytest.approx(0.7)
    assert claims.value({**late, "scheduled": None}, "failed_share") == pytest.approx(0.5)


ALL = [{"metric": "goodput", "cell": "fast", "at_least": 50}]


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"metric": "goodput", "cell": "fast", "at_least": 1}, "needs says and a statement"),
        ({"says": "so", "cell": "fast", "at_least": 1}, "needs says, metric and one of"),
        ({"says": "so", "metric": "goodput", "cell": "fast"}, "at_least or at_most wrongly"),
        (
            {"says": "so", "metric": "goodput", "order": ["fast", "slow"], "at_least": 1},
            "at_least or at_most wrongly",
        ),
        ({"says": "so", "all": ALL, "cell": "fast"}, "needs says and a statement"),
        ({"says": "so", "all": [{**ALL[0], "cell": "none"}]}, "names 'none', which stands for 0"),
        ({"says": "so", "all": [{**ALL[0], "cell": "both"}]}, "names 'both', which stands for 2"),
        (
            {"says": "so", "metric": "goodput", "ratio": ["fast", "slow"], "at_least": 1}
            | {"against": ["fast", "none"]},
            "names 'none'",
        ),
    ],
)
def test_a_claim_that_is_none_is_refused(claim: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        planning_claims.check([claim], {"fast": [1], "slow": [1], "both": [1, 2]})


@pytest.mark.parametrize(
    ("others", "verdict", "why"),
    [
        ([{"metric": "goodput", "cell": "slow", "at_most": 60}], "confirmed", ""),
        ([{"metric": "goodput", "cell": "slow", "at_most": 52}], "undecided", "the interval lies"),
        ([{"metric": "goodput", "cell": "slow", "at_most": 9}], "refuted", "is above 9"),
        # What is refuted stays so, whatever else cannot be told.
        (
            [
                {"metric": "goodput", "cell": "void", "at_most": 9},
                {"metric": "goodput", "cell": "slow", "at_most": 9},
            ],
            "refuted",
            "is above 9",
        ),
        ([{"metric": "goodput", "cell": "void", "at_most": 9}], "undecided", "no valid repetition"),
    ],
)
def test_of_several_statements_all_must_hold(
    others: list[dict[str, Any]], verdict: str, why: str
) -> None:
    cells = {"fast": FAST, "slow": SLOW, "void": cell(1, 2, 3, valid=False)}
    found = judge({"all": ALL + others}, cells)
    assert found["verdict"] == verdict
    assert why in found["why"]
    assert len(found["parts"]) == 1 + len(others)


def test_the_best_level_speaks_for_a_sweep() -> None:
    def level(connections: int, *goodputs: float, busy: float) -> dict[str, Any]:
        made = cell(*goodputs, busy=busy)
        made["cell"]["load"]["connections"] = connections
        return made

    sweep = [level(1, 10, 11, 12, busy=0.1), level(8, 90, 91, 92, busy=0.9), level(64, 80, busy=1)]
    best = judge({"cell": "sweep", "at_least": 90, "at_most": 92}, {"sweep": sweep})
    assert (best["verdict"], part(best)["value"]) == ("confirmed", 91)
    # Its other metrics are read there too.
    assert part(judge({"metric": "busy", "cell": "sweep", "at_least": 0.9}, {"sweep": sweep}))[
        "value"
    ] == pytest.approx(0.9)
    assert claims.speaking([cell(1, valid=False)]) is None


GROUP = {
    "title": "Round 1",
    "where": "page 3",
    "reference": "fast",
    "not_repeated": None,
    "cells": {"fast": {"goodput": 400.0}, "slow": {"goodput": 100.0}, "gone@8": {"goodput": 7.0}},
}
STUDY: dict[str, Any] = {
    "kind": "study",
    "name": "x",
    "scale": "local",
    "description": "d",
    "claims": [{"says": "so", "metric": "goodput", "ratio": ["fast", "slow"], "at_least": 1.5}],
    "cells": {"fast": ["fast"], "slow": ["slow"], "gone": ["gone-1", "gone-8"]},
    "published": {
        "question": "Which?",
        "source": {"title": "t", "date": 2015, "url": "https://example.org"},
        "figures": [GROUP],
        "mistakes": [
            {"what": "w", "printed": "9", "corrected": "8", "cell": "slow", "metric": "goodput"},
            {"what": "w", "printed": "9", "corrected": "8"},
        ],
    },
}


def summary(**cells: dict[str, Any]) -> dict[str, Any]:
    found = [{"cell_id": name.replace("_", "-"), **one} for name, one in cells.items()]
    return {"schema": "lab/1", "run_id": "x", "cells": found, "noise_floor": []}


def test_published_and_measured_stand_side_by_side() -> None:
    judged = claims.document(summary(fast=FAST, slow=SLOW, gone_8=cell(6)), STUDY)
    validate(judged, "claims", SCHEMA)
    (claim,) = judged["claims"]
    (one,) = claim["parts"]
    assert (claim["verdict"], one["published"]) == (
        "confirmed",
        {"value": 4.0, "says": "", "where": "page 3"},
    )
    assert claim_text.published(one) == "4.00"
    rows = {row["cell"]: row for row in judged["figures"][0]["rows"]}
    assert rows["slow"]["published_ratio"] == pytest.approx(0.25)
    assert rows["slow"]["measured_ratio"]["value"] == pytest.approx(52 / 102)
    assert rows["slow"]["measured"]["n"] == 5
    # A level of a sweep, by its connections.
    assert rows["gone@8"]["measured"]["value"] == 6
    assert [one["measured"] and one["measured"]["value"] for one in judged["mistakes"]] == [
        52,
        None,
    ]
    assert judged["unmeasured"] == []
    assert "published 4.00; measured 1.96" in claim_text.lines(judged)[0]


def test_cells_that_decide_nothing_are_named() -> None:
    void = cell(1, valid=False)
    found = claims.unmeasured(summary(fast=FAST, slow=void), STUDY)
    assert found == [
        {"cell": "slow", "why": "steal: 0.2"},
        {"cell": "gone", "why": "it was not measured"},
    ]
    judged = claims.document(summary(fast=FAST, slow=void), STUDY)
    validate(judged, "claims", SCHEMA)
    assert judged["claims"][0]["verdict"] == "undecided"
    assert claim_text.lines(judged)[-1] == "not measured: gone: it was not measured"


def test_the_twins_of_a_summary_are_the_noise_of_its_claims() -> None:
    claim = {"says": "so", "metric": "goodput", "order": ["fast", "slow"]}
    one, other = twin("fast", 3)
    row = {"cell_id": "fast", "twin_id": "fast-twin"}
    rows = [{**row, "metric": metric} for metric in ("goodput", "p50")]
    measured = {**summary(slow=cell(50, 50, 50)), "noise_floor": rows}
    measured["cells"] += [one, other]
    judged = claims.document(measured, {**STUDY, "claims": [claim]})
    validate(judged, "claims", SCHEMA)
    assert judged["claims"][0]["verdict"] == "undecided"
    # A twin that was not measured says nothing.
    measured["cells"].remove(other)
    assert claims.document(measured, {**STUDY, "claims": [claim]})["claims"][0]["verdict"] == (
        "confirmed"
    )


def profiled(**figures: dict[str, Any]) -> dict[str, Any]:
    """summary.json of cells that were measured, and profiled once."""
    shown = {name: cell(10, 11, 12) for name in figures}
    profiles = {f"{name}_profile": cell(1, profile=one) for name, one in figures.items()}
    return summary(**shown, **profiles)


def verdict_of(claim: dict[str, Any], **figures: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    study = {**STUDY, "claims": [{"says": "so", **claim}]}
    judged = claims.document(profiled(**figures), study)
    validate(judged, "claims", SCHEMA)
    return judged["claims"][0]["verdict"], judged["claims"][0]["parts"][0]


def test_a_profile_has_the_sampling_error_of_its_samples() -> None:
    """It is read once: of the cell's repetition that was profiled."""
    claim = {"metric": "profile.idle_share", "cell": "fast", "at_least": 0.3}
    for samples, share, verdict in (
        (1000, 0.4, "confirmed"), (1000, 0.31, "undecided"), (100, 0.35, "undecided"),
        (10_000, 0.35, "confirmed"), (1000, 0.2, "refuted"),
    ):  # fmt: skip
        had = {"fast": {"idle_share": share, "samples": samples}, "slow": {}}
        found, one = verdict_of(claim, **had)
        assert found == verdict, (samples, share)
        assert one["level"] == pytest.approx(0.95)
    # How many samples there were is not known.
    found, one = verdict_of(claim, fast={"idle_share": 0.9}, slow={})
    assert (found, one["interval"], one["value"]) == ("undecided", None, 0.9)
    found, one = verdict_of({**claim, "cell": "slow"}, fast={}, slow={"idle_share": None})
    assert (found, one["why"]) == ("undecided", "profile.idle_share was not measured of slow")


def test_two_profiles_are_told_apart_beyond_their_sampling_error() -> None:
    order = {"metric": "profile.idle_share", "order": ["fast", "slow"]}
    few, many = ({"idle_share": 0.40, "samples": n} for n in (200, 20_000))
    less = {"idle_share": 0.36, "samples": 20_000}
    assert verdict_of(order, fast=few, slow=less)[0] == "undecided"
    found, one = verdict_of(order, fast=many, slow=less)
    assert (found, one["level"]) == ("confirmed", pytest.approx(0.9))
    assert verdict_of(order, fast=less, slow=many)[0] == "refuted"
    # A ratio over a share that may be none.
    assert verdict_of(order, fast=many, slow={"idle_share": 0.0, "samples": 5})[0] == "undecided"
    found, one = verdict_of(order, fast=many, slow={"idle_share": 0.0, "samples": 500})
    assert (found, one["value"], one["interval"]) == ("confirmed", None, None)
    assert one["why"].startswith("at least 53 times")
    assert verdict_of(order, fast={**few, "idle_share": 0.0}, slow=many)[0] == "refuted"
    depth = {"metric": "profile.depth_median", "ratio": ["fast", "slow"], "at_most": 0.75}
    shallow = {"depth_median": 15.0, "depth_interval": [14, 16]}
    deep = {"depth_median": 30.0, "depth_interval": [25, 33]}
    assert verdict_of(depth, fast=shallow, slow=deep)[0] == "confirmed"
    deep["depth_interval"] = [20, 33]
    assert verdict_of(depth, fast=shallow, slow=deep)[0] == "undecided"
    # Of before it was recorded.
    del deep["depth_interval"]
    assert verdict_of(depth, fast=shallow, slow=deep)[0] == "undecided"


@given(st.lists(st.floats(1, 1e6), min_size=3, max_size=9), st.floats(0.1, 10), st.data())
def test_a_claim_on_its_own_figures_is_never_refuted(
    values: list[float], factor: float, data: st.DataObject
) -> None:
    """Whatever the values: bounds around what was measured hold, and far from it they do not."""
    cells = {"one": cell(*values), "other": cell(*(factor * value for value in values))}
    spread = max(values) / min(values) * (1 + 1e-9)
    form: dict[str, Any] = data.draw(
        st.sampled_from([{"ratio": ["other", "one"]}, {"over": "goodput", "cell": "one"}])
    )
    middle = factor if "ratio" in form else 1
    around = {"at_least": middle / spread, "at_most": middle * spread}
    assert judge({**form, **around}, cells)["verdict"] == "confirmed"
    assert judge({**form, "at_least": middle * spread * 1.01}, cells)["verdict"] == "refuted"


@pytest.mark.parametrize(
    ("metric", "number", "shown"),
    [
        ("latency_us.mean", 65980, "66.0 ms"),
        ("failed_share", 0.8528, "85 %"),
        ("client.max_rss_bytes", 54992896, "52.4 MiB"),
        ("goodput", 1495, "1,495"),
        ("goodput / load.rate", 0.9251, "0.925"),
        ("", 4, "4.00"),
        ("errors", 0, "0"),
    ],
)
def test_quantities_are_written_with_their_units(metric: str, number: float, shown: str) -> None:
    assert claim_text.quantity(metric, number) == shown


@given(st.lists(st.floats(1, 1e6), min_size=5, max_size=9), st.floats(0.01, 100))
def test_a_bound_beyond_all_values_is_clear(values: list[float], factor: float) -> None:
    cells = {"one": cell(*values), "other": cell(*(factor * value for value in values))}
    # A quantile between equal values may round below them.
    least = min(values) * (1 - 1e-9)
    assert judge({"cell": "one", "at_least": least}, cells)["verdict"] == "confirmed"
    assert judge({"cell": "one", "at_most": min(values) / 2}, cells)["verdict"] == "refuted"
    both = judge({"ratio": ["other", "one"], "at_least": 0}, cells)
    assert part(both)["value"] == pytest.approx(factor)


def values_of(metric: str, number: float) -> dict[str, Any]:
    """A nested dict with that number at the metric's path."""
    found: Any = number
    for key in reversed(metric.split(".")):
        found = {key: found}
    return dict(found)


def merge(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    for key, value in other.items():
        nested = isinstance(value, dict) and key in one
        one[key] = merge(one[key], value) if nested else value
    return one


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_lesson_has_a_page_that_can_be_rendered(path: Path, tmp_path: Path) -> None:
    """On a repetition of a real run, whatever its figures."""
    file = yaml.safe_load(path.read_text())
    batch = file["options"].get("generator", "").startswith("python")
    rep_dir = tmp_path / "rep-1"
    shutil.copytree(ROOT / "tests" / "fixtures" / ("rep-python" if batch else "rep-wrk"), rep_dir)
    thresholds = yaml.safe_load((ROOT / "files" / "verdict.yml").read_text())
    recorded = result.build(rep_dir, thresholds, None)
    recorded["verdict"] = {"valid": True, "reasons": [], "findings": []}
    named = {entry["name"]: [entry["name"]] for entry in file["cells"]}
    study = {"kind": "lesson", "name": path.stem, "description": file["description"]}
    study |= {"claims": file["claims"], "cells": named, "scale": None}
    empty: dict[str, Any] = dict.fromkeys(("question", "source"))
    study["published"] = empty | {"figures": [], "mistakes": []}
    reps = {entry["name"]: copy.deepcopy(recorded) for entry in file["cells"]}
    for claim in file["claims"]:
        for one in [claim["cell"]] if "cell" in claim else claim["ratio"]:
            merge(reps[one], values_of(claim["metric"], 7))
    summary = {
        "schema": "lab/1",
        "run_id": "x",
        "cells": [
            {"cell_id": one, "cell": rep["cell"], "repetitions": [rep]} for one, rep in reps.items()
        ],
        "noise_floor": [],
    }
    judged = claims.document(summary, study)
    validate(judged, "claims", SCHEMA)
    assert len(claim_text.lines(judged)) == len(file["claims"]) > 0
    documents = {"summary": summary, "claims": judged, "plan": {"plan": {"study": study}}}
    for document, content in documents.items():
        files.write(tmp_path / f"{document}.json", files.dump(content))
    page = lesson.page(tmp_path, ROOT / "docs" / "lessons" / f"{path.stem}.md.j2")
    assert page.startswith("# ")
    assert "**The cure:**" in page
    reps[next(iter(named))]["verdict"] = {"valid": False, "reasons": ["steal: 0.2"]}
    files.write(tmp_path / "summary.json", files.dump(summary))
    with pytest.raises(ResultError, match=r"has no valid repetition \(steal: 0\.2\)"):
        lesson.page(tmp_path, ROOT / "docs" / "lessons" / f"{path.stem}.md.j2")
