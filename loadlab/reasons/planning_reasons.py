"""The reasons for what a plan lacks, which loadlab/plan returns: a curve, a tuning, a generator."""

from __future__ import annotations

from loadlab.model import Reason
from loadlab.reasons.row import ReasonRow, ReasonTable, names, template


def _no_saturation(reason: Reason) -> str:
    void = reason.facts["void"]
    codes = f" ({', '.join(void)})" if isinstance(void, list) and void else ""
    return f"its rates are fractions of the closed loop, which has no valid measurement{codes}"


CURVES: ReasonTable = {
    "curve_closed_loop": ReasonRow(
        template("{generator} is a closed loop, and a curve is of constant rates"),
        "Take a constant-rate generator (-e generator=)",
        meaning="The generator keeps no rate, and a curve is of rates.",
    ),
    "curve_duration": ReasonRow(
        template(
            "{generator} measures each rate for at least {value} s, and a curve for {limit:g} s"
        ),
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
        template("no measurement of it was made"),
        "Resume the run (-e run_id=)",
        meaning="The run ended before the curve, or each measurement failed.",
    ),
}


# What the ledger says of a key that a tuning lacks without any effect.
_STATES = {"already": "already so without the lab"}


def _key_changes_nothing(reason: Reason) -> str:
    return ", ".join(_STATES.get(state, state) for state in names(reason, "states"))


ABLATIONS: ReasonTable = {
    "key_changes_nothing": ReasonRow(
        _key_changes_nothing,
        meaning="Leaving out this key changes nothing on the hosts, so the tuning was not "
        "measured.",
    )
}


_NAMED = "Name an executable with -e <generator>_binary="
GENERATORS: ReasonTable = {
    "generator_machine": ReasonRow(
        template(
            "it is {machine}, and the {generator} that it "
            "would get from this machine is for {made_for}"
        ),
        "Name one for the client's machine with -e <generator>_binary=",
        meaning="The executable is for another machine than the client's.",
    ),
    "generator_absent": ReasonRow(
        template(
            "the generator {generator} is not there, and no package of its distribution has it"
        ),
        f"{_NAMED}, install it on the client yourself, or take another with -e generator=",
        meaning="The client lacks the generator, and no package has it.",
    ),
}
