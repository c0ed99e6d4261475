"""Runs in results/: copies of the recorded run, at other times, in other places, of other speed."""

import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from loadlab.model import CellSummary, Manifest, Progress, Reason, Repetition, Summary, Validity
from loadlab.plan.plan_document import Plan, Run
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from tests.unit import builders

R = TypeVar("R", bound=Struct)
BEGAN = datetime.datetime(2026, 11, 1, 12, tzinfo=datetime.UTC)


@cache
def _plan() -> Plan:
    return builders.plan()


def time(day: float) -> str:
    """Return the time so many days after BEGAN."""
    return (BEGAN + datetime.timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ")


def slowed(cell: CellSummary, factor: float) -> CellSummary:
    """Return a cell whose latencies are this many times as long."""

    def longer(record: R, *names: str) -> R:
        return replace(
            record, **{name: builders.present(getattr(record, name)) * factor for name in names}
        )

    def repetition(rep: Repetition) -> Repetition:
        waited = rep.response_time and longer(rep.response_time, "p50_us", "p99_us")
        latency = longer(builders.present(rep.latency_us), "p50", "p99")
        return replace(rep, latency_us=latency, response_time=waited)

    statistics = cell.statistics
    span, spread = statistics.latency_interval_us, builders.present(statistics.goodput)
    kept = 1.0 if cell.cell.load.rate else factor
    return replace(
        cell,
        repetitions=[repetition(rep) for rep in cell.repetitions],
        statistics=replace(
            statistics,
            goodput=replace(spread, median=spread.median / kept),
            latency_us=longer(statistics.latency_us, "p99"),
            latency_interval_us=replace(span, p99=longer(span.p99, "low", "high")),
        ),
    )


def probing(cell: CellSummary) -> CellSummary:
    """Return a closed loop as that of the measured cell with its endpoint."""
    if cell.purpose != "closed_loop":
        return cell
    (base,) = (
        one.cell_id
        for one in builders.summary().cells
        if one.purpose == "measure" and one.cell.endpoint == cell.cell.endpoint
    )
    return replace(cell, base=base)


def voided(cell: CellSummary) -> CellSummary:
    """Return a cell whose repetitions are void."""
    reason = Reason(code="steal", value=0.05, limit=0.01, facts={"host": "server"})
    void = Validity(valid=False, reasons=[reason], findings=[])
    reps = [replace(rep, validity=void) for rep in cell.repetitions]
    found = cell.statistics
    none = replace(found.latency_interval_us.p99, low=None, high=None)
    return replace(
        cell,
        repetitions=reps,
        statistics=replace(
            found,
            n=0,
            n_void=1,
            latency_us=replace(found.latency_us, p99=None),
            latency_interval_us=replace(found.latency_interval_us, p99=none),
        ),
    )


def write(
    results: Path,
    run_id: str,
    day: float,
    factor: float = 1.0,
    *,
    void: bool = False,
    kernel: str = "",
    **manifest: Any,
) -> Path:
    """Write a finished run that ended on this day; its latencies are ``factor`` times as long.

    ``manifest``: changed fields of the manifest.
    """
    run = RunDir(results / run_id)
    plan = replace(_plan(), run_id=run_id)
    builders.write_plan(run.path, plan)
    begun = documents.read(run.plan, Run)
    documents.write(run.plan, documents.encode(replace(begun, started=time(day - 0.01))))
    known = replace(
        builders.manifest(), run_id=run_id, started=time(day - 0.01), finished=time(day), **manifest
    )
    if kernel:
        hosts = {name: replace(host, kernel=kernel) for name, host in known.hosts.items()}
        known = replace(known, hosts=hosts)
    recorded = [probing(cell) for cell in builders.summary().cells]
    cells = [voided(cell) if void else slowed(cell, factor) for cell in recorded]
    _store(run, known, replace(builders.summary(), run_id=run_id, cells=cells))
    documents.write(run.ledger(), (builders.RUN / run.ledger().name).read_bytes())
    documents.write(run.report, b"<!doctype html>")
    return run.path


def _store(run: RunDir, manifest: Manifest, summary: Summary) -> None:
    documents.write(run.manifest, documents.encode(manifest))
    documents.write(run.summary, documents.encode(summary))
    finished = Progress(
        run_id=run.run_id, updated=1.0, done=4, total=4, seconds_left=0.0, ends=1.0, abandoned={}
    )
    documents.write(run.progress, documents.encode(finished))


def history(results: Path) -> None:
    """Write twelve runs: a kernel is updated after the fourth; the last four are slower."""
    for number in range(1, 13):
        factor = (1 + 0.01 * (number % 3)) * (1.0 if number < 9 else 1.3)
        kernel = "6.18.1" if number <= 4 else "6.18.2"
        write(results, f"run-{number:02}", number, factor, kernel=kernel, void=number == 7)
