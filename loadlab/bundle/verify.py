"""Verify a bundle: derive every document again from its raw files and compare.

Writes only below the folder ``scratch``.
"""

from __future__ import annotations

import json
import math
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path

import msgspec
import numpy as np

from loadlab.analysis import calibration, derive
from loadlab.bundle.archive import BundleError, names, unpack
from loadlab.core import documents, revision, run_dir, thresholds
from loadlab.core.formatting import one_line, plain
from loadlab.core.model import SCHEMA, LabRevision, Manifest, Thresholds
from loadlab.core.model.base import Json
from loadlab.core.run_dir import RunDir
from loadlab.report import lesson
from loadlab.scheduling import plan as plans
from loadlab.scheduling.plan import Run
from loadlab.stats import histograms

# Relative. The last digits of a number may differ between machines, which add in another order.
TOLERANCE = 1e-9
SHOWN = 5  # how many documents, and differences of each, are printed

_ABSENT = object()
_FIGURE = re.compile("[0-9]")


@dataclass
class Outcome:
    """The result of a verification.

    - run_id; revision: of the lab that made the run; own: whether this lab is the same, without
      changes
    - raw, documents, numbers: how many raw files were used, and documents and numbers compared
    - notes: texts for the user
    - differences: document -> its differences
    - more: document -> fields that the bundle lacks, and other words or drawings. They count as
      differences only if ``own``: another version of the lab may know more and draw differently
    """

    run_id: str
    revision: str
    own: bool
    raw: int
    documents: int = 0
    numbers: int = 0
    notes: list[str] = field(default_factory=list)
    differences: dict[str, list[str]] = field(default_factory=dict)
    more: dict[str, list[str]] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether all documents are the same."""
        return not self.differences and not (self.own and self.more)

    def lines(self) -> list[str]:
        """Return lines for the terminal; their number is limited however much differs."""
        told = list(self.notes)
        wrong = {
            name: [*self.differences.get(name, []), *self.more.get(name, [])]
            for name in sorted({*self.differences, *(self.more if self.own else ())})
        }
        for name, found in list(wrong.items())[:SHOWN]:
            told += [f"Differs: {name}", *(f"  {one}" for one in found[:SHOWN])]
            if len(found) > SHOWN:
                told.append(f"  and {len(found) - SHOWN:,} more")
        if wrong:
            rest = len(wrong) - SHOWN
            return [*told, *([f"And {rest:,} more documents differ."] if rest > 0 else [])]
        if self.more:
            told.append(f"{len(self.more):,} documents say more, or otherwise, in this lab.")
        return [
            *told,
            f"Same: {self.numbers:,} numbers in {self.documents:,} documents of run {self.run_id} "
            f"were derived again from {self.raw:,} raw files.",
        ]


def verify(archive: Path, root: Path, scratch: Path) -> Outcome:
    """Unpack the bundle in the empty folder ``scratch``, derive its documents there and compare
    them.

    ``root``: top directory of this lab. Raises BundleError for an archive that is refused, also
    where its documents are of another schema, and ResultError where it has no usable plan or
    manifest.
    """
    for name in ("given", "again"):
        (scratch / name).mkdir()
    given = unpack(archive, scratch / "given")
    _refuse_older(documents.load(RunDir(given).manifest))
    again = scratch / "again" / given.name
    raw = [name for name in names(given) if not run_dir.derived(name)]
    for name in raw:
        (again / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(given / name, again / name)
    known = documents.read(RunDir(given).manifest, Manifest)
    begun = plans.read(given)
    its, here = known.lab, revision.of(root)
    own = its == here and here.revision is not None and here.dirty is False
    outcome = Outcome(given.name, str(its.revision), own, len(raw))
    if not own:
        outcome.notes.append(f"The run was made by {_lab(its)}; this is {_lab(here)}.")
    outcome.notes += _limits(begun.thresholds, root)
    _Again(given, again, root, outcome).all(known, begun)
    return outcome


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
    version = f"{source.version}, " if source.version else ""
    return f"lab {version}revision {source.revision or 'unknown'}{changed}"


def _limits(recorded: Thresholds, root: Path) -> list[str]:
    """Return notes on thresholds of the run that differ from this lab's, and which were used."""
    its, own = msgspec.structs.asdict(recorded), msgspec.structs.asdict(thresholds.of(root))
    return [
        f"{name}: {plain(its[name])} when the run began, {plain(limit)} in this lab; judged by the "
        "former."
        for name, limit in own.items()
        if its[name] != limit
    ]


