"""The report's part on measured cells: headlines, the table of cells, and a section for each cell.

A table is the dict that html.table returns.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadlab.analysis.ranking import HELD_FROM
from loadlab.core import formatting
from loadlab.core.formatting import ms
from loadlab.generators.registry import OUTPUTS
from loadlab.planning import inputs
from loadlab.report import cell_figures
from loadlab.report import percentiles as report_percentiles
from loadlab.report.cell_figures import Entry
from loadlab.report.html import link, table
from loadlab.stats import inference, percentiles

SERVERS = {"gunicorn": "Gunicorn", "uwsgi": "uWSGI", "native": "its own server"}
LATENCIES = ("p50", "p90", "p99", "p99_9", "p99_99", "max")
ERRORS = {
    "connect": "no connection",
    "read": "connection lost, or no HTTP, while the answer was awaited or read",
    "write": "connection lost while the request was sent",
    "timeout": "no answer within the request timeout",
    "status_4xx": "answered with a status of 400 to 499",
    "status_5xx": "answered with a status of 500 to 599",
    "status_other": "answered with another status that is not 2xx",
    "body": "answered 2xx with a body of another length than verified",
}


# Keys in which stacks may differ, besides framework and server.
PARTS = (
    "transport", "protocol", "worker_class", "event_loop", "workers", "threads",
    "upstream_keepalive", "front", "backlog",
)  # fmt: skip


def part(cell: Mapping[str, Any], name: str) -> str:
    """Return one key of a cell in words; empty where it needs no mention."""
    value = cell.get(name)
    if name == "front":
        return "without nginx" if value == "none" else ""
    if name == "upstream_keepalive" and value is not None:
        return "connections kept" if value else "a connection for each request"
    if name == "threads" and value == 1:
        return ""
    if value is None:
        return ""
    return {
        "workers": f"{value} workers",
        "threads": f"{value} threads",
        "backlog": f"backlog {value}",
        # A dotted name is a class; its package adds nothing.
        "worker_class": str(value).rsplit(".", 1)[-1],
    }.get(name, str(value))


def stack(cell: Mapping[str, Any]) -> str:
    """Return a stack in words.

    The backlog is left out, as only a comparison of backlogs needs it, and so is a worker class
    that the event loop determines.
    """
    if cell["transport"] == "none":
        return "nginx alone"
    server = SERVERS.get(cell["server"], cell["server"])
    left_out = {"backlog", "worker_class" if cell.get("event_loop") else ""}
    words = [part(cell, name) for name in PARTS if name not in left_out]
    return f"{cell['framework']} on {server} ({', '.join(word for word in words if word)})"


def saturation(repetition: Mapping[str, Any]) -> str | None:
    """Return why a repetition was saturated, in words; None where it was not."""
    for finding in repetition["verdict"]["findings"]:
        if finding.startswith("saturated: "):
            return str(finding.rsplit(": ", 1)[1])
    return None


def held(repetition: Mapping[str, Any], load: Mapping[str, Any]) -> bool:
    """Return whether the rate asked for came back as verified answers."""
    enough = repetition["goodput"] >= HELD_FROM * float(load["rate"])
    return enough and saturation(repetition) is None


def valid(cell: Mapping[str, Any]) -> list[Any]:
    """Return the cell's valid repetitions."""
    return [rep for rep in cell["repetitions"] if rep["verdict"]["valid"]]


