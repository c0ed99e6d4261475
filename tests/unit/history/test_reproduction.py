"""A run beside the run that it repeats."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.history import reproduction
from loadlab.kinds import run_end
from loadlab.model import Manifest, Original, Recipe, Reproduction, ReproductionPart, Source
from loadlab.plan import plan_document as plans
from loadlab.report.sections import reproduction_section as section
from loadlab.report.words import reproduction_words as words
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from tests.unit import builders
from tests.unit.report import blocks

LOCKS = {"requirements.txt": "0" * 64, "apps/aiohttp/requirements.txt": "1" * 64}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A finished run that repeats one with the same documents."""
    run = tmp_path / "again"
    shutil.copytree(builders.RUN, run)
    builders.write_plan(run, replace(builders.plan(), run_id="again"))
    here = replace(builders.manifest(), run_id="again", locks=LOCKS)
    documents.write(RunDir(run).manifest, documents.encode(here))
    summary = replace(builders.summary(), run_id="again")
    documents.write(RunDir(run).summary, documents.encode(summary))
    original(run)
    return run


def original(run: Path, **changed: Any) -> Original:
    """Write what the run repeats: a run like itself, with these changes."""
    known = documents.read(RunDir(run).manifest, Manifest)
    found = Original(
        source=Source(run_id="before", started=known.started, lab=known.lab),
        summary=replace(builders.summary(), run_id="before"),
        **vars(reproduction.basis(run)),
    )
    found = replace(found, **changed)
    documents.write(RunDir(run).original, documents.encode(found))
    return found


def seeded(recipe: Recipe) -> Recipe:
    """Return a recipe with another seed, which the user gave."""
    own = {**recipe.given_options, "seed": 9}
    return replace(recipe, given_options=own, options=replace(recipe.options, seed=9))


def written(run: Path) -> Reproduction:
    """Return reproduction.json as it is read again."""
    assert reproduction.write(run) is not None
    return documents.read(RunDir(run).reproduction, Reproduction)


def part(found: Reproduction, name: str) -> ReproductionPart:
    return next(part for part in found.parts if part.part == name)


def told(found: Reproduction, name: str) -> list[tuple[str | None, str, Any, Any]]:
    return [(one.of, one.name, one.original, one.here) for one in part(found, name).deviations]


def test_a_run_that_repeats_none_has_no_document(run_dir: Path) -> None:
    RunDir(run_dir).original.unlink()
    assert reproduction.write(run_dir) is None
    assert not RunDir(run_dir).reproduction.exists()


def test_a_run_like_its_original_differs_in_nothing(run_dir: Path) -> None:
    found = written(run_dir)
    assert {one.part: len(one.deviations) for one in found.parts if one.deviations} == {}
    assert part(found, "package").same == 10
    assert part(found, "lock file").same == 2
    assert part(found, "tuning").same > 10
    assert (found.only_original, found.only_here) == ([], [])
    assert len(found.comparisons) == 2
    row = found.comparisons[0].rows[0]
    assert (row.method, row.conclusion, row.reason.code) == ("runs", "inconclusive", "few_sittings")
    assert row.difference.value == pytest.approx(0)


def test_what_differs_is_named_with_both_values(run_dir: Path) -> None:
    before = original(run_dir)
    hosts = {f"old-{name}": host for name, host in before.hosts.items()}
    hosts["old-server"] = replace(
        hosts["old-server"],
        kernel="5.4",
        memory_bytes=hosts["old-server"].memory_bytes // 2,
        packages={**hosts["old-server"].packages, "nginx": "1.0", "vim": "9"},
    )
    thresholds = {**before.recipe.thresholds, "steal_max": 0.5}
    pins = {**before.recipe.pins, "aiohttp/aiohttp": "2.0", "flask/flask": "3"}
    locks = {**LOCKS, "apps/aiohttp/requirements.txt": "2" * 64, "apps/flask/x": "3" * 64}
    cell, *_ = before.summary.cells
    slower = replace(cell, cell_id="gone")
    found_by = replace(before.recipe, thresholds=thresholds, pins=pins, locks=locks)
    summary = replace(before.summary, cells=[slower, *before.summary.cells[1:]])
    original(run_dir, hosts=hosts, recipe=seeded(found_by), summary=summary)
    found = written(run_dir)
    assert told(found, "kernel") == [("server", "kernel", "5.4", hosts["old-client"].kernel)]
    assert [row[:2] for row in told(found, "hardware")] == [("server", "memory_bytes")]
    assert [row[1:3] for row in told(found, "package")] == [("nginx", "1.0"), ("vim", "9")]
    assert told(found, "threshold") == [(None, "steal_max", 0.5, builders.thresholds().steal_max)]
    assert told(found, "option") == [(None, "seed", 9, 1)]
    assert part(found, "option").deviations[0].requested
    # What the run did not measure has no pin or lock file to compare.
    assert told(found, "pin") == [(None, "aiohttp/aiohttp", "2.0", "3.14.5")]
    assert told(found, "lock file") == [(None, "apps/aiohttp/requirements.txt", "2" * 64, "1" * 64)]
    assert (found.only_original, found.only_here) == (["gone"], [cell.cell_id])


