from __future__ import annotations

import json
from pathlib import Path

from loadlab.scheduling import records


def test_a_run_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert records.load(tmp_path / "nowhere") == {}


def test_records_come_by_number_and_without_what_is_long(tmp_path: Path) -> None:
    for name in ("b/rep-10", "b/rep-9", "a/rep-1", "a/rep-2.aside", "a/rep-3"):
        (tmp_path / "cells" / name).mkdir(parents=True)
    for number, error in ((9, None), (10, "broken")):
        document: dict[str, object] = {
            "repetition": number,
            "error": error,
            "histogram": {},
            "per_second": {},
        }
        path = tmp_path / "cells" / "b" / f"rep-{number}" / "result.json"
        seen = {"server": {"cpu_busy": 0.5, "per_second": {}}} if error is None else None
        path.write_text(json.dumps({**document, "goodput": 5, "telemetry": seen}))
    found = records.load(tmp_path)
    assert found["b"] == [
        {
            "repetition": 9,
            "error": None,
            "goodput": 5,
            "telemetry": {"server": {"cpu_busy": 0.5}},
        },
        {"repetition": 10, "error": "broken", "goodput": 5, "telemetry": None},
    ]
    # Their numbers are taken, and they count for nothing.
    assert [record["repetition"] for record in found["a"]] == [1, 3]
    assert all(record["error"] and record["under_way"] for record in found["a"])


def test_the_ceiling_is_that_of_the_weakest_pair(tmp_path: Path) -> None:
    assert records.ceiling(tmp_path) is None
    for name, rate in (("calibration", 50_000), ("calibration-server-2", 40_000.5)):
        document = {"ceiling": {"requests_per_second": rate}}
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    assert records.ceiling(tmp_path) == 40_000.5


def test_a_run_goes_on_by_the_words_that_reach_its_hosts(tmp_path: Path) -> None:
    assert records.go_on(tmp_path) == f"-e run_id={tmp_path.name}"
    (tmp_path / "plan.json").write_text(json.dumps({"plan": {}, "reach": "-i inventory/aws"}))
    assert records.go_on(tmp_path) == f"-e run_id={tmp_path.name} -i inventory/aws"
