"""The table of all runs: it is searched, filtered and sorted, and opens to their sentences."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loadlab.generators import registry
from loadlab.history import words
from loadlab.history.past_runs import PastRun
from loadlab.model import Manifest, Summary
from loadlab.report.first_screen import tiles
from loadlab.report.html import Column, Link, Number, Row, Table, TableCell, link, table
from loadlab.report.sections import cell_outcome, latency_columns, python_clients_section
from loadlab.report.words import labels
from loadlab.report.words.labels import Entry
from loadlab.run import formatting
from loadlab.run.run_dir import RunDir

CAPTION = (
    "The newest run first. An arrow opens a row to a sentence on each cell. Void: of all "
    "repetitions, the instrument was the limit in so many, or they failed."
)
# A property with more values has no buttons; the search finds them.
_MOST = 12
# Endpoints whose figures are in a row, and sentences behind it; the report has them all.
_ENDPOINTS, _SENTENCES = 3, 12


@dataclass(frozen=True)
class RunFacts:
    """A run with the entries of its measured cells."""

    run: PastRun
    entries: Sequence[Entry] = ()
    figures: str = ""  #: Of the best cell of each endpoint.
    sentences: Sequence[str] = ()  #: On each cell.

    @property
    def manifest(self) -> Manifest | None:
        return self.run.measured.manifest if self.run.measured else None

    @property
    def facets(self) -> dict[str, str]:
        """What the run can be chosen by, by name."""
        plan = self.run.begun.plan if self.run.begun else None
        frameworks = {entry.cell.cell.framework for entry in self.entries}
        if plan and not frameworks:
            frameworks = {stack.framework for stack in plan.stacks.values()}
        return {
            "study": plan.study.name if plan and plan.study else "",
            "framework": ", ".join(sorted(frameworks)),
            "hosts": plan.host_kind if plan else "",
            "state": self.run.state,
        }


def build(runs: Sequence[RunFacts]) -> Table:
    """Return the table; ``runs`` are in the order of time."""
    newest = list(reversed(runs))
    facets = {
        name: list(dict.fromkeys(filter(None, (facts.facets[name] for facts in newest))))
        for name in ("study", "framework", "hosts", "state")
    }
    return table(
        CAPTION,
        [*_COLUMNS, *([_BUNDLE] if any(facts.run.has_bundle for facts in newest) else [])],
        newest,
        _row,
        facets={name: values for name, values in facets.items() if 1 < len(values) <= _MOST},
    )


def linked(run: PastRun) -> TableCell | Link | str:
    """Return the name of a run, which links to its report where it has one."""
    return link(RunDir(Path(run.run_id)).report, run.run_id) if run.has_report else run.run_id


def _ended(facts: RunFacts) -> TableCell:
    time = facts.run.ended or facts.run.began
    return TableCell(words.ended(facts.run), value="" if time is None else f"{time:.0f}")


def _measured(facts: RunFacts) -> str:
    of = (facts.facets["study"], facts.facets["framework"])
    return ": ".join(filter(None, of)) or formatting.NONE


def _void(facts: RunFacts) -> TableCell:
    reps = [rep for entry in facts.entries for rep in entry.cell.repetitions]
    void = sum(not rep.validity.valid for rep in reps)
    return TableCell(f"{void} of {len(reps)}" if reps else formatting.NONE, value=f"{void}")


def _state(facts: RunFacts) -> TableCell:
    state = facts.run.state
    return TableCell(state, css="state" if state == "finished" else "state void")


_COLUMNS: Sequence[Column[RunFacts]] = [
    Column("run", lambda facts: linked(facts.run)),
    Column("measured", _measured),
    Column(
        "figures of the best cell",
        lambda facts: TableCell(facts.figures or formatting.NONE, css="reason"),
    ),
    Number("void", _void),
    Number("ended, UTC", _ended),
    Column("hosts", lambda facts: TableCell(_hosts(facts), css="reason")),
    Column("lab", lambda facts: _lab(facts.manifest)),
    Column("state", _state),
]
_BUNDLE = Column[RunFacts]("bundle", lambda facts: _bundle(facts.run))


def _bundle(run: PastRun) -> Link | str:
    return link(RunDir(Path(run.run_id)).bundle, "tar.gz") if run.has_bundle else formatting.NONE


def _row(facts: RunFacts) -> Row:
    sentences = [words.state(facts.run), *facts.sentences]
    return Row(
        facets=facts.facets,
        group="run",
        more="".join(f"<p>{html.escape(text)}</p>" for text in sentences if text)
        or "<p>Nothing was measured.</p>",
    )


def _hosts(facts: RunFacts) -> str:
    kind, manifest = facts.facets["hosts"], facts.manifest
    if manifest is None:
        return kind or formatting.NONE
    machines = dict.fromkeys(
        f"{host.cpu_model}, {formatting.plural(len(host.cpus), 'core')}, kernel {host.kernel}"
        for host in manifest.hosts.values()
    )
    return "; ".join(filter(None, [kind, *machines]))


def _lab(manifest: Manifest | None) -> str:
    return labels.short_lab(manifest.lab) if manifest else formatting.NONE


def facts_of(run: PastRun) -> RunFacts:
    """Return the facts that the page shows of a run; a run without words for them is broken."""
    try:
        return _facts(run)
    except ValueError as problem:
        # An unknown code or generator, of a lab with the same schema.
        return RunFacts(replace(run, state="broken", problem=str(problem), measured=None))


def _facts(run: PastRun) -> RunFacts:
    if run.measured is None or run.begun is None:
        return RunFacts(run)
    summary = run.measured.summary
    paths = labels.paths(run.begun.plan.endpoints)
    measured = [cell for cell in summary.cells if cell.purpose == "measure"]
    for cell in measured:
        registry.get(cell.cell.load.generator)
    entries = labels.entries(measured, paths)
    sentences = [python_clients_section.of_entry(entry).text for entry in entries[:_SENTENCES]]
    if len(entries) > _SENTENCES:
        more = formatting.plural(len(entries) - _SENTENCES, "more cell")
        sentences.append(f"{more}: see the report.")
    return RunFacts(run, entries, _figures(summary, entries), sentences)


def _figures(summary: Summary, entries: Sequence[Entry]) -> str:
    by_path = labels.by_path(entries)
    figures = []
    for path, own in list(by_path.items())[:_ENDPOINTS]:
        stacks = [entry for entry in own if not entry.is_client]
        text = _best(summary, stacks) if stacks else _clients(own)
        figures.append(f"{path} {text}")
    more = len(by_path) - _ENDPOINTS
    return "; ".join([*figures, *([formatting.plural(more, "more endpoint")] if more > 0 else [])])


def _best(summary: Summary, entries: Sequence[Entry]) -> str:
    """Return the figures of the best cell of an endpoint: 1,000/s held, p99 15.3 ms."""
    entry, _ = tiles.best(summary, entries)
    statistics, headline = entry.cell.statistics, cell_outcome.headline(entry)
    if headline.state == "void":
        return headline.short
    goodput = f"{formatting.rate(cell_outcome.median(statistics.goodput))}/s"
    rate = {
        "held": f"{formatting.asked(entry.cell.cell.load)}/s held",
        "missed": f"{goodput} of {formatting.asked(entry.cell.cell.load)} asked",
    }.get(headline.state, f"{goodput} in a closed loop")
    search, curve = (tiles.trial(summary.searches, entry), tiles.trial(summary.curves, entry))
    if search and search.highest_rate:
        highest = formatting.number(search.highest_rate)
        rate = f"{highest}/s is the highest rate with {labels.objective(search.slo)}"
    slowest = latency_columns.slowest([(entry.where, statistics)])
    within = ""
    if curve and curve.within:
        within = f", up to {formatting.number(curve.within)}/s with {labels.objective(curve.slo)}"
    return f"{rate}, {slowest}{within}"


def _clients(entries: Sequence[Entry]) -> str:
    figures = [f"{entry.cell.cell.load.generator} {python_clients_section.headline(entry).short}"
               for entry in entries]  # fmt: skip
    return ", ".join(dict.fromkeys(figures))
