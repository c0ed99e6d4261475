"""Recorded repetitions of tests/fixtures, to be changed."""

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

from loadlab.generators import oha_database
from tests.unit.builders import ROOT

FIXTURES = ROOT / "tests" / "fixtures"


def copy(name: str, folder: Path) -> Path:
    """Copy a repetition to a folder; one of oha has its database, as before it is reduced."""
    shutil.copytree(FIXTURES / f"rep-{name}", folder)
    kept = folder / oha_database.KEPT
    if kept.exists():
        (folder / oha_database.DATABASE).write_bytes(gzip.decompress(kept.read_bytes()))
        kept.unlink()
    return folder


def change(path: Path, **fields: Any) -> None:
    """Change fields of a JSON document."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def change_cell(folder: Path, *load: dict[str, Any], **cell: Any) -> None:
    """Change fields of the load and of the cell of cell.json."""
    old = json.loads((folder / "cell.json").read_text())["cell"]
    for fields in load:
        old["load"] |= fields
    change(folder / "cell.json", cell={**old, **cell})


def put_clock_ahead(scrapes: Path) -> None:
    """Change a recording of scrapes to that of a host whose clock is 1000 s ahead."""
    text = re.sub(
        r"(?m)^(node_time_seconds) (.*)$",
        lambda line: f"{line[1]} {float(line[2]) + 1000!r}",
        gzip.decompress(scrapes.read_bytes()).decode(),
    )
    scrapes.write_bytes(gzip.compress(text.encode()))