class _Again:
    """Derives the documents in their order of dependency.

    A document that is the same is replaced with the bundle's copy, so that a rounding difference
    here does not appear again in documents made from it.
    """

    def __init__(self, given: Path, again: Path, root: Path, outcome: Outcome) -> None:
        self.given, self.again, self.root, self.outcome = given, again, root, outcome

    def all(self, known: Manifest, begun: Run) -> None:
        """Derive all documents and compare them; ``known``, ``begun``: the bundle's manifest and
        plan.json."""
        again = self.again
        self._make(self._calibrations, "calibration")
        self._make(lambda: derive.results(again, False), "cells")
        self._make(lambda: derive.describe_again(again, known), "manifest")
        self._make(lambda: derive.summary(again), "summary", "claims", "metrics")
        self._make(self._report, "report")
        self._make(lambda: self._lesson(begun), "lesson")

    def _make(self, make: Callable[[], object], *beginnings: str) -> None:
        """Derive documents, then compare every file whose name starts with one
        of ``beginnings``."""
        why = ""
        try:
            make()
        # A hostile or damaged file may raise any of these; its document then counts as not derived.
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
            why = f"cannot be derived: {type(problem).__name__}: {problem}"[:300]
        both = {*names(self.given), *names(self.again)}
        for name in sorted(both):
            if run_dir.derived(name) and name.startswith(beginnings):
                self._settle(name, why)

    def _settle(self, name: str, why: str) -> None:
        given, again = self.given / name, self.again / name
        self.outcome.documents += 1
        compared = Comparison()
        if not given.exists():
            compared.differences.append("the bundle has none, and one was derived")
        elif not again.exists():
            compared.differences.append(why or "the bundle has one, and none was derived")
        else:
            compared.files(given, again)
        self.outcome.numbers += compared.numbers
        if compared.more:
            self.outcome.more[name] = compared.more
        if compared.differences:
            self.outcome.differences[name] = compared.differences
        elif not compared.more:
            again.write_bytes(given.read_bytes())

    def _calibrations(self) -> None:
        limits = plans.read(self.again).thresholds
        for folder in RunDir(self.again).calibrations():
            for number in folder.numbers():
                try:
                    generator = calibration.generator(folder, number)
                    found = calibration.derive(folder, number, generator, limits)
                except ValueError:
                    # It failed in the run too, or the bundle has a calibration.json that it should
                    # not have.
                    continue
                documents.write(folder.document, documents.dump(found))

    def _report(self) -> None:
        # Imported here: matplotlib takes a second of CPU.
        from loadlab.report import page as report

        template = self.root / "roles" / "report" / "templates" / "report.html.j2"
        # With the sizes of the bundle's own files, as newly derived ones may be longer.
        document = report.build(self.again, self.given)
        documents.write(RunDir(self.again).report, report.render(template, document))

    def _lesson(self, begun: Run) -> None:
        study = begun.plan.study
        # A lesson that was not completed has no page.
        if study and study.kind == "lesson" and RunDir(self.given).lesson.exists():
            pages = {page.name: page for page in (self.root / "docs" / "lessons").glob("*.md.j2")}
            page = lesson.page(self.again, pages[f"{study.name}.md.j2"])
            documents.write(RunDir(self.again).lesson, page.encode())


