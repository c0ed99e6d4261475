"""Loads at fractions of the saturation, beside a constant rate and its closed loop: the rates of a
curve, and an overload, which goes beyond the saturation and back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.model import Arrivals, Item, Load, Options, Point, Purpose, Reason, Record, ramp_mean
from loadlab.model.base import Above0, NotNegative
from loadlab.plan.check_options import has_one_load
from loadlab.plan.load_options import arrivals
from loadlab.plan.modes import mode
from loadlab.plan.modes.levels import Fixed, Scaled
from loadlab.plan.modes.stopping import CURVE_TRIES
from loadlab.plan.plan_document import PlannedExperiment, items
from loadlab.reasons.validity_reasons import THRESHOLDS
from loadlab.run import methods
from loadlab.run.errors import PlanError


class CurveRule(Record, kw_only=True, frozen=True):
    """The curve of a run at one rate; files/methods.yml has the values."""

    curve_fractions: list[float]  #: Rates, as fractions of the saturation.
    curve_duration_min_s: float  #: Shortest duration of a measurement, seconds.
    curve_requests: int  #: Requests of a measurement, within its durations.
    curve_duration_s: float  #: Longest duration of a measurement, seconds.
    curve_warmup_s: float  #: Its warm-up, seconds.
    curve_slo: dict[str, float]  #: The objective: p99_ms, errors.


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


def no_curve(root: Path, options: Options) -> Reason | None:
    """Return why the generator cannot measure the curve of one load; None where it can."""
    if not options.curve or not has_one_load(options):
        return None
    generator = registry.get(options.generator)
    if options.mix or options.replay or options.sessions:
        return Reason(code="curve_mix")
    facts = {"generator": generator.name}
    if generator.mode != "constant":
        return Reason(code="curve_closed_loop", facts={**facts})
    longest, least = methods.read(CurveRule, root).curve_duration_s, generator.duration_min_s
    if least > longest:
        return Reason(code="curve_duration", value=least, limit=longest, facts={**facts})
    return None


def refuse(root: Path, options: Options, user: Collection[str], *, study: bool) -> None:
    """Raise PlanError where a load beside the closed loop was asked for and cannot be measured.

    ``user``: names of the options of -e; a curve that nobody asked for is left out. ``study``:
    whether the load is a study's cell.
    """
    alone = "a study, lesson, comparison or matrix has its own cells alone" if study else ""
    obstacles = {
        "curve": "curve" in user and options.curve and (alone or _no_curve_words(root, options)),
        "overload": options.overload and (alone or _no_overload_words(options)),
    }
    for option, obstacle in obstacles.items():
        if obstacle:
            raise PlanError(f"{option}: it cannot be measured: {obstacle}. Leave {option} out.")


def _no_curve_words(root: Path, options: Options) -> str:
    """Return why a curve cannot be measured; "" where it can."""
    if not has_one_load(options):
        return "it belongs to one constant rate, and a sweep, a search or a batch has its own loads"
    reason, generator = no_curve(root, options), f"generator={options.generator}"
    if reason is None:
        return ""
    return {
        "curve_mix": "its rates follow a closed loop, whose generator sends one kind of request",
        "curve_closed_loop": f"{generator} is a closed loop",
        "curve_duration": f"{generator} measures at least {reason.value} s of a rate",
    }[reason.code]


def _no_overload_words(options: Options) -> str:
    """Return why an overload cannot be measured; "" where it can."""
    generator = registry.get(options.generator)
    if generator.mode == "constant" and arrivals.OPTION not in generator.options:
        return f"generator={generator.name} sends at a constant rate alone"
    if not has_one_load(options) or generator.mode != "constant":
        return "it belongs to one constant rate, beside which the saturation is measured"
    if options.mix or options.replay or options.sessions:
        return "it follows a closed loop, whose generator sends one kind of request"
    if options.clients > 1:
        return f"{options.clients} clients offer the load, and one client is to time each stage"
    if not options.keep_requests:
        return "the time of each answer is in its record, and keep_requests=false keeps none"
    return ""


def beside(
    root: Path, options: Options, planned: Sequence[PlannedExperiment]
) -> list[PlannedExperiment]:
    """Return the curve and the overload of each constant rate that has a closed loop beside it, as
    far as the options ask for them and they can be measured.
    """
    by_id = {item.cell_id: item for item in items(planned)}
    loops = [
        (by_id[experiment.item.base or ""], experiment)
        for experiment in planned
        if isinstance(experiment, Fixed) and experiment.item.purpose == "closed_loop"
    ]
    experiments: list[PlannedExperiment] = []
    if options.curve and has_one_load(options) and no_curve(root, options) is None:
        rule = methods.read(CurveRule, root)
        experiments += [
            _of_curve(*pair, rule, fraction) for pair in loops for fraction in rule.curve_fractions
        ]
    if options.overload:
        stages = methods.read(OverloadRule, root)
        experiments += [_overload(*pair, stages) for pair in loops]
    return experiments


def _of_curve(base: Item, closed_loop: Fixed, rule: CurveRule, fraction: float) -> Scaled:
    """Return the experiment of one rate of a curve; ``base``: the cell that it lies beside."""
    own = base.cell.load
    load = replace(
        own,
        arrivals=own.arrivals and own.arrivals.level,
        duration_s=min(own.duration_s or 0, rule.curve_duration_s),
        warmup_s=min(own.warmup_s, rule.curve_warmup_s),
    )
    scaled = _scaled(base, closed_loop, load, fraction, "curve")
    return replace(
        scaled,
        item=replace(scaled.item, slo=rule.curve_slo, sent_min=THRESHOLDS.sent_min),
        requests_min=rule.curve_requests,
        duration_min_s=rule.curve_duration_min_s,
        # Most measurements of a run are points of its curve.
        void_tries=min(CURVE_TRIES, closed_loop.void_tries),
    )


def _overload(base: Item, closed_loop: Fixed, rule: OverloadRule) -> Scaled:
    """Return the experiment of one cell; ``base``: the cell that it lies beside."""
    points = ramp(rule.overload_stages)
    own = base.cell.load
    load = replace(
        own,
        arrivals=replace(own.arrivals or Arrivals(ramp=points), ramp=points),
        duration_s=points[-1][0],
        warmup_s=rule.overload_warmup_s,
    )
    return _scaled(base, closed_loop, load, ramp_mean(points), "overload")


def _scaled(
    base: Item, closed_loop: Fixed, load: Load, fraction: float, purpose: Purpose
) -> Scaled:
    """Return the experiment of a load whose mean rate is a fraction of the saturation."""
    loop_id = closed_loop.item.cell_id
    load = replace(load, rate=None, fraction=fraction, of_saturation=[loop_id])
    return Scaled(
        item=mode.beside(base, load, purpose),
        fraction=fraction,
        saturations={loop_id: loop_id},
        whole=registry.get(load.generator).whole,
        void_tries=closed_loop.void_tries,
    )
