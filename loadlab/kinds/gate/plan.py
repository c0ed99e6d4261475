"""The study that variants become, and what the plan keeps of them.

Each is measured at one constant rate and in a closed loop; the first twice, as its own A/A control.
The cells are base, head, base_saturated and head_saturated, with several heads head1, head2 and so
on. With a baseline the head is the only variant. A load of several kinds of request has a closed
loop only where the variants share it.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import asdict, replace

from loadlab.generators import registry
from loadlab.kinds import budget, compared_options, lanes
from loadlab.kinds.gate import side_by_side, variants
from loadlab.kinds.gate.variants import EXAMPLE
from loadlab.kinds.kind import Draft
from loadlab.kinds.study.study_files import without_file
from loadlab.model import (
    Baseline,
    GivenOptions,
    Item,
    LaneTurns,
    Load,
    PlannedGate,
    PlannedVariant,
    Reason,
    Record,
    Study,
    StudyCell,
    Variant,
    VariantCells,
    Verdict,
)
from loadlab.model.base import Above0, NotNegative, Positive
from loadlab.plan.experiments import PlannedCells
from loadlab.plan.load_options import arrivals, mix, replay, sessions
from loadlab.plan.plan_document import Plan, items
from loadlab.run import documents, methods
from loadlab.run.catalog import path_of
from loadlab.run.errors import PlanError
from loadlab.run.formatting import lasting
from loadlab.run.run_dir import VERDICT
from loadlab.stats import sequential

BASE, HEAD, BASELINE = "base", "head", "baseline"
NAMES = (BASE, HEAD, BASELINE)
# What the blocks and the one load leave no room for, beside what a comparison does.
_REFUSED = {
    "repetitions": "blocks are added until the answer is clear. Give -e budget=",
    "slo": "all variants are measured at one rate. Give -e rate=",
}
# Options that may have several values, of which a comparison has one. The endpoint must be named
# where no other option names the requests.
_OF_ONE = ("endpoint", "rate", "connections", "tuning")
# Options that name the requests in place of an endpoint. The generator of a closed loop sends one
# kind of request.
_NAMING = (mix.OPTION, sessions.OPTION, replay.OPTION)
# Options that say how long a load lasts, and at which rate.
_TIMED = (arrivals.RAMP, replay.OPTION)
# What a head shares with a baseline: fields of a cell, and those of its load but for the last.
_SAME = ("endpoint", "network")
_FOLLOWS = ("fraction", "of_saturation", "lanes", "rate")


class GateRule(Record, kw_only=True, frozen=True):
    """How variants are measured; files/methods.yml has the values."""

    gate_duration_s: Above0  #: Duration of a measurement, seconds.
    gate_warmup_s: NotNegative  #: Its warm-up, seconds.
    gate_fraction: Above0  #: Constant rate, as a fraction of the base's saturation.
    #: Constant rate of all variants side by side, as a fraction as above.
    gate_lanes_fraction: Above0
    #: Duration of a measurement of all variants side by side, seconds.
    gate_lanes_duration_s: Above0
    gate_closed_s: Above0  #: Length of the closed loop that follows, seconds.
    gate_slice_s: Above0  #: Length of its slices, seconds.
    gate_beside_s: NotNegative  #: What a measurement takes beside its load, seconds.
    gate_baseline_blocks: Positive  #: Blocks that are measured with a baseline.


def study(root: Path, options: GivenOptions) -> Study:
    """Return the study of the variants that were given. Raises PlanError."""
    needed = (HEAD,) if BASELINE in options else (BASE, HEAD)
    for name in needed:
        if name not in options:
            raise PlanError(
                f"{name}: none was given. Name what differs from the other options of the run, "
                f"for example {EXAMPLE}."
            )
    if BASELINE in options and BASE in options:
        raise PlanError(
            "baseline: it has no place beside base, which is measured in this run. Give one of "
            "both."
        )
    compared_options.refuse_options(options, "variants", "beside base and head", _REFUSED)
    naming = _named(options, _NAMING)
    if naming and not _named(options, (BASELINE, "rate", *_TIMED)):
        raise PlanError(
            "rate: none was given. Without one it is a fraction of what base serves of one kind of "
            f"request in a closed loop, and {naming[0]} has several. Give it with -e rate=<rate>."
        )
    for name in _OF_ONE[bool(naming) :]:
        value = options.get(name, [] if name == "endpoint" else "")
        values = value if isinstance(value, list) else str(value).split(",")
        compared_options.refuse_several("variants", name, values)
    generator = registry.GENERATORS.get(str(options.get("generator", "")))
    if generator is not None and generator.mode != "constant":
        raise PlanError(
            f"generator: variants are compared at a constant rate, and {generator.name} keeps "
            "none. Leave generator out: a closed loop is measured beside it."
        )
    rule = methods.read(GateRule, root)
    rest = {name: value for name, value in options.items() if name not in NAMES}
    heads = variants.heads(root, str(options[HEAD]), rest)
    if BASELINE in options:
        compared = heads
        if len(heads) > 1:
            raise PlanError("baseline: it is compared with one head. Give one, or a base.")
    else:
        compared = [variants.variant(root, BASE, str(options[BASE]), rest), *heads]
    description = "variants, block by block, until the answer is clear"
    closed = None if naming else _closed(options, rule)
    cells = [cell for variant in compared for cell in _cells(root, variant, closed)]
    load = _load(root, options, rule)
    return replace(without_file("gate", description, load, cells), variants=compared)


def _load(root: Path, options: GivenOptions, rule: GateRule) -> GivenOptions:
    """Return what the load has where the user says nothing."""
    load: GivenOptions = {"warmup": rule.gate_warmup_s}
    # A visit takes longer.
    if not _named(options, (sessions.OPTION,)):
        load["duration"] = rule.gate_duration_s
    if BASELINE in options:
        load |= _load_of(_verdict(root, str(options[BASELINE])))
    elif not _named(options, _NAMING):
        load["rate"] = {"fraction": rule.gate_fraction, "of": [BASE]}
    is_timed = _named(options, _TIMED)
    return {name: load[name] for name in load if not (is_timed and name in ("rate", "duration"))}


def _closed(options: GivenOptions, rule: GateRule) -> GivenOptions:
    """Return what a closed loop has instead of the load's options."""
    closed: GivenOptions = {"generator": registry.saturating(), "rate": None, arrivals.RAMP: None}
    return closed | ({"duration": rule.gate_duration_s} if _named(options, _TIMED) else {})


