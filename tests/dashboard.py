"""The queries of the Grafana dashboard, and the answers of a Prometheus to them."""

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "files" / "dashboards" / "loadlab.json"


def document() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text())
    return content


def panels() -> list[dict[str, Any]]:
    """The panels without the rows that group them."""
    return [panel for panel in document()["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    """Every query of panels, annotations and variables, for all hosts."""
    return sorted({one.replace("$host", ".*") for one in _queries()})


def _queries() -> Iterator[str]:
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"]
    for annotation in document()["annotations"]["list"]:
        yield annotation["expr"]
    for variable in document()["templating"]["list"]:
        if variable["type"] == "query":
            # label_values(<query>, <label>)
            query, _, label = variable["definition"].removeprefix("label_values(").rpartition(", ")
            yield f"count by ({label.removesuffix(')')}) ({query})"


def _ask(port: int, query: str) -> list[dict[str, Any]]:
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return found


def series(port: int, query: str) -> list[dict[str, str]]:
    """The labels of each series that the query finds now."""
    return [one["metric"] for one in _ask(port, query)]


def value(port: int, query: str) -> float:
    """The value of the only series that the query finds now."""
    (found,) = _ask(port, query)
    number: str = found["value"][1]
    return float(number)


def unanswered(port: int, go_on: Callable[[], bool]) -> list[str]:
    """The queries that find no series; each is repeated while ``go_on()``."""
    left = queries()
    while left and go_on():
        left = [query for query in left if not series(port, query)]
        time.sleep(1)
    return left
