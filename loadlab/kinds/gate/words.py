"""Words for a comparison of variants: sentences, terminal lines and comment.md."""

import math
import re
from collections.abc import Iterable, Mapping
from operator import itemgetter

from msgspec.structs import replace

from loadlab.model import Answer, HeadVerdict, Manifest, PlannedGate, Variant, Verdict, VerdictRow
from loadlab.model.metric_rows import GATES
from loadlab.reasons.row import ReasonPart, ReasonRow
from loadlab.report import words
from loadlab.report.html import Column, Number
from loadlab.report.terminal import text_columns
from loadlab.report.words import labels, quantities
from loadlab.run import formatting
from loadlab.run.formatting import percent
from loadlab.stats import percentiles

_MARKS: dict[Answer, str] = {
    "slower": "❌",
    "undecided": "⚠️",
    "faster": "✅",
    "no difference": "✅",
}

# In a sentence on several metrics, for which slower and faster are too narrow.
_DECIDED: dict[Answer, str] = {"slower": "worse", "faster": "better"}

# The folders before the last part of an absolute path.
_FOLDERS = re.compile(r"(?<==)/(?:[^/,]+/)+")

# A longer load has so many times the answers that a percentile needs, as the rate varies.
_MARGIN = 1.2

# Characters of a head's name in a table of the terminal.
_LONGEST = 40
_SIDES = {"base": "base", "head": "head", "control": "A/A control"}

REASONS = ReasonPart(
    "Variants",
    "Why the head of a gate has no answer in a metric.",
    {
        "two_sittings": ReasonRow(
            "measured in two sittings, which differ though nothing is changed",
            "Measure base and head in one run (-e base=)",
            meaning="Base and head were measured in two runs, which differ though nothing is "
            "changed.",
        ),
        "void_shares_differ": ReasonRow(
            "{void:g} of {measured:g} repetitions of the head are void, and {other_void:g} of "
            "{other_measured:g} of base and control: their shares differ, p {value:p}",
            "See the void reasons of the repetitions in the report",
            meaning="The head's share of void repetitions differs from that of base and A/A "
            "control, so the rest of one side may be its better ones.",
        ),
        "lanes_crowded": ReasonRow(
            "the server's cores were {value:percent} busy; above {limit:percent} a slow "
            "variant slows the others too",
            "Give a lower rate (-e rate=)",
            meaning="Variants side by side share a server that the load fills. Equal percentiles "
            "show no equality there.",
            thresholds=("lanes_crowd",),
        ),
        "generator_limits": ReasonRow(
            "the generator took {value:percent} of the connections' time in the closed loop, and "
            "may have limited all variants alike",
            "Stop other work on the client, or give it more cores",
            meaning="The generator may have been the limit of the closed loop (self_check). Equal "
            "goodput shows no equality there.",
        ),
        "few_requests": ReasonRow(
            "{value:,.0f} requests of the {side} are too few to show how many fail; at least "
            "{limit:,.0f} are needed",
            "Give more time (-e budget=) or a higher rate (-e rate=)",
            meaning="Too few requests to show that a variant fails as few of them as the margin "
            "allows.",
            thresholds=("failed_max",),
        ),
        "head_has_none": ReasonRow(
            "0 in each of {value:n block}, and the base more in every one",
            "Read the application's log in the run's logs/",
            meaning="The head has 0 in every block, and the base has more.",
        ),
        "value_absent": ReasonRow(
            "not measured: no repetition of the {side} has a value",
            meaning="No repetition of a variant has a value of this metric.",
        ),
    },
)


def apart(planned: PlannedGate) -> str:
    """Return why variants are measured one after the other; empty where they are not, and with a
    baseline, where there is one."""
    if planned.apart is None or planned.baseline is not None:
        return ""
    reason = words.reason(planned.apart)
    return f"The variants are measured one after the other, which takes longer: {reason}"


def answer(row: VerdictRow) -> str:
    """Return a row's answer in words."""
    gate = GATES[row.metric]
    return {"slower": gate.slower, "faster": gate.faster}.get(row.answer, row.answer)


def _overall(shared: Answer, rows: Iterable[VerdictRow]) -> str:
    """Return the answer of a head in words. A head of which no time is worse is not slower: it
    takes more memory, say, and the words are more memory."""
    parts = [(answer(row), GATES[row.metric].label) for row in rows if row.answer == shared]
    if not parts or shared in dict(parts):
        return shared
    return " and ".join(dict.fromkeys(f"{word} {label}" for word, label in parts))


def _marked(shared: Answer, rows: Iterable[VerdictRow]) -> str:
    return f"{_MARKS[shared]} {_overall(shared, rows)}"


def why(row: VerdictRow) -> str:
    """Return why a row has its answer."""
    return words.reason(row.reason, REASONS.rows)


