"""The option overload: plan a load of each cell that goes beyond its saturation and back."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.model import Arrivals, Item, Options, Point, Record, ramp_mean
from loadlab.model.base import Above0, NotNegative
from loadlab.plan import arrivals, cell_ids
from loadlab.plan.check_options import has_one_load
from loadlab.plan.modes.levels import Fixed, Scaled
from loadlab.plan.plan_document import PlannedExperiment, items
from loadlab.run import methods
from loadlab.run.errors import PlanError

OPTION = "overload"


class OverloadRule(Record, kw_only=True, frozen=True):
    """The stages of an overload; files/methods.yml has the values."""

    #: Seconds of each stage, and its rate as a fraction of the saturation.
    overload_stages: list[tuple[Above0, Above0]]
    overload_warmup_s: NotNegative  #: Warm-up before it, seconds.


def ramp(stages: Iterable[tuple[float, float]]) -> list[Point]:
    """Return stages, (seconds, rate) of each, as a ramp that jumps from each to the next."""
    points: list[Point] = []
    begin = 0.0
    for seconds, rate in stages:
        points += [(begin, rate), (begin + seconds, rate)]
        begin += seconds
    return points


def refuse(options: Options, *, study: bool) -> None:
    """Raise PlanError where a load beyond the saturation is asked for and cannot be measured."""
    if not options.overload:
        return
    generator = registry.get(options.generator)
    if study:
        obstacle = "a study or lesson has the cells of its file alone"
    elif generator.mode == "constant" and arrivals.OPTION not in generator.options:
        obstacle = f"generator={generator.name} sends at a constant rate alone"
    elif not has_one_load(options) or generator.mode != "constant":
        obstacle = "it belongs to one constant rate, beside which the saturation is measured"
    elif options.mix or options.replay or options.sessions:
        obstacle = "it follows a closed loop, whose generator sends one kind of request"
    elif options.clients > 1:
        obstacle = f"{options.clients} clients offer the load, and one client is to time each stage"
    elif not options.keep_requests:
        obstacle = "the time of each answer is in its record, and keep_requests=false keeps none"
    else:
        return
    raise PlanError(f"{OPTION}: it cannot be measured: {obstacle}. Leave {OPTION} out.")


def beside(
    root: Path, options: Options, planned: Iterable[PlannedExperiment]
) -> list[PlannedExperiment]:
    """Return the overload of each constant rate that has a closed loop beside it; none where the
    options ask for none."""
    if not options.overload:
        return []
    rule, experiments = methods.read(OverloadRule, root), list(planned)
    by_id = {item.cell_id: item for item in items(experiments)}
    return [
        _of(by_id[experiment.item.base or ""], rule, experiment)
        for experiment in experiments
        if isinstance(experiment, Fixed) and experiment.item.purpose == "closed_loop"
    ]


def _of(base: Item, rule: OverloadRule, closed_loop: Fixed) -> Scaled:
    """Return the experiment of one cell; ``base``: the cell that it lies beside."""
    loop_id, own = closed_loop.item.cell_id, base.cell.load
    points = ramp(rule.overload_stages)
    # The mean rate.
    fraction = ramp_mean(points)
    load = replace(
        own,
        rate=None,
        arrivals=replace(own.arrivals or Arrivals(ramp=points), ramp=points),
        fraction=fraction,
        of_saturation=[loop_id],
        duration_s=points[-1][0],
        warmup_s=rule.overload_warmup_s,
    )
    cell = replace(base.cell, load=load)
    item = replace(
        base,
        cell_id=cell_ids.cell_id(cell, "overload"),
        purpose="overload",
        base=base.cell_id,
        cell=cell,
        expected_s=points[-1][0] + rule.overload_warmup_s,
    )
    return Scaled(
        item=item,
        fraction=fraction,
        saturations={loop_id: loop_id},
        whole=registry.get(own.generator).whole,
        void_tries=closed_loop.void_tries,
    )
