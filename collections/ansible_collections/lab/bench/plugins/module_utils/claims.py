"""Claims of a study or lesson: statements on its cells that figures confirm or refute. Pure.

A claim is {says (in words), and a statement, or all: a list of statements that must all hold}. It
may have only (the scales that have it) and published {value and/or says, where}, where what was
published does not follow from the file's figures. A statement is {metric, and one of
  cell: name, with at_least and/or at_most: the metric of that cell against the bounds,
  ratio: [name, name], with at_least and/or at_most: the first cell's metric over the second's;
    against: [name, name]: that ratio over the ratio of these two,
  order: [name, name, ...]: each cell's metric above the next one's}.
A metric is a path into a repetition of summary.json, such as goodput (requests/s), latency_us.p99
(µs), errors.timeout, telemetry.server.tcp.listen_overflows or client.failures.EMFILE; of a path
that ends at several numbers their sum (errors, client.cpu_s); load.rate and the rest of the cell's
load; or failed_share, the fraction of the requests due that had no right answer. over: another
metric that it is divided by, repetition by repetition. For a sweep its level with the highest
median goodput speaks. profile.* is of the one repetition that was profiled.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from . import inference, wording
from .files import ResultError

# What the id of a cell's profile adds to the cell's.
PROFILE = "-profile"
FORMS = ("cell", "ratio", "order")
# What a repetition may lack because it was not recorded there.
_OPTIONAL = ("processes", "database", "profile", "reactivity")
# By name, the cells of summary.json that it stands for: one, or the levels of a sweep.
Cells = Mapping[str, Sequence[Mapping[str, Any]]]


def check(claims: Sequence[Mapping[str, Any]], cells: Mapping[str, Sequence[Any]]) -> None:
    """Raise ValueError where a claim is not of the form above or names a cell that is not one.

    ``cells``: by name what it stands for; a sweep is one.
    """
    for claim in claims:
        if "says" not in claim or ("all" in claim and any(form in claim for form in FORMS)):
            raise ValueError(f"a claim needs says and a statement, or all: {dict(claim)}")
        for statement in statements(claim):
            form = [name for name in FORMS if name in statement]
            if len(form) != 1 or "metric" not in statement:
                raise ValueError(
                    f"a claim needs says, metric and one of {', '.join(FORMS)}: {dict(claim)}"
                )
            bounds = {"at_least", "at_most"} & set(statement)
            if (form[0] == "order") == bool(bounds):
                raise ValueError(
                    f"a claim of {form[0]} has at_least or at_most wrongly: {dict(claim)}"
                )
            for name in _names(statement):
                if len(cells.get(name, [])) != 1:
                    raise ValueError(
                        f"the claim '{claim['says']}' names '{name}', which stands for "
                        f"{len(cells.get(name, []))} cells and not one. There are: "
                        f"{', '.join(cells)}"
                    )


def statements(claim: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The statements of a claim: itself, or those of all."""
    return list(claim["all"]) if "all" in claim else [claim]


def _names(statement: Mapping[str, Any]) -> list[str]:
    if "cell" in statement:
        return [statement["cell"]]
    return [*statement.get("ratio", statement.get("order")), *statement.get("against", ())]


def value(repetition: Mapping[str, Any], metric: str) -> float | None:
    """The metric of one repetition; None where it was not measured.

    A failure that is not in the counts did not happen: 0. Raises ResultError for a path that the
    schema does not have.
    """
    if metric == "failed_share":
        due = repetition["scheduled"] or repetition["requests"]
        return 1 - repetition["ok"] / due if due else None
    found: Any = repetition
    path = metric.split(".")
    for depth, key in enumerate(path):
        if found is None or (key in _OPTIONAL and key not in found):
            return None
        if key not in found and path[depth - 1] == "failures":
            return 0.0
        if key not in found:
            raise ResultError(f"{metric}: a repetition has no '{key}'")
        found = found[key]
    if isinstance(found, Mapping):
        return float(sum(found.values()))
    return None if found is None else float(found)


