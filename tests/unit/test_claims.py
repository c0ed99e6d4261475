from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.lab.bench.plugins.module_utils import claims, files, lesson, result
from ansible_collections.lab.bench.plugins.module_utils.files import ResultError
from ansible_collections.lab.bench.plugins.module_utils.validate import validate
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "files" / "schema" / "lab-1.schema.json"
LESSONS = sorted((ROOT / "files" / "lessons").glob("*.yml"))


def cell(*goodputs: float, valid: bool = True, **more: Any) -> dict[str, Any]:
    """A cell of summary.json, as far as claims read it."""
    verdict = {"valid": valid, "reasons": [] if valid else ["steal: 0.2"]}
    return {
        "cell": {"load": {"rate": 100, "connections": 8}},
        "repetitions": [{"goodput": one, "verdict": verdict, **more} for one in goodputs],
    }


def judge(claim: dict[str, Any], cells: dict[str, Any], kind: str = "study") -> dict[str, Any]:
    claim = {"says": "so", **({} if "all" in claim else {"metric": "goodput"}), **claim}
    claims.check([claim], {name: [name] for name in cells})
    levels = {name: one if isinstance(one, list) else [one] for name, one in cells.items()}
    return claims.judge(claim, levels, kind)


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
        ({"order": ["fast", "again", "slow"]}, "undecided"),
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
        assert "is 0" in claims.figure(found)


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
        claims.check([claim], {"fast": [1], "slow": [1], "both": [1, 2]})


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
    return {"schema": "lab/1", "run_id": "x", "cells": found}


def test_published_and_measured_stand_side_by_side() -> None:
    judged = claims.document(summary(fast=FAST, slow=SLOW, gone_8=cell(6)), STUDY)
    validate(judged, "claims", SCHEMA)
    (claim,) = judged["claims"]
    (one,) = claim["parts"]
    assert (claim["verdict"], one["published"]) == (
        "confirmed",
        {"value": 4.0, "says": "", "where": "page 3"},
    )
    assert claims.published(one) == "4.00"
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
    assert "published 4.00; measured 1.96" in claims.lines(judged)[0]


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
    assert claims.lines(judged)[-1] == "not measured: gone: it was not measured"


def test_a_profile_is_read_once() -> None:
    """Of the cell's repetition that was profiled, and no interval is asked of it."""
    shown = summary(
        fast=FAST, slow=SLOW, gone_8=cell(6), fast_profile=cell(1, profile={"idle_share": 0.4})
    )
    claim = {"says": "so", "metric": "profile.idle_share", "cell": "fast", "at_least": 0.3}
    judged = claims.document(shown, {**STUDY, "claims": [claim, {**claim, "cell": "slow"}]})
    assert [one["verdict"] for one in judged["claims"]] == ["confirmed", "undecided"]
    assert judged["claims"][1]["why"] == "profile.idle_share was not measured of slow"


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
    assert claims.quantity(metric, number) == shown


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
    }
    judged = claims.document(summary, study)
    validate(judged, "claims", SCHEMA)
    assert len(claims.lines(judged)) == len(file["claims"]) > 0
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
