"""Compare a document of a bundle with the same document as it was derived again."""

from __future__ import annotations

import csv
import json
import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path

import numpy as np

from loadlab.model.base import Json
from loadlab.run import documents
from loadlab.stats import histograms

# Relative. The last digits of a number may differ between machines, which add in another order.
TOLERANCE = 1e-9

_ABSENT = object()
_FIGURE = re.compile("[0-9]")


class Comparison:
    """Compares a document of a bundle with the derived one.

    JSON is compared by fields, CSV by rows and columns. For other text, the pieces that contain
    figures must appear in the same order: lines, or the texts of a page. Numbers are equal up to
    TOLERANCE. ``numbers`` counts the numbers compared, and ``differences`` has the place and both
    values. ``more`` has the fields that the bundle lacks, and a remark on other words or drawings:
    another revision of the lab may know more and draw otherwise.
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
        if given.suffix == ".csv":
            try:
                self._json(_rows(given), _rows(again), "")
            except (ValueError, csv.Error) as problem:
                self.differences.append(f"no table: {type(problem).__name__}: {problem}"[:300])
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


def _rows(path: Path) -> list[dict[str, Json]]:
    """Return the rows of a CSV file by the names of its columns, with numbers where they are some.

    Raises ValueError or csv.Error where it is no table.
    """
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restkey="", restval="", strict=True)
        names = reader.fieldnames or []
        if len({*names, ""}) <= len(names):
            raise ValueError("a column has no name, or that of another")
        return [{name: _value(text) for name, text in row.items()} for row in reader]


def _value(text: Json) -> Json:
    try:
        return float(text)
    except (ValueError, TypeError):
        return text


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
