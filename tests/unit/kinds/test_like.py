"""What a run is given that repeats another one."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.history import reproduction
from loadlab.kinds import plan_run as planning
from loadlab.model import Original, Recipe, Source
from loadlab.plan.plan_document import Plan
from loadlab.run.errors import PlanError
from tests.unit import builders


def made(**given: Any) -> Recipe:
    """Return the recipe of a run of this lab with these options."""
    planned = planning.plan(builders.request(given))
    return reproduction.recipe_of_plan(planned, builders.ROOT, {})


def original(found: Recipe) -> Original:
    known = builders.manifest()
    return Original(
        source=Source(run_id="before", started=known.started, lab=known.lab),
        recipe=found,
        hosts=known.hosts,
        controller=known.controller,
        summary=builders.summary(),
        ledgers=[],
    )


def repeated(found: Recipe, inventory: dict[str, Any] | None = None, **user: Any) -> Plan:
    """Return the plan that repeats a run; ``inventory``: its options, ``user``: those with -e."""
    options = {**(inventory or {}), **user, "like": "before"}
    ask = builders.request(options, user=[*user, "like"], original=original(found))
    return planning.plan(ask)


def cells(plan: Plan) -> list[str]:
    return [item.cell_id for one in plan.experiments for item in one.items]


@pytest.mark.parametrize("load", [{"rate": "200,400"}, {"ramp": "100..300", "curve": False}])
def test_a_run_is_repeated_with_what_was_given(load: dict[str, Any]) -> None:
    first = {"framework": "flask", "endpoint": "index", "seed": 7, **load}
    again = repeated(made(**first))
    assert cells(again) == cells(builders.plan(**first))
    assert (again.options.seed, again.options.like) == (7, "before")
    assert again.run_id == "20261120-171647-flask"


def test_an_option_beside_it_overrides_and_an_inventory_does_not() -> None:
    before = made(framework="aiohttp", endpoint="index", duration=6)
    again = repeated(before, {"generator": "wrk2", "rate": 77}, duration=9)
    options = again.options
    assert (options.generator, options.rate, options.duration) == ("metronome", [1000], 9)


def test_a_rate_takes_the_place_of_a_ramp_and_a_ramp_that_of_another() -> None:
    before = made(framework="aiohttp", endpoint="index", ramp="100..300", curve=False)
    for user, rate in (({"rate": 50}, 50), ({"ramp": "1..9"}, 5)):
        options = repeated(before, **user).options
        assert (options.rate, options.ramp) == ([rate], user.get("ramp"))


def test_a_default_of_its_lab_is_kept() -> None:
    before = made(framework="aiohttp", endpoint="index")
    other = replace(before, options=replace(before.options, rate=[750], tuning=["stock"]))
    again = repeated(other)
    assert (again.options.rate, again.options.tuning) == ([750], ["stock"])


def test_a_run_of_a_lab_without_curves_is_repeated_without_one() -> None:
    before = made(framework="aiohttp", endpoint="index")
    assert len(cells(repeated(before))) == 6
    other = replace(before, options=replace(before.options, curve=False))
    assert len(cells(repeated(other))) == 2


def test_the_generator_of_its_inventory_is_kept() -> None:
    before = made(framework="aiohttp", endpoint="index", generator="wrk2", duration=30)
    assert repeated(before).options.generator == "wrk2"


def test_a_study_is_repeated_at_its_scale() -> None:
    before = made(study="quick", scale="smoke")
    again = repeated(replace(before, given_options={"study": "quick"}))
    study = builders.present(again.study)
    assert (study.name, study.scale) == ("quick", "smoke")


OF_A_STUDY, ALONE = {"study": "quick"}, {"framework": "aiohttp"}


@pytest.mark.parametrize(
    ("first", "user", "words"),
    [
        (ALONE, {"study": "quick"}, "like: the run before ran no study, and study: "),
        (OF_A_STUDY, {"study": "ablation"}, "ran the study quick, and study: 'ablation' was gi"),
        (OF_A_STUDY, {"framework": "flask"}, "framework: 'flask' would change nothing"),
        (ALONE, {"run_id": "before"}, "is the run to repeat itself"),
    ],
)
def test_what_does_not_go_together_is_refused(
    first: dict[str, Any], user: dict[str, Any], words: str
) -> None:
    before = made(**first)
    with pytest.raises(PlanError, match=re.escape(words)):
        repeated(before, **user)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"study": "gone"}, "the run before cannot be repeated here. study: 'gone' is not known. "),
        ({"framework": "gone"}, "cannot be repeated here. framework: 'gone' is not known."),
        ({"framework": "aiohttp", "tuning": "gone"}, "here. tuning: 'gone' is not known."),
    ],
)
def test_what_is_no_longer_there_is_refused(given: dict[str, Any], words: str) -> None:
    before = replace(made(framework="aiohttp"), given_options=given)
    with pytest.raises(PlanError, match=re.escape("like: the run before cannot")) as refusal:
        repeated(before)
    assert words in str(refusal.value)
