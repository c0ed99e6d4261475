"""Derive a run's documents from its files and write them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from loadlab.hosts import ec2_price
from loadlab.kinds.gate import analyse as verdict
from loadlab.kinds.lesson import analyse as lessons
from loadlab.kinds.lesson import reader
from loadlab.kinds.study import analyse as claims
from loadlab.model import (
    Claims,
    CloudInstance,
    LessonResult,
    Manifest,
    ManifestHost,
    MatrixVerdict,
    Reason,
    RepetitionSetup,
    Result,
    Summary,
    UnmeasuredCell,
)
from loadlab.plan import plan_document as plans
from loadlab.plan import records, repeats
from loadlab.results import (
    build_manifest,
    client_part,
    derive_result,
    judge_calibration,
    judge_certificate,
)
from loadlab.results import summarize as summaries
from loadlab.results.build_manifest import Locked
from loadlab.results.exports import cells_table, openmetrics, percentile_files
from loadlab.results.matrix import build_matrix as matrix
from loadlab.run import documents, revision
from loadlab.run.catalog import load_yaml
from loadlab.run.run_dir import RepetitionDir, RunDir


def results(run_dir: Path) -> None:
    """Write result.json of every repetition that has none, and reduce its raw files."""
    for described in RunDir(run_dir).described():
        repetition(described.path)


def repetition(rep_dir: Path) -> None:
    """Write result.json of cells/<cell_id>/rep-<n> if it is absent, and reduce its raw files."""
    path, run_dir = RepetitionDir(rep_dir).result, rep_dir.parents[2]
    limits = plans.read(run_dir).thresholds
    if not path.exists():
        derive_result.keep(rep_dir, limits)
        in_force = judge_calibration.in_force(run_dir, rep_dir, limits)
        built = derive_result.build(rep_dir, limits, *in_force)
        documents.write(path, documents.encode(built))
    derive_result.discard(rep_dir, limits)


@dataclass(frozen=True)
class Unfinished:
    """A repetition that an earlier controller left unfinished.

    - step: the step of the load that was seen last; None where none was
    - unfetched: why files of its hosts could not be fetched
    """

    repetition: RepetitionDir
    step: str | None
    unfetched: Sequence[str]

    def fail(self, error: str) -> None:
        """Mark the repetition as failed."""
        text = error.encode(errors="backslashreplace") + b"\n"
        documents.write(self.repetition.error, text)


def unfinished(run_dir: Path, unfetched: Sequence[Mapping[str, str]] = ()) -> list[Unfinished]:
    """Return the repetitions that an earlier controller left unfinished.

    A repetition is unfinished where it has no result and its load did not end on every client; what
    the hosts have of it was fetched before. So is a repetition without a result of a pair from
    which something could not be fetched: ``unfetched`` is [{server, reason}].
    """
    found = []
    for repetition in RunDir(run_dir).described():
        if repetition.result.exists() or repetition.error.exists():
            continue
        setup = documents.read(repetition.cell, RepetitionSetup)
        folders = [folder for folder, _ in client_part.parts(repetition.path, setup)]
        going = [folder for folder in folders if not folder.run.exists()]
        reasons = [one["reason"] for one in unfetched if one["server"] == setup.server]
        if going or reasons:
            seen = next((folder.status for folder in going), None)
            step = documents.text(seen).strip() if seen and seen.exists() else None
            found.append(Unfinished(repetition, step, reasons))
    return found


def describe(
    run_dir: Path,
    root: Path,
    hosts: Mapping[str, object],
    controller: Mapping[str, str],
    instances: Mapping[str, object],
) -> None:
    """Write manifest.json; the run's finish time is that of its last repetition.

    ``hosts`` and ``controller``: the manifest's fields of these names. ``instances``: host -> its
    cloud instance, see Found in hosts/ec2_price.py; empty where the hosts are none.
    """
    measured = _measured(run_dir)
    locked = build_manifest.locked(
        root,
        build_manifest.sources(found.cell for found in measured),
        {found.cell.load.generator for found in measured},
        any(found.purpose == "py_spy" for found in measured),
    )
    document = build_manifest.build(
        plans.read(run_dir),
        _finished(measured),
        {name: documents.decode(host, ManifestHost, name) for name, host in hosts.items()},
        controller,
        revision.of(root),
        locked,
        judge_certificate.newest(run_dir),
        _instances(RunDir(run_dir).manifest, root, instances),
    )
    documents.write(RunDir(run_dir).manifest, documents.encode(document))


def _instances(
    manifest_json: Path, root: Path, instances: Mapping[str, object]
) -> list[CloudInstance] | None:
    """Return the cloud instances of the run up to now; None where it had none."""
    if not instances:
        return None
    earlier = documents.read_or_none(manifest_json, Manifest)
    before = (earlier and earlier.instances) or []
    prices = msgspec.convert(load_yaml(root / "files" / "aws_prices.yml"), ec2_price.Prices)
    found = msgspec.convert(instances, dict[str, ec2_price.Found])
    return ec2_price.used(prices, datetime.datetime.now(datetime.UTC), found, before)


def describe_again(run_dir: Path, known: Manifest) -> None:
    """Write manifest.json again from the run's files.

    What they do not contain (hosts, controller, lab, pins, locks) is copied from ``known``, an
    earlier manifest.json.
    """
    document = build_manifest.build(
        plans.read(run_dir),
        _finished(_measured(run_dir)),
        known.hosts,
        known.controller,
        known.lab,
        Locked(known.pins, known.locks or {}),
        known.certificate,
        known.instances,
    )
    documents.write(RunDir(run_dir).manifest, documents.encode(document))


def _measured(run_dir: Path) -> list[Result]:
    return [documents.read(one.result, Result) for one in RunDir(run_dir).measured()]


def _finished(measured: Sequence[Result]) -> str | None:
    ends = [found.finished for found in measured]
    return max((_iso(end) for end in ends if end is not None), default=None)


def _iso(unix: float) -> str:
    return datetime.datetime.fromtimestamp(unix, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unmeasured(run_dir: Path) -> list[UnmeasuredCell]:
    """Return a study's cells without a valid repetition; none without a study."""
    judged = RunDir(run_dir).claims
    return documents.read(judged, Claims).unmeasured if judged.exists() else []


