"""Read the run that another one repeats: a bundle, verified first, or a run in results/."""

import tempfile
from pathlib import Path
from typing import Any

from loadlab.bundle import verify
from loadlab.bundle.outcome import listing
from loadlab.history import reproduction
from loadlab.model import Manifest, Original, Source, Summary
from loadlab.plan import plan_document as plans
from loadlab.run import documents
from loadlab.run.catalog import path_of, runs
from loadlab.run.errors import PlanError
from loadlab.run.run_dir import LATEST, MANIFEST, PLAN, RUN_ID, SUMMARY, RunDir

# Documents without which a run cannot be repeated and compared.
NEEDED = (PLAN, MANIFEST, SUMMARY)


def read(like: str, root: Path) -> Original:
    """Return the original that ``like`` names: the path of a bundle or of a run, or a run_id.

    ``root``: top directory of the lab. Raises PlanError, whose text begins with the option, where
    there is none, where it is altered, of another schema or incomplete.
    """
    path = path_of(Path(), "like", like)
    if path.is_file():
        return _of_bundle(path, like, root)
    run_dir = path if (path / PLAN).is_file() else root / "results" / like
    named = path == run_dir or RUN_ID.fullmatch(like) or like == LATEST
    if not named or not (run_dir / PLAN).is_file():
        raise PlanError(
            f"like: '{like}' is neither a bundle nor a run. Give the path of an archive that "
            "python -m loadlab bundle wrote, or a run in results/. "
            f"{runs(root / 'results', SUMMARY)}"
        )
    absent = [name for name in NEEDED if not (run_dir / name).is_file()]
    if absent:
        raise PlanError(
            f"like: the run '{like}' has no {', '.join(absent)}: it was not finished. Finish it "
            f"with ansible-playbook lab.yml {plans.resume_args(run_dir.resolve())}, or give "
            "another."
        )
    try:
        return _original(run_dir.resolve())
    except ValueError as problem:
        raise PlanError(f"like: the run '{like}' cannot be read: {problem}.") from None


def _of_bundle(path: Path, like: str, root: Path) -> Original:
    sha256 = documents.digest_of(path)
    with tempfile.TemporaryDirectory(prefix="loadlab-like-") as scratch:
        try:
            outcome = verify.verify(path, root, Path(scratch))
        except ValueError as problem:
            raise PlanError(f"like: '{like}' {problem}. It is refused.") from None
        if altered := sorted(outcome.of("differs")):
            raise PlanError(
                f"like: '{like}' is refused, as these files are not what its raw files give: "
                f"{listing(altered)}. See each difference with python -m loadlab verify "
                f"{like}, and get the bundle again from its maker."
            )
        try:
            return _original(
                outcome.run_dir,
                sha256=sha256,
                signer=outcome.signer.fingerprint if outcome.signer else None,
                unverified=outcome.unverified(),
            )
        except ValueError as problem:
            raise PlanError(f"like: '{like}' cannot be read: {problem}.") from None


def _original(run_dir: Path, **verified: Any) -> Original:
    """Return the original in a folder; ``verified``: fields of Source that its bundle gave."""
    run = RunDir(run_dir)
    manifest = documents.read(run.manifest, Manifest)
    run_id, started = manifest.run_id, manifest.started
    return Original(
        source=Source(run_id=run_id, started=started, lab=manifest.lab, **verified),
        summary=documents.read(run.summary, Summary),
        **vars(reproduction.basis(run_dir)),
    )
