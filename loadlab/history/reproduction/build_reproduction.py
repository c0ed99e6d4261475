"""Compare a run with its original, and write reproduction.json."""

from collections.abc import Sequence
from pathlib import Path

from loadlab.history import run_comparison
from loadlab.history.reproduction import deviations, recipe
from loadlab.model import (
    CellSummary,
    Manifest,
    Original,
    Reproduction,
    ReproductionPart,
    Summary,
    TuningLedger,
)
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


def write(run_dir: Path) -> Reproduction | None:
    """Write reproduction.json of a run that repeats another, from its documents; return it.

    None where it repeats none. Raises ResultError naming a malformed document.
    """
    run = RunDir(run_dir)
    if not run.original.exists():
        return None
    original = documents.read(run.original, Original)
    manifest = documents.read(run.manifest, Manifest)
    document = build(
        original,
        documents.read(run.summary, Summary),
        [
            *deviations.planned(original.recipe, recipe.of_run(run_dir)),
            *deviations.measured(
                (original.hosts, manifest.hosts),
                (original.controller, manifest.controller),
                (original.ledgers, ledgers(run_dir)),
            ),
        ],
    )
    documents.write(run.reproduction, documents.encode(document))
    return document


def build(original: Original, summary: Summary, parts: Sequence[ReproductionPart]) -> Reproduction:
    """Return reproduction.json; ``summary``: of this run, ``parts``: what differs but figures."""
    sides = {"base": [original.source.run_id], "head": [summary.run_id]}
    compared = run_comparison.between(
        sides, {original.source.run_id: original.summary, summary.run_id: summary}
    )
    before, now = _measured(original.summary), _measured(summary)
    return Reproduction(
        run_id=summary.run_id,
        original=original.source,
        parts=list(parts),
        comparisons=compared.comparisons,
        noise_floor=compared.noise_floor,
        only_original=[cell_id for cell_id in before if cell_id not in now],
        only_here=[cell_id for cell_id in now if cell_id not in before],
    )


def ledgers(run_dir: Path) -> list[TuningLedger]:
    """Return the ledgers of a run, that of the first profile first."""
    return [documents.read(path, TuningLedger) for path in RunDir(run_dir).ledgers()]


def _measured(summary: Summary) -> dict[str, CellSummary]:
    return {cell.cell_id: cell for cell in summary.cells if cell.purpose == "measure"}
