"""Links and tables for the page's template."""

from __future__ import annotations

import urllib.parse
from typing import Any


def link(path: str, text: str | None = None) -> dict[str, str]:
    """Return {href, text}, a link to a file beside the report."""
    return {"href": urllib.parse.quote(path), "text": path if text is None else text}


def table(
    caption: str, head: list[str], rows: list[Any], numeric: str = "", **more: Any
) -> dict[str, Any]:
    """Return a table for the template: {caption, head, rows, open, title}, and ``more``.

    ``numeric``: a letter for each column, n where it holds numbers. A row is a list of cells,
    {"class", "cells"}, or {"title"} for the rows below it. A cell is text, a link, {"text",
    "class", "title"} or {"links"}; its title is shown when the pointer is over it.
    """
    full = [
        {"title": "", "class": "", **(row if isinstance(row, dict) else {"cells": row})}
        for row in rows
    ]
    kinds = numeric.ljust(len(head))
    for row in full:
        if row["title"]:
            continue
        row["cells"] = [_cell(cell, kind) for cell, kind in zip(row["cells"], kinds, strict=True)]
    heads = [_cell(text, kind) for text, kind in zip(head, kinds, strict=True)]
    return {"caption": caption, "head": heads, "rows": full, "open": True, "title": "", **more}


def _cell(cell: Any, kind: str) -> dict[str, Any]:
    full = cell if isinstance(cell, dict) else {"text": cell}
    classes = " ".join(filter(None, ["n" if kind == "n" else "", full.get("class", "")]))
    return {"text": "", "title": "", "href": "", "links": [], **full, "class": classes}
