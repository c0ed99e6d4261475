"""Words for the curve of a run at one rate: why there is none, and how far it met its objective."""

from __future__ import annotations

from collections.abc import Mapping

from loadlab.model import Reason
from loadlab.plan.plan_document import Plan
from loadlab.reasons.row import ReasonRow, ReasonTable
from loadlab.run import formatting
from loadlab.run.formatting import percentile


def _closed_loop(reason: Reason) -> str:
    return f"{reason.facts['generator']} is a closed loop, and a curve is of constant rates"


def _duration(reason: Reason) -> str:
    return (
        f"{reason.facts['generator']} measures each rate for at least {reason.value} s, and a "
        "curve "
        f"for {reason.limit:g} s"
    )


def _no_saturation(reason: Reason) -> str:
    void = reason.facts["void"]
    codes = f" ({', '.join(void)})" if isinstance(void, list) and void else ""
    return f"its rates are fractions of the closed loop, which has no valid measurement{codes}"


TABLE: ReasonTable = {
    "curve_closed_loop": ReasonRow(
        _closed_loop,
        "Take a constant-rate generator (-e generator=)",
        meaning="The generator keeps no rate, and a curve is of rates.",
    ),
    "curve_duration": ReasonRow(
        _duration,
        "Take another constant-rate generator (-e generator=)",
        meaning="The generator measures a rate for longer than the curve does.",
        thresholds=("curve_duration_s",),
    ),
    "curve_no_saturation": ReasonRow(
        _no_saturation,
        "Resume the run (-e run_id=)",
        meaning="The closed loop, whose goodput the rates follow, is void.",
    ),
    "curve_unmeasured": ReasonRow(
        lambda reason: "no measurement of it was made",
        "Resume the run (-e run_id=)",
        meaning="The run ended before the curve, or each measurement failed.",
    ),
}


def told(plan: Plan) -> str:
    """Return for the terminal why there is no curve; empty where there is one, or none was asked
    for."""
    if plan.no_curve is None:
        return ""
    return f"No curve: {TABLE[plan.no_curve.code].words(plan.no_curve)}"


def stayed(slo: Mapping[str, float]) -> str:
    """Return an objective that was met, in words: p99 stayed within 100 ms, with no errors,"""
    limits = [
        f"{percentile(name.removesuffix('_ms'))} stayed within {limit:g} ms"
        for name, limit in slo.items()
        if name != "errors"
    ]
    if "errors" in slo:
        most = slo["errors"]
        limits.append(
            f"with {f'errors up to {formatting.part_of(most)}' if most else 'no errors'},"
        )
    return ", ".join(limits)