class Comparison:
    """Compares a document of a bundle with the derived one.

    JSON is compared by fields. For other text, the pieces that contain figures must appear in the
    same order: lines, or the texts of a page. Numbers are equal up to TOLERANCE. ``numbers`` counts
    the numbers compared, ``differences`` has the place and both values, and ``more`` is as in
    Outcome.
    """

    def __init__(self) -> None:
        self.numbers = 0
        self.differences: list[str] = []
        self.more: list[str] = []

    def files(self, given: Path, again: Path) -> None:
        """Compare two files and add to the results."""
        if given.suffix == ".json":
            try:
                self._json(documents.load(given), documents.load(again), "")
            except (ValueError, RecursionError) as problem:
                self.differences.append(f"no JSON: {type(problem).__name__}: {problem}"[:300])
            return
        pieces = _texts if given.suffix == ".html" else str.splitlines
        both = [path.read_text(encoding="utf-8", errors="replace") for path in (given, again)]
        self._pieces(*(pieces(text) for text in both))
        if not self.differences and both[0] != both[1]:
            self.more.append("its figures are the same; its words, layout or drawings are not")

    def _json(self, given: Json, again: Json, place: str) -> None:
        if isinstance(given, dict) and isinstance(again, dict):
            if not _same_histogram(given, again):
                for key in sorted({*given, *again}):
                    beyond = f"{place}.{key}".lstrip(".")
                    self._json(given.get(key, _ABSENT), again.get(key, _ABSENT), beyond)
        elif isinstance(given, list) and isinstance(again, list):
            for index, (one, other) in enumerate(zip_longest(given, again, fillvalue=_ABSENT)):
                self._json(one, other, f"{place}[{index}]")
        elif _number(given) and _number(again):
            self.numbers += 1
            if not math.isclose(given, again, rel_tol=TOLERANCE):
                self.differences.append(_told(place, given, again))
        elif type(given) is not type(again) or given != again:
            another_field = given is _ABSENT and not place.endswith("]")
            (self.more if another_field else self.differences).append(_told(place, given, again))

    def _pieces(self, given: Sequence[str], again: Sequence[str]) -> None:
        mine, derived = (
            [piece for piece in each if _FIGURE.search(piece)] for each in (given, again)
        )
        self.numbers += len(mine)
        if len(mine) == len(derived):
            for place, (one, other) in enumerate(zip(mine, derived, strict=True), 1):
                if one != other and not _same_line(one, other):
                    self.differences.append(_told(f"figure {place}", one, other))
            return
        at: dict[str, list[int]] = {}
        for index, piece in enumerate(derived):
            at.setdefault(piece, []).append(index)
        here = 0
        for piece in mine:
            where = at.get(piece, [])
            later = bisect_left(where, here)
            if later < len(where):
                here = where[later] + 1
                continue
            if here < len(derived) and _same_line(piece, derived[here]):
                here += 1
                continue
            found = derived[here] if here < len(derived) else _ABSENT
            self.differences.append(_told(f"after {here} figures", piece, found))


def _same_line(given: str, again: str) -> bool:
    """Return whether two lines are equal up to their last word, a number that is the same."""
    (one, first), (other, second) = (line.rpartition(" ")[::2] for line in (given, again))
    try:
        return one == other and math.isclose(float(first), float(second), rel_tol=TOLERANCE)
    except ValueError:
        return False


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same_histogram(given: Mapping[str, Json], again: Mapping[str, Json]) -> bool:
    """Return whether both are the same histogram; another zlib compresses equal
    counts differently."""
    if given == again or {given.get("format"), again.get("format")} != {histograms.FORMAT}:
        return False
    try:
        one, other = (
            histograms.counts_of(histograms.decode(each["data"])) for each in (given, again)
        )
    except (ValueError, LookupError, TypeError):
        return False
    return all(np.array_equal(*parts) for parts in zip(one, other, strict=True))


def _told(place: str, given: object, again: object) -> str:
    one, other = (
        "nothing" if value is _ABSENT else json.dumps(value, ensure_ascii=False)
        for value in (given, again)
    )
    # Show long values from a little before the first difference on.
    pairs = enumerate(zip(one, other, strict=False))
    begin = max(next((index for index, (a, b) in pairs if a != b), 0) - 20, 0)
    return f"{place}: {_short(one, begin)} in the bundle, {_short(other, begin)} derived"


def _short(text: str, begin: int) -> str:
    if len(text) <= 120:
        return text
    head, tail = ("..." if begin else ""), ("..." if len(text) > begin + 100 else "")
    return f"{head}{text[begin : begin + 100]}{tail}"


def _texts(page: str) -> list[str]:
    """Return the texts of a page, including those in its drawings."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.texts


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        # The style sheet is not text of the page.
        if data.strip() and self.lasttag != "style":
            self.texts.append(" ".join(data.split()))
