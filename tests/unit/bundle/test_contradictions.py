"""Runs that were forged together with every document that follows from them."""

import itertools
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.bundle import contradictions
from loadlab.model import Result
from loadlab.plan import plan_document as plans
from loadlab.plan import progress, records, repeats, schedule
from loadlab.plan.plan_document import Resumption, Run
from loadlab.plan.progress import Began
from loadlab.run import documents
from loadlab.run.run_dir import RESULT, RunDir
from tests.unit import builders
from tests.unit.results.summaries.test_sweeps_searches import VOID, measured

KINDS: dict[str, dict[str, Any]] = {
    "variants": {"tuning": "stock,production", "repetitions": 3, "endpoint": "index,agents"},
    "search": {"slo": "p99_ms=100,errors=0", "repetitions": 2},
    "sweep": {"connections": "1,2,4,8,16", "repetitions": 2, "generator": "wrk"},
    "curve": {"curve": True, "rate": 1300, "endpoint": "agents"},
    "lesson": {"framework": None, "lesson": "keepalive"},
}
VOIDS = (3, 8)


def write(path: Path, kind: str) -> Path:
    """Measure a run of a kind, two of its measurements void; return its folder."""
    plan = builders.plan(**KINDS[kind])
    builders.write_plan(path, plan)
    keeps_order = kind == "lesson"
    for number in itertools.count():
        kept = repeats.limited(plan, records.load(path))
        item = schedule.next_item(plan, kept, {}, None, 0, keeps_order=keeps_order)
        if item is None:
            break
        result = replace(measured(item, 2 * number), raw_sha256={"run.json": f"{number:064}"})
        if number in VOIDS and item.purpose != "saturation":
            result = replace(result, validity=VOID)
        builders.store(path, result)
    ahead = schedule.outlook(plan, kept, None)
    began = Began(at=0.0, since={}, outlook=ahead)
    found = progress.document(plan, kept, {}, began, ahead, 1.0)
    documents.write(RunDir(path).progress, documents.encode(found))
    return path


def faults(path: Path) -> list[str]:
    found = contradictions.find(path, plans.read(path))
    return [text for texts in found.values() for text in texts]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("runs") / "a-run", "variants")


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_as_it_was_measured_contradicts_nothing(tmp_path: Path, kind: str) -> None:
    assert faults(write(tmp_path / "a-run", kind)) == []


def test_what_was_measured_before_a_run_was_resumed_may_be_of_another_plan(
    original: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(original, tmp_path / "a-run"))
    move_into_another_block(run)
    resume(run, "2033-05-18T03:33:20+00:00")
    assert faults(run) == []


def results(run: Path) -> dict[Path, Result]:
    found = {path.parent: documents.read(path, Result) for path in run.glob(f"cells/*/*/{RESULT}")}
    return dict(sorted(found.items(), key=lambda pair: pair[1].started or 0))


def put(folder: Path, result: Result) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    documents.write(folder / RESULT, documents.encode(result))


def void_of(run: Path) -> tuple[Path, Result]:
    """The first void repetition that another one of its cell follows."""
    return next(
        (folder, result)
        for folder, result in results(run).items()
        if not result.validity.valid and folder.with_name(f"rep-{result.repetition + 1}").exists()
    )


def last_of(run: Path) -> tuple[Path, Result]:
    return [pair for pair in results(run).items() if pair[1].purpose == "measure"][-1]


def of_last(change: Callable[[Result], Result]) -> Callable[[Path], None]:
    """Return a forgery that changes the last repetition of a measured cell."""

    def forge(run: Path) -> None:
        folder, result = last_of(run)
        put(folder, change(result))

    return forge


def renumber_after_a_void_repetition(run: Path) -> None:
    folder, result = void_of(run)
    shutil.rmtree(folder)
    for number in itertools.count(result.repetition + 1):
        later = folder.with_name(f"rep-{number}")
        if not later.exists():
            return
        moved = replace(documents.read(later / RESULT, Result), repetition=number - 1)
        later.rename(later.with_name(f"rep-{number - 1}"))
        put(later.with_name(f"rep-{number - 1}"), moved)


