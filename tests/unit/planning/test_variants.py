"""Variants: what may be given, and the cells that they become."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from loadlab.core.errors import PlanError
from loadlab.planning import variants
from loadlab.scheduling.experiments import Scaled
from tests.unit import builders

ROOT = Path(__file__).parents[3]
VARIANTS = {"endpoint": "hello", "base": "workers=1", "head": "workers=2,tuning=stock"}


def test_each_variant_has_a_constant_and_a_closed_load_and_the_base_a_control() -> None:
    plan = builders.plan(**VARIANTS)
    assert plan.ab is not None
    cells = {item.cell_id: item for one in plan.experiments for item in one.items}
    for named in (plan.ab.base, plan.ab.head):
        constant, saturated = cells[named.cells.constant], cells[named.cells.saturated]
        assert (constant.cell.variant, saturated.cell.variant) == (named.name, named.name)
        assert constant.cell.load.mode == "constant"
        assert saturated.cell.load.mode == "closed"
        assert constant.cell.workers == saturated.cell.workers
    assert cells[plan.ab.head.cells.constant].cell.tuning == "stock"
    assert cells[plan.ab.base.cells.constant].cell.workers == 1
    control = cells[plan.ab.control.constant]
    assert (control.purpose, control.base) == ("aa_control", plan.ab.base.cells.constant)
    assert cells[plan.ab.control.saturated].base == plan.ab.base.cells.saturated
    # Student's t of the summary is of one look.
    assert plan.comparisons == []


def test_both_variants_get_the_same_fraction_of_the_bases_saturation() -> None:
    plan = builders.plan(**VARIANTS)
    scaled = [one for one in plan.experiments if isinstance(one, Scaled)]
    assert len(scaled) == 3
    assert {tuple(one.saturations.values()) for one in scaled} == {
        (next(iter(scaled[0].saturations.values())),)
    }
    named = builders.plan(**VARIANTS, rate=700)
    constant = [one for one in named.experiments if one.items[0].cell.load.mode == "constant"]
    assert {one.items[0].cell.load.rate for one in constant} == {700}


def test_equal_variants_are_two_cells_of_one_stack() -> None:
    plan = builders.plan(endpoint="hello", base="workers=1", head="workers=1")
    assert plan.ab is not None
    assert plan.ab.base.cells != plan.ab.head.cells
    assert len(plan.stacks) == 1


def test_budget_decides_the_number_of_blocks() -> None:
    short, long = (builders.plan(**VARIANTS, rate=100, budget=one) for one in ("5m", "1h"))
    # Six cells of 3 + 1 + 1.5 s.
    assert short.options.repetitions == 300 // 33
    assert long.options.repetitions == 3600 // 33


def test_variant_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "head.yml"
    file.write_text("workers: 2\nheaders: {X-A: 'b'}\n")
    found = variants.variant("head", str(file))
    assert found.options == {"workers": 2, "headers": {"X-A": "b"}}
    assert found.given == str(file)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"head": ""}, "head: none was given"),
        ({"head": "wrokers=2"}, "'wrokers' is no option of a variant"),
        ({"head": "rate=100"}, "'rate' is no option of a variant"),
        ({"head": "uvicorn==0.35"}, "'uvicorn==0.35' is no option and its value"),
        ({"head": "nowhere.yml"}, "'nowhere.yml' is neither key=value nor a file"),
        ({"head": "workers=none"}, "workers: 'none' is not a number"),
        ({"endpoint": "hello,agents"}, "Give one with -e endpoint="),
        ({"endpoint": ""}, "Give one with -e endpoint="),
        ({"tuning": "stock,production"}, "Give one with -e tuning="),
        ({"rate": [100, 200]}, "Give one with -e rate="),
        ({"generator": "wrk"}, "wrk keeps none"),
        ({"repetitions": 5}, "repetitions: '5' has no place beside base and head"),
        ({"study": "quick"}, "study: 'quick' has no place"),
        ({"budget": "20"}, "budget: '20' is no time"),
        ({"budget": "1s"}, "budget: '1s' is no time"),
    ],
)
def test_what_cannot_be_compared_is_refused(changes: dict[str, object], told: str) -> None:
    with pytest.raises(PlanError, match=told.replace("(", r"\(")):
        builders.plan(**{**VARIANTS, **changes})


def test_budget_without_variants_is_refused() -> None:
    with pytest.raises(PlanError, match="of a comparison of variants only"):
        builders.plan(budget="5m")


def test_application_may_be_another_folder(tmp_path: Path) -> None:
    folders = [tmp_path / "old", tmp_path / "new"]
    for folder in folders:
        shutil.copytree(ROOT / "apps" / "aiohttp", folder)
    base, head = (f"app={folder}" for folder in folders)
    plan = builders.plan(endpoint="hello", base=base, head=head)
    assert {stack["source"] for stack in plan.stacks.values()} == {str(one) for one in folders}
    items = [item for one in plan.experiments for item in one.items]
    assert {item.cell.app for item in items} == {str(one) for one in folders}
    (folders[1] / "app.py").write_text("changed")
    again = builders.plan(endpoint="hello", base=base, head=head)
    hashes = [
        {
            item.cell.variant: builders.present(item.input_hashes).application
            for one in several.experiments
            for item in one.items
        }
        for several in (plan, again)
    ]
    assert hashes[0]["base"] == hashes[1]["base"]
    assert hashes[0]["head"] != hashes[1]["head"]
    with pytest.raises(PlanError, match="is no folder"):
        builders.plan(endpoint="hello", base=base, head=f"app={tmp_path}/absent")