def sentence(verdict: Verdict, head: HeadVerdict) -> str:
    """Return the verdict on a head in one sentence, and in another what of it is void. The variants
    have the names that the user gave them."""
    defined = definitions(verdict)
    most = " (most goodput)" if _leads(verdict, head) else ""
    sides = f"{defined[head.name]}{most} against {defined[verdict.base.name]}"
    if verdict.baseline is not None:
        parts = [
            f"{GATES[row.metric].label} {_difference(row)}"
            for row in head.rows
            if row.value is not None
        ]
        beside = f"; {', '.join(parts)}" if parts else ""
        return f"{sides} of an earlier sitting: undecided{beside}."
    rows = sorted(head.rows, key=_size, reverse=True)
    # The larger differences first, be they better or worse.
    decided = list(dict.fromkeys(row.answer for row in rows if row.answer in _DECIDED))
    # Where there is none to name, what is equal.
    equal: list[Answer] = [] if decided else ["no difference"]
    parts = []
    for shared in (*decided, *equal, "undecided"):
        own = rows if shared in _DECIDED else head.rows
        names = [_named(row) for row in own if row.answer == shared]
        parts += [f"{_DECIDED.get(shared, shared)} in {formatting.listed(names)}"] if names else []
    # Where all sides lost as many, the line on trust is enough.
    lost = {void for void, _ in _void_counts(head).values()}
    void = [_voids(head)] if len(lost) > 1 else []
    return " ".join([f"{sides}: {'; '.join(parts)}.", *void])


def in_order(verdict: Verdict) -> list[HeadVerdict]:
    """Return the heads in the order of their sentences.

    Of two heads, the leading head comes first. More heads keep the user's order: the first screen
    has only two sentences, and an order by goodput would always leave out the worst heads.
    """
    if len(verdict.heads) > 2:
        return verdict.heads
    return sorted(verdict.heads, key=lambda head: not _leads(verdict, head))


def _leads(verdict: Verdict, head: HeadVerdict) -> bool:
    """Return whether a head has more goodput than the base, and its interval is above those of all
    other heads."""
    own = _goodput(head)
    others = [_goodput(other) for other in verdict.heads if other.name != head.name]
    if own is None or own.low is None or own.answer != "faster" or not others:
        return False
    highs = [other.high for other in others if other is not None and other.high is not None]
    return len(highs) == len(others) and own.low > max(highs)


def _goodput(head: HeadVerdict) -> VerdictRow | None:
    return next((row for row in head.rows if row.metric == "goodput"), None)


def question(verdict: Verdict) -> str:
    """Return what a gate asks."""
    names = definitions(verdict)
    heads = [names[head.name] for head in verdict.heads]
    verb = "does" if len(heads) == 1 else "do"
    return (
        f"How {verb} {formatting.listed(heads)} compare with {names[verdict.base.name]}, the base?"
    )


def _named(row: VerdictRow) -> str:
    """Return a metric with its difference, where one is decided: memory (+7.2 %); goodput with
    both values: (2,438 against 1,479 correct answers/s, +65 %)."""
    label = GATES[row.metric].label
    if row.answer not in _DECIDED:
        return label
    values = ""
    if row.metric == "goodput" and row.head is not None and row.base is not None:
        head, base = map(formatting.rate, (row.head, row.base))
        values = f"{head} against {base} correct answers/s, "
    return f"{label} ({values}{_difference(row)})"


def _size(row: VerdictRow) -> float:
    """Return how large a difference is: of failed requests, larger than any ratio."""
    if not row.relative or row.value is None or row.value <= -1:
        return math.inf
    return abs(math.log1p(row.value))


def compared(verdict: Verdict, head: HeadVerdict) -> str:
    """Return what a table of a head's answers shows."""
    return f"{_sides(verdict, head)}, {_after(verdict)}."


def explained(verdict: Verdict) -> str:
    """Return what the answers mean."""
    smoothed = ""
    if verdict.cell and verdict.cell.load.lanes:
        smoothed = (
            " The p99 is the geometric mean of the response times from the 97.5th to the 99.75th "
            "percentile, which varies less."
        )
    return (
        f"No difference: all of the interval is within {_margins(verdict)}. A metric is called "
        "slower or faster only if a wider interval excludes equality, too. So at most "
        f"{percent(verdict.error_rate)} of the runs of equal variants call any metric so. All else "
        "is undecided. Goodput is that of the closed loops, all else of the given load, at which a "
        "request can cost more CPU. The noise floor is the difference of the base from "
        f"itself.{smoothed}"
    )


def definitions(verdict: Verdict) -> dict[str, str]:
    """Return name -> as the user gave it, of each variant, without the options that all have;
    without folders where that is enough. A server has its name: uWSGI for server=uwsgi."""
    same = shared(verdict)
    return {
        name: ", ".join(option_words(part) for part in text.split(",") if part not in same)
        for name, text in _given(verdict).items()
    }


