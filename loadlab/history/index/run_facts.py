"""The sentences on one run, and the figures of its best cells, for the page of all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from loadlab.generators import registry
from loadlab.history.past_runs import PastRun
from loadlab.model import Summary
from loadlab.report.first_screen import tiles
from loadlab.report.sections import headlines, python_clients_section
from loadlab.report.words import applications_words, labels
from loadlab.report.words.labels import Entry
from loadlab.run import formatting

# Endpoints whose figures are in a row, and sentences behind it; the report has them all.
_ENDPOINTS, _SENTENCES = 3, 12


@dataclass(frozen=True)
class KnownRun:
    """A run with the entries of its measured cells, cell_id -> entry.

    - figures: of the best cell of each endpoint. sentences: on each cell
    """

    run: PastRun
    entries: Mapping[str, Entry] = field(default_factory=dict)
    figures: str = ""
    sentences: Sequence[str] = ()


def of(run: PastRun) -> KnownRun:
    """Return what the page tells of a run; one that it cannot tell is broken."""
    try:
        return _known(run)
    except ValueError as problem:
        # An unknown code or generator, of a lab with the same schema.
        return KnownRun(replace(run, state="broken", problem=str(problem), measured=None))


def _known(run: PastRun) -> KnownRun:
    if run.measured is None or run.begun is None:
        return KnownRun(run)
    summary = run.measured.summary
    paths = applications_words.paths(run.begun.plan.endpoints)
    measured = [cell for cell in summary.cells if cell.purpose == "measure"]
    for cell in measured:
        registry.get(cell.cell.load.generator)
    entries = labels.entries(measured, paths)
    sentences = [_headline(entry) for entry in entries[:_SENTENCES]]
    if len(entries) > _SENTENCES:
        more = formatting.plural(len(entries) - _SENTENCES, "more cell")
        sentences.append(f"{more}: see the report.")
    by_id = {entry.cell.cell_id: entry for entry in entries}
    return KnownRun(run, by_id, _figures(summary, entries), sentences)


def _headline(entry: Entry) -> str:
    client = labels.is_client(entry.cell)
    return (python_clients_section.headline(entry) if client else headlines.headline(entry)).text


def _figures(summary: Summary, entries: Sequence[Entry]) -> str:
    by_path: dict[str, list[Entry]] = {}
    for entry in entries:
        by_path.setdefault(entry.path, []).append(entry)
    figures = []
    for path, own in list(by_path.items())[:_ENDPOINTS]:
        stacks = [entry for entry in own if not labels.is_client(entry.cell)]
        text = _best(summary, stacks) if stacks else _clients(own)
        figures.append(f"{path} {text}")
    more = len(by_path) - _ENDPOINTS
    return "; ".join([*figures, *([formatting.plural(more, "more endpoint")] if more > 0 else [])])


def _best(summary: Summary, entries: Sequence[Entry]) -> str:
    """Return the figures of the best cell of an endpoint: 1,000/s held, p99 15.3 ms."""
    entry, _ = tiles.best(summary, entries)
    statistics, headline = entry.cell.statistics, headlines.headline(entry)
    if headline.state == "void":
        return headline.short
    goodput = f"{formatting.rate(statistics.goodput.median if statistics.goodput else None)}/s"
    rate = {
        "held": f"{formatting.asked(entry.cell.cell.load)}/s held",
        "missed": f"{goodput} of {formatting.asked(entry.cell.cell.load)} asked",
    }.get(headline.state, f"{goodput} in a closed loop")
    search = next(
        (trial for trial in summary.searches if trial.cell_id == entry.cell.cell_id), None
    )
    if search and search.found:
        rate = f"{search.found:,g}/s is the highest rate with {labels.objective(search.slo)}"
    name = "max" if statistics.latency_us.p99 is None else "p99"
    curve = next((trial for trial in summary.curves if trial.cell_id == entry.cell.cell_id), None)
    within = (
        f", up to {curve.within:,g}/s with {labels.objective(curve.slo)}"
        if (curve and curve.within)
        else ""
    )
    return f"{rate}, {name} {formatting.bounded(statistics.latency_us, name)} ms{within}"


def _clients(entries: Sequence[Entry]) -> str:
    figures = [f"{entry.cell.cell.load.generator} {python_clients_section.headline(entry).short}"
               for entry in entries]  # fmt: skip
    return ", ".join(dict.fromkeys(figures))
