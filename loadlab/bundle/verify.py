"""Verify a bundle: derive every document again from its raw files and compare.

Each file of the bundle then has one of four states; see State in outcome.py. Writes only below the
folder ``scratch``.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from loadlab.bundle import contradictions, crate, signature, unpack
from loadlab.bundle.archive import FILES_MAX, BundleError, names
from loadlab.bundle.document_comparison import Comparison
from loadlab.bundle.outcome import Checked, Outcome
from loadlab.history import reproduction
from loadlab.kinds import all_kinds, derive_run
from loadlab.kinds.lesson import show
from loadlab.model import SCHEMA, LabRevision, Manifest, Result
from loadlab.model.base import Json
from loadlab.plan import plan_document as plans
from loadlab.plan.plan_document import Run
from loadlab.reasons.validity_reasons import THRESHOLDS, Thresholds
from loadlab.report.render import render
from loadlab.results.calibrations import judge_calibration
from loadlab.run import documents, revision, run_dir
from loadlab.run.formatting import one_line, plain
from loadlab.run.run_dir import RunDir

_ONLY_LISTED = f"raw, and no {run_dir.RESULT} names its SHA-256"
# What a hostile or damaged file may raise.
_OF_HOSTILE_FILES = (
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
    *(AssertionError, ArithmeticError, OSError),
)
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
    # Their order is planned again, which takes as long as they are many.
    if begun.plan.options.repetitions > FILES_MAX:
        count = begun.plan.options.repetitions
        raise BundleError(f"has a plan of {count:,} repetitions, limit {FILES_MAX:,}")
    its, here = manifest.lab, revision.of(root)
    own = its == here and here.revision is not None and here.dirty is False
    other = None if own else f"made by {_lab(its)}, and this is {_lab(here)}"
    outcome = Outcome(derived, str(its.revision), other, signer, signers)
    if other is not None:
        outcome.notes.append(f"The run was {other}.")
    outcome.notes += _threshold_notes(begun.thresholds)
    outcome.files = {name: Checked("not verified", (_ONLY_LISTED,)) for name in raw}
    _Derivation(bundled, derived, root, outcome).all(manifest, begun)
    listed = unpack.listed(sums)
    _check_hashes(bundled, listed, outcome)
    _check_run(begun, outcome)
    for name in listed:
        outcome.files.setdefault(name, Checked("differs", ("the lab gives no file this name",)))
    return outcome


class _Derivation:
    """Derives the documents in their order of dependency.

    A document that is the same is replaced with the bundle's copy, so that a rounding difference
    here does not appear again in documents made from it.
    """

    def __init__(self, bundled: Path, derived: Path, root: Path, outcome: Outcome) -> None:
        self.bundled, self.derived, self.root, self.outcome = bundled, derived, root, outcome

    def all(self, manifest: Manifest, begun: Run) -> None:
        """Derive all documents and compare them; ``manifest``, ``begun``: the bundle's manifest
        and plan.json."""
        derived = self.derived
        self._make(self._calibrations, "calibration")
        self._make(lambda: derive_run.results(derived), f"{run_dir.CELLS}/")
        self._make(lambda: derive_run.describe_again(derived, manifest), "manifest")
        self._make(
            lambda: derive_run.summary(derived),
            "summary",
            "claims",
            run_dir.LESSON,
            "certificate",
            run_dir.VERDICT,
            run_dir.MATRIX,
            "metrics",
            run_dir.TABLE,
            run_dir.BENCHER,
            f"{run_dir.PERCENTILES}/",
        )
        self._make(lambda: reproduction.write(derived), "reproduction")
        self._make(self._report, "report", run_dir.COMMENT)
        self._make(lambda: self._lesson(begun), run_dir.LESSON_TEXT, run_dir.LESSON_PAGE)
        self._make(self._crate, run_dir.CRATE)

    def _make(self, make: Callable[[], object], *beginnings: str) -> None:
        """Derive documents, then compare every file whose name starts with one
        of ``beginnings``."""
        obstacle = ""
        try:
            make()
        # The document then counts as not derived.
        except _OF_HOSTILE_FILES as problem:
            words = _words(problem, self.bundled, self.derived)
            obstacle = f"cannot be derived: {type(problem).__name__}: {words}"[:300]
        both = {*names(self.bundled), *names(self.derived)}
        for name in sorted(both):
            if run_dir.derived(name) and name.startswith(beginnings):
                self._settle(name, obstacle)

    def _settle(self, name: str, obstacle: str) -> None:
        bundled, derived, outcome = self.bundled / name, self.derived / name, self.outcome
        compared = Comparison()
        if not bundled.exists():
            compared.differences.append("the bundle has none, and one was derived")
        elif not derived.exists():
            absent = obstacle or "the bundle has one, and none was derived"
            compared.differences.append(absent)
        else:
            compared.files(bundled, derived)
        outcome.numbers += compared.numbers
        if compared.differences or (compared.more and outcome.other is None):
            checked = Checked("differs", (*compared.differences, *compared.more))
        elif compared.more:
            checked = Checked("not verified", (str(outcome.other), *compared.more))
        else:
            checked = Checked("same")
            derived.write_bytes(bundled.read_bytes())
        outcome.files[name] = checked

    def _calibrations(self) -> None:
        thresholds = plans.read(self.derived).thresholds
        for folder in RunDir(self.derived).calibrations():
            for number in folder.numbers():
                try:
                    generator = judge_calibration.generator(folder, number)
                    calibration = judge_calibration.derive(folder, number, generator, thresholds)
                except ValueError:
                    # It failed in the run too, or the bundle has a calibration.json that it should
                    # not have.
                    continue
                documents.write(folder.document, documents.dump(calibration))

    def _report(self) -> None:
        # Imported here: matplotlib takes a second of CPU.
        from loadlab.kinds import page as report

        template = self.root / "roles" / "report" / "templates" / "report.html.j2"
        # With the sizes of the bundle's own files, as newly derived ones may be longer.
        document = report.build(self.derived, self.bundled)
        run = RunDir(self.derived)
        documents.write(run.report, render(template, document))
        for page, content in all_kinds.of_run(run.path).pages(run).items():
            documents.write(page, content)

    def _crate(self) -> None:
        # A bundle of an earlier revision has none.
        if RunDir(self.bundled).crate.exists():
            # Of the bundle's own files, as newly derived ones may be longer.
            documents.write(RunDir(self.derived).crate, crate.encode(self.bundled))

    def _lesson(self, begun: Run) -> None:
        study = begun.plan.study
        # A lesson that was not completed has no pages.
        if study and study.lesson and RunDir(self.bundled).lesson_page.exists():
            for name, content in show.pages(self.derived, self.root).items():
                documents.write(self.derived / name, content)


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
    except _OF_HOSTILE_FILES as problem:
        # What is damaged was marked when it was derived.
        words = _words(problem, outcome.run_dir)
        outcome.notes.append(f"Its documents were not compared with each other: {words}"[:300])
        return
    for name, texts in faults.items():
        before = outcome.files.get(name)
        reasons = before.reasons if before and before.state == "differs" else ()
        outcome.files[name] = Checked("differs", (*reasons, *texts))


def _words(problem: Exception, *folders: Path) -> str:
    """Return the text of a problem, with the files in ``folders`` by their names in the bundle."""
    text = str(problem)
    for folder in folders:
        text = text.replace(f"{folder}/", "")
    return text


def _named(result: Path) -> dict[str, str]:
    """Return raw_sha256 of a result.json; nothing where it is no result, which _Derivation says."""
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
