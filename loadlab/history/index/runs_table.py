"""The table of all runs: it is searched, filtered and sorted, and opens to their sentences."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loadlab.history import words
from loadlab.history.index.run_facts import KnownRun
from loadlab.model import Manifest
from loadlab.report.html import Row, Table, TableCell, link, table
from loadlab.run import formatting
from loadlab.run.run_dir import RunDir

HEAD = ("run", "ended, UTC", "measured", "figures of the best cell", "void", "hosts", "lab",
        "state")  # fmt: skip
CAPTION = (
    "The newest run first. An arrow opens a row to a sentence on each cell. Void: of all "
    "repetitions, the instrument was the limit in so many, or they failed."
)
# A property with more values has no buttons; the search finds them.
_MOST = 12


def build(runs: Sequence[KnownRun]) -> Table:
    """Return the table; ``runs`` are in the order of time."""
    newest = list(reversed(runs))
    rows = [_row(run) for run in newest]
    shown = table(CAPTION, HEAD, rows, " n  n")
    facets = {
        name: list(dict.fromkeys(value for row in rows if (value := row.facets[name])))
        for name in ("study", "framework", "hosts", "state")
    }
    return replace(
        shown,
        facets={name: values for name, values in facets.items() if 1 < len(values) <= _MOST},
    )


def _row(facts: KnownRun) -> Row:
    run = facts.run
    page = RunDir(Path(run.run_id)).report
    name = link(page, run.run_id) if run.has_report else run.run_id
    study = run.begun.plan.study if run.begun else None
    reps = [rep for entry in facts.entries.values() for rep in entry.cell.repetitions]
    void = sum(not rep.validity.valid for rep in reps)
    frameworks = list(dict.fromkeys(entry.cell.cell.framework for entry in facts.entries.values()))
    if run.begun and not frameworks:
        stacks = run.begun.plan.stacks.values()
        frameworks = list(dict.fromkeys(str(stack["framework"]) for stack in stacks))
    facets = {
        "study": study.name if study else "",
        "framework": ", ".join(sorted(frameworks)),
        "hosts": run.begun.plan.host_kind if run.begun else "",
        "state": run.state,
    }
    sentences = [words.state(run), *facts.sentences]
    time = run.ended or run.began
    manifest = run.measured.manifest if run.measured else None
    return Row(
        [
            name,
            TableCell(words.ended(run), value="" if time is None else f"{time:.0f}"),
            ": ".join(filter(None, [facets["study"], facets["framework"]])) or formatting.NONE,
            TableCell(facts.figures or formatting.NONE, css="reason"),
            TableCell(f"{void} of {len(reps)}" if reps else formatting.NONE, value=f"{void}"),
            TableCell(_hosts(facets["hosts"], manifest), css="reason"),
            _lab(manifest),
            TableCell(run.state, css=f"state {'void' if run.state != 'finished' else ''}".strip()),
        ],
        facets=facets,
        group="run",
        more="".join(f"<p>{html.escape(text)}</p>" for text in sentences if text) or _NOTHING,
    )


_NOTHING = "<p>Nothing was measured.</p>"


def _hosts(kind: str, manifest: Manifest | None) -> str:
    if manifest is None:
        return kind or formatting.NONE
    machines = dict.fromkeys(
        f"{host.cpu_model}, {formatting.plural(len(host.cpus), 'core')}, kernel {host.kernel}"
        for host in manifest.hosts.values()
    )
    return "; ".join(filter(None, [kind, *machines]))


def _lab(manifest: Manifest | None) -> str:
    if manifest is None:
        return formatting.NONE
    lab = manifest.lab
    revision = f", {lab.revision[:12]}{'+' if lab.dirty else ''}" if lab.revision else ""
    return f"{lab.version or 'no version'}{revision}"