def copy_a_repetition(run: Path, *, at_another_time: bool = False) -> None:
    folder, result = last_of(run)
    first = documents.read(folder.with_name("rep-1") / RESULT, Result)
    if at_another_time:
        put(folder, replace(result, goodput=first.goodput, raw_sha256=first.raw_sha256))
    else:
        put(folder, replace(first, repetition=result.repetition, block=result.block))


def add_a_repetition(run: Path) -> None:
    folder, result = last_of(run)
    number = result.repetition + 1
    changed = replace(result, repetition=number, raw_sha256={}, started=2e9, finished=2e9 + 1)
    put(folder.with_name(f"rep-{number}"), changed)


def swap_the_labels_of_two_cells(run: Path) -> None:
    groups: dict[str, list[tuple[Path, Result]]] = {}
    for folder, result in results(run).items():
        if result.purpose == "measure" and result.cell.endpoint == "agents":
            groups.setdefault(result.cell_id, []).append((folder, result))
    one, other = groups.values()
    for (folder, result), (place, its) in zip(one, other, strict=False):
        names = ("cell_id", "cell", "block", "repetition", "base")
        put(folder, replace(its, **{name: getattr(result, name) for name in names}))
        put(place, replace(result, **{name: getattr(its, name) for name in names}))


def rename_a_cell(run: Path) -> None:
    folder = last_of(run)[0]
    for own in sorted(folder.parent.iterdir()):
        its = documents.read(own / RESULT, Result)
        put(folder.parents[1] / "faster" / own.name, replace(its, cell_id="faster"))
    shutil.rmtree(folder.parent)


def of_one_connection(result: Result) -> Result:
    load = replace(result.cell.load, connections=1)
    return replace(result, cell=replace(result.cell, load=load))


move_into_another_block = of_last(lambda result: replace(result, block=(result.block or 0) + 1))


def plan_otherwise(run: Path, change: Callable[[Run], Run]) -> None:
    documents.write(RunDir(run).plan, documents.encode(change(plans.read(run))))


def resume(run: Path, at: str) -> None:
    """Say that the run was resumed, from when on its plan need be that of the measurements."""
    call = Resumption(started=at, argv=["ansible-playbook"])
    plan_otherwise(run, lambda begun: replace(begun, resumed=[call]))


def move_in_a_resumed_run(run: Path) -> None:
    move_into_another_block(run)
    resume(run, "2001-09-09T01:46:50+00:00")


def leave_out_a_control(begun: Run) -> Run:
    controls = begun.plan.aa_controls[:1]
    return replace(begun, plan=replace(begun.plan, aa_controls=controls))


FORGERIES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a void one removed": (lambda run: shutil.rmtree(void_of(run)[0]), "is not there"),
    "the rest numbered anew": (
        renumber_after_a_void_repetition, "measurements were made by progress.json",
    ),
    "copied": (copy_a_repetition, "is the same file as in cells/"),
    "copied, at another time": (
        partial(copy_a_repetition, at_another_time=True), "is the same file as in cells/",
    ),
    "added": (add_a_repetition, "by the plan nothing was to be measured then"),
    "labels swapped": (swap_the_labels_of_two_cells, "was to be measured then"),
    "a cell renamed": (rename_a_cell, "plan.json has no such cell"),
    "another cell": (of_last(of_one_connection), "plan.json has another cell of this name"),
    "begun too early": (
        of_last(lambda result: replace(result, started=(result.started or 0) - 2.5)),
        "before the end of cells/",
    ),
    "moved": (move_into_another_block, "was to be measured then"),
    "moved in a resumed run": (move_in_a_resumed_run, "was to be measured then"),
    "a control left out": (
        lambda run: plan_otherwise(run, leave_out_a_control), "counts it to no A/A control",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_what_was_forged_with_all_that_follows_is_found(
    original: Path, tmp_path: Path, name: str
) -> None:
    forge, words = FORGERIES[name]
    run = Path(shutil.copytree(original, tmp_path / "a-run"))
    forge(run)
    assert any(words in text for text in faults(run))
