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
    return {
        "repetitions": [
            {"goodput": one, "verdict": {"valid": valid, "reasons": []}, **more} for one in goodputs
        ]
    }


def judge(claim: dict[str, Any], cells: dict[str, Any], kind: str = "study") -> dict[str, Any]:
    claim = {"says": "so", "metric": "goodput", **claim}
    claims.check([claim], {name: [name] for name in cells})
    return claims.judge(claim, cells, kind)


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
    ],
)
def test_a_study_goes_by_intervals(claim: dict[str, Any], verdict: str) -> None:
    found = judge(claim, {"fast": FAST, "slow": SLOW, "again": FAST})
    assert found["verdict"] == verdict
    low, high = found["interval"]
    assert low <= found["value"] <= high
    assert (found["why"] == "") == (verdict == "confirmed")


def test_a_study_of_two_repetitions_decides_nothing_and_a_lesson_of_one_does() -> None:
    claim = {"cell": "one", "at_least": 1}
    found = judge(claim, {"one": cell(5, 6)})
    assert (found["verdict"], found["interval"]) == ("undecided", None)
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
        assert (found["verdict"], found["value"]) == ("undecided", None)
        assert "is 0" in claims.figure(found)


def test_a_metric_is_a_path() -> None:
    (rep,) = cell(1, client={"failures": {"EMFILE": 3}}, telemetry=None)["repetitions"]
    assert claims.value(rep, "client.failures.EMFILE") == 3
    # What did not happen was counted 0 times.
    assert claims.value(rep, "client.failures.EADDRNOTAVAIL") == 0
    assert claims.value(rep, "telemetry.server.tcp.retransmits") is None
    with pytest.raises(ResultError, match=r"goodness: a repetition has no 'goodness'"):
        claims.value(rep, "goodness")


@given(st.lists(st.floats(1, 1e6), min_size=5, max_size=9), st.floats(0.01, 100))
def test_a_bound_beyond_all_values_is_clear(values: list[float], factor: float) -> None:
    cells = {"one": cell(*values), "other": cell(*(factor * value for value in values))}
    # A quantile between equal values may round below them.
    least = min(values) * (1 - 1e-9)
    assert judge({"cell": "one", "at_least": least}, cells)["verdict"] == "confirmed"
    assert judge({"cell": "one", "at_most": min(values) / 2}, cells)["verdict"] == "refuted"
    both = judge({"ratio": ["other", "one"], "at_least": 0}, cells)
    assert both["value"] == pytest.approx(factor)


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
    study |= {"claims": file["claims"], "cells": named}
    reps = {entry["name"]: copy.deepcopy(recorded) for entry in file["cells"]}
    for claim in file["claims"]:
        for one in [claim["cell"]] if "cell" in claim else claim["ratio"]:
            merge(reps[one], values_of(claim["metric"], 7))
    summary = {
        "schema": "lab/1",
        "run_id": "x",
        "cells": [{"cell_id": one, "repetitions": [rep]} for one, rep in reps.items()],
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
