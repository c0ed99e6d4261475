"""Derive a run's documents from its files, check them against the schema and write them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from loadlab.analysis import calibration, claims, manifest, result
from loadlab.analysis import summary as summaries
from loadlab.core import documents, formatting, revision
from loadlab.core.schema import validate
from loadlab.scheduling import experiments, records


def write(document: dict[str, Any], name: str, path: Path, root: Path) -> None:
    """Write a document after checking it. Raises SchemaError before anything is written."""
    validate(document, name, root / "files" / "schema" / "lab-1.schema.json")
    documents.write(path, documents.dump(document))


def thresholds(run_dir: Path, root: Path) -> dict[str, Any]:
    """Return the thresholds of the run's verdicts: files/verdict.yml as recorded in plan.json.

    A threshold that plan.json lacks has its present value.
    """
    now = yaml.safe_load(documents.text(root / "files" / "verdict.yml"))
    return {**now, **documents.load(run_dir / "plan.json").get("thresholds", {})}


def results(run_dir: Path, root: Path, keep_requests: bool) -> None:
    """Write result.json of every repetition that has none, and reduce its raw files."""
    for description in sorted(run_dir.glob("cells/*/rep-*/cell.json")):
        repetition(description.parent, root, keep_requests)


def repetition(rep_dir: Path, root: Path, keep_requests: bool) -> None:
    """Write result.json of cells/<cell_id>/rep-<n> if it is absent, and reduce its raw files.

    ``keep_requests``: whether to keep oha's whole file of requests.
    """
    if not (rep_dir / "result.json").exists():
        run_dir = rep_dir.parents[2]
        in_force = calibration.in_force(run_dir, rep_dir)
        built = result.build(rep_dir, thresholds(run_dir, root), *in_force)
        write(built, "result", rep_dir / "result.json", root)
    result.reduce(rep_dir, keep_requests)


def cut_off(run_dir: Path, unfetched: Sequence[Mapping[str, str]] = ()) -> list[Path]:
    """Mark repetitions that an earlier controller left unfinished as failed; return their folders.

    A repetition is unfinished where it has no result and its load did not end on every client; what
    the hosts have of it was fetched before. So is a repetition without a result of a pair from
    which something could not be fetched: ``unfetched`` is [{pair, why}].
    """
    found = []
    for description in sorted(run_dir.glob("cells/*/rep-*/cell.json")):
        rep_dir = description.parent
        if any((rep_dir / name).exists() for name in ("result.json", "error.txt")):
            continue
        record = documents.load(description)
        folders = [folder for folder, _ in result.parts(rep_dir, record)]
        going = [folder for folder in folders if not (folder / "run.json").exists()]
        whys = [one["why"] for one in unfetched if one["pair"] == record.get("pair")]
        if going or whys:
            seen = next((folder / "progress.txt" for folder in going), None)
            last = f", last seen {documents.text(seen).strip()}" if seen and seen.exists() else ""
            words = "; ".join([f"cut off: the controller went away{last}", *whys])
            documents.write(rep_dir / "error.txt", words.encode(errors="backslashreplace") + b"\n")
            found.append(rep_dir)
    return found


def describe(
    run_dir: Path, root: Path, hosts: Mapping[str, Any], controller: Mapping[str, str]
) -> None:
    """Write manifest.json; the run's finish time is that of its last repetition.

    ``hosts`` and ``controller``: the manifest's keys of these names.
    """
    measured = _measured(run_dir)
    locks = {"controller": root / "requirements.txt"}
    for framework in {found["cell"]["framework"] for found in measured}:
        locks[framework] = root / "apps" / framework / "requirements.txt"
    if any(found["cell"]["load"]["mode"] == "batch" for found in measured):
        locks["clients"] = root / "files" / "clients" / "requirements.txt"
    if any(found["purpose"] == "profile" for found in measured):
        locks["profiler"] = root / "files" / "profiler" / "requirements.txt"
    document = manifest.build(
        documents.load(run_dir / "plan.json"),
        _finished(measured),
        hosts,
        controller,
        revision.of(root),
        {name: documents.text(path) for name, path in locks.items() if path.exists()},
    )
    write(document, "manifest", run_dir / "manifest.json", root)


def describe_again(run_dir: Path, root: Path, known: Mapping[str, Any]) -> None:
    """Write manifest.json again from the run's files.

    What they do not contain (hosts, controller, lab, pins) is copied from ``known``, an earlier
    manifest.json.
    """
    document = manifest.build(
        documents.load(run_dir / "plan.json"),
        _finished(_measured(run_dir)),
        known["hosts"],
        known["controller"],
        known["lab"],
        {},
    )
    write({**document, "pins": known["pins"]}, "manifest", run_dir / "manifest.json", root)


def _measured(run_dir: Path) -> list[dict[str, Any]]:
    return [documents.load(path) for path in sorted(run_dir.glob("cells/*/rep-*/result.json"))]


def _finished(measured: Sequence[Mapping[str, Any]]) -> str | None:
    ends = [found["finished"] for found in measured]
    return max((_iso(end) for end in ends if end is not None), default=None)


def _iso(unix: float) -> str:
    return datetime.datetime.fromtimestamp(unix, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def missing(run_dir: Path) -> list[str]:
    """Return a study's cells without a valid repetition, each with the reason; empty without a
    study."""
    judged = run_dir / "claims.json"
    found = documents.load(judged)["unmeasured"] if judged.exists() else []
    return [f"{one['cell']} ({one['why']})" for one in found]


def given_up(run_dir: Path) -> list[str]:
    """Return the cells with failures and no valid repetition, each with its last error."""
    found = []
    for cell_id, kept in records.load(run_dir).items():
        errors = [record["error"] for record in kept if record["error"] is not None]
        if errors and not experiments.valid(cell_id, {cell_id: kept}):
            found.append(f"{cell_id} ({formatting.one_line(errors[-1])})")
    return found


def summary(run_dir: Path, root: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Write summary.json, metrics.prom and a study's claims.json; return summary and claims.

    The claims are None where the run is no study or lesson.
    """
    document = summaries.summary(run_dir)
    write(document, "summary", run_dir / "summary.json", root)
    documents.write(run_dir / "metrics.prom", summaries.open_metrics(document).encode())
    study = documents.load(run_dir / "plan.json")["plan"].get("study")
    judged = claims.document(document, study) if study else None
    if judged:
        write(judged, "claims", run_dir / "claims.json", root)
    return document, judged
