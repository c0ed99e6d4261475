from __future__ import annotations

from pathlib import Path

import pytest

from loadlab.plan.plan_document import items
from tests.unit import builders

ROOT = builders.ROOT


# shop is for an application of the user's, and test_sessions.py reads it.
READY = [path for path in sorted((ROOT / "files/loads").iterdir()) if path.stem != "shop"]


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_each_ready_load_can_be_planned_and_names_its_source(path: Path) -> None:
    planned = builders.plan(framework="django", load=path.stem)
    item = items(planned.experiments)[0]
    load = item.cell.load
    assert len(item.cell.kinds) > 1 or (load.arrivals and load.arrivals.ramp)
    assert path.read_text().startswith("# ")


def test_what_is_given_has_precedence_and_a_run_is_repeated_without_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.yml"
    path.write_text("mix: index:3,hello:1\nrate: 200\nduration: 7\n")
    planned = builders.plan(load=str(path), rate=300)
    options = planned.options
    assert (options.mix, options.rate, options.duration) == ("index:3,hello:1", [300], 7)
    again = {name: planned.given_options[name] for name in ("mix", "rate", "duration")}
    assert builders.plan(**again).options.mix == options.mix


def test_a_rate_has_precedence_over_the_ramp_of_a_load(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text("ramp: 100..300\narrivals: poisson\nduration: 7\n")
    options = builders.plan(load=str(path), rate=300).options
    assert (options.ramp, options.rate, options.duration) == (None, [300], 7)
    assert options.arrivals == "poisson"


def test_a_run_keeps_the_rows_of_a_ramp_and_needs_their_file_no_more(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("seconds,rate\n0,100\n1,200\n2,300\n")
    planned = builders.plan(ramp=str(path))
    assert planned.given_options["ramp"] == "0:100,1:200,2:300"
    again = builders.plan(ramp=planned.given_options["ramp"])
    assert again.options == planned.options
    assert again.options.duration == 2
