"""Compare a document of a bundle with the same document as it was derived again."""

import csv
import json
import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from typing import TypeGuard

import numpy as np

from loadlab.model.base import Json
from loadlab.run import documents
from loadlab.run.errors import LabError
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

    def files(self, bundled: Path, derived: Path) -> None:
        """Compare two files and add to the results."""
        if bundled.suffix in (".json", ".csv"):
            is_json = bundled.suffix == ".json"
            content = documents.load if is_json else _rows
            try:
                self._json(content(bundled), content(derived), "")
            except (ValueError, RecursionError, csv.Error) as problem:
                fault = f"no {'JSON' if is_json else 'table'}: {type(problem).__name__}: {problem}"
                self.differences.append(fault[:300])
            return
        pieces = _texts if bundled.suffix == ".html" else str.splitlines
        both = [path.read_text(encoding="utf-8", errors="replace") for path in (bundled, derived)]
        self._pieces(*(pieces(text) for text in both))
        if not self.differences and both[0] != both[1]:
            self.more.append("its figures are the same; its words, layout or drawings are not")

    def _json(self, bundled: object, derived: object, place: str) -> None:
        if isinstance(bundled, dict) and isinstance(derived, dict):
            if not _same_histogram(bundled, derived):
                for key in sorted({*bundled, *derived}):
                    beyond = f"{place}.{key}".lstrip(".")
                    self._json(bundled.get(key, _ABSENT), derived.get(key, _ABSENT), beyond)
        elif isinstance(bundled, list) and isinstance(derived, list):
            pairs = zip_longest(bundled, derived, fillvalue=_ABSENT)
            for index, pair in enumerate(pairs):
                self._json(*pair, f"{place}[{index}]")
        elif _is_number(bundled) and _is_number(derived):
            self.numbers += 1
            if not math.isclose(bundled, derived, rel_tol=TOLERANCE):
                self.differences.append(_difference(place, bundled, derived))
        elif type(bundled) is not type(derived) or bundled != derived:
            another_field = bundled is _ABSENT and not place.endswith("]")
            places = self.more if another_field else self.differences
            places.append(_difference(place, bundled, derived))

    def _pieces(self, bundled: Sequence[str], derived: Sequence[str]) -> None:
        bundled, derived = (
            [piece for piece in pieces if _FIGURE.search(piece)] for pieces in (bundled, derived)
        )
        self.numbers += len(bundled)
        if len(bundled) == len(derived):
            for place, (piece, other) in enumerate(zip(bundled, derived, strict=True), 1):
                if piece != other and not _same_line(piece, other):
                    self.differences.append(_difference(f"figure {place}", piece, other))
            return
        at: dict[str, list[int]] = {}
        for index, piece in enumerate(derived):
            at.setdefault(piece, []).append(index)
        here = 0
        for piece in bundled:
            places = at.get(piece, [])
            later = bisect_left(places, here)
            if later < len(places):
                here = places[later] + 1
                continue
            if here < len(derived) and _same_line(piece, derived[here]):
                here += 1
                continue
            following = derived[here] if here < len(derived) else _ABSENT
            self.differences.append(_difference(f"after {here} figures", piece, following))


def _rows(path: Path) -> list[dict[str, float | str]]:
    """Return the rows of a CSV file by the names of its columns, with numbers where they are some.

    Raises ValueError or csv.Error where it is no table.
    """
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restkey="", restval="", strict=True)
        names = reader.fieldnames or []
        if len({*names, ""}) <= len(names):
            raise LabError("a column has no name, or that of another")
        return [{name: _value(text) for name, text in row.items()} for row in reader]


def _value(text: str) -> float | str:
    try:
        return float(text)
    except (ValueError, TypeError):
        return text


def _same_line(bundled: str, derived: str) -> bool:
    """Return whether two lines are equal up to their last word, a number that is the same."""
    (text, number), (other, derived_number) = (
        line.rpartition(" ")[::2] for line in (bundled, derived)
    )
    try:
        return text == other and math.isclose(
            float(number), float(derived_number), rel_tol=TOLERANCE
        )
    except ValueError:
        return False


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same_histogram(bundled: Mapping[str, Json], derived: Mapping[str, Json]) -> bool:
    """Return whether both are the same histogram; another zlib compresses equal
    counts differently."""
    rest, other = ({**histogram, "data": None} for histogram in (bundled, derived))
    if bundled == derived or rest != other or bundled.get("format") != histograms.FORMAT:
        return False
    try:
        counts = [
            histograms.counts_of(histograms.decode(str(histogram["data"])))
            for histogram in (bundled, derived)
        ]
    except (ValueError, LookupError, TypeError):
        return False
    return all(np.array_equal(*parts) for parts in zip(*counts, strict=True))


def _difference(place: str, bundled: object, derived: object) -> str:
    texts = [
        "nothing" if value is _ABSENT else json.dumps(value, ensure_ascii=False)
        for value in (bundled, derived)
    ]
    # Show long values from a little before the first difference on.
    pairs = enumerate(zip(*texts, strict=False))
    begin = max(next((index for index, (a, b) in pairs if a != b), 0) - 20, 0)
    shown, other = (_short(text, begin) for text in texts)
    return f"{place}: {shown} in the bundle, {other} derived"


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
