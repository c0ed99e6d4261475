"""A metric is a row, and a function if no path leads to it: CONTRIBUTING.md, "Adding a metric"."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from msgspec.structs import replace

from loadlab.model import Result
from loadlab.run import documents
from tests.unit import builders

ROW = """
    MetricRow(
        name="preemptions",
        meaning="Context switches of the application against its will by request.",
        unit=PER_REQUEST,
        kind="cost",
        readings=_by_request("preemptions_per_request", "Preemptions by request."),
        gauge=("lab_preemptions_per_request", "Median of preemptions by request"),
    ),
"""
READING = """
    "preemptions_per_request": lambda rep: by_request(
        services(rep).application.involuntary_switches, rep
    ),
"""
# Derives a run and prints the rows of its report's table, with the loadlab on PYTHONPATH.
DERIVE = """
import pathlib, sys
from loadlab.kinds import derive_run
from loadlab.report.sections import comparison_section
from loadlab.run import schema
summary = derive_run.summary(pathlib.Path(sys.argv[1]))
_, table = comparison_section.tables(summary.comparisons, {}, "summary.json")
print(*table.rows, sep="\\n")
assert "preemptions" in schema.build()["$defs"]["CellCost"]["properties"]
"""


def insert(path: Path, head: str, text: str) -> None:
    """Insert text behind the head of a table."""
    before, table = path.read_text().split(f"{head}\n")
    path.write_text(f"{before}{head}{text}{table}")


def preempt(path: Path) -> None:
    """Give a result the switches of an application, twice as many in production."""
    result = replace(documents.read(path, Result), reverse_proxy_requests=1000)
    factor = 2 if result.cell.tuning == "production" else 1
    used = builders.processes(involuntary_switches=factor * (1000 + result.repetition))
    documents.write(path, documents.encode(builders.with_services(result, application=used)))


def test_a_row_is_in_summary_table_gauges_schema_and_report(tmp_path: Path) -> None:
    copy = shutil.copytree(builders.ROOT / "loadlab", tmp_path / "loadlab")
    insert(copy / "model" / "metric_rows.py", "_ROWS = (", ROW)
    insert(
        copy / "results" / "usage.py",
        "COMPUTED: Mapping[str, Callable[[Repetition], float | None]] = {",
        READING,
    )
    (tmp_path / "files").symlink_to(builders.ROOT / "files")
    run = builders.compared_run(tmp_path / "20260101-000000-run")
    for path in run.glob("cells/*/*/result.json"):
        preempt(path)
    report = subprocess.run(
        [sys.executable, "-c", DERIVE, run],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    summary = json.loads((run / "summary.json").read_text())
    (stock,) = (cell for cell in summary["cells"] if cell["cell_id"] == "stock")
    assert stock["cost"]["preemptions"]["median"] == 1.003
    ((row,),) = (
        [row for row in compared["rows"] if row["metric"] == "preemptions"]
        for compared in summary["comparisons"]
    )
    assert row["conclusion"] == "higher"
    assert {row["metric"] for row in summary["noise_floor"]} >= {"preemptions"}
    with (run / "cells.csv").open(newline="") as table:
        assert next(csv.DictReader(table))["preemptions_per_request"] == "2.002"
    gauges = (run / "metrics.prom").read_text()
    assert "lab_preemptions_per_request{" in gauges
    assert 'lab_difference_ratio{base="stock",head="production",metric="preemptions"}' in gauges
    assert "preemptions, per request" in report
