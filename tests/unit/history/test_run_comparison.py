from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from loadlab.history import run_comparison
from loadlab.model import Summary
from loadlab.report import words
from loadlab.report.sections import comparison_section as section
from loadlab.run import documents
from loadlab.run.errors import PlanError, ResultError
from loadlab.run.run_dir import RunDir
from tests.unit import builders


def write(results: Path, name: str, factor: float = 1.0, cell_id: str = "index") -> None:
    """Write a run of one cell and its A/A control, five repetitions each, at this speed."""
    reps = [
        builders.repetition(repetition=number, goodput=factor * (1000 + number))
        for number in range(1, 6)
    ]
    cells = [
        builders.cell_summary(cell_id, reps),
        builders.cell_summary("control", reps, purpose="aa_control", base=cell_id),
    ]
    row = builders.noise_floor("goodput", cell_id, "control")
    found = replace(builders.summary(), run_id=name, cells=cells, noise_floor=[row], ranking=[])
    (results / name).mkdir()
    documents.write(results / name / "summary.json", documents.encode(found))


def test_two_sittings_do_not_tell_a_difference(tmp_path: Path) -> None:
    write(tmp_path, "old")
    write(tmp_path, "new", 1.5)
    found = run_comparison.compare(tmp_path, "old", "new")
    documents.encode(found)
    assert (found.base, found.head) == (["old"], ["new"])
    (compared,) = found.comparisons
    assert (compared.by, compared.base.name, compared.head.name) == ("run", "old", "new")
    assert compared.head.cell_id == "new/index"
    goodput = compared.rows[0]
    assert goodput.difference.value == pytest.approx(0.5)
    assert (goodput.difference.low, goodput.p, goodput.method) == (None, None, "runs")
    assert (goodput.conclusion, goodput.noise_floor_scope) == ("inconclusive", "cell")
    assert words.reason(goodput.reason) == (
        "two sittings: not told apart from the difference between sittings, which takes 3 runs a "
        "side (1 run of one side)"
    )
    assert {row.control_id for row in found.noise_floor} == {"old/control", "new/control"}


def test_the_latest_run_is_compared_under_its_own_name(tmp_path: Path) -> None:
    write(tmp_path, "old")
    write(tmp_path, "new", 1.5)
    (tmp_path / "latest").symlink_to("new")
    assert run_comparison.compare(tmp_path, "old", "latest").head == ["new"]
    with pytest.raises(PlanError, match="'new' was given twice"):
        run_comparison.compare(tmp_path, "new", "latest")


def test_several_runs_a_side_tell_a_difference(tmp_path: Path) -> None:
    for index, factor in enumerate((1.0, 1.01, 0.99)):
        write(tmp_path, f"old{index}", factor)
        write(tmp_path, f"new{index}", 1.5 * factor)
    found = run_comparison.compare(tmp_path, "old0,old1, old2", "new0,new1,new2")
    (compared,) = found.comparisons
    goodput = compared.rows[0]
    # A run has one value: its median.
    assert (goodput.n, goodput.base.n, goodput.conclusion) == (3, 3, "higher")
    assert goodput.base.median == pytest.approx(1003)
    assert goodput.difference.value == pytest.approx(0.5)
    assert goodput.difference.low is not None
    logs = np.log([1.0, 1.01, 0.99])
    # Welch's interval of equal variances has 4 degrees of freedom, of which t is 2.776.
    half = 2.776 * float(logs.std(ddof=1)) * (2 / 3) ** 0.5
    assert np.log1p(goodput.difference.low) == pytest.approx(np.log(1.5) - half, rel=1e-3)
    assert compared.head.n == 15
    assert any("new0, new1, new2 against" in line for line in section.lines(found.comparisons, {}))


@pytest.mark.parametrize(
    ("factor", "sittings", "goodput"),
    [(0.5, 3, "slower"), (1.5, 3, "faster"), (0.5, 1, "undecided"), (1.0, 3, "no difference")],
)
def test_goodput_of_several_sittings_gives_an_answer(
    tmp_path: Path, factor: float, sittings: int, goodput: str
) -> None:
    sides: dict[str, list[str]] = {"old": [], "new": []}
    for index, drift in enumerate((1.0, 1.01, 0.99)[:sittings]):
        for side, speed in (("old", 1.0), ("new", factor)):
            write(tmp_path, f"{side}{index}", speed * drift)
            sides[side].append(f"{side}{index}")
    found = run_comparison.compare(tmp_path, *(",".join(names) for names in sides.values()))
    (compared,) = found.comparisons
    # The latencies of these runs are equal to the last digit.
    alone = replace(found, comparisons=[replace(compared, rows=compared.rows[:1])])
    assert run_comparison.answer(alone) == goodput


def test_runs_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "old")
    write(tmp_path, "new", cell_id="agents")
    with pytest.raises(PlanError, match="head: 'none' is no run with a summary"):
        run_comparison.compare(tmp_path, "old", "none")
    with pytest.raises(PlanError, match="base: none was given"):
        run_comparison.compare(tmp_path, "", "old")
    with pytest.raises(PlanError, match="have no cell in common"):
        run_comparison.compare(tmp_path, "old", "new")
    for base, head in (("old", "old"), ("old", "new,old"), ("old,old", "new")):
        with pytest.raises(PlanError, match="base and head: 'old' was given twice"):
            run_comparison.compare(tmp_path, base, head)
    RunDir(tmp_path / "new").summary.write_text("{")
    with pytest.raises(ResultError, match=r"head: the run 'new': summary\.json is truncated"):
        run_comparison.compare(tmp_path, "old", "new")


def test_a_side_tells_why_repetitions_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "old")
    write(tmp_path, "new")
    found = documents.read(tmp_path / "new" / "summary.json", Summary)
    cell = found.cells[0]
    lost = [
        replace(cell.repetitions[0], validity=builders.void("steal", "generator_cpu")),
        replace(cell.repetitions[1], error="stopped", validity=builders.void()),
        *cell.repetitions[2:],
    ]
    less = builders.cell_summary(cell.cell_id, lost)
    changed = replace(found, cells=[less, *found.cells[1:]])
    documents.write(tmp_path / "new" / "summary.json", documents.encode(changed))
    (compared,) = run_comparison.compare(tmp_path, "old", "new").comparisons
    assert (compared.head.n, compared.head.n_void, compared.head.n_failed) == (3, 2, 1)
    assert compared.head.void_reasons == ["steal", "generator_cpu"]
    assert (
        "repetitions: 3 valid of 5 (1 void: steal, generator CPU; 1 failed) against 5 valid"
        in section.lines([compared], {})[0]
    )


def test_latencies_of_a_side_are_compared_without_a_run_that_is_void(tmp_path: Path) -> None:
    for name in ("old0", "old1", "old2", "new0", "new1", "new2", "lost"):
        write(tmp_path, name)
    summary = documents.read(tmp_path / "lost" / "summary.json", Summary)
    cell = summary.cells[0]
    lost = [replace(rep, validity=builders.void("steal")) for rep in cell.repetitions]
    changed = replace(
        summary, cells=[builders.cell_summary(cell.cell_id, lost), *summary.cells[1:]]
    )
    documents.write(tmp_path / "lost" / "summary.json", documents.encode(changed))
    (compared,) = run_comparison.compare(
        tmp_path, "old0,old1,old2,lost", "new0,new1,new2"
    ).comparisons
    p50 = next(row for row in compared.rows if row.metric == "p50")
    assert (p50.conclusion, p50.base.n) == ("no difference", 3)
