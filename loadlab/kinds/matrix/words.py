"""Sentences and terminal lines on a matrix."""

from loadlab.kinds.matrix.analyse import Compared, matrix_of
from loadlab.model import Candidate, MatrixLead, MatrixRow, MatrixVerdict
from loadlab.plan.modes.matrix_order import Standing
from loadlab.plan.plan_document import Plan
from loadlab.reasons.row import ReasonPart, ReasonRow
from loadlab.report import words
from loadlab.report.html import Column, Number
from loadlab.report.terminal import text_columns
from loadlab.report.words import labels
from loadlab.run import formatting
from loadlab.run.formatting import lasting, percent, plural
from loadlab.run.run_dir import HERE

RULE = (
    "Of the best and those within its noise, the simplest is chosen: the one with the fewest "
    "workers x threads."
)


REASONS = ReasonPart(
    "Matrix",
    "Why a candidate was not measured further.",
    {
        "candidate_failed": ReasonRow(
            lambda reason: (
                f"failed twice in a row: {formatting.one_line(str(reason.facts['error']), 200)}"
            ),
            "See logs/ of the run, and run it alone with lab.yml",
            meaning="The candidate failed twice in a row: it did not start, or an answer was "
            "wrong.",
        ),
        "candidate_void": ReasonRow(
            "no valid measurement in round {round}",
            "See the reasons of its void repetitions",
            meaning="The candidate has no valid measurement in a round.",
        ),
        "candidate_behind": ReasonRow(
            "not among the best {left} of {of} in round {value}",
            meaning="The candidate was not in the better half of a round.",
        ),
    },
)


def title(candidate: Candidate) -> str:
    """Return a candidate in words: Gunicorn gthread, 2 workers with 4 threads each."""
    server = labels.server_name(str(candidate.options["server"]))
    kind = str(candidate.options.get("worker_class") or "").split(".")[-1]
    threads = f" with {candidate.threads} threads" if candidate.threads > 1 else ""
    threads += " each" if threads and candidate.workers > 1 else ""
    return (
        f"{' '.join(filter(None, [server, kind]))}, {plural(candidate.workers, 'worker')}{threads}"
    )


def planned(plan: Plan) -> str:
    """Return what is going to be measured and how long it takes; empty without a matrix."""
    if plan.matrix is None:
        return ""
    matrix = matrix_of(plan)
    rounds = ", ".join(map(str, matrix.rounds))
    blocks = plan.options.repetitions - sum(matrix.rounds)
    together = (
        f"The candidates are measured one after the other, which takes longer: "
        f"{words.reason(plan.matrix.apart)}."
        if plan.matrix.apart
        else f"A load has up to {matrix.lanes} of them side by side."
    )
    return (
        f"Matrix: {plural(len(matrix.candidates), 'candidate')} for "
        f"{plural(plan.matrix.cores, 'core')}. {plural(len(matrix.rounds), 'round')} of {rounds} "
        f"blocks, each of which leaves the better half; then at most {plural(blocks, 'block')} of "
        f"the best {matrix.finalists} and what they are compared with. It takes at most "
        f"{lasting(plan.matrix.budget_s)}; deployment and calibration come in addition. {together}"
    )


def after_block(plan: Plan, block: int, now: Standing, compared: Compared) -> str:
    """Return what the blocks so far say, in one line."""
    assert plan.matrix is not None
    by_id = {candidate.cell_id: candidate for candidate in plan.matrix.candidates}
    by_name = {candidate.name: candidate for candidate in plan.matrix.candidates}
    out = f"; dropped: {len(now.dropped)}" if now.dropped else ""
    if not now.is_final:
        going = [item for item in now.rounds[-1] if item.cell_id not in now.dropped]
        left = plural(len(going), "candidate")
        return f"After block {block}: {left} in round {len(now.rounds)}{out}"
    if not compared.leads:
        best = "; ".join(title(by_id[item.cell_id]) for item in now.finalists)
        return f"After block {block}: the best of the rounds are {best}{out}"
    open_ones = sum(lead.is_open for lead in compared.leads)
    best = title(by_name[compared.best]) if compared.best else "none"
    return (
        f"After block {block}: best {best}; {open_ones} of "
        f"{plural(len(compared.leads), 'comparison')} open{out}"
    )


# How the best compares with others, as a sentence names it.
_OPENED = {
    "within the noise": "Too close to call",
    "undecided": "Undecided whether it beats",
}


def sentence(verdict: MatrixVerdict) -> str:
    """Return the answer, with how many others are not certainly slower."""
    rows = {row.name: row for row in verdict.candidates}
    if verdict.best is None or verdict.chosen is None:
        return "No candidate has a valid measurement with right answers."
    gains = ", ".join(
        f"{_gain(lead)} {reference} ({title(rows[lead.name])})"
        for reference, lead in _references(verdict)
        if not _may_be_none(lead)
    )
    best = f"the best of {plural(len(rows), 'candidate')}"
    is_best = verdict.chosen == verdict.best
    taken = title(rows[verdict.chosen]) + (f", {best}" if is_best else "")
    goodput = rows[verdict.chosen].goodput
    served = f"{formatting.rate(goodput)} correct answers/s" if goodput is not None else ""
    figures = ", ".join(filter(None, [served, gains]))
    near = sum(standing(lead) != "slower" for lead in verdict.leads)
    if is_open(verdict):
        taken = title(rows[verdict.chosen])
        undecided = f"Undecided: none of the {len(rows)} candidates is certainly the best."
        because = "the best so far" if is_best else "the simplest of those within the noise"
        return f"{undecided} For now take {taken}, {because}: {figures}."
    sentences = [f"Take {taken}: {figures}."]
    if not is_best:
        sentences.append(f"{formatting.sentence(best)}: {title(rows[verdict.best])}.")
    if near:
        of = plural(len(verdict.leads), "candidate")
        verb = "is" if near == 1 else "are"
        sentences.append(f"{near} of {of} compared with the best {verb} not certainly slower.")
    if not verdict.leads:
        alone = sum(row.contends for row in verdict.candidates) == 1
        sentences.append(
            "No other was left to compare it with."
            if alone
            else "No block compared the contenders."
        )
    return " ".join(sentences)


