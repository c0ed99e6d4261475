"""Answers that follow from the rows of files/dataset.yml, for the keys of files/endpoints.yml."""

import html
import re
from collections.abc import Mapping, Sequence

from loadlab.model.base import Json

# Rows of each table of files/dataset.yml.
Dataset = Mapping[str, Sequence[Mapping[str, Json]]]

# The row that /fortunes adds at request time, as TechEmpower's specification of its test says.
ADDED = {"id": 0, "message": "Additional fortune added at request time."}

_REFERENCE = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z]+);")


def agents(dataset: Dataset) -> Json:
    """Return the answer of the /agents endpoints: agents and their login status."""
    status = {row["agent_id"]: row for row in dataset["login_status"]}
    return {
        "agents": [
            {**row, "status": status[row["id"]]["status"], "since": status[row["id"]]["since"]}
            for row in dataset["agents"]
        ]
    }


def item(dataset: Dataset) -> Json:
    """Return the answer of /crud/items/1: the first item, its rating in a mapping of its own."""
    row = dict(dataset["items"][0])
    rating = {key: row.pop(f"rating_{key}") for key in ("score", "count")}
    return {**row, "rating": rating}


def fortunes(dataset: Dataset) -> str:
    """Return the page of /fortunes, in which only < and > and & are references."""
    rows = sorted([*dataset["fortunes"], ADDED], key=lambda row: str(row["message"]))
    cells = [
        f"<tr><td>{row['id']}</td><td>{html.escape(str(row['message']), quote=False)}</td></tr>"
        for row in rows
    ]
    return (
        "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>"
        f"<tr><th>id</th><th>message</th></tr>{''.join(cells)}</table></body></html>"
    )


def plain(page: str) -> str:
    """Return a page with its character references resolved, all but those to < and > and &."""
    return _REFERENCE.sub(
        lambda reference: html.escape(html.unescape(reference[0]), quote=False), page
    )


# Functions for the keys `json_from` and `html_from` of files/endpoints.yml.
JSON = {"agents": agents, "item": item}
PAGES = {"fortunes": fortunes}