def headline(cell: Mapping[str, Any], path: str) -> dict[str, str]:
    """Return {state, short, text} of a cell: state is held, missed, closed or void; text is a
    sentence."""
    load, found, good = cell["cell"]["load"], cell["statistics"], valid(cell)
    subject, where = stack(cell["cell"]), f"on {path}"
    if not good:
        return void(cell, f"{subject} {where}")
    errors = sum(found["errors"].values())
    tail = [_slowest(found)]
    tail.append(
        f"{formatting.plural(errors, 'error')}"
        + (f" ({formatting.share(errors, found['requests'])} of requests)" if errors else "")
    )
    left_out = f" {found['n_void']} of {len(cell['repetitions'])} repetitions void and left out."
    after = "." + (left_out if found["n_void"] else "")
    if load["mode"] != "constant":
        text = (
            f"{subject} answered {formatting.rate(found['goodput']['median'])} requests/s {where} "
            f"in a closed loop of {formatting.plural(load['connections'], 'connection')}: "
            f"{', '.join(tail)}{after}"
        )
        return {"state": "closed", "short": "closed loop", "text": text}
    kept = [held(rep, load) for rep in good]
    rate = f"{formatting.asked(load)} requests/s {where}"
    if all(kept):
        text = f"{subject} held {rate}: {', '.join(tail)}{after}"
        return {"state": "held", "short": "held", "text": text}
    parts = [f"{formatting.rate(found['goodput']['median'])} verified answers/s"]
    if found["unsent"]:
        part = formatting.share(found["unsent"], found["scheduled"])
        parts.append(f"{found['unsent']:,} requests never sent ({part})")
    why = list(dict.fromkeys(filter(None, map(saturation, good))))
    words = f"; saturated, {' and '.join(why)}" if why else ""
    some = f" in {kept.count(False)} of {len(kept)} repetitions" if any(kept) else ""
    text = f"{subject} did not hold {rate}{some}: {', '.join(parts + tail)}{words}{after}"
    short = "did not hold" + (", saturated" if why else "")
    return {"state": "missed", "short": short, "text": text}


def void(cell: Mapping[str, Any], subject: str) -> dict[str, str]:
    """Return the headline {state, short, text} of a cell without a valid repetition."""
    reasons = dict.fromkeys(r for rep in cell["repetitions"] for r in rep["verdict"]["reasons"])
    short = "failed" if all(rep["error"] for rep in cell["repetitions"]) else "void"
    said = "; ".join(reason.removeprefix("failed: ") for reason in reasons)
    text = f"{subject} {short}: {formatting.one_line(said)}; nothing can be concluded."
    return {"state": "void", "short": short, "text": text}


def _slowest(found: Mapping[str, Any]) -> str:
    """Return the p99, or the maximum where the sample is too small for a p99."""
    name = "max" if found["latency_us"]["p99"] is None else "p99"
    return f"{name} {ms(found['latency_us'][name])} ms"


def latencies(
    found: Mapping[str, Any], names: Sequence[str] = LATENCIES, counted: str = "responses"
) -> list[Any]:
    """Return the table cells [{text, title}] of the latencies ``names``, in ms.

    title is the interval or why there is no value. ``found``: a cell's statistics or a repetition;
    ``counted``: the key with its number of answers that have a latency.
    """
    values = found["latency_us"] or dict.fromkeys(names)
    known = found.get("latency_interval_us", {})
    cells = []
    for name in names:
        one = known.get(name) or {"why": percentiles.refusal(found[counted], name)}
        cells.append(
            {"text": formatting.NONE, "title": one["why"]}
            if one["why"]
            else {"text": ms(values[name]), "title": percentiles.interval(one)}
        )
    return cells


