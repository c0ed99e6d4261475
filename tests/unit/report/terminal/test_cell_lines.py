"""The results of a run as the terminal shows them."""

from typing import Any

from msgspec.structs import replace

from loadlab.model import (
    CellSummary,
    ClientStatistics,
    Load,
    Opened,
    Reason,
    Repetition,
    Spread,
    Validity,
)
from loadlab.report.terminal import cell_lines
from tests.unit import builders
from tests.unit.builders import present


def repetition(**changes: Any) -> Repetition:
    measured = builders.repetition()
    latency = replace(present(measured.latency_us), p50=1234.0, p99=56_789.0, p99_9=None)
    errors = replace(present(measured.errors), connect=1, body=2)
    known = {"goodput": 999.94, "responses": 9_000, "latency_us": latency, "errors": errors}
    return replace(measured, **{**known, "unsent": 6, "validity": builders.valid(), **changes})


def failed() -> Repetition:
    nothing = dict.fromkeys(("goodput", "latency_us", "errors", "unsent", "client"))
    return repetition(error="x", **nothing)


def lines(*cells: CellSummary) -> list[str]:
    document = replace(
        builders.summary(), cells=list(cells), ranking=[], comparisons=[], sweeps=[], searches=[]
    )
    return cell_lines.table(document, {}).splitlines()


def measured(*repetitions: Repetition, load: Load | None = None, **changes: Any) -> CellSummary:
    made = builders.cell(load=load or builders.load(), **changes)
    return builders.cell_summary("a", repetitions, made)


def test_a_cell_is_a_line_with_a_word_on_each_reason() -> None:
    reason = Reason(code="steal", value=0.5, limit=0.01, facts={"host": "server"})
    void = Validity(valid=False, reasons=[reason, reason], findings=[])
    head, row, common = lines(measured(repetition(validity=void), repetition(), failed()))
    assert head.split() == ["load", "goodput", "p50", "p99", "valid", "outcome"]
    assert row.startswith("1,000/s")
    assert row.endswith("2 of 3  held; void: steal")
    assert common.startswith("All: aiohttp on Gunicorn (unix, http); /index; oha, 64 connections")
    (_, row, _) = lines(measured(repetition(validity=void)))
    assert row.endswith("0 of 1  void: steal")


def test_a_void_cell_is_not_said_to_have_too_few_answers() -> None:
    held = measured(repetition())
    reason = Reason(code="steal", value=0.5, limit=0.01, facts={"host": "server"})
    validity = Validity(valid=False, reasons=[reason], findings=[])
    void = measured(repetition(validity=validity), server="uwsgi")
    latency = replace(void.statistics.latency_us, **dict.fromkeys(("p50", "p99", "p99_9")))
    void = replace(void, statistics=replace(void.statistics, latency_us=latency))
    few = replace(void, repetitions=held.repetitions)
    for other, is_told in ((void, False), (few, True)):
        assert any(line.startswith("-: too few") for line in lines(held, other)) is is_told


def test_connections_on_demand_are_told() -> None:
    load = builders.load(connections=500, on_demand=True)
    reps = [repetition(opened=Opened(count=9, most=most, waited=0)) for most in (7, 8)]
    head, row, common = lines(measured(*reps, load=load))
    assert dict(zip(head.split(), row.split(), strict=False))["connections"] == "8"
    assert "oha, up to 500 connections, opened on demand" in common


def test_cells_of_several_tunings_and_controls_are_named() -> None:
    cells = [
        replace(measured(repetition(), tuning=name), cell_id=f"{name}-{purpose}", purpose=purpose)
        for name, purpose in (
            ("production", "measure"),
            ("production", "probe"),
            ("stock", "measure"),
            ("stock", "aa_control"),
        )
    ]
    rows = lines(*cells)[1:-1]
    named = ["production  1", "stock  1", "stock, A/A control  1"]
    assert all(" ".join(row.split()).startswith(" ".join(name.split()))
               for row, name in zip(rows, named, strict=True))  # fmt: skip


def test_a_long_name_has_a_letter_and_stands_below() -> None:
    drivers = ("a" * 50, "b")
    cells = [replace(measured(repetition(), driver=name), cell_id=name) for name in drivers]
    rows = lines(*cells)
    assert rows[1].startswith("a ")
    assert f"a: driver {'a' * 50}" in rows


def test_python_clients_have_a_table_of_their_own() -> None:
    load = builders.batch(
        generator="python-bounded", requests=10_000, connections=1_000, warmup_s=0.0
    )
    cell = measured(repetition(requests=10_000, ok=9_000), load=load)
    spread = Spread(median=4.854, min=4.854, max=4.854, stdev=None)
    used = ClientStatistics(
        seconds=replace(spread, median=17.4165),
        cpu_s=spread,
        max_rss_bytes=replace(spread, median=76_431_360),
        failures={"timeout": 1_000},
    )
    statistics = replace(cell.statistics, requests=10_000, ok=9_000, client=used)
    head, row, _ = lines(replace(cell, statistics=statistics))
    numbers = ["10,000", "1,000", "17.4", "72.9", "MiB", "4.85", "1,000", "1"]
    assert row.split() == ["python-bounded", *numbers, "1,000", "failed"]
    assert head.split()[:3] == ["client", "requests", "at"]
