"""Derive a run's documents from its files and write them."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from loadlab.hosts import ec2_price
from loadlab.kinds import all_kinds
from loadlab.kinds.certificate import analyse as certificates
from loadlab.model import (
    Claims,
    CloudInstance,
    Manifest,
    ManifestHost,
    Reason,
    RepetitionSetup,
    Result,
    Summary,
    UnmeasuredCell,
)
from loadlab.plan import plan_document as plans
from loadlab.results import build_manifest
from loadlab.results.build_manifest import Locked
from loadlab.results.calibrations import judge_calibration
from loadlab.results.exports import bencher, cells_table, openmetrics, percentile_files
from loadlab.results.repetitions import client_part, derive_result, lane_files
from loadlab.results.summaries import summarize as summaries
from loadlab.run import documents, formatting, revision
from loadlab.run.catalog import load_yaml
from loadlab.run.run_dir import RepetitionDir, RunDir


def results(run_dir: Path) -> None:
    """Write result.json of every repetition that has none, and reduce its raw files."""
    for described in RunDir(run_dir).described():
        repetition(described.path)


def repetition(rep_dir: Path) -> None:
    """Write result.json of cells/<cell_id>/rep-<n> if it is absent, and reduce its raw files."""
    lane_files.share_out(RepetitionDir(rep_dir))
    path, run_dir = RepetitionDir(rep_dir).result, rep_dir.parents[2]
    thresholds = plans.read(run_dir).thresholds
    if not path.exists():
        derive_result.keep(rep_dir, thresholds)
        in_force = judge_calibration.in_force(run_dir, rep_dir, thresholds)
        built = derive_result.build(rep_dir, thresholds, *in_force)
        documents.write(path, documents.encode(built))
    derive_result.discard(rep_dir, thresholds)


@dataclass(frozen=True)
class Unfinished:
    """A repetition that an earlier controller left unfinished."""

    repetition: RepetitionDir
    step: str | None  #: The step of the load that was seen last; None where none was.
    unfetched: Sequence[str]  #: Why files of its hosts could not be fetched.

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
    left = []
    for repetition in RunDir(run_dir).described():
        if repetition.result.exists() or repetition.error.exists():
            continue
        lane_files.share_out(repetition)
        setup = documents.read(repetition.cell, RepetitionSetup)
        folders = [folder for folder, _ in client_part.parts(repetition.path, setup)]
        going = [folder for folder in folders if not folder.run.exists()]
        reasons = [pair["reason"] for pair in unfetched if pair["server"] == setup.server]
        if going or reasons:
            seen = next((folder.status for folder in going), None)
            step = documents.text(seen).strip() if seen and seen.exists() else None
            left.append(Unfinished(repetition, step, reasons))
    return left


def describe(
    run_dir: Path,
    root: Path,
    hosts: Mapping[str, object],
    controller: Mapping[str, str],
    instances: Mapping[str, object],
) -> None:
    """Write manifest.json; the run's finish time is that of its last repetition.

    ``hosts`` and ``controller``: the manifest's fields of these names. ``instances``: host -> its
    cloud instance, see HostInstance in hosts/ec2_price.py; empty where the hosts are none.
    """
    measured = _measured(run_dir)
    locked = build_manifest.locked(
        root,
        build_manifest.sources(result.cell for result in measured),
        {result.cell.load.generator for result in measured},
        any(result.purpose == "py_spy" for result in measured),
    )
    document = build_manifest.build(
        plans.read(run_dir),
        formatting.latest(result.finished for result in measured),
        {name: documents.decode(host, ManifestHost, name) for name, host in hosts.items()},
        controller,
        revision.of(root),
        locked,
        certificates.newest(run_dir),
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
    current = msgspec.convert(instances, dict[str, ec2_price.HostInstance])
    return ec2_price.used(prices, datetime.datetime.now(datetime.UTC), current, before)


def describe_again(run_dir: Path, manifest: Manifest) -> None:
    """Write manifest.json again from the run's files.

    What they do not contain (hosts, controller, lab, pins, locks) is copied from ``manifest``,
    an earlier one.
    """
    document = build_manifest.build(
        plans.read(run_dir),
        formatting.latest(result.finished for result in _measured(run_dir)),
        manifest.hosts,
        manifest.controller,
        manifest.lab,
        Locked(manifest.pins, manifest.locks),
        manifest.certificate,
        manifest.instances,
    )
    documents.write(RunDir(run_dir).manifest, documents.encode(document))


def _measured(run_dir: Path) -> list[Result]:
    return [documents.read(folder.result, Result) for folder in RunDir(run_dir).measured()]


def unmeasured(run_dir: Path) -> list[UnmeasuredCell]:
    """Return a study's cells without a valid repetition; none without a study."""
    claims = documents.read_or_none(RunDir(run_dir).claims, Claims)
    return claims.unmeasured if claims else []


def abandoned(run_dir: Path) -> dict[str, str]:
    """Return the cells with failures and no valid repetition, each with its last error."""
    errors: dict[str, str] = {}
    valid = set()
    for result in _measured(run_dir):
        if result.error is not None:
            errors[result.cell_id] = result.error
        elif result.validity.valid:
            valid.add(result.cell_id)
    return {cell_id: error for cell_id, error in errors.items() if cell_id not in valid}


def void_reasons(run_dir: Path) -> list[Reason]:
    """Return why every measurement of a run is void, each reason; empty where one is valid."""
    measured = [result for result in _measured(run_dir) if result.error is None]
    if all_kinds.of_run(run_dir).expects_void or any(result.validity.valid for result in measured):
        return []
    return [reason for result in measured for reason in result.validity.reasons]


def summary(run_dir: Path) -> Summary:
    """Write summary.json, metrics.prom, cells.csv, bencher.json, each cell's percentiles, and the
    documents of the run's kind; return the summary."""
    run = RunDir(run_dir)
    document = summaries.summary(run_dir)
    documents.write(run.summary, documents.encode(document))
    documents.write(run.metrics, openmetrics.text(document).encode())
    documents.write(run.table, cells_table.text(cells_table.rows(document)).encode())
    documents.write(run.bencher, documents.dump(bencher.document(document)))
    _percentiles(run)
    plan = plans.read(run_dir).plan
    for path, own in all_kinds.of_plan(plan).documents(run, plan, document).items():
        documents.write(path, documents.encode(own))
    return document


def _percentiles(run: RunDir) -> None:
    for cell_id, results in summaries.by_cell(run).items():
        path, lines = run.percentiles(cell_id), percentile_files.text(results)
        if lines is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(exist_ok=True)
            documents.write(path, lines.encode())