def is_without_best(run_dir: Path) -> bool:
    """Return whether the run is a matrix of which no candidate has a valid measurement."""
    found = RunDir(run_dir).matrix
    return found.exists() and documents.read(found, MatrixVerdict).best is None


def abandoned(run_dir: Path) -> dict[str, str]:
    """Return the cells with failures and no valid repetition, each with its last error.

    A matrix has none: it drops candidates that fail, with their reasons.
    """
    if RunDir(run_dir).matrix.exists():
        return {}
    errors: dict[str, str] = {}
    valid = set()
    for found in _measured(run_dir):
        if found.error is not None:
            errors[found.cell_id] = found.error
        elif found.validity.valid:
            valid.add(found.cell_id)
    return {cell_id: error for cell_id, error in errors.items() if cell_id not in valid}


def void_reasons(run_dir: Path) -> list[Reason]:
    """Return why every measurement of a run is void, each reason; empty where one is valid.

    A certificate judges its measurements itself.
    """
    study = plans.read(run_dir).plan.study
    found = [one for one in _measured(run_dir) if one.error is None]
    if (study and study.expectations) or any(one.validity.valid for one in found):
        return []
    return [why for one in found for why in one.validity.reasons]


def summary(run_dir: Path) -> tuple[Summary, Claims | None]:
    """Write summary.json, metrics.prom, cells.csv, each cell's percentiles, and claims.json,
    lesson.json and certificate.json of a study that has them, verdict.json of variants and
    matrix.json of candidates; return summary and claims.

    The claims are None where the run is no study or lesson.
    """
    run = RunDir(run_dir)
    document = summaries.summary(run_dir)
    documents.write(run.summary, documents.encode(document))
    documents.write(run.metrics, openmetrics.text(document).encode())
    documents.write(run.table, cells_table.text(cells_table.rows(document)).encode())
    _percentiles(run)
    plan = plans.read(run_dir).plan
    if plan.ab is not None:
        found = verdict.build(run.run_id, plan.ab, records.load(run_dir))
        documents.write(run.verdict, documents.encode(found))
    if plan.matrix is not None:
        kept = repeats.limited(plan, records.load(run_dir))
        best = matrix.build(run.run_id, plan, kept)
        documents.write(run.matrix, documents.encode(best))
    study = plan.study
    if study is None:
        return document, None
    judged = claims.build(document, study)
    documents.write(run.claims, documents.encode(judged))
    if study.lesson is not None:
        lesson(run_dir)
    if study.expectations:
        finished = _finished(_measured(run_dir))
        certified = judge_certificate.build(
            document, study, judge_certificate.injected(run), finished
        )
        documents.write(run.certificate, documents.encode(certified))
    return document, judged


def lesson(run_dir: Path) -> LessonResult:
    """Write lesson.json, of summary.json and what the reader did, and return it."""
    run = RunDir(run_dir)
    study = plans.read(run_dir).plan.study
    assert study is not None
    assert study.lesson is not None
    summarized = documents.read(run.summary, Summary)
    found = lessons.build(summarized, study, study.lesson, reader.read(run_dir))
    documents.write(run.lesson, documents.encode(found))
    return found


def _percentiles(run: RunDir) -> None:
    for cell_id, found in summaries.by_cell(run).items():
        path, lines = run.percentiles(cell_id), percentile_files.text(found)
        if lines is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(exist_ok=True)
            documents.write(path, lines.encode())