def _named(options: GivenOptions, names: Iterable[str]) -> list[str]:
    return [name for name in names if options.get(name)]


def _cells(root: Path, variant: Variant, closed: GivenOptions | None) -> list[StudyCell]:
    """Return a variant's cell at the constant rate, and that of the closed loop, which has the
    options ``closed``; None: there is none."""
    # The application of a git ref or with other packages is made of the run's.
    own = variants.given_options(root, variant.name, variant.definition)
    derived = [name for name in variant.options if name == "app" and name not in own]
    loads = {variant.name: variant.options}
    if closed is not None:
        loads[variant.name + side_by_side.SATURATED] = {**variant.options, **closed}
    return [
        StudyCell(name=name, variant=variant.name, options=options, derived=derived)
        for name, options in loads.items()
    ]


def _verdict(root: Path, file: str) -> Verdict:
    """Return the document of a baseline. Raises PlanError."""
    path = path_of(root, BASELINE, file)
    if not path.is_file():
        raise PlanError(f"baseline: '{file}' is no file. Give a {VERDICT} of playbooks/ab.yml.")
    try:
        verdict = documents.read(path, Verdict)
    except ValueError as problem:
        raise PlanError(f"baseline: '{file}' is no {VERDICT}: {problem}.") from None
    if verdict.cell is None or not verdict.heads:
        raise PlanError(f"baseline: '{file}' has no measured base. Give that of a finished run.")
    return verdict


