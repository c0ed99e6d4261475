"""The study that variants become, and what the plan keeps of them.

Each is measured at one constant rate and in a closed loop; the first twice, as its own A/A control.
The cells are base, head, base_saturated and head_saturated, with several heads head1, head2 and so
on. With a baseline the head is the only variant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.kinds.gate import variants
from loadlab.kinds.gate.variants import EXAMPLE
from loadlab.model import (
    Baseline,
    GivenOptions,
    Item,
    Load,
    OptionValue,
    PlannedAb,
    PlannedVariant,
    Record,
    Study,
    StudyCell,
    StudyPublication,
    Variant,
    VariantCells,
    Verdict,
)
from loadlab.model.base import Above0, NotNegative, Positive, doc
from loadlab.plan.modes.experiment_types import items
from loadlab.plan.planned_cells import PlannedCells
from loadlab.run import documents, methods
from loadlab.run.errors import PlanError
from loadlab.run.run_dir import VERDICT

BASE, HEAD, BASELINE = "base", "head", "baseline"
NAMES = (BASE, HEAD, BASELINE)
_SATURATED = "_saturated"
# What the blocks and the one load of a comparison leave no room for.
_REFUSED = {
    "repetitions": "blocks are added until the answer is clear. Give -e budget=",
    "slo": "all variants are measured at one rate. Give -e rate=",
    "profile": "a flame graph belongs to one stack. Give it to lab.yml",
    "trace": "a trace belongs to one stack. Give it to lab.yml",
    "study": "the variants are the cells. Give one of both",
    "lesson": "the variants are the cells. Give one of both",
}
# Options that may have several values, of which a comparison has one; the endpoint must be named.
_OF_ONE = ("endpoint", "rate", "connections", "tuning")
# What a head shares with a baseline: fields of a cell, and those of its load but for the last.
_SAME = ("endpoint", "network")
_FOLLOWS = ("fraction", "of_saturation")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class AbRule(Record, kw_only=True, frozen=True):
    """How variants are measured; files/methods.yml has the values."""

    ab_duration_s: Annotated[Above0, doc("Duration of a measurement, seconds.")]
    ab_warmup_s: Annotated[NotNegative, doc("Its warm-up, seconds.")]
    ab_fraction: Annotated[Above0, doc("Constant rate, as a fraction of the base's saturation.")]
    ab_beside_s: Annotated[NotNegative, doc("What a measurement takes beside its load, seconds.")]
    ab_baseline_blocks: Annotated[Positive, doc("Blocks that are measured with a baseline.")]


def asked(given: Mapping[str, OptionValue]) -> bool:
    """Return whether variants are to be compared; ``given``: options that have a value."""
    return any(name in given for name in NAMES)


def study(root: Path, given: GivenOptions) -> Study:
    """Return the study of the variants that were given. Raises PlanError."""
    needed = (HEAD,) if BASELINE in given else (BASE, HEAD)
    for name in needed:
        if name not in given:
            raise PlanError(
                f"{name}: none was given. Name what differs from the other options of the run, "
                f"for example {EXAMPLE}."
            )
    if BASELINE in given and BASE in given:
        raise PlanError(
            "baseline: it has no place beside base, which is measured in this run. Give one of "
            "both."
        )
    for name, why in _REFUSED.items():
        if name in given:
            raise PlanError(f"{name}: '{given[name]}' has no place beside base and head: {why}.")
    for name in _OF_ONE:
        value = given.get(name)
        values = value if isinstance(value, list) else str(value).split(",")
        if (name == "endpoint" and value is None) or len(values) > 1:
            raise PlanError(
                f"{name}: variants are compared at one {name}. Give one with -e {name}=<value>."
            )
    generator = registry.GENERATORS.get(str(given.get("generator", "")))
    if generator is not None and generator.mode != "constant":
        raise PlanError(
            f"generator: variants are compared at a constant rate, and {generator.name} keeps "
            "none. Leave generator out: a closed loop is measured beside it."
        )
    rule = methods.read(root, AbRule)
    rest = {name: value for name, value in given.items() if name not in NAMES}
    heads = variants.several(root, str(given[HEAD]), rest)
    options: GivenOptions = {"duration": rule.ab_duration_s, "warmup": rule.ab_warmup_s}
    if BASELINE in given:
        several = heads
        if len(heads) > 1:
            raise PlanError("baseline: it is compared with one head. Give one, or a base.")
        options |= _load_of(_verdict(root, str(given[BASELINE])))
    else:
        several = [variants.variant(root, BASE, str(given[BASE]), rest), *heads]
        options["rate"] = {"fraction": rule.ab_fraction, "of": [BASE]}
    return Study(
        kind="study",
        name="ab",
        scale=None,
        description="variants, block by block, until the answer is clear",
        options=options,
        cells=[cell for one in several for cell in _cells(one)],
        claims=[],
        aa_controls=True,
        publication=StudyPublication(settings=[], rates=[], figures=[], errata=[], differs=[]),
        variants=several,
    )


def _cells(one: Variant) -> list[StudyCell]:
    """Return a variant's cell at the constant rate, and that of the closed loop."""
    closed = {**one.options, "generator": registry.saturating(), "rate": None}
    return [
        StudyCell(name=one.name, variant=one.name, options=one.options),
        StudyCell(name=one.name + _SATURATED, variant=one.name, options=closed),
    ]


