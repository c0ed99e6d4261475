"""Words for a comparison of variants: sentences, terminal lines and comment.md."""

from __future__ import annotations

from collections.abc import Mapping

from loadlab.model import (
    Answer,
    HeadVerdict,
    Manifest,
    PlannedGate,
    Variant,
    Verdict,
    VerdictRow,
)
from loadlab.model.metric_rows import GATES
from loadlab.reasons.row import ReasonPart, ReasonRow, template
from loadlab.report import words
from loadlab.report.terminal.text_columns import TextColumn, columns, heads
from loadlab.report.words import quantities
from loadlab.run import formatting
from loadlab.run.formatting import percent

_MARKS: dict[Answer, str] = {
    "slower": "❌ slower",
    "undecided": "⚠️ undecided",
    "faster": "✅ faster",
    "no difference": "✅ no difference",
}

_SIDES = {"base": "base", "head": "head", "control": "A/A control"}

REASONS = ReasonPart(
    "Variants",
    "Why the head of a gate has no answer in a metric.",
    {
        "two_sittings": ReasonRow(
            template("measured in two sittings, which differ though nothing is changed"),
            "Measure base and head in one run (-e base=)",
            meaning="Base and head were measured in two runs, which differ though nothing is "
            "changed.",
        ),
        "void_shares_differ": ReasonRow(
            template(
                "{void:g} of {measured:g} repetitions of the head are void, and {other_void:g} of "
                "{other_measured:g} of base and control: their shares differ, p {value:p}"
            ),
            "See the void reasons of the repetitions in the report",
            meaning="The head's share of void repetitions differs from that of base and A/A "
            "control, so the rest of one side may be its better ones.",
        ),
        "lanes_one_variant": ReasonRow(
            template("there is one variant"),
            meaning="A baseline is of another sitting.",
        ),
        "lanes_generator": ReasonRow(
            template("only metronome alternates between them, and {generator} offers the load"),
            "leave -e generator= and http2 out",
            meaning="Another generator than metronome offers the load.",
        ),
        "lanes_arrivals": ReasonRow(
            template("turns need requests at equal intervals, and arrivals is {arrivals}"),
            "leave -e arrivals= out",
            meaning="Requests come at random or in bursts, and lanes take turns.",
        ),
        "lanes_clients": ReasonRow(
            template("{value} clients cannot alternate at the same moments"),
            "one client",
            meaning="Several clients offer the load.",
        ),
        "lanes_load": ReasonRow(
            template("they differ in {names:list}, and one load has one of it"),
            meaning="The variants differ in their load: keepalive, tls or headers.",
        ),
        "lanes_hosts": ReasonRow(
            template("they differ in {option}, which is of the whole machine"),
            meaning="The variants differ in the tuning or the network of their hosts.",
        ),
        "lanes_no_application": ReasonRow(
            template("{framework} has no application of its own to have twice"),
            meaning="The reverse proxy answers alone.",
        ),
        "lanes_own_database": ReasonRow(
            template("{framework} has a database of its own, which two would change"),
            meaning="The application has a database of its own.",
        ),
        "lanes_sessions": ReasonRow(
            template(
                "{framework} keeps no database sessions, so PostgreSQL's CPU time cannot be told "
                "apart"
            ),
            meaning="The application opens a database session for each request.",
        ),
        "lanes_crowded": ReasonRow(
            template(
                "the server's cores were {value:percent} busy; above {limit:percent} a slow "
                "variant slows the others too"
            ),
            "Give a lower rate (-e rate=)",
            meaning="Variants side by side share a server that the load fills. Equal percentiles "
            "show no equality there.",
            thresholds=("lanes_crowd",),
        ),
        "value_absent": ReasonRow(
            template("not measured: no repetition of the {side} has a value"),
            meaning="No repetition of a variant has a value of this metric.",
        ),
    },
)


def apart(planned: PlannedGate) -> str:
    """Return why variants are measured one after the other; empty where they are not, and with a
    baseline, where there is one."""
    if planned.apart is None or planned.baseline is not None:
        return ""
    reason = words.reason(planned.apart, REASONS.rows)
    return f"The variants are measured one after the other, which takes longer: {reason}"


def answer(row: VerdictRow) -> str:
    """Return a row's answer in words."""
    gate = GATES[row.metric]
    return {"slower": gate.slower, "faster": gate.faster}.get(row.answer, row.answer)


def _why(row: VerdictRow) -> str:
    return words.reason(row.reason, REASONS.rows)


def sentence(verdict: Verdict) -> str:
    """Return the verdict in one sentence for each head."""
    return " ".join(_sentence(verdict, head) for head in verdict.heads)


def _sentence(verdict: Verdict, head: HeadVerdict) -> str:
    sides = f"The {_name(head)} ({head.definition}) against the base ({verdict.base.definition})"
    if verdict.baseline is not None:
        parts = [
            f"{GATES[row.metric].label} {formatting.signed(row.value)}"
            for row in head.rows
            if row.value is not None
        ]
        return f"{sides} of an earlier sitting: undecided; {', '.join(parts)}."
    parts = [
        f"{GATES[row.metric].label} {answer(row)}, {formatting.difference(row)}"
        for row in head.rows
        if row.answer in ("slower", "faster")
    ]
    for shared in ("no difference", "undecided"):
        names = [GATES[row.metric].label for row in head.rows if row.answer == shared]
        parts += [f"{shared} in {', '.join(names)}"] if names else []
    after = formatting.plural(verdict.blocks, "block")
    return f"{sides}: {head.answer} after {after}: {'; '.join(parts)}. {_voids(head)}"


