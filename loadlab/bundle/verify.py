"""Verify a bundle: derive every document again from its raw files and compare.

Each file of the bundle then has one of four states; see State in outcome.py. Writes only below the
folder ``scratch``.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from loadlab.bundle import contradictions, signature, unpack
from loadlab.bundle.archive import BundleError, names
from loadlab.bundle.derivation import Derivation
from loadlab.bundle.outcome import Checked, Outcome
from loadlab.model import SCHEMA, LabRevision, Manifest, Result
from loadlab.model.base import Json
from loadlab.plan import plan_document as plans
from loadlab.plan.plan_document import Run
from loadlab.reasons.validity_reasons import THRESHOLDS, Thresholds
from loadlab.run import documents, revision, run_dir
from loadlab.run.formatting import one_line, plain
from loadlab.run.run_dir import RunDir

_ONLY_LISTED = f"raw, and no {run_dir.RESULT} names its SHA-256"
_MISSING = f"named by its {run_dir.RESULT}, and not in the bundle"


def verify(archive: Path, root: Path, scratch: Path, signers: Path | None = None) -> Outcome:
    """Unpack the bundle in the empty folder ``scratch``, derive its documents there and compare
    them.

    ``root``: top directory of this lab. ``signers``: a list of signers in ssh-keygen's format.
    Raises BundleError for an archive that is refused, also where its signature is not of its files
    or its documents are of another schema, and ResultError where it has no usable plan or manifest.
    """
    for name in ("bundled", "derived"):
        (scratch / name).mkdir()
    bundled, sums, signed = unpack.unpack(archive, scratch / "bundled")
    signer = signature.check(sums, signed, signers) if signed else None
    _refuse_older(documents.load(RunDir(bundled).manifest))
    derived = scratch / "derived" / bundled.name
    raw = [name for name in names(bundled) if not run_dir.derived(name)]
    for name in raw:
        (derived / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(bundled / name, derived / name)
    manifest = documents.read(RunDir(bundled).manifest, Manifest)
    begun = plans.read(bundled)
    its, here = manifest.lab, revision.of(root)
    own = its == here and here.revision is not None and here.dirty is False
    other = None if own else f"made by {_lab(its)}, and this is {_lab(here)}"
    outcome = Outcome(derived, str(its.revision), other, signer, signers)
    if other is not None:
        outcome.notes.append(f"The run was {other}.")
    outcome.notes += _threshold_notes(begun.thresholds)
    outcome.files = {name: Checked("not verified", (_ONLY_LISTED,)) for name in raw}
    Derivation(bundled, derived, root, outcome).all(manifest, begun)
    listed = unpack.listed(sums)
    _check_hashes(bundled, listed, outcome)
    _check_run(begun, outcome)
    for name in listed:
        outcome.files.setdefault(name, Checked("differs", ("the lab gives no file this name",)))
    return outcome


def _check_hashes(bundled: Path, sums: Mapping[str, str], outcome: Outcome) -> None:
    """Compare the SHA-256 of raw files that the bundle's results name with the files in it."""
    for path in sorted(bundled.rglob(run_dir.RESULT)):
        for name, sha256 in _named(path).items():
            file = f"{path.parent.relative_to(bundled).as_posix()}/{name}"
            if file not in sums:
                outcome.files[file] = Checked("not verified", (_MISSING,))
            elif sums[file] == sha256:
                outcome.files[file] = Checked("hashed")
            else:
                difference = (
                    f"SHA-256 {sums[file]}, and its {run_dir.RESULT} names {one_line(sha256, 64)}"
                )
                outcome.files[file] = Checked("differs", (difference,))


def _check_run(begun: Run, outcome: Outcome) -> None:
    """Mark the documents that contradict each other or the plan, though each was derived again."""
    if begun.resumed:
        last = one_line(begun.resumed[-1].started, 40)
        outcome.notes.append(
            f"The run was resumed at {last}: what was measured before was not compared with its "
            "plan."
        )
    try:
        faults = contradictions.find(outcome.run_dir, begun)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        # What is damaged was marked when it was derived.
        outcome.notes.append(f"Its documents were not compared with each other: {problem}"[:300])
        return
    for name, texts in faults.items():
        before = outcome.files.get(name)
        reasons = before.reasons if before and before.state == "differs" else ()
        outcome.files[name] = Checked("differs", (*reasons, *texts))


def _named(result: Path) -> dict[str, str]:
    """Return raw_sha256 of a result.json; nothing where it is no result, which Derivation says."""
    try:
        return documents.read(result, Result).raw_sha256
    except ValueError:
        return {}


def _refuse_older(manifest: Mapping[str, Json]) -> None:
    """Raise BundleError for documents of another schema; name the lab that can verify them."""
    schema = manifest.get("schema")
    if schema == SCHEMA:
        return
    lab = manifest.get("lab")
    its = lab if isinstance(lab, dict) else {}
    version = f"version {its['version']}, " if its.get("version") else ""
    maker = one_line(f"{version}revision {its.get('revision') or 'unknown'}", 100)
    raise BundleError(
        f"has documents of schema {one_line(str(schema), 40)}, and this lab verifies those of "
        f"{SCHEMA} alone. Verify it with the lab that made it, {maker}"
    )


def _lab(source: LabRevision) -> str:
    changed = " with changes of its own" if source.dirty else ""
    version = f"{one_line(source.version, 40)}, " if source.version else ""
    return f"lab {version}revision {one_line(source.revision or 'unknown', 40)}{changed}"


def _threshold_notes(recorded: Thresholds) -> list[str]:
    """Return notes on thresholds of the run that differ from this lab's, and which were used."""
    its, own = msgspec.structs.asdict(recorded), msgspec.structs.asdict(THRESHOLDS)
    return [
        f"{name}: {plain(its[name])} when the run began, {plain(limit)} in this lab; judged by the "
        "former."
        for name, limit in own.items()
        if its[name] != limit
    ]