def budget(given: str | None) -> float:
    """Return the seconds of the option budget: a number with s, m or h. Raises PlanError."""
    text = (given or "").strip()
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 30 <= seconds <= 86_400:
        raise PlanError(
            f"budget: '{text}' is no time from 30s to 24h. Give a number with s, m or h, for "
            "example -e budget=20m."
        )
    return seconds


def _verdict(root: Path, file: str) -> Verdict:
    """Return the document of a baseline. Raises PlanError."""
    path = root / file
    if not path.is_file():
        raise PlanError(f"baseline: '{file}' is no file. Give a {VERDICT} of playbooks/ab.yml.")
    try:
        found = documents.read(path, Verdict)
    except ValueError as problem:
        raise PlanError(f"baseline: '{file}' is no {VERDICT}: {problem}.") from None
    if found.cell is None or not found.heads:
        raise PlanError(f"baseline: '{file}' has no measured base. Give that of a finished run.")
    return found


def _load_of(found: Verdict) -> GivenOptions:
    """Return the options that give a head the load of a baseline."""
    assert found.cell is not None
    load = found.cell.load
    return {
        "rate": load.rate,
        "connections": load.connections,
        "duration": load.duration_s,
        "warmup": load.warmup_s,
    }


def _baseline(root: Path, file: str, items: Iterable[Item]) -> Baseline:
    """Return what the plan keeps of a baseline; ``items``: those of the head.

    Raises PlanError where the head gets another endpoint, network or load.
    """
    found = _verdict(root, file)
    (own,) = (one.cell for one in items if one.cell.load.mode == "constant")
    assert found.cell is not None
    pairs = [(name, getattr(found.cell, name), getattr(own, name)) for name in _SAME]
    pairs += [
        (name, getattr(found.cell.load, name), getattr(own.load, name))
        for name in Load.__struct_fields__
        if name not in _FOLLOWS
    ]
    other = [f"{name} {before}, not {now}" for name, before, now in pairs if before != now]
    if other:
        raise PlanError(
            f"baseline: '{file}' was measured with {'; '.join(other)}. Give the same, or leave "
            "baseline out and give a base."
        )
    rows = found.heads[0].rows
    values: dict[str, float] = {row.metric: row.base for row in rows if row.base is not None}
    return Baseline(file=file, run_id=found.run_id, base=found.base, values=values)


def of_base(planned: PlannedCells) -> set[str]:
    """Return the cell_ids of the first variant: at the constant rate, and saturated."""
    assert planned.study is not None
    first = next(iter(planned.study.cells))
    return {*planned.study.cells[first], *planned.study.cells[first + _SATURATED]}


def refuse_other(run_id: str, before: PlannedAb | None, now: PlannedAb) -> None:
    """Raise PlanError where a run that is resumed began with other variants."""

    def asked_for(ab: PlannedAb) -> object:
        every = [(one.options, one.commit) for one in (ab.base, *ab.heads)]
        return every, ab.baseline

    if before is not None and asked_for(before) != asked_for(now):
        raise PlanError(
            f"run_id: '{run_id}' compares other variants, or a git ref, a file or the baseline has "
            "changed since. Results of both are not mixed: give another -e run_id=<name>, or leave "
            "it out."
        )


def planned_ab(
    root: Path, named: Study, planned: PlannedCells, controls: Sequence[tuple[str, str]]
) -> PlannedAb:
    """Return what the plan keeps. ``controls``: (cell_id, that of its A/A control)."""
    assert planned.study is not None
    cells, control = planned.study.cells, dict(reversed(controls))
    base, *heads = (
        PlannedVariant(
            name=one.name,
            given=one.given,
            options=one.options,
            commit=one.commit,
            cells=VariantCells(
                constant=cells[one.name][0], saturated=cells[one.name + _SATURATED][0]
            ),
        )
        for one in named.variants
    )
    twin = VariantCells(
        constant=control[base.cells.constant], saturated=control[base.cells.saturated]
    )
    seconds, file = budget(planned.options.budget), planned.options.baseline
    if file is None:
        return PlannedAb(budget_s=seconds, base=base, heads=heads, control=twin)
    return PlannedAb(
        budget_s=seconds,
        base=base,
        heads=[],
        control=twin,
        baseline=_baseline(root, file, items(planned.experiments)),
        blocks=methods.read(root, AbRule).ab_baseline_blocks,
    )


def with_blocks(root: Path, planned: PlannedCells, seconds: float, before: int) -> PlannedCells:
    """Return the cells with the number of blocks that the budget is likely to allow.

    ``before``: the blocks that the run has already. The run itself decides; see
    analysis/verdict/blocks.py.
    """
    rule = methods.read(root, AbRule)
    beside = rule.ab_beside_s
    cells = [item for item in items(planned.experiments) if item.purpose == "measure"]
    # The first is measured twice.
    each = [one.expected_s + beside for one in cells]
    twice = [one.expected_s + beside for one in cells if one.cell_id in of_base(planned)]
    blocks = before + max(1, int(seconds / (sum(each) + sum(twice))))
    if planned.options.baseline is not None:
        blocks = min(blocks, rule.ab_baseline_blocks)
    return replace(planned, options=replace(planned.options, repetitions=blocks))