def _voids(head: HeadVerdict) -> str:
    """Return how many repetitions of each side are void, at both loads together."""
    parts = []
    for side, name in _SIDES.items():
        own = [count for count in head.voids if count.side == side]
        void, measured = (sum(getattr(count, of) for count in own) for of in ("void", "measured"))
        parts += [f"{name} {void} of {measured}"] if own else []
    return f"Void repetitions: {', '.join(parts)}."


def _name(head: Variant) -> str:
    return head.name.replace("head", "head ").strip()


def lines(verdict: Verdict) -> list[str]:
    """Return the verdict for the terminal."""
    shown = []
    for head in verdict.heads:
        text_columns = _columns(f"{_name(head)} against base")
        shown += [heads(text_columns), *columns(text_columns, head.rows)]
    return [
        *shown,
        f"Verdict after {formatting.plural(verdict.blocks, 'block')} in "
        f"{formatting.lasting(verdict.measured_s)}: {verdict.answer}",
    ]


def _columns(title: str) -> list[TextColumn[VerdictRow]]:
    return [
        TextColumn(title, -23, lambda row: f"  {GATES[row.metric].label}"),
        TextColumn("base", 12, lambda row: quantities.with_unit(row.metric, row.base)),
        TextColumn("head", 12, lambda row: quantities.with_unit(row.metric, row.head)),
        TextColumn("difference", -28, formatting.difference),
        TextColumn("answer", 0, _answer_and_cause),
    ]


def _answer_and_cause(row: VerdictRow) -> str:
    return answer(row) + (f": {_why(row)}" if row.answer == "undecided" else "")


def after_block(done: int, tables: Mapping[str, list[VerdictRow]]) -> str:
    """Return what the blocks so far say, in one line; ``tables``: head -> its rows."""
    parts = [_so_far(rows) for rows in tables.values()]
    if len(tables) > 1:
        parts = [f"{head}: {part}" for head, part in zip(tables, parts, strict=True)]
    return f"After block {done}: {' | '.join(parts)}"


def _so_far(rows: list[VerdictRow]) -> str:
    open_ones = [GATES[row.metric].label for row in rows if row.is_open]
    decided = [
        f"{GATES[row.metric].label} {answer(row)} ({formatting.signed(row.value)})"
        for row in rows
        if row.answer in ("slower", "faster")
    ]
    same = sum(row.answer == "no difference" for row in rows)
    beside = [
        f"{GATES[row.metric].label} {formatting.signed(row.value)}"
        for row in rows
        if row.reason.code == "two_sittings"
    ]
    parts = [
        *decided,
        *beside,
        *([f"no difference in {same} of {len(rows)}"] if same else []),
        *([f"open: {', '.join(open_ones)}"] if open_ones else []),
    ]
    return "; ".join(parts)


def comment(verdict: Verdict, manifest: Manifest | None) -> str:
    """Return comment.md, a comment for a pull request."""
    paragraphs = [f"### Load test: {_MARKS[verdict.answer]}", ""]
    for head in verdict.heads:
        paragraphs += _head(verdict, head)
    margin = next(row.margin for head in verdict.heads for row in head.rows if row.relative)
    paragraphs += [
        "A first look: the base is of an earlier sitting, and two sittings differ though nothing "
        "is changed. The noise floor is of this sitting alone. Measure base and head in one run "
        "for an answer."
        if verdict.baseline is not None
        else f"No difference means: all of the interval is within {percent(margin)}. Of runs of "
        f"equal variants, at most {percent(verdict.error_rate)} call any metric slower or faster. "
        "The noise floor is the difference of the base from itself.",
        "",
        *([_environment(manifest), ""] if manifest else []),
        f"Run `{verdict.run_id}`.",
    ]
    return "\n".join(paragraphs) + "\n"


def _head(verdict: Verdict, head: HeadVerdict) -> list[str]:
    """Return the part of comment.md on one head."""
    mark = f": {_MARKS[head.answer]}" if len(verdict.heads) > 1 else ""
    base = f"`{_option(verdict.base)}`" + (f" of `{verdict.baseline}`" if verdict.baseline else "")
    paragraphs = [
        f"{_name(head).capitalize()} `{_option(head)}` against base {base}{mark}, "
        f"{formatting.plural(verdict.blocks, 'block')} in "
        f"{formatting.lasting(verdict.measured_s)}.",
        "",
        "| metric | base | head | difference (95 % interval) | noise floor | answer |",
        "|---|--:|--:|--:|--:|---|",
        *(_row(row) for row in head.rows),
        "",
        _voids(head),
        "",
    ]
    undecided = [row for row in head.rows if row.answer == "undecided"]
    if undecided and verdict.baseline is None:
        names: dict[str, list[str]] = {}
        for row in undecided:
            names.setdefault(_why(row), []).append(GATES[row.metric].label)
        reasons = "; ".join(f"{', '.join(metrics)}: {reason}" for reason, metrics in names.items())
        paragraphs += [f"Undecided: {reasons}.", ""]
    return paragraphs


def _option(variant: Variant) -> str:
    option = variant.definition.replace("`", "'")
    return f"{option} ({variant.commit[:12]})" if variant.commit else option


def _row(row: VerdictRow) -> str:
    shown = answer(row)
    cells = [
        GATES[row.metric].label,
        quantities.with_unit(row.metric, row.base),
        quantities.with_unit(row.metric, row.head),
        formatting.difference(row),
        percent(row.noise_floor),
        f"**{shown}**" if row.answer in ("slower", "faster") else shown,
    ]
    return f"| {' | '.join(cells)} |"


def _environment(manifest: Manifest) -> str:
    hosts = ", ".join(
        f"{name}: {host.cpu_model}, {formatting.plural(len(host.cpus), 'core')}, {host.os}, "
        f"Linux {host.kernel}"
        for name, host in manifest.hosts.items()
    )
    return f"Environment: {hosts}."