def option_words(option: str) -> str:
    """Return an option as it was given; a server by its name."""
    key, _, value = option.partition("=")
    return labels.server_name(value) if key == "server" else option


def shared(verdict: Verdict) -> list[str]:
    """Return the options that all variants have, workers=4; none where one has no others."""
    options = [text.split(",") for text in _given(verdict).values()]
    same = [part for part in options[0] if all(part in own for own in options)]
    return same if all(len(own) > len(same) for own in options) else []


def _given(verdict: Verdict) -> dict[str, str]:
    """Return name -> as the user gave it; without folders where that is enough."""
    variants = [verdict.base, *verdict.heads]
    brief = {variant.name: _short(variant) for variant in variants}
    if len(set(brief.values())) == len(variants):
        return brief
    return {variant.name: variant.definition for variant in variants}


def _sides(verdict: Verdict, head: HeadVerdict) -> str:
    own, base = (_given(verdict)[variant.name] for variant in (head, verdict.base))
    subject = "The head" if head.name == "head" else formatting.sentence(_name(head))
    return f"{subject} ({own}) against the base ({base})"


def _after(verdict: Verdict) -> str:
    blocks = formatting.plural(verdict.blocks, "block")
    return f"{blocks} in {formatting.lasting(verdict.measured_s)}"


def _voids(head: HeadVerdict) -> str:
    """Return how many repetitions of each side are void, at both loads together."""
    counts = _void_counts(head).items()
    parts = [f"{_SIDES[side]} {void} of {measured}" for side, (void, measured) in counts]
    return f"Void repetitions: {', '.join(parts)}."


def _void_counts(head: HeadVerdict) -> dict[str, tuple[int, int]]:
    """Return side -> how many of its repetitions are void, and how many there are."""
    return {
        side: (sum(count.void for count in own), sum(count.measured for count in own))
        for side in _SIDES
        if (own := [count for count in head.voids if count.side == side])
    }


def _short(variant: Variant) -> str:
    """Return a variant as the user gave it, without folders: app=h1850."""
    return _FOLDERS.sub("", variant.definition)


def _name(head: Variant) -> str:
    return head.name.replace("head", "head ").strip()


def lines(verdict: Verdict) -> list[str]:
    """Return the table of each head for the terminal, and why metrics are undecided."""
    shown = []
    for head in verdict.heads:
        # The sentences on several heads name them so.
        name = head.name if len(verdict.heads) == 1 else definitions(verdict)[head.name]
        title = f"{formatting.one_line(name, _LONGEST)} against base"
        shown += text_columns.table(_columns(title), head.rows)
        shown += _undecided(head)
    return shown


def _columns(title: str) -> list[Column[VerdictRow]]:
    return [
        Column(title, lambda row: GATES[row.metric].label),
        Number("base", lambda row: quantities.with_unit(row.metric, row.base)),
        Number("head", lambda row: quantities.with_unit(row.metric, row.head)),
        Number("difference", formatting.difference),
        Column("answer", answer),
    ]


def after_block(done: int, tables: Mapping[str, list[VerdictRow]]) -> str:
    """Return what the blocks so far say, in one line; ``tables``: head -> its rows."""
    parts = [_so_far(rows) for rows in tables.values()]
    if len(tables) > 1:
        parts = [f"{head}: {part}" for head, part in zip(tables, parts, strict=True)]
    return f"After block {done}: {' | '.join(parts)}"


def _so_far(rows: list[VerdictRow]) -> str:
    open_ones = [GATES[row.metric].label for row in rows if row.is_open]
    decided = [
        f"{GATES[row.metric].label} {answer(row)} ({_difference(row)})"
        for row in rows
        if row.answer in ("slower", "faster")
    ]
    same = sum(row.answer == "no difference" for row in rows)
    closed = [
        GATES[row.metric].label
        for row in rows
        if row.answer == "undecided" and not row.is_open and row.reason.code != "two_sittings"
    ]
    beside = [
        f"{GATES[row.metric].label} {_difference(row)}"
        for row in rows
        if row.reason.code == "two_sittings"
    ]
    parts = [
        *decided,
        *beside,
        *([f"no difference in {same} of {len(rows)}"] if same else []),
        *([f"open: {', '.join(open_ones)}"] if open_ones else []),
        *([f"undecided: {', '.join(closed)}"] if closed else []),
    ]
    return "; ".join(parts)


def _difference(row: VerdictRow) -> str:
    """Return a difference without its interval."""
    return formatting.difference(replace(row, low=None, high=None))


