from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.model import Result
from loadlab.plan import records
from loadlab.plan.records import UnderWay
from loadlab.run import documents
from loadlab.run.errors import ResultError
from tests.unit import builders


def test_a_run_that_does_not_exist_has_no_records(tmp_path: Path) -> None:
    assert records.load(tmp_path / "nowhere") == {}


def test_records_ascend_by_number_and_say_what_was_measured(tmp_path: Path) -> None:
    for name in ("b/rep-10", "b/rep-9", "a/rep-1", "a/rep-2.aside", "a/rep-3"):
        (tmp_path / "cells" / name).mkdir(parents=True)
    results = {
        number: builders.result(cell_id="b", repetition=number, purpose="probe", base="c")
        for number in (9, 10)
    }
    for number, result in results.items():
        path = tmp_path / "cells" / "b" / f"rep-{number}" / "result.json"
        path.write_bytes(documents.encode(result))
    kept = records.load(tmp_path)
    assert kept["b"].repetitions == [results[9], results[10]]
    assert (kept["b"].cell, kept["b"].purpose, kept["b"].base) == (builders.cell(), "probe", "c")
    # Their numbers are taken, and they count for nothing.
    assert kept["a"].repetitions == [UnderWay(repetition=1), UnderWay(repetition=3)]
    assert kept["a"].cell is None
    assert records.finished("a", kept) == []


def test_load_refuses_a_malformed_result(tmp_path: Path) -> None:
    folder = tmp_path / "cells" / "b" / "rep-1"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text('{"schema": "lab/3"}')
    with pytest.raises(ResultError, match=r"result.json: "):
        records.load(tmp_path)


@pytest.mark.parametrize(
    ("changed", "finished", "measured", "valid"),
    [
        ({}, 1, 1, 1),
        ({"error": "broken"}, 1, 0, 0),
        ({"validity": builders.void("steal")}, 1, 1, 0),
    ],
)
def test_a_failed_or_void_repetition_does_not_count(
    changed: dict[str, object], finished: int, measured: int, valid: int
) -> None:
    result: Result = builders.result(**{"validity": builders.valid(), **changed})
    kept = {"a": records.cell_records([UnderWay(repetition=1), result])}
    counts = [
        len(count("a", kept)) for count in (records.finished, records.measured, records.valid)
    ]
    assert counts == [finished, measured, valid]


def test_rate_ceiling_is_that_of_the_weakest_pair(tmp_path: Path) -> None:
    assert records.rate_ceiling(tmp_path) is None
    for name, rate in (("calibration", 50_000.0), ("calibration-server-2", 40_000.5)):
        kept = builders.calibration()
        kept = replace(kept, ceiling=replace(kept.ceiling, requests_per_second=rate))
        (tmp_path / f"{name}.json").write_bytes(documents.encode(kept))
    assert records.rate_ceiling(tmp_path) == 40_000.5