def reactivity(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the table cell {text, title} of the mean reactivity in ms.

    ``found``: a cell's statistics or a repetition.
    """
    known = found.get("reactivity")
    if known is None:
        return {"text": formatting.NONE}
    lost, due = known["at_timeout"], known["requests"]
    return {
        "text": ("≥ " if lost else "") + ms(known["mean_us"]),
        "title": f"{lost:,} of {due:,} requests got no right answer" if lost else "",
    }


LATENCY_HEAD = ["p50, ms", "p90, ms", "p99, ms", "p99.9, ms", "p99.99, ms", "max, ms"]
BEYOND = (
    f" - stands for a percentile with fewer than {inference.ABOVE} answers above it: it would say "
    "nothing. Point at a latency to see its interval, or why there is none."
)
REACTIVITY = (
    " Reactivity is how long a client waits on average: latency over all requests that were due, "
    "one without a right answer counted as the request timeout at least (≥)."
)


def cpu(repetitions: Sequence[Mapping[str, Any]], host: str) -> str:
    """Return a host's busy CPU in percent of all its cores, the median over the repetitions."""
    busy = [rep["telemetry"][host]["cpu_busy"] for rep in repetitions if rep["telemetry"]]
    return formatting.percent(statistics.median(busy) if busy else None)


def overview(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the table of measured cells."""
    rows = []
    for entry in entries:
        found, good = entry.cell["statistics"], valid(entry.cell)
        verdict = headline(entry.cell, entry.where)
        counted = f" ({found['n']} of {found['n'] + found['n_void']} valid)"
        rows.append({
            "class": verdict["state"],
            "cells": [
                {"text": entry.title, "href": f"#{entry.anchor}"},
                formatting.asked(entry.cell["cell"]["load"]),
                formatting.rate((found["rate_achieved"] or {}).get("median")),
                formatting.rate((found["goodput"] or {}).get("median")),
                *latencies(found),
                reactivity(found),
                formatting.count(sum(found["errors"].values()) if found["errors"] else None),
                formatting.count(found["unsent"]),
                cpu(good, "server"),
                cpu(good, "client"),
                verdict["short"] + (counted if len(entry.cell["repetitions"]) > 1 else ""),
            ],
        })  # fmt: skip
    return table(
        "Rates in requests per second. Over the valid repetitions: rates and CPU are medians, "
        "latencies those of the added histograms, counts sums. Latency runs from when a request "
        "was due (constant rate), not from when it could be sent." + BEYOND + REACTIVITY,
        ["endpoint", "asked", "achieved", "goodput", *LATENCY_HEAD, "reactivity, ms", "errors",
         "unsent", "server CPU", "client CPU", "verdict"],
        rows,
        " " + "n" * 14,
        sources=[link("summary.json")],
    )  # fmt: skip


def repetitions(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of one cell's repetitions, including void and failed ones."""
    rows = []
    for rep in cell["repetitions"]:
        good = rep["verdict"]["valid"]
        words = "valid" if good else "void" if rep["error"] is None else "failed"
        folder = f"cells/{cell['cell_id']}/rep-{rep['repetition']}"
        rows.append({
            "class": "" if good else "void",
            "cells": [
                str(rep["repetition"]),
                formatting.rate(rep["rate_achieved"]),
                formatting.rate(rep["goodput"]),
                *latencies(rep),
                reactivity(rep),
                formatting.count(sum(rep["errors"].values()) if rep["errors"] else None),
                formatting.count(rep["unsent"]),
                cpu([rep], "server"),
                cpu([rep], "client"),
                words,
                {"links": [link(f"{folder}/result.json", "result.json"),
                           *(link(f"{folder}/{name}", name) for name in _outputs(rep))]},
            ],
        })  # fmt: skip
    return table(
        "Each repetition. Void and failed ones are kept and shown, and are in no figure and no "
        "other number." + BEYOND,
        ["repetition", "achieved", "goodput", *LATENCY_HEAD, "reactivity, ms", "errors", "unsent",
         "server CPU", "client CPU", "verdict", "from"],
        rows,
        "n" * 14,
    )  # fmt: skip


def _outputs(rep: Mapping[str, Any]) -> list[str]:
    """Return the paths of the generators' own output among the raw files."""
    return [name for name in rep["raw"] if name.rpartition("/")[2] in OUTPUTS.values()]


def errors(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of errors by class over the valid repetitions; None without any."""
    if not found["errors"]:
        return None
    requests = found["requests"]
    rows = [
        {
            "class": "bad" if n else "",
            "cells": [name, f"{n:,}", formatting.share(n, requests), words],
        }
        for name, words in ERRORS.items()
        for n in [found["errors"][name]]
    ]
    for name, whole, words in (
        ("aborted", requests, "cut off by the generator at its deadline; no error"),
        ("unsent", found["scheduled"], "scheduled and never sent; in no percentile"),
    ):
        if (n := found[name]) is not None:
            cells = [name, f"{n:,}", formatting.share(n, whole), words]
            rows.append({"class": "bad" if n else "", "cells": cells})
    caption = f"Of {formatting.plural(requests, 'request')}, {found['ok']:,} were verified answers."
    return table(caption, ["class", "requests", "share", "meaning"], rows, " nn ")


def remarks(cell: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return [{kind, rep, code, text}]: the void reasons and findings of a cell's repetitions.

    kind is "void" or "finding". One more finding says where several revisions of the lab measured
    it.
    """
    said = []
    if labs := inputs.labs(cell["repetitions"]):
        each = "; ".join(
            f"{revision[:12]}{' with changes of its own' if revision.endswith('+') else ''} "
            f"measured repetition {', '.join(map(str, numbers))}"
            for revision, numbers in labs.items()
        )
        said.append({"kind": "finding", "rep": "", "code": "lab",
                     "text": f"{len(labs)} revisions of it measured this: {each}"})  # fmt: skip
    for rep in cell["repetitions"]:
        which = f"repetition {rep['repetition']}" if len(cell["repetitions"]) > 1 else ""
        for kind, words in (("void", "reasons"), ("finding", "findings")):
            for text in rep["verdict"][words]:
                code, _, rest = text.partition(": ")
                said.append({"kind": kind, "rep": which, "code": code,
                             "text": formatting.one_line(rest, 2000)})  # fmt: skip
    return said


def closed_loop(entries: Sequence[Entry]) -> dict[str, Any] | None:
    """Return the table of an endpoint's closed loops; None where there was none."""
    rows = []
    # Add a column naming the cell when there is more than one.
    named = len(entries) > 1
    for entry in entries:
        cell, load = entry.cell, entry.cell["cell"]["load"]
        for rep in cell["repetitions"]:
            values = rep["latency_us"] or {}
            good = rep["verdict"]["valid"]
            words = "valid" if good else "void: " + "; ".join(rep["verdict"]["reasons"])
            path = f"cells/{cell['cell_id']}/rep-{rep['repetition']}/result.json"
            rows.append({
                "class": "" if good else "void",
                "cells": [
                    *([entry.title] if named else []),
                    load["generator"], str(load["connections"]), f"{load['duration_s']:g}",
                    formatting.rate(rep["goodput"]), ms(values.get("p50")), ms(values.get("p99")),
                    ms(values.get("max")),
                    formatting.count(sum(rep["errors"].values()) if rep["errors"] else None),
                    cpu([rep], "server"), cpu([rep], "client"), formatting.one_line(words),
                    link(path, "result.json"),
                ],
            })  # fmt: skip
    if not rows:
        return None
    return table(
        "Every connection sends its next request when it has its answer, as fast as that goes: "
        "about where this stack saturates. A calibration, not a result: latency is counted from "
        "when a request was sent, and cannot be compared with the latencies above.",
        [*(["cell"] if named else []), "generator", "connections", "seconds",
         "goodput, requests/s", "p50, ms", "p99, ms", "max, ms", "errors", "server CPU",
         "client CPU", "verdict", "from"],
        rows,
        " " * (1 + named) + "n" * 9,
    )  # fmt: skip


def section(run_dir: Path, entry: Entry, floor: Any) -> dict[str, Any]:
    """Return one measured cell for the template.

    Keys: anchor, title, cell_id, headline, remarks, figures, errors, errors_title, percentiles,
    repetitions.
    """
    verdict = headline(entry.cell, entry.where)
    return {
        "anchor": entry.anchor,
        "title": entry.title,
        "cell_id": entry.cell["cell_id"],
        "headline": verdict,
        "remarks": remarks(entry.cell),
        "figures": cell_figures.of_cell(run_dir, entry, floor),
        "errors": errors(entry.cell["statistics"]),
        "errors_title": "Errors by class",
        "percentiles": report_percentiles.table(entry.cell["statistics"]),
        "repetitions": repetitions(entry.cell),
    }
