"""Variants: two sets of options that playbooks/ab.yml compares in one run.

Each is measured at one constant rate and in a closed loop; the base twice, as its own A/A control.
They become a study whose cells are base, head, base_saturated and head_saturated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import yaml
from msgspec.structs import replace

from loadlab.core.catalog import load_yaml
from loadlab.core.errors import PlanError
from loadlab.core.model import (
    GivenOptions,
    OptionValue,
    PlannedAb,
    PlannedVariant,
    Record,
    Study,
    StudyCell,
    StudyPublication,
    Variant,
    VariantCells,
)
from loadlab.core.model.base import Above0, NotNegative, doc
from loadlab.generators import registry
from loadlab.planning.planned_cells import PlannedCells
from loadlab.scheduling.experiments import items

BASE, HEAD = "base", "head"
NAMES = (BASE, HEAD)
_SATURATED = "_saturated"
# Main variables that a variant may override: those of the stack and of its connections. The rest of
# the load is the same for both, or the rows would compare two loads.
OPTIONS = (
    "framework", "app", "server", "transport", "protocol", "reverse_proxy", "worker_class",
    "event_loop", "upstream_keepalive", "server_keepalive", "workers", "threads", "backlog",
    "driver", "keepalive", "tls", "headers", "tuning", "network",
)  # fmt: skip
# What the blocks and the one load of a comparison leave no room for.
_REFUSED = {
    "repetitions": "blocks are added until the answer is clear. Give -e budget=",
    "slo": "both variants are measured at one rate. Give -e rate=",
    "profile": "a flame graph belongs to one stack. Give it to lab.yml",
    "study": "the variants are the cells. Give one of both",
    "lesson": "the variants are the cells. Give one of both",
}
# Options that may have several values, of which a comparison has one; the endpoint must be named.
_OF_ONE = ("endpoint", "rate", "connections", "tuning")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_EXAMPLE = "-e framework=aiohttp -e endpoint=hello -e base=workers=1 -e head=workers=2"


class AbRule(Record, kw_only=True, frozen=True):
    """How variants are measured; files/methods.yml has the values."""

    ab_duration_s: Annotated[Above0, doc("Duration of a measurement, seconds.")]
    ab_warmup_s: Annotated[NotNegative, doc("Its warm-up, seconds.")]
    ab_fraction: Annotated[Above0, doc("Constant rate, as a fraction of the base's saturation.")]
    ab_beside_s: Annotated[NotNegative, doc("What a measurement takes beside its load, seconds.")]


def asked(given: Mapping[str, OptionValue]) -> bool:
    """Return whether variants are to be compared; ``given``: options that have a value."""
    return any(name in given for name in NAMES)


def study(root: Path, given: GivenOptions) -> Study:
    """Return the study of the variants that were given. Raises PlanError."""
    for name in NAMES:
        if name not in given:
            raise PlanError(
                f"{name}: none was given. Name what differs from the other options of the run, "
                f"for example {_EXAMPLE}."
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
    rule = rule_of(root)
    several = [variant(name, str(given[name])) for name in NAMES]
    rate: OptionValue = {"fraction": rule.ab_fraction, "of": [BASE]}
    return Study(
        kind="study",
        name="ab",
        scale=None,
        description="two variants, block by block, until the answer is clear",
        options={"duration": rule.ab_duration_s, "warmup": rule.ab_warmup_s, "rate": rate},
        cells=[cell for one in several for cell in _cells(one)],
        claims=[],
        aa_controls=True,
        publication=StudyPublication(settings=[], rates=[], figures=[], errata=[], differs=[]),
        variants=several,
    )


def rule_of(root: Path) -> AbRule:
    """Return the rule of files/methods.yml."""
    found = load_yaml(root / "files/methods.yml")
    return msgspec.convert({name: found[name] for name in AbRule.__struct_fields__}, AbRule)


def _cells(one: Variant) -> list[StudyCell]:
    """Return a variant's cell at the constant rate, and that of the closed loop."""
    closed = {**one.options, "generator": registry.saturating(), "rate": None}
    return [
        StudyCell(name=one.name, variant=one.name, options=one.options),
        StudyCell(name=one.name + _SATURATED, variant=one.name, options=closed),
    ]


def variant(name: str, given: str) -> Variant:
    """Return a variant from key=value,key=value or the path of a YAML file with these.

    Raises PlanError for a file that cannot be read, and for a name that no variant may override.
    """
    options = _of_words(name, given) if "=" in given else _of_file(name, Path(given))
    for key in options:
        if key not in OPTIONS:
            raise PlanError(
                f"{name}: '{key}' is no option of a variant. There are: {', '.join(OPTIONS)}. "
                "Everything else is the same for both: give it beside base and head."
            )
    return Variant(name=name, given=given, options=options)


def _of_words(name: str, given: str) -> GivenOptions:
    found: GivenOptions = {}
    for word in filter(None, (one.strip() for one in given.split(","))):
        key, equals, value = (part.strip() for part in word.partition("="))
        if not (key and equals and value) or value.startswith("="):
            raise PlanError(
                f"{name}: '{word}' is no option and its value. Give key=value with commas "
                f"between, for example {_EXAMPLE}, or the path of a YAML file."
            )
        found[key] = value
    return found


def _of_file(name: str, path: Path) -> GivenOptions:
    if not path.is_file():
        raise PlanError(
            f"{name}: '{path}' is neither key=value nor a file. Give options with commas between, "
            f"for example {_EXAMPLE}."
        )
    try:
        return msgspec.convert(load_yaml(path), GivenOptions)
    except (yaml.YAMLError, msgspec.ValidationError) as problem:
        raise PlanError(f"{name}: {path} has no option and value a line: {problem}.") from None


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


def of_base(planned: PlannedCells) -> set[str]:
    """Return the cell_ids of the base: at the constant rate, and saturated."""
    assert planned.study is not None
    return {*planned.study.cells[BASE], *planned.study.cells[BASE + _SATURATED]}


def planned_ab(
    seconds: float, named: Study, planned: PlannedCells, controls: Sequence[tuple[str, str]]
) -> PlannedAb:
    """Return what the plan keeps. ``controls``: (cell_id, that of its A/A control)."""
    assert planned.study is not None
    cells, control = planned.study.cells, dict(reversed(controls))
    base, head = (
        PlannedVariant(
            name=one.name,
            given=one.given,
            options=one.options,
            cells=VariantCells(
                constant=cells[one.name][0], saturated=cells[one.name + _SATURATED][0]
            ),
        )
        for one in named.variants
    )
    twin = VariantCells(
        constant=control[base.cells.constant], saturated=control[base.cells.saturated]
    )
    return PlannedAb(budget_s=seconds, base=base, head=head, control=twin)


def with_blocks(root: Path, planned: PlannedCells, seconds: float, before: int) -> PlannedCells:
    """Return the cells with the number of blocks that the budget is likely to allow.

    ``before``: the blocks that the run has already. The run itself decides; see
    analysis/verdict/blocks.py.
    """
    beside = rule_of(root).ab_beside_s
    cells = [item for item in items(planned.experiments) if item.purpose == "measure"]
    # The base is measured twice.
    each = [one.expected_s + beside for one in cells]
    twice = [one.expected_s + beside for one in cells if one.cell.variant == BASE]
    blocks = before + max(1, int(seconds / (sum(each) + sum(twice))))
    return replace(planned, options=replace(planned.options, repetitions=blocks))
