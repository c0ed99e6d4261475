"""Read the thresholds of validity."""

from pathlib import Path

from loadlab.model import Thresholds
from loadlab.run import documents
from loadlab.run.catalog import yaml_of

# Relative to the lab's top directory.
FILE = Path("files") / "validity.yml"


def of(root: Path) -> Thresholds:
    """Return the thresholds of the lab in ``root``.

    Raises ResultError naming the file and the key for one that is unknown, missing or out of range.
    """
    return documents.decode(yaml_of(documents.text(root / FILE)), Thresholds, str(FILE))