def speaking(levels: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The cell that speaks for a name: of a sweep's levels that with the highest median goodput.

    None where none of them has a valid repetition.
    """
    valid = [cell for cell in levels if _sample(cell, "goodput")]
    return max(valid, key=lambda cell: statistics.median(_sample(cell, "goodput")), default=None)


def judge(
    claim: Mapping[str, Any], cells: Cells, kind: str, figures: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """{says, verdict, why, parts}: confirmed where all parts are, refuted where one is.

    A part is {metric, figures [{cell, median, n}], value, interval, wanted, published, verdict,
    why}. ``figures``: the published ones. verdict: confirmed, refuted or undecided. A study needs
    an interval that lies on one side of the bounds; a lesson, whose effects are large and which
    measures once, goes by its medians.
    """
    parts = [_judge(one, cells, kind, figures) for one in statements(claim)]
    told = claim.get("published")
    if told:
        parts[0]["published"] = {"value": None, "says": "", "where": "", **told}
    verdicts = [part["verdict"] for part in parts]
    verdict = next(w for w in ("refuted", "undecided", "confirmed") if w in verdicts)
    why = list(dict.fromkeys(part["why"] for part in parts if part["verdict"] == verdict))
    return {"says": claim["says"], "verdict": verdict, "why": "; ".join(why), "parts": parts}


def _judge(
    claim: Mapping[str, Any], cells: Cells, kind: str, published: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    names = _names(claim)
    metric, over = claim["metric"], claim.get("over")
    samples = {name: _sample(speaking(cells.get(name, ())), metric, over) for name in names}
    judged = {
        "metric": f"{metric} / {over}" if over else metric,
        "figures": [
            {
                "cell": name,
                "median": statistics.median(samples[name]) if samples[name] else None,
                "n": len(samples[name]),
            }
            for name in names
        ],
        "wanted": wanted(claim),
        "published": _published(claim, published),
    }
    empty = [name for name in names if not samples[name]]
    if empty:
        why = f"no valid repetition of {', '.join(empty)}"
        if any(speaking(cells.get(name, ())) for name in empty):
            why = f"{judged['metric']} was not measured of {', '.join(empty)}"
        return {**judged, "value": None, "interval": None, "verdict": "undecided", "why": why}
    strict = "order" in claim
    low, high = (1.0, None) if strict else (claim.get("at_least"), claim.get("at_most"))
    if "cell" in claim:
        found = inference.median(samples[names[0]])
    elif "against" in claim:
        found = inference.quotient(*(samples[name] for name in names))
    else:
        steps = [_ratio(samples[one], samples[other]) for one, other in pairwise(names)]
        # The weakest step of an order decides.
        found = min(steps, key=lambda step: -1 if step.value is None else step.value)
    interval = None if found.low is None or found.high is None else [found.low, found.high]
    if found.value is None:
        verdict, why = "undecided", "the median that it would be divided by is 0"
    elif kind == "lesson" or metric.startswith("profile."):
        verdict, why = _side([found.value, found.value], low, high, strict, claim)
    elif interval is None:
        fewest = min(len(sample) for sample in samples.values())
        verdict = "undecided"
        had = wording.plural(fewest, "valid repetition")
        why = f"{had}, {inference.LEAST} are needed for an interval"
        if fewest >= inference.LEAST:
            why = "a value that it would be divided by is 0"
    else:
        verdict, why = _side(interval, low, high, strict, claim)
    return {
        **judged,
        "value": found.value,
        "interval": interval,
        "verdict": verdict,
        "why": why,
    }


def _published(
    claim: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """{value, says, where}: what the published figures give for the statement; None where none."""
    found = [_figure(name, claim["metric"], groups) for name in _names(claim)]
    under = [_figure(name, claim["over"], groups) for name in _names(claim) if "over" in claim]
    known = [one for one in (*found, *under) if one is not None]
    if len(known) < len(found) + len(under) or any(size == 0 for size, _ in known[1:]):
        return None
    values = [size for size, _ in known[: len(found)]]
    if under:
        parts = zip(values, known[len(found) :], strict=True)
        values = [size / below for size, (below, _) in parts]
    size = values[0]
    if "against" in claim:
        size = values[0] / values[1] / (values[2] / values[3])
    elif "cell" not in claim:
        size = min(one / other for one, other in pairwise(values))
    where = "; ".join(dict.fromkeys(place for _, place in known))
    return {"value": size, "says": "", "where": where}


def _figure(
    name: str, metric: str, groups: Sequence[Mapping[str, Any]]
) -> tuple[float, str] | None:
    for group in groups:
        size = group["cells"].get(name, {}).get(metric)
        if size is not None and not group["not_repeated"]:
            return size, group["where"]
    return None


def document(summary: Mapping[str, Any], study: Mapping[str, Any]) -> dict[str, Any]:
    """claims.json: every claim of the study judged by the cells of summary.json.

    ``study``: the plan's {kind, name, scale, description, claims, cells, published}.
    """
    published = study["published"]
    cells = _cells(summary, study)
    return {
        "schema": summary["schema"],
        "run_id": summary["run_id"],
        **{key: study[key] for key in ("kind", "name", "scale", "description")},
        **{key: published[key] for key in ("question", "source")},
        "claims": [
            judge(claim, cells, study["kind"], published["figures"]) for claim in study["claims"]
        ],
        "figures": [_beside(group, cells) for group in published["figures"]],
        "mistakes": [_mistake(one, cells) for one in published["mistakes"]],
        "unmeasured": unmeasured(summary, study),
    }


def _cells(
    summary: Mapping[str, Any], study: Mapping[str, Any]
) -> dict[str, list[Mapping[str, Any]]]:
    """By the study's name, the cells of the summary that it stands for, each with its profile."""
    measured = {cell["cell_id"]: cell for cell in summary["cells"]}
    return {
        name: [
            {**measured[one], "profile": measured.get(f"{one}{PROFILE}")}
            for one in ids
            if one in measured
        ]
        for name, ids in study["cells"].items()
    }


def unmeasured(summary: Mapping[str, Any], study: Mapping[str, Any]) -> list[dict[str, str]]:
    """{cell, why} of each of the study's cells without a valid repetition.

    Of a sweep, which may stop before its last level, one level with a valid repetition is enough.
    """
    found = []
    for name, levels in _cells(summary, study).items():
        if speaking(levels) is None:
            reasons = [
                reason
                for cell in levels
                for rep in cell["repetitions"]
                for reason in rep["verdict"]["reasons"]
            ]
            why = "; ".join(dict.fromkeys(reasons)) or "it was not measured"
            found.append({"cell": name, "why": why})
    return found


def _beside(group: Mapping[str, Any], cells: Cells) -> dict[str, Any]:
    """A group of published figures, each beside what was measured, both also as ratios."""
    reference = group["reference"]

    def seen(name: str, metric: str) -> list[float]:
        return [] if group["not_repeated"] else _sample(_level(name, cells), metric)

    rows = []
    for name, figures in group["cells"].items():
        for metric, figure in figures.items():
            # What was offered is no result.
            if metric.startswith("load."):
                continue
            sample = seen(name, metric)
            estimate = inference.median(sample)
            basis = None if reference is None else group["cells"][reference].get(metric)
            below = [] if basis is None or reference is None else seen(reference, metric)
            ratio = _ratio(sample, below) if sample and below else inference.median([])
            rows.append(
                {
                    "cell": name,
                    "metric": metric,
                    "published": figure,
                    "measured": {**vars(estimate), "n": len(sample)},
                    "published_ratio": figure / basis if basis else None,
                    "measured_ratio": vars(ratio),
                }
            )
    return {**{key: group[key] for key in ("title", "where", "reference", "not_repeated")}} | {
        "rows": rows
    }


def _level(name: str, cells: Cells) -> Mapping[str, Any] | None:
    """The cell of a published figure: <name>, or <name>@<connections> for one level of it."""
    if name in cells:
        return speaking(cells[name])
    name, _, level = name.rpartition("@")
    for cell in cells.get(name, ()):
        if str(cell["cell"]["load"]["connections"]) == level:
            return cell
    return None


def _mistake(one: Mapping[str, Any], cells: Cells) -> dict[str, Any]:
    """{what, printed, corrected, where, cell, metric, measured}: the last None if not measured."""
    sample = _sample(speaking(cells.get(one.get("cell", ""), ())), one.get("metric", "goodput"))
    return {
        **{key: one[key] for key in ("what", "printed", "corrected")},
        **{key: one.get(key) for key in ("where", "cell", "metric")},
        "measured": {**vars(inference.median(sample)), "n": len(sample)} if sample else None,
    }


def lines(found: Mapping[str, Any]) -> list[str]:
    """A line for each claim, for the terminal, and for each cell that decides nothing."""
    return [
        f"{claim['verdict']}: {claim['says']} ("
        + "; ".join(
            f"{part['metric']} of {part['wanted']}; "
            + (f"published {told}; " if (told := published(part)) else "")
            + measured(part)
            for part in claim["parts"]
        )
        + ")"
        for claim in found["claims"]
    ] + [f"not measured: {one['cell']}: {one['why']}" for one in found["unmeasured"]]


def figure(claim: Mapping[str, Any]) -> str:
    """What was measured of a claim, in words."""
    return "; ".join(measured(part) for part in claim["parts"])


def measured(part: Mapping[str, Any]) -> str:
    """What was measured of one statement, in words."""
    if part["value"] is None:
        return str(part["why"])
    shown = _shown(part)
    interval = ""
    if part["interval"]:
        low, high = (shown(bound) for bound in part["interval"])
        interval = f", {low} to {high}"
    why = f"; {part['why']}" if part["why"] else ""
    return f"measured {shown(part['value'])}{interval}{why}"


def published(part: Mapping[str, Any]) -> str:
    """What was published of one statement, in words; empty where nothing was."""
    told = part["published"]
    if told is None:
        return ""
    words = "" if told["value"] is None else _shown(part)(told["value"])
    return ", ".join(filter(None, [words, told["says"]]))


def _shown(part: Mapping[str, Any]) -> Callable[[float], str]:
    """How the statement's value is written: in the metric's unit, or a ratio without one."""
    metric = part["metric"] if len(part["figures"]) == 1 else ""
    return lambda number: quantity(metric, number)


def quantity(metric: str, number: float) -> str:
    """A metric's value as people read it: latencies in ms, shares in percent, memory in MiB."""
    if " / " not in metric:
        if "_us" in metric:
            return f"{wording.ms(number)} ms"
        if metric.endswith("_share"):
            return wording.percent(number)
        if metric.endswith("_bytes"):
            return wording.size(number)
    if number >= 1000 or (metric and " / " not in metric and number == int(number)):
        return wording.count(number)
    return wording.significant(number)


def _sample(cell: Mapping[str, Any] | None, metric: str, over: str | None = None) -> list[float]:
    """The metric of each valid repetition, divided by another's where one is given."""
    if cell is not None and metric.startswith("profile."):
        cell = cell.get("profile")
    if cell is None:
        return []
    found = []
    for rep in cell["repetitions"]:
        if rep["verdict"]["valid"]:
            whole = {"load": cell.get("cell", {}).get("load"), **rep}
            size = value(whole, metric)
            below = 1.0 if over is None else value(whole, over)
            if size is not None and below:
                found.append(size / below)
    return found


def _ratio(above: Sequence[float], below: Sequence[float]) -> inference.Estimate:
    found = inference.difference(below, above)
    return inference.Estimate(
        *(None if part is None else part + 1 for part in (found.value, found.low, found.high))
    )


def _side(
    seen: Sequence[float],
    low: float | None,
    high: float | None,
    strict: bool,
    claim: Mapping[str, Any],
) -> tuple[str, str]:
    """Verdict and why, from an interval and the bounds."""
    below, above = seen
    if low is not None and (above < low or (strict and above <= low)):
        return "refuted", f"all of it is below {_bound(claim, low)}"
    if high is not None and below > high:
        return "refuted", f"all of it is above {_bound(claim, high)}"
    enough = low is None or below > low or (below == low and not strict)
    if enough and (high is None or above <= high):
        return "confirmed", ""
    return "undecided", "the interval lies on both sides of the bound"


def _bound(claim: Mapping[str, Any], number: float) -> str:
    """A bound as people read it: a metric that has a unit in it, all else as the claim has it."""
    metric = claim["metric"]
    united = "_us" in metric or metric.endswith(("_share", "_bytes"))
    if "cell" in claim and "over" not in claim and united:
        return quantity(metric, number)
    return f"{number:g}"


def wanted(claim: Mapping[str, Any]) -> str:
    """The statement's bounds in words."""
    if "order" in claim:
        return " > ".join(claim["order"])
    what = " / ".join(_names(claim)[:2])
    if "against" in claim:
        what = f"({what}) / ({' / '.join(claim['against'])})"
    bounds = [
        f"{words} {_bound(claim, claim[key])}"
        for key, words in (("at_least", "at least"), ("at_most", "at most"))
        if key in claim
    ]
    return f"{what}: {', '.join(bounds)}"
