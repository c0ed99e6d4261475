"""Variants: what may be given, and the cells that they become."""

import shutil
import subprocess
from pathlib import Path

import pytest

from loadlab.kinds.gate import plan as study
from loadlab.kinds.gate import variants
from loadlab.plan.modes.levels import Scaled
from loadlab.plan.plan_document import items
from loadlab.run.errors import PlanError
from tests.unit import builders
from tests.unit.builders import present

ROOT = builders.ROOT
VARIANTS = {"endpoint": "hello", "base": "workers=1", "head": "workers=2,tuning=stock"}


def test_each_variant_has_a_constant_and_a_closed_load_and_the_base_a_control() -> None:
    plan = builders.plan(**VARIANTS)
    gate = present(plan.gate)
    cells = {item.cell_id: item for item in items(plan.experiments)}
    for named in (gate.base, *gate.heads):
        constant, saturated = cells[named.cells.constant], cells[present(named.cells.saturated)]
        assert (constant.cell.variant, saturated.cell.variant) == (named.name, named.name)
        assert constant.cell.load.mode == "constant"
        assert saturated.cell.load.mode == "closed"
        assert constant.cell.workers == saturated.cell.workers
    assert cells[gate.heads[0].cells.constant].cell.tuning == "stock"
    assert cells[gate.base.cells.constant].cell.workers == 1
    control = cells[gate.control.constant]
    assert (control.purpose, control.base) == ("aa_control", gate.base.cells.constant)
    assert cells[present(gate.control.saturated)].base == gate.base.cells.saturated
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
    gate = present(plan.gate)
    assert gate.base.cells != gate.heads[0].cells
    assert len(plan.stacks) == 1


def test_budget_decides_the_number_of_blocks() -> None:
    short, long = (builders.plan(**VARIANTS, rate=100, budget=one) for one in ("5m", "1h"))
    # Six cells of 3 + 1 + 2.5 s.
    assert short.options.repetitions == 300 // 39
    assert long.options.repetitions == 3600 // 39


def test_variant_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "head.yml"
    file.write_text("workers: 2\nheaders: {X-A: 'b'}\n")
    found = variants.variant(ROOT, "head", str(file), {})
    assert found.options == {"workers": 2, "headers": {"X-A": "b"}}
    assert found.definition == str(file)
    for several in ("[stock, production]", "stock,production"):
        file.write_text(f"tuning: {several}\n")
        with pytest.raises(PlanError, match="head: tuning: a variant has one profile"):
            variants.variant(ROOT, "head", str(file), {})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"head": ""}, "head: none was given"),
        ({"head": "wrokers=2"}, "'wrokers' is no option of a variant"),
        ({"head": "rate=100"}, "'rate' is no option of a variant"),
        ({"head": "workers=2;"}, "has an empty variant between its semicolons"),
        ({"head": "workers=="}, "'workers==' is no option and its value"),
        ({"head": "python=3.14T"}, "python: '3.14T' is no Python. Give a version such as 3.14 "),
        ({"head": "kernel=6.12"}, "'kernel' cannot differ between variants: another kernel"),
        ({"head": "postgresql.work_mem=64 MB"}, "work_mem: '64 MB' has other characters"),
        ({"head": "ref=nosuch"}, "head: git rev-parse failed"),
        ({"head": "wheel=nosuch.whl"}, "wheel: 'nosuch.whl' is no wheel"),
        ({"head": "wheel=/"}, "wheel: '/' is no wheel"),
        ({"head": "nosuch==1.0"}, "'nosuch' is no package of the application or a server. "),
        ({"framework": "golang", "head": "aiohttp==3.13.2"}, "of Python applications only"),
        ({"head": "nowhere.yml"}, "'nowhere.yml' is neither key=value nor a file"),
        ({"base": "/"}, "base: '/' is neither key=value nor a file"),
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
    with pytest.raises(PlanError, match="budget: '5m' is for variants and candidates"):
        builders.plan(budget="5m")