def comment(verdict: Verdict, manifest: Manifest | None) -> str:
    """Return comment.md, a comment for a pull request."""
    rows = (row for head in verdict.heads for row in head.rows)
    paragraphs = [f"### Load test: {_marked(verdict.answer, rows)}", ""]
    for head in verdict.heads:
        paragraphs += _head(verdict, head)
    paragraphs += [
        "A first look: the base is of an earlier sitting, and two sittings differ though nothing "
        "is changed. The noise floor is of this sitting alone. Measure base and head in one run "
        "for an answer."
        if verdict.baseline is not None
        else f"No difference means: all of the interval is within {_margins(verdict)}. Of runs of "
        f"equal variants, at most {percent(verdict.error_rate)} call any metric slower or faster. "
        "The noise floor is the difference of the base from itself.",
        "",
        *([_environment(manifest), ""] if manifest else []),
        f"Run `{verdict.run_id}`.",
    ]
    return "\n".join(paragraphs) + "\n"


def _margins(verdict: Verdict) -> str:
    """Return the margin of each metric: 1.0 % (CPU per request, p50), 5.0 % (p99)."""
    names: dict[float, list[str]] = {}
    for row in verdict.heads[0].rows:
        names.setdefault(row.margin, []).append(GATES[row.metric].label)
    return ", ".join(
        f"{percent(margin)} ({', '.join(metrics)})" for margin, metrics in names.items()
    )


def _head(verdict: Verdict, head: HeadVerdict) -> list[str]:
    """Return the part of comment.md on one head."""
    mark = f": {_marked(head.answer, head.rows)}" if len(verdict.heads) > 1 else ""
    base = f"`{_option(verdict.base)}`" + (f" of `{verdict.baseline}`" if verdict.baseline else "")
    paragraphs = [
        f"{_name(head).capitalize()} `{_option(head)}` against base {base}{mark}, "
        f"{_after(verdict)}.",
        "",
        "| metric | base | head | difference (95 % interval) | noise floor | answer |",
        "|---|--:|--:|--:|--:|---|",
        *(_row(row) for row in head.rows),
        "",
        _voids(head),
        "",
    ]
    if verdict.baseline is None and (undecided := _undecided(head)):
        paragraphs += [*undecided, ""]
    return paragraphs


def _undecided(head: HeadVerdict) -> list[str]:
    """Return why metrics are undecided, each reason once; empty where none is."""
    names: dict[str, list[str]] = {}
    for row in head.rows:
        if row.answer == "undecided":
            names.setdefault(why(row), []).append(GATES[row.metric].label)
    reasons = "; ".join(f"{', '.join(metrics)}: {reason}" for reason, metrics in names.items())
    return [f"Undecided: {reasons}."] if names else []


def next_steps(resume: str, further_s: Mapping[str, float], is_first: bool = False) -> list[str]:
    """Return the command that resumes a gate for what is undecided, with the budget that it needs.

    ``further_s``: metric -> further seconds, infinite for more than a budget can have.
    ``is_first``: whether these are until the first answer, whose blocks show the noise.
    """
    within = {metric: s for metric, s in further_s.items() if not math.isinf(s)}
    beyond = [GATES[metric].label for metric in further_s if metric not in within]
    needs = [
        f"{GATES[metric].label} in about {formatting.lasting(60 * _minutes(s))}"
        for metric, s in sorted(within.items(), key=itemgetter(1))
    ]
    steps = []
    if within:
        minutes = _minutes(max(within.values()))
        steps += [f"Next: {resume} -e budget={minutes}m"]
        until = f"by the noise so far this decides {', '.join(needs)}"
        if is_first:
            until = f"the first answer takes about {formatting.lasting(60 * minutes)}"
        steps += [f"      # {until}"]
    if beyond:
        steps += [
            f"No budget is likely to decide {formatting.listed(beyond)}: give a higher rate "
            "(-e rate=), or quieter hosts."
        ]
    return steps


def longer_load(verdict: Verdict) -> list[str]:
    """Return a duration with enough answers for each percentile, and a margin; empty where all have
    enough, and of a load that lasts as long as its log, session or ramp says."""
    load = verdict.cell.load if verdict.cell else None
    if load is None or load.replay or load.session or (load.arrivals and load.arrivals.ramp):
        return []
    seconds = _MARGIN * (load.duration_s or 0.0)
    needed = [
        (math.ceil(seconds * percentiles.least_answers(row.metric) / answers), row.metric)
        for head in verdict.heads
        for row in head.rows
        if row.reason.code == "few_answers_compared" and (answers := int(row.reason.value or 0))
    ]
    if not needed or not seconds:
        return []
    longest, metric = max(needed)
    label = GATES[metric].label
    return [f"For {label} a new run needs longer loads and more budget: -e duration={longest}"]


def _minutes(seconds: float) -> int:
    return math.ceil(seconds / 60)


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