def _is_of_lanes(verdict: Verdict) -> bool:
    return verdict.cell is not None and verdict.cell.load.lanes is not None


def _load_of(verdict: Verdict) -> GivenOptions:
    """Return the options that give a head the load of a baseline."""
    assert verdict.cell is not None
    load = verdict.cell.load
    return {
        "rate": side_by_side.whole_rate(load, len(verdict.heads)),
        "connections": load.connections,
        "duration": load.duration_s,
        "warmup": load.warmup_s,
    }


def _baseline(root: Path, file: str, items: Iterable[Item]) -> Baseline:
    """Return what the plan keeps of a baseline; ``items``: those of the head.

    Raises PlanError where the head gets another endpoint, network or load.
    """
    verdict = _verdict(root, file)
    (own,) = (item.cell for item in items if item.cell.load.mode == "constant")
    assert verdict.cell is not None
    pairs = [(name, getattr(verdict.cell, name), getattr(own, name)) for name in _SAME]
    pairs += [
        (name, getattr(verdict.cell.load, name), getattr(own.load, name))
        for name in Load.__struct_fields__
        if name not in _FOLLOWS
    ]
    before = side_by_side.whole_rate(verdict.cell.load, len(verdict.heads))
    pairs.append(("rate", before, side_by_side.whole_rate(own.load, 0)))
    pairs.append(("side by side", _is_of_lanes(verdict), own.load.lanes is not None))
    other = [
        f"{name} {_word(before)}, not {_word(now)}" for name, before, now in pairs if before != now
    ]
    if other:
        raise PlanError(
            f"baseline: '{file}' was measured with {'; '.join(other)}. Give the same, or leave "
            "baseline out and give a base."
        )
    rows = verdict.heads[0].rows
    values: dict[str, float] = {row.metric: row.base for row in rows if row.base is not None}
    return Baseline(file=file, run_id=verdict.run_id, base=verdict.base, values=values)


