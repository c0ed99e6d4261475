"""Words for what made measurements of a run void, and for the time that their repeats took."""

from collections import Counter
from collections.abc import Iterable, Sequence

from loadlab.model import CellSummary, Disturbance, Reason
from loadlab.reasons.all_reasons import TABLE
from loadlab.report import words
from loadlab.run import formatting

_TAKEN_BY = {
    "steal": "another machine",
    "foreign_cpu": "programs that are not the lab's",
}
_QUIET = "Run again in a quieter hour"
# Reasons that the hosts have at any hour.
_ALWAYS = frozenset({"emulated"})
# What became of a machine during a load.
_ACCIDENTS = ("link_down", "clock_jump", "killed")
# Errors that are printed at the end of a run.
_MOST_ERRORS = 4


def early(disturbance: Disturbance) -> str:
    """Return the sentence, printed once, on a run that will have few results."""
    cause = _cause(disturbance)
    return (
        f"{cause[0].upper()}{cause[1:]}; {disturbance.outside} of the first {disturbance.measured} "
        f"measurements are void for that, and results will be few. {_remedy(disturbance.code)}"
    )


def spent(disturbance: Disturbance) -> str:
    """Return the sentence, printed once, on the end of repeats of void measurements."""
    return f"{_repeats(disturbance)}. From here on void measurements are not repeated"


def whole(disturbance: Disturbance, is_cause_named: bool = False) -> str:
    """Return what made measurements of a run void, what their repeats took, and the remedy.

    ``is_cause_named``: whether the answer of the run names the cause.
    """
    measured = formatting.plural(disturbance.measured, "measurement")
    text = f"{disturbance.void} of {measured} {'is' if disturbance.void == 1 else 'are'} void"
    if disturbance.outside:
        is_whole = disturbance.outside == disturbance.void
        of = {1: "", 2: "both "}.get(disturbance.void, "all ")
        of = of if is_whole else f"{disturbance.outside} of them "
        if not is_cause_named:
            text += f", {of}because {_cause(disturbance)}"
        elif not is_whole:
            text += f", {of}because of {_TAKEN_BY[str(disturbance.code)]}"
    elif disturbance.code:
        text += f", the most frequent reason is {disturbance.code}"
    text += f". {_remedy(disturbance.code)}."
    if disturbance.withheld:
        verb = "was" if disturbance.withheld == 1 else "were"
        text += f" {_repeats(disturbance)}; {disturbance.withheld} {verb} not repeated."
    return text


def accidents(cells: Sequence[CellSummary]) -> list[str]:
    """Return a line for each kind of accident of a machine in a run, with its words and remedy, and
    for the first errors of measurements that failed."""
    causes = [
        cause
        for cell in cells
        for repetition in cell.repetitions
        for cause in (*repetition.validity.reasons, *repetition.validity.findings)
    ]
    errors = Counter(
        formatting.one_line(words.coded(cause)) for cause in causes if cause.code == "failed"
    )
    lines = [_accident(count, error) for error, count in list(errors.items())[:_MOST_ERRORS]]
    if others := list(errors.values())[_MOST_ERRORS:]:
        lines.append(_accident(sum(others), "other errors, which the report has"))
    for code in _ACCIDENTS:
        own = [cause for cause in causes if cause.code == code]
        if own:
            lines.append(f"{_accident(len(own), words.coded(own[0]))} {TABLE[code].remedy}.")
    return lines


def _accident(count: int, text: str) -> str:
    return f"In {formatting.plural(count, 'measurement')}: {text.rstrip('. ')}."


def nothing_valid(reasons: Sequence[Reason], resume: str) -> str:
    """Return the cause and the remedy of a run without any valid measurement; empty without a
    reason.

    ``reasons``: those of every measurement. ``resume``: the command that measures more.
    """
    if not reasons:
        return ""
    codes = [code for code, _ in Counter(reason.code for reason in reasons).most_common()]
    code = next((code for code in codes if code in _ALWAYS), codes[0])
    # The first of its cause, as an example.
    cause = next(other for other in reasons if other.code == code)
    others = [other for other in codes if other != code]
    also = f" (also {', '.join(others)})" if others else ""
    again = "" if code in _ALWAYS else f": {resume}"
    return f"No measurement is valid: {words.coded(cause)}{also}. {_remedy(code)}{again}"


def instead_of_repeating(reasons: Iterable[Reason]) -> str | None:
    """Return the remedy where the hosts make every measurement void; None where a repetition may be
    valid."""
    return next((TABLE[reason.code].remedy for reason in reasons if reason.code in _ALWAYS), None)


def _cause(disturbance: Disturbance) -> str:
    part = "a part" if disturbance.part is None else formatting.percent(disturbance.part)
    return (
        f"{_TAKEN_BY[str(disturbance.code)]} took {part} of the {disturbance.host}'s CPU "
        f"({disturbance.code})"
    )


def _repeats(disturbance: Disturbance) -> str:
    took, most = map(formatting.lasting, (disturbance.repeats_s, disturbance.repeats_max_s))
    of = "the most that they may take" if took == most else f"at most {most}"
    return f"Repeats of void measurements took {took}, {of} (half of the planned load)"


def _remedy(code: str | None) -> str:
    advice = TABLE[code].remedy if code else None
    if advice and code in _ALWAYS:
        return advice
    return f"{advice}. {_QUIET}" if advice else _QUIET
