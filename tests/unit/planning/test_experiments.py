"""Lists of rates and connections, objectives, and shares of a saturation, as the plan has them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadlab.planning import cells
from loadlab.planning import claims as planning_claims
from loadlab.planning import plan as plans
from loadlab.scheduling import dispatch, experiments, schedule, search

ROOT = Path(__file__).parents[3]
SPECS = yaml.safe_load((ROOT / "roles/run/meta/argument_specs.yml").read_text())["argument_specs"][
    "main"
]["options"]
RULES = yaml.safe_load((ROOT / "files/methods.yml").read_text())
NOW = datetime.datetime(2026, 11, 20, 17, 16, 47)
ONE: dict[str, Any] = {"framework": "aiohttp", "endpoint": "agents"}


def make(root: Path = ROOT, **given: Any) -> dict[str, Any]:
    return plans.plan(root, SPECS, given, True, True, NOW)


def record(**changed: Any) -> dict[str, Any]:
    return {"repetition": 1, "error": None, "verdict": {"valid": True}, "goodput": 100.0} | changed


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The lab's own files, with other studies."""
    (tmp_path / "files" / "studies").mkdir(parents=True)
    (tmp_path / "results").mkdir()
    (tmp_path / "apps").symlink_to(ROOT / "apps")
    for path in (ROOT / "files").iterdir():
        if path.name != "studies":
            (tmp_path / "files" / path.name).symlink_to(path)
    return tmp_path


def study(lab: Path, cells: Any, **more: Any) -> None:
    file = {"description": "one", "cells": cells, "twins": False, **more}
    (lab / "files/studies/one.yml").write_text(yaml.safe_dump(file))


def test_several_connections_are_a_sweep_upwards() -> None:
    found = make(**ONE, generator="wrk", connections="8,1, 2,2", repetitions=3)
    (track,) = found["tracks"]
    assert (track["kind"], track["by"]) == ("sweep", "connections")
    assert [item["cell"]["load"]["connections"] for item in track["cells"]] == [1, 2, 8]
    assert len({item["cell_id"] for item in track["cells"]}) == 3
    assert track["rule"]["growth_min"] == RULES["growth_min"]
    assert found["options"]["connections"] == [1, 2, 8]
    assert found["calibrate"] == {"rate": 1000, "connections": 8}
    assert (found["connections"], found["measurements"]) == (8, 9)
    assert (found["comparisons"], found["twins"]) == ([], [])


def test_several_rates_are_a_sweep_with_one_closed_loop_beside() -> None:
    found = make(**ONE, rate=[2000, 500.5])
    sweep, calibration = found["tracks"]
    assert sweep["by"] == "rate"
    assert [item["cell"]["load"]["rate"] for item in sweep["cells"]] == [500.5, 2000]
    assert calibration["kind"] == "fixed"
    assert calibration["cells"][0]["purpose"] == "calibration"
    assert found["calibrate"]["rate"] == 2000


def test_a_sweep_of_several_endpoints_and_tunings_is_one_each() -> None:
    given: dict[str, Any] = {"framework": "aiohttp", "tuning": "stock,production"}
    found = make(**given, endpoint="index,hello", generator="wrk", connections="1,2")
    kinds = [(track["kind"], len(track["cells"])) for track in found["tracks"]]
    # The lowest level of each that is compared with is measured twice.
    assert kinds == [("sweep", 2)] * 4 + [("fixed", 1)] * 2
    assert [item["purpose"] for item in experiments.items(found["tracks"][4:])] == ["twin"] * 2
    assert len(found["comparisons"]) == 4
    assert all("-c1-" in cell_id for cell_id, _ in found["twins"])


def test_a_search_starts_at_the_rate_and_names_what_it_probes() -> None:
    found = make(**ONE, rate=400, slo="p99_ms=100,errors=0", repetitions=2)
    track, calibration = found["tracks"]
    assert track["kind"] == "search"
    assert track["cells"][0]["slo"] == {"p99_ms": 100, "errors": 0}
    assert track["cells"][0]["sent_min"] == 0.99
    assert (track["whole"], calibration["kind"]) == (False, "fixed")
    assert set(track["rule"]) == {"apart_max", "lower_steps_max"}
    plan = {**found, "tracks": [track]}
    first = schedule.next_item(plan, {}, {}, None, 0)
    assert first is not None
    assert first["purpose"] == "probe"
    # As the plan would call a cell at any rate.
    other = search.at(track["cells"][0], 812.5, "measure")
    assert other["cell_id"] == cells.slug(other["cell"])
    assert first["cell_id"] == cells.slug(first["cell"]) + "-probe"
    assert make(**ONE, slo="errors=0", generator="wrk2")["tracks"][0]["whole"] is True


def test_searches_are_not_compared() -> None:
    found = make(**ONE, slo="errors=0", tuning="stock,production")
    assert [track["kind"] for track in found["tracks"]] == ["search", "fixed"] * 2
    assert (found["comparisons"], found["twins"]) == ([], [])


