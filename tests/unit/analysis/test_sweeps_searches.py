"""A run with a sweep, a search and scaled rates, measured by a server of known capacity, from its
plan to summary.json, the terminal and the report."""

from __future__ import annotations

import copy
import datetime
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadlab.analysis import derive, result, summary
from loadlab.core.schema import validate
from loadlab.planning import plan as plans
from loadlab.planning import studies
from loadlab.report import page as report
from loadlab.report import terminal
from loadlab.scheduling import dispatch, records, schedule

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "files/schema/lab-1.schema.json"
TEMPLATE = ROOT / "roles/report/templates/report.html.j2"
SPECS = yaml.safe_load((ROOT / "roles/run/meta/argument_specs.yml").read_text())["argument_specs"][
    "main"
]["options"]
VERDICT = yaml.safe_load((ROOT / "files/verdict.yml").read_text()) | {"steal_max": 1}
NOW = datetime.datetime(2026, 11, 20, 17, 16, 47)
CAPACITY = 1240.0
FULL_AT = 8  # connections from which the server's CPU is full
VOID = {"valid": False, "reasons": ["steal: 0.5 on server, limit 0.01"], "findings": []}


@pytest.fixture(scope="module")
def real() -> dict[str, dict[str, Any]]:
    fixtures = ROOT / "tests/fixtures"
    return {name: result.build(fixtures / f"rep-{name}", VERDICT, None) for name in ("oha", "wrk")}


def measured(real: dict[str, Any], item: dict[str, Any], number: int) -> dict[str, Any]:
    """The item's result.json as that server gives it; ``number``: how many came before."""
    load = item["cell"]["load"]
    found: dict[str, Any] = copy.deepcopy(real["oha" if load["mode"] == "constant" else "wrk"])
    found |= {key: item[key] for key in ("cell_id", "purpose", "repetition", "cell")}
    most = CAPACITY * min(1.0, load["connections"] / FULL_AT)
    rate = load["rate"] or most
    kept = rate <= most
    found["verdict"] = {"valid": True, "reasons": [], "findings": []}
    found |= {"goodput": min(rate, most), "started": 1e9 + number, "finished": 1e9 + number + 1}
    found["latency_us"]["p99"] = 9000.0 if kept else 312_000.0
    found["telemetry"]["server"]["cpu_busy"] = 0.95 if most == CAPACITY else 0.5
    if load["mode"] == "constant":
        found |= {"unsent": 0, "errors": dict.fromkeys(found["errors"], 0), "responses": 5000}
    return found


def run_of(
    tmp_path: Path, real: dict[str, Any], steps: int = 1000, void: int = -1, **given: Any
) -> Path:
    """The folder of a run with as many measurements as it asks for, up to ``steps``."""
    plan = plans.plan(ROOT, SPECS, {"framework": "aiohttp", **given}, True, True, NOW)
    folder = tmp_path / "results" / "run"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps({"plan": plan}))
    for number in range(steps):
        item = schedule.next_item(plan, records.load(folder), {}, None, 0)
        if item is None:
            break
        document = measured(real, item, number)
        if number == void:
            document["verdict"] = VOID
        place = folder / "cells" / item["cell_id"] / f"rep-{item['repetition']}"
        place.mkdir(parents=True)
        (place / "result.json").write_text(json.dumps(document))
    return folder


def summed(folder: Path) -> dict[str, Any]:
    found = summary.summary(folder)
    validate(found, "summary", SCHEMA)
    (folder / "summary.json").write_text(json.dumps(found))
    return found


def page(folder: Path) -> str:
    return report.render(TEMPLATE, report.build(folder)).decode()


AGENTS: dict[str, Any] = {"endpoint": "agents", "slo": "p99_ms=100,errors=0"}
SUBJECT = "aiohttp on Gunicorn (unix, http, uvloop, connections kept) on /agents"


def test_a_search(tmp_path: Path, real: dict[str, Any]) -> None:
    folder = run_of(tmp_path, real, repetitions=3, **AGENTS)
    (found,) = summed(folder)["searches"]
    probes = [row for row in found["trace"] if row["purpose"] == "probe"]
    assert [(row["rate"], row["met"]) for row in probes[:4]] == [
        (1000, True), (2000, False), (1410, False), (1190, True),
    ]  # fmt: skip
    assert probes[1]["why"] == "p99 312 ms is above 100 ms"
    assert [row["rate"] for row in found["trace"][-3:]] == [1240] * 3
    assert (found["found"], found["confirmed"]) == (1240, {"of": 3, "met": 3})
    assert found["cell_id"] == found["trace"][-1]["cell_id"]
    said = terminal.table(summary.summary(folder))
    words = (
        f"{SUBJECT} holds 1,240 requests/s with p99 up to 100 ms and no errors; 3 of 3 confirm it, "
        "1,300 requests/s does not meet it."
    )
    assert said.endswith(words)
    assert "       2,000/s  p99 312 ms is above 100 ms: not met" in said
    # Of the probes the search tells; the closed loop and what confirms stand in the table.
    assert sum("oha 2000/s" in line for line in said.splitlines()) == 0
    html = page(folder)
    assert words in html
    assert "Rates tried" in html
    assert html.count("not met") >= 2