def test_hosts_of_one_kind_report_a_little_more_memory(run_dir: Path) -> None:
    hosts = {
        name: replace(host, memory_bytes=int(host.memory_bytes * 1.01))
        for name, host in builders.manifest().hosts.items()
    }
    original(run_dir, hosts=hosts)
    assert told(written(run_dir), "hardware") == []


def test_pins_of_lock_files_of_one_run_are_not_compared(run_dir: Path) -> None:
    before = original(run_dir).recipe
    fewer = replace(before, locks={}, pins={"aiohttp/aiohttp": before.pins["aiohttp/aiohttp"]})
    more = replace(before, pins={**fewer.pins, "oha/oha_version": "1"})
    parts = {part.part: part for part in reproduction.planned(fewer, more)}
    assert (parts["pin"].same, parts["pin"].deviations) == (1, [])
    assert (parts["lock file"].same, parts["lock file"].deviations) == (0, [])


def test_the_end_of_the_run_and_the_report_tell_it(run_dir: Path) -> None:
    original(run_dir, recipe=seeded(original(run_dir).recipe))
    found = written(run_dir)
    # An application of one's own has other paths than the names of its endpoints.
    plan = plans.read(run_dir).plan
    own = replace(plan.endpoints["index"], path="/start")
    builders.write_plan(run_dir, replace(plan, endpoints={**plan.endpoints, "index": own}))
    lines = run_end.lines(run_dir, [])
    assert lines[0] == "Compared with the original before:"
    assert "Differs, option seed: 9 in the original, 1 here (given with -e)" in lines
    assert "run again against run before on /start" in lines
    (headline,) = section.headlines(found)
    assert headline.text.startswith(
        "Against the original before: 2 cells measured in both; differs in options (1)."
    )
    (deviations,) = blocks.tables("Everything that differs", *section.sections(found, {}))
    assert [cell.text for cell in deviations.rows[1].cells] == ["seed", "9", "1", "given with -e"]


def test_many_differences_are_cut_on_the_terminal_and_whole_in_the_report(run_dir: Path) -> None:
    before = original(run_dir)
    more = {f"package-{number}": "1" for number in range(30)}
    host = before.hosts["client"]
    changed = replace(host, packages={**host.packages, **more})
    original(run_dir, hosts={**before.hosts, "client": changed})
    found = written(run_dir)
    lines = words.deviations(found.parts)
    assert len(lines) == words.SHOWN + 1
    assert lines[-1] == "  and 25 more packages"
    (deviations,) = blocks.tables("Everything that differs", *section.sections(found, {}))
    assert len(deviations.rows) == 31


def test_the_plan_of_this_lab_has_the_recipe_that_its_documents_have(run_dir: Path) -> None:
    made_with = {"local_hosts_release": "x"}
    planned = reproduction.recipe_of_plan(builders.plan(), builders.ROOT, made_with)
    there = reproduction.basis(run_dir).recipe
    assert planned.inputs == there.inputs
    assert {"application aiohttp on gunicorn", "tuning profile production"} < planned.inputs.keys()
    locks = {"requirements.txt", "apps/aiohttp/requirements.txt", "metronome/Cargo.lock"}
    assert locks <= planned.locks.keys()
    other = reproduction.recipe_of_plan(builders.plan(generator="oha"), builders.ROOT, {})
    assert other.pins["oha/oha_version"]
    assert planned.made_with == made_with


def test_a_run_of_several_servers_has_the_inputs_of_each() -> None:
    """Whichever comes last, the other's are those of a run of that alone."""
    gate = builders.plan(endpoint="hello", base="server=gunicorn", head="server=native")
    several = reproduction.recipe_of_plan(gate, builders.ROOT, {}).inputs
    for server in ("gunicorn", "native"):
        plan = builders.plan(endpoint="hello", server=server)
        alone = reproduction.recipe_of_plan(plan, builders.ROOT, {}).inputs
        assert alone.items() <= several.items()
