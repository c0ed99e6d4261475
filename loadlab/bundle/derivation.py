"""Derive the documents of a bundle again from its raw files, and compare each with the bundle's."""

from collections.abc import Callable
from pathlib import Path

from loadlab.bundle import crate
from loadlab.bundle.archive import names
from loadlab.bundle.document_comparison import Comparison
from loadlab.bundle.outcome import Checked, Outcome
from loadlab.history import reproduction
from loadlab.kinds import all_kinds, derive_run
from loadlab.kinds.lesson import show
from loadlab.model import Manifest
from loadlab.plan import plan_document as plans
from loadlab.plan.plan_document import Run
from loadlab.report.render import render
from loadlab.results.calibrations import judge_calibration
from loadlab.run import documents, run_dir
from loadlab.run.run_dir import RunDir


class Derivation:
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
        # A hostile or damaged file may raise any of these; its document then counts as not derived.
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
            obstacle = f"cannot be derived: {type(problem).__name__}: {problem}"[:300]
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