def test_a_search_that_is_not_over_or_undecided(tmp_path: Path, real: dict[str, Any]) -> None:
    (found,) = summed(run_of(tmp_path / "a", real, steps=3, **AGENTS))["searches"]
    assert (found["found"], found["confirmed"], found["cell_id"]) == (None, None, None)
    assert found["why"] == "the search was not ended: 1,410 requests/s is still to be probed"

    # The first is the closed loop or the search itself, as the seed has it.
    whole = summed(run_of(tmp_path / "b", real, void=3, **AGENTS))["searches"][0]
    assert whole["found"] == 1240
    assert [row["met"] for row in whole["trace"]].count(None) == 1

    folder = run_of(tmp_path / "d", real, **AGENTS)
    (path,) = folder.glob("cells/*-1240rps-*-w10s/rep-1/result.json")
    document = json.loads(path.read_text())
    document["latency_us"]["p99"] = 100_001.0
    path.write_text(json.dumps(document))
    (found,) = summed(folder)["searches"]
    assert (found["found"], found["confirmed"]) == (1180, {"of": 1, "met": 0})
    assert found["why"] == "1,240 requests/s met it at first and was not confirmed"

    folder = run_of(tmp_path / "c", real, **AGENTS)
    for path in folder.glob("cells/*-1190rps-*-probe/rep-1/result.json"):
        document = json.loads(path.read_text())
        again = path.parents[1] / "rep-2" / "result.json"
        again.parent.mkdir()
        path.write_text(json.dumps({**document, "verdict": VOID}))
        again.write_text(json.dumps({**document, "verdict": VOID, "repetition": 2}))
    (found,) = summed(folder)["searches"]
    assert found["found"] == 1240
    for path in folder.glob("cells/*-1240rps-*/rep-1/result.json"):
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "error": "broken", "verdict": VOID}))
    (found,) = summed(folder)["searches"]
    assert found["found"] is None
    assert "failed: broken" in [row["why"] for row in found["trace"]]
    assert "no highest rate with p99 up to 100 ms and no errors was found" in page(folder)


def test_a_sweep(tmp_path: Path, real: dict[str, Any]) -> None:
    given: dict[str, Any] = {
        "endpoint": "hello",
        "generator": "wrk",
        "connections": "1,2,4,8,16,32",
    }
    folder = run_of(tmp_path, real, repetitions=3, **given)
    (found,) = summed(folder)["sweeps"]
    assert [level["value"] for level in found["levels"]] == [1, 2, 4, 8]
    assert found["unmeasured"] == [16, 32]
    assert found["stopped"]["at"] == found["best"]["value"] == 8
    assert found["stopped"]["why"] == "the server's CPU was 95 % busy, full from 90 %"
    assert found["levels"][0]["goodput"] == {
        "n": 3, "median": CAPACITY / 8, "low": CAPACITY / 8, "high": CAPACITY / 8,
    }  # fmt: skip
    assert len(found["cells"]) == 6
    words = (
        f"{SUBJECT.replace('agents', 'hello')} answered the most, 1,240 requests/s, at 8 "
        "connections. It stopped at 8 connections: the server's CPU was 95 % busy, full from 90 %; "
        "16, 32 not measured."
    )
    assert terminal.table(summary.summary(folder)).endswith(words)
    built = report.build(folder)
    # The sweep has the only headline, not each of its levels.
    assert [said["text"] for said in built["headlines"]] == [words]
    assert len(built["methods"]["sweeps"][0]["figures"]) == 2
    assert "Throughput by connections" in page(folder)
    assert derive.missing(folder) == []


def test_a_sweep_over_rates_that_never_stops(tmp_path: Path, real: dict[str, Any]) -> None:
    folder = run_of(tmp_path, real, endpoint="hello", rate="100,200", connections=1)
    (found,) = summed(folder)["sweeps"]
    assert (found["stopped"], found["unmeasured"]) == (None, [])
    assert "It went to the highest level." in page(folder)


def test_scaled_rates(tmp_path: Path, real: dict[str, Any], monkeypatch: Any) -> None:
    rate = {"share": 0.8, "of": ["few", "many"]}
    one = {"framework": "aiohttp", "endpoint": "agents", "rate": rate}
    study = {
        "kind": "study", "name": "one", "description": "one", "options": {}, "claims": [],
        "twins": True, "ablate": None, "scale": None, "published": {},
        "cells": [
            {"name": "few", "options": {**one, "connections": 4}},
            {"name": "many", "options": one},
        ],
    }  # fmt: skip
    monkeypatch.setattr(studies, "find", lambda *_: study)
    folder = run_of(tmp_path, real, framework=None)
    (found,) = summed(folder)["rates"]
    assert (found["share"], found["rate"], len(found["cells"])) == (0.8, 500, 2)
    assert [(row["cell"], row["goodput"]) for row in found["of"]] == [
        ("few", CAPACITY / 2), ("many", CAPACITY),
    ]  # fmt: skip
    words = (
        "Rate of 2 cells: 500 requests/s, 80 % of the least of the saturations in a closed loop "
        "(few 620, many 1,240 requests/s)."
    )
    assert words in page(folder)
    cells = {c["purpose"] for c in json.loads((folder / "summary.json").read_text())["cells"]}
    assert cells == {"measure", "twin", "saturation"}
    # Gone on with, it asks for nothing more, and is the same run.
    kept = records.load(folder)
    plan = json.loads((folder / "plan.json").read_text())["plan"]
    assert schedule.next_item(plan, kept, {}, None, 0) is None
    known = dispatch.known(plan["tracks"], kept)
    assert {item["cell"]["load"]["rate"] for item in known} == {None, 500}
    assert all(record["cell"] == item["cell"] for item in known for record in kept[item["cell_id"]])


def test_a_run_of_before_there_were_any(tmp_path: Path, real: dict[str, Any]) -> None:
    folder = run_of(tmp_path, real, endpoint="hello")
    found = summed(folder)
    assert (found["sweeps"], found["searches"], found["rates"]) == ([], [], [])
    for key in ("sweeps", "searches", "rates"):
        del found[key]
    (folder / "summary.json").write_text(json.dumps(found))
    assert report.build(folder)["methods"] is None
    assert terminal.table(found)