def test_a_search_stays_below_the_calibrated_ceiling() -> None:
    found = make(**ONE, slo="errors=0")
    capped = dispatch.below(found["tracks"], 12_345.6)
    assert [track.get("ceiling") for track in capped] == [12_345.6, None]
    assert search.highest(capped[0]) == 12_300


SHARED = {"share": 0.8, "of": ["sync", "async"]}
CELLS = [
    {"name": "sync", "options": {"framework": "flask", "endpoint": "agents", "rate": SHARED}},
    {"name": "async", "options": {"framework": "aiohttp", "endpoint": "agents", "rate": SHARED}},
    {
        "name": "alone",
        "options": {**ONE, "rate": {"share": 0.5, "of": ["alone"]}},
    },
    {"name": "fixed", "options": {**ONE, "rate": 77}},
]


def test_a_share_of_the_least_saturation(lab: Path) -> None:
    study(lab, CELLS)
    found = make(lab, study="one", repetitions=2)
    tracks = found["tracks"]
    assert [track["kind"] for track in tracks] == ["scaled"] * 3 + ["fixed"] * 3
    purposes = [item["purpose"] for item in experiments.items(tracks)]
    # Both cells of aiohttp saturate at the same.
    assert purposes == ["measure"] * 4 + ["saturation"] * 2
    sync, other = (track["cells"][0] for track in tracks[4:])
    assert sync["cell"]["load"] | {"duration_s": 5, "warmup_s": 2} == sync["cell"]["load"]
    assert (sync["cell"]["load"]["generator"], sync["expected_s"]) == ("wrk", 7)
    assert tracks[0]["of"] == tracks[1]["of"] == [sync["cell_id"], other["cell_id"]]
    assert tracks[2]["of"] == [other["cell_id"]]
    ids = [item["cell_id"] for item in experiments.items(tracks)]
    assert len(set(ids)) == len(ids)
    assert found["calibrate"]["rate"] == 1000

    assert dispatch.following(tracks[0], 1, {}) is None
    void = record(verdict={"valid": False})
    records = {sync["cell_id"]: [void], other["cell_id"]: [record(goodput=999.0)]}
    assert dispatch.following(tracks[4], 1, records) is not None
    assert dispatch.following(tracks[5], 1, records) is None
    assert dispatch.following(tracks[4], 1, {sync["cell_id"]: [void, void]}) is None
    assert dispatch.scaled_rate(tracks[0], records) is None
    records[sync["cell_id"]].append(record(goodput=253.2))
    assert [dispatch.scaled_rate(track, records) for track in tracks[:3]] == [200, 200, 500]
    item = dispatch.following(tracks[1], 2, {**records, ids[1]: [record()]})
    assert item is not None
    assert (item["cell_id"], item["cell"]["load"]["rate"]) == (ids[1], 200)
    assert dispatch.following(tracks[1], 1, {**records, ids[1]: [record()]}) is None


def test_a_study_measures_saturations_first_and_a_scaled_cell_twice(lab: Path) -> None:
    study(lab, CELLS, twins=True)
    found = make(lab, study="one", repetitions=2)
    records: dict[str, list[Any]] = {}
    asked = []
    while item := schedule.next_item(found, records, {}, None, 0):
        asked.append(item)
        records.setdefault(item["cell_id"], []).append(record(repetition=item["repetition"]))
    assert [item["purpose"] for item in asked[:2]] == ["saturation"] * 2
    assert len(asked) == found["measurements"] == 2 + 2 * 5
    twins = [item for item in asked if item["purpose"] == "twin"]
    assert [item["cell"]["load"]["rate"] for item in twins] == [80, 80]


def test_a_scaled_cell_is_profiled_at_the_same_rate(lab: Path) -> None:
    study(lab, CELLS, options={"profile": True})
    found = make(lab, study="one", repetitions=2)
    # A profile is beside the cell that a study names, and none of those.
    ids = found["study"]["cells"]["alone"]
    profile = f"{ids[0]}{planning_claims.PROFILE}"
    assert len(ids) == 1
    records: dict[str, list[Any]] = {}
    asked = []
    while item := schedule.next_item(found, records, {}, None, 0):
        asked.append(item)
        records.setdefault(item["cell_id"], []).append(record(repetition=item["repetition"]))
    of_cell = [item for item in asked if item["cell_id"] in (ids[0], profile)]
    assert [item["cell_id"] for item in of_cell].count(profile) == 1
    assert [item["cell"]["load"]["rate"] for item in of_cell] == [50] * 3
    assert len([item for item in asked if item["purpose"] == "profile"]) == 4
    assert {item["purpose"] for item in asked[:2]} == {"saturation"}


def test_the_user_may_give_the_rate_that_a_study_leaves_to_the_machine(lab: Path) -> None:
    cells = [{"name": "all", "options": ONE}]
    study(lab, cells, options={"rate": {"share": 0.5, "of": ["all"]}})
    assert make(lab, study="one")["tracks"][0]["kind"] == "scaled"
    assert make(lab, study="one", rate=50)["tracks"][0]["kind"] == "fixed"