def test_variant_may_be_an_application_as_of_a_git_ref(tmp_path: Path) -> None:
    folder = tmp_path / "shop" / "lab"
    shutil.copytree(ROOT / "apps" / "aiohttp", folder)

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        done = subprocess.run(
            ["git", *who, *words], cwd=tmp_path / "shop", check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "before")
    before = git("rev-parse", "HEAD")
    (folder / "app.py").write_text("after")
    git("commit", "--quiet", "-am", "after")
    found = variants.variant(ROOT, "base", f"app={folder},ref=HEAD~1", {"framework": "aiohttp"})
    assert found.commit == before
    made = ROOT / str(found.options["app"])
    assert (made / "app.py").read_text() == (ROOT / "apps/aiohttp/app.py").read_text()
    assert found.options == {"app": str(made.relative_to(ROOT))}
    # The same content is made once, whatever its commit is called.
    again = variants.variant(ROOT, "base", f"app={folder},ref={before}", {"framework": "aiohttp"})
    assert again.options == found.options
    plan = builders.plan(endpoint="hello", base=f"app={folder},ref={before}", head=f"app={folder}")
    assert present(plan.gate).base.commit == before
    assert {one.source for one in plan.stacks.values()} == {found.options["app"], str(folder)}


def test_pin_replaces_that_of_an_application_from_outside_the_tree(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "app.py").write_text("from flask import Flask\n\napp = Flask(__name__)\n")
    (folder / "requirements.txt").write_text("Flask>=3.0 # the newest\nredis==6.0\n")
    found = variants.variant(ROOT, "head", f"app={folder},flask==3.1.0", {})
    made = ROOT / str(found.options["app"])
    assert made.name == "shop"
    assert (made / "requirements.txt").read_text() == "redis==6.0\nflask==3.1.0\n"
    assert (made / "app.py").read_text() == (folder / "app.py").read_text()


def test_variant_may_have_settings_of_postgresql() -> None:
    head = "postgresql.work_mem=64MB,postgresql.jit=on"
    plan = builders.plan(endpoint="agents", base="workers=1", head=head)
    name = "production-with-postgresql.jit-on-with-postgresql.work_mem-64MB"
    assert present(plan.gate).heads[0].options == {"tuning": name}
    settings = {one["name"]: one["value"] for one in plan.tunings[name]["postgresql"]}
    before = {one["name"]: one["value"] for one in plan.tunings["production"]["postgresql"]}
    assert settings == before | {"work_mem": "64MB", "jit": "on"}
    assert plan.tunings[name]["sysctl"] == plan.tunings["production"]["sysctl"]


def test_several_heads_are_compared_with_one_base() -> None:
    plan = builders.plan(endpoint="hello", base="workers=1", head="workers=2; tuning=stock")
    heads = present(plan.gate).heads
    assert [(one.name, one.definition) for one in heads] == [
        ("head1", "workers=2"), ("head2", "tuning=stock"),
    ]  # fmt: skip
    assert len({item.cell_id for item in items(plan.experiments)}) == 9
    assert len({head.cells.constant for head in heads}) == 2


def test_resumed_run_keeps_its_variants() -> None:
    first, longer, *others = (
        present(builders.plan(**{**VARIANTS, **changes}).gate)
        for changes in ({}, {"budget": "1h"}, {"head": "workers=3"}, {"rate": [700]})
    )
    study.refuse_other("one", first, longer)
    for other in others:
        with pytest.raises(PlanError, match="run_id: 'one' compares other variants"):
            study.refuse_other("one", first, other)


def test_application_may_be_another_folder(tmp_path: Path) -> None:
    folders = [tmp_path / "old", tmp_path / "new"]
    for folder in folders:
        shutil.copytree(ROOT / "apps" / "aiohttp", folder)
    base, head = (f"app={folder}" for folder in folders)
    plan = builders.plan(endpoint="hello", base=base, head=head)
    assert {stack.source for stack in plan.stacks.values()} == {str(one) for one in folders}
    assert {item.cell.app for item in items(plan.experiments)} == {str(one) for one in folders}
    (folders[1] / "app.py").write_text("changed")
    again = builders.plan(endpoint="hello", base=base, head=head)
    hashes = [
        {
            item.cell.variant: present(item.input_hashes).application
            for item in items(several.experiments)
        }
        for several in (plan, again)
    ]
    assert hashes[0]["base"] == hashes[1]["base"]
    assert hashes[0]["head"] != hashes[1]["head"]
    with pytest.raises(PlanError, match="is no folder"):
        builders.plan(endpoint="hello", base=base, head=f"app={tmp_path}/absent")