def not_shown(verdict: MatrixVerdict) -> list[str]:
    """Return a sentence on the references whose interval includes 0; none without any."""
    rows = {row.name: row for row in verdict.candidates}
    unsure = [
        f"{reference} ({title(rows[lead.name])}: {_between(lead)})"
        for reference, lead in _references(verdict)
        if _may_be_none(lead)
    ]
    if verdict.chosen is None or not unsure:
        return []
    return [f"{title(rows[verdict.chosen])} is not shown to beat {formatting.listed(unsure)}."]


def _references(verdict: MatrixVerdict) -> list[tuple[str, MatrixLead]]:
    """Return what the chosen is compared with, beside the best."""
    leads = {
        "its server's own default": verdict.over_own_default,
        "the usual rule of 2 x cores + 1 workers": verdict.over_rule,
    }
    return [(reference, lead) for reference, lead in leads.items() if lead is not None]


def _near(verdict: MatrixVerdict) -> list[str]:
    """Return the names of candidates that are not certainly slower than the best."""
    rows = {row.name: row for row in verdict.candidates}
    sentences = []
    for answer, begin in _OPENED.items():
        names = [title(rows[lead.name]) for lead in verdict.leads if standing(lead) == answer]
        sentences += [f"{begin}: {'; '.join(names)}."] if names else []
    return sentences


def is_open(verdict: MatrixVerdict) -> bool:
    """Return whether no candidate is shown to be slower than the best."""
    return bool(verdict.leads) and all(standing(lead) != "slower" for lead in verdict.leads)


def _may_be_none(lead: MatrixLead) -> bool:
    """Return whether the interval of a lead includes 0."""
    return lead.low is not None and lead.high is not None and lead.low <= 0 <= lead.high


def _between(lead: MatrixLead) -> str:
    """Return the interval of a lead that may be none: 27 % slower to 86 % faster."""
    low, high = (formatting.percent(abs(bound or 0.0)) for bound in (lead.low, lead.high))
    return f"{low} slower to {high} faster"


def _gain(lead: MatrixLead) -> str:
    """Return a lead before what it is over: +54 % (49 to 58 %) over, 2.1 times (2.0 to 2.2)."""
    shown = formatting.difference(lead)
    return shown if formatting.is_factor(lead.value) else f"{shown} over"


def standing(lead: MatrixLead) -> str:
    """Return how another compares with the best."""
    if lead.answer == "faster":
        return "slower"
    return "within the noise" if lead.within_noise else "undecided"


def contenders(verdict: MatrixVerdict) -> tuple[list[Column[MatrixRow]], list[MatrixRow]]:
    """Return the table of the contenders beside the best: its columns and rows."""
    leads = {lead.name: lead for lead in verdict.leads}

    def beside(row: MatrixRow) -> str:
        return formatting.difference(leads[row.name]) if row.name in leads else ""

    def answer(row: MatrixRow) -> str:
        shown = ("best so far" if is_open(verdict) else "best") if row.name == verdict.best else ""
        if row.name in leads:
            shown = standing(leads[row.name])
        return ", ".join(filter(None, [shown, "take it" if row.name == verdict.chosen else ""]))

    columns: list[Column[MatrixRow]] = [
        Column("candidate", title),
        Number("goodput, /s", lambda row: formatting.rate(row.goodput)),
        Number("p99, ms", lambda row: formatting.ms(row.p99_us)),
        Number("memory", lambda row: formatting.size(row.memory_bytes)),
        Number("best over it", beside),
        Column("answer", answer),
    ]
    return columns, [row for row in verdict.candidates if row.contends]


def lines(verdict: MatrixVerdict) -> list[str]:
    """Return the answer for the terminal."""
    rows = {row.name: row for row in verdict.candidates}
    front = [title(row) for row in verdict.candidates if row.on_front]
    lost = [row for row in verdict.candidates if row.out and row.out.code != "candidate_behind"]
    return [
        *text_columns.table(*contenders(verdict)),
        *([f"Goodput, p99 and memory, none beaten in all: {'; '.join(front)}"] if front else []),
        *(f"Dropped: {title(row)}: {left_out(row)}" for row in lost),
        f"Matrix after {plural(verdict.blocks, 'block')} in {lasting(verdict.measured_s)}: "
        f"{' '.join([sentence(verdict), *not_shown(verdict), *_near(verdict)])}",
        *([f"Its files as measured: {files(rows[verdict.chosen])}"] if verdict.chosen else []),
    ]


def files(row: MatrixRow) -> str:
    """Return the folder of the run with a candidate's unit and reverse proxy's configuration."""
    return str(HERE.stack(row.stack))


def left_out(row: MatrixRow) -> str:
    """Return why a candidate was measured no further; empty where it was."""
    return words.reason(row.out, REASONS.rows) if row.out else ""


def note(verdict: MatrixVerdict) -> str:
    """Return how the answers are to be read."""
    return (
        f"The best over each contender, by {plural(verdict.blocks, 'block')} after the rounds. "
        f"Within the noise: not certainly slower, and by {percent(verdict.margin)} at most. Of "
        f"runs of equal candidates, at most {percent(verdict.error_rate)} call any two different. "
        f"{RULE}"
    )
