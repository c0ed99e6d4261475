"""The words that tell cells apart."""

from pathlib import Path

from msgspec.structs import replace

from loadlab.model import Arrivals, Injection, Neighbour, Reason
from loadlab.report import words
from loadlab.report.words import labels
from tests.unit import builders
from tests.unit.report import runs


def test_cells_that_differ_in_an_injected_fault_are_told_apart(tmp_path: Path) -> None:
    quiet = runs.result(runs.STACKS[0], "index", 1000.0, 1)
    neighbour = Neighbour(host="client", after_s=0, duration_s=4, cpu=0.2)
    load = replace(quiet.cell.load, injection=Injection(neighbour=neighbour))
    busy = replace(quiet, cell=replace(quiet.cell, load=load), cell_id=f"{quiet.cell_id}-busy")
    found = labels.entries(runs.write(tmp_path, [quiet, busy]).cells, {})
    beside = "/index (a neighbour with 20 % of a core of the client)"
    for names in ([one.where for one in found], [one.title for one in found]):
        assert names == ["/index", beside]


def test_cells_are_named_by_the_fewest_parts_that_tell_them_apart(tmp_path: Path) -> None:
    summary = runs.many(tmp_path, 3, 1, 5)
    assert [one.title for one in labels.entries(summary.cells, {})] == [
        "/index (aiohttp, gunicorn)",
        "/index (flask, gunicorn)",
        "/index (flask, uwsgi)",
    ]


def test_a_mix_is_named_by_the_paths_of_its_requests() -> None:
    cell = builders.cell(endpoint="home:9,add:1")
    paths = {"home": "/", "add": "POST /notes"}
    assert labels.subjects([cell], paths) == [f"{labels.name(cell)} on a mix of / 9, POST /notes 1"]
    assert "; a mix of / 9, POST /notes 1; " in labels.common([cell], paths)


def test_a_million_requests_per_second_has_all_of_its_digits() -> None:
    ramp = Arrivals(ramp=[(0, 0.5), (10, 1_000_000)])
    load = builders.load(rate=1_000_000, arrivals=ramp)
    assert labels.load(load) == "oha, 1,000,000/s, a ramp 0.5 to 1,000,000"
    ceiling = words.reason(Reason(code="generator_ceiling", value=1_000_000.0))
    assert ceiling.startswith("1,000,000 requests/s is the most")