def _word(value: object) -> str:
    """Return a value as an option has it: none, true."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def of_base(planned: PlannedCells) -> set[str]:
    """Return the cell_ids of the first variant: at the constant rate, and saturated."""
    assert planned.study is not None
    cells = planned.study.cells
    first = next(iter(cells))
    return {*cells[first], *cells.get(first + side_by_side.SATURATED, [])}


def complete(draft: Draft, plan: Plan) -> Plan:
    """Return the plan with its variants.

    Raises PlanError where the run was begun with other variants.
    """
    assert draft.study is not None
    planned = _planned_gate(draft, draft.study, dict(reversed(plan.aa_controls)))
    variants = (planned.base.cells, planned.control, *(head.cells for head in planned.heads))
    together = [] if planned.apart else [[cells.constant for cells in variants]]
    if draft.run.recorded and draft.run.recorded.plan.gate:
        refuse_other(plan.run_id, draft.run.recorded.plan.gate, planned)
    return replace(plan, gate=planned, lanes=together, together=max([1, *map(len, together)]))


def refuse_other(run_id: str, recorded: PlannedGate, planned: PlannedGate) -> None:
    """Raise PlanError where a run that is resumed began with other variants, or another load."""
    if _choice(recorded) != _choice(planned):
        raise PlanError(
            f"run_id: '{run_id}' compares other variants, has another load, or a git ref, a file "
            "or the baseline has changed since. Results of both are not mixed: give another "
            "-e run_id=<name>, or leave it out."
        )


def _choice(planned: PlannedGate) -> object:
    variants = (planned.base, *planned.heads)
    return [(own.options, own.commit, own.cells) for own in variants], planned.baseline


def _planned_gate(draft: Draft, study: Study, control: Mapping[str, str]) -> PlannedGate:
    """Return what the plan keeps. ``control``: cell_id -> that of its A/A control."""
    planned, root = draft.cells, draft.request.root
    assert planned.study is not None
    cells = planned.study.cells
    reason = apart(root, planned)
    # In a load of all variants the closed loops follow the constant rate.
    saturated = {
        variant.name: cells.get(variant.name + side_by_side.SATURATED, cells[variant.name])[0]
        for variant in study.variants
        if reason is None or variant.name + side_by_side.SATURATED in cells
    }
    base, *heads = (
        PlannedVariant(
            **asdict(variant),
            cells=VariantCells(
                constant=cells[variant.name][0], saturated=saturated.get(variant.name)
            ),
        )
        for variant in study.variants
    )
    gate = PlannedGate(
        apart=reason,
        budget_s=budget.seconds(planned.options.budget),
        base=base,
        heads=heads,
        control=VariantCells(
            constant=control[base.cells.constant],
            saturated=control[base.cells.saturated] if base.cells.saturated else None,
        ),
    )
    file = planned.options.baseline
    if file is None:
        return gate
    return replace(
        gate,
        baseline=_baseline(root, file, items(planned.experiments)),
        blocks=methods.read(GateRule, root).gate_baseline_blocks,
    )


def apart(root: Path, planned: PlannedCells) -> Reason | None:
    """Return why the variants are measured one after the other; None where a load has all."""
    constant = [item for item in items(planned.experiments) if side_by_side.is_constant(item)]
    file = planned.options.baseline
    if file is not None and _is_of_lanes(_verdict(root, file)):
        # The head has its control beside it, as the baseline's base had.
        constant *= 2
    return lanes.apart(constant, planned.stacks, planned.endpoints)


def with_lanes(root: Path, planned: PlannedCells, options: GivenOptions) -> PlannedCells:
    """Return the cells with the variants side by side in one load, where that is possible.

    ``options``: those of the user. The base has two lanes, its own and that of the A/A control.
    """
    if apart(root, planned) is not None:
        return planned
    rule, study = methods.read(GateRule, root), planned.study
    assert study is not None
    turns = LaneTurns(closed_s=rule.gate_closed_s, slice_s=rule.gate_slice_s)
    duration_s = None if "duration" in options else rule.gate_lanes_duration_s
    more = rule.gate_lanes_fraction / rule.gate_fraction
    stacks = 1 + sum(not name.endswith(side_by_side.SATURATED) for name in study.cells)
    return side_by_side.shared(planned, stacks, turns, duration_s, more)


def with_blocks(root: Path, planned: PlannedCells, latest: int) -> PlannedCells:
    """Return the cells with the number of blocks that the budget is likely to allow.

    ``latest``: the blocks that the run has already. The run itself decides; see
    blocks_decided.py. Raises PlanError for a budget of less than a block.
    """
    rule = methods.read(GateRule, root)
    # The first variant is measured twice.
    block_s = sum(
        (item.expected_s + rule.gate_beside_s) * _measurements(planned, item)
        for item in items(planned.experiments)
        if item.purpose == "measure"
    )
    budget_s = budget.seconds(planned.options.budget)
    if budget_s < block_s:
        least_s = sequential.LEAST * block_s
        more = f"at least -e budget={math.ceil(least_s / 60)}m, or "
        longer = more if least_s <= budget.MOST_S else ""
        raise PlanError(
            f"budget: {lasting(budget_s)} is less than a block takes, {lasting(block_s)}, and the "
            f"first answer needs {sequential.LEAST}. Give {longer}a shorter -e duration=."
        )
    blocks = latest + int(budget_s / block_s)
    if planned.options.baseline is not None:
        blocks = min(blocks, rule.gate_baseline_blocks)
    return replace(planned, options=replace(planned.options, repetitions=blocks))


def _measurements(planned: PlannedCells, item: Item) -> int:
    """Return how many measurements of a block an item has of its own."""
    is_of_base = item.cell_id in of_base(planned)
    return int(is_of_base) if item.cell.load.lanes else 1 + is_of_base
