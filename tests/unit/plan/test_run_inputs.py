from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import asdict, replace

from loadlab.model import InputHashes, Item
from loadlab.plan import run_inputs
from loadlab.plan.records import CellRecords, cell_records
from loadlab.plan.run_inputs import Inputs
from loadlab.run.errors import PlanError
from loadlab.stacks.contract import Contract
from tests.unit import builders, stand_ins

FILES = (
    "apps/alpha/app.py", "apps/alpha/requirements.txt", "files/python/work.py",
    "files/servers/one/server.yml",
)  # fmt: skip
ENDPOINTS = {name: Contract(path=f"/{name}") for name in ("index", "slow")}
CELL = builders.cell(endpoint="index", tuning="stock", network="lan")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return stand_ins.tree(tmp_path, {name: name for name in FILES})


def made_of(**changed: Any) -> Inputs:
    return replace(
        Inputs(
            stacks={"a": builders.stack(framework="alpha", source="apps/alpha", server="one")},
            endpoints=ENDPOINTS,
            tunings={"stock": {"sysctl": []}},
            networks={"lan": {"delay": 0}},
        ),
        **changed,
    )


def hashed(
    root: Path, inputs: Inputs | None = None, lab: str | None = "1a2b", **load: Any
) -> tuple[Item, InputHashes]:
    """An item with its hashes, and these."""
    cell = replace(CELL, load=replace(CELL.load, **load))
    item = builders.item(cell_id="x", stack="a", cell=cell)
    hashed_item = run_inputs.Hasher(root, inputs or made_of(), lab).hashed(item)
    return hashed_item, builders.present(hashed_item.input_hashes)


def measured(*items: Item) -> dict[str, CellRecords]:
    """The records of cell x with one repetition of each item."""
    results = [
        builders.result(
            cell_id="x", cell=item.cell, input_hashes=item.input_hashes, repetition=number
        )
        for number, item in enumerate(items, 1)
    ]
    return {"x": cell_records(results)}


CHANGES: list[tuple[str, Inputs]] = [
    ("endpoint", made_of(endpoints={**ENDPOINTS, "index": Contract(path="/other")})),
    ("tuning", made_of(tunings={"stock": {"sysctl": [{"key": "a.b", "value": 1}]}})),
    ("network", made_of(networks={"lan": {"delay": 1}})),
]


@pytest.mark.parametrize(("part", "other"), CHANGES)
def test_check_refuses_a_changed_input_by_its_name(root: Path, part: str, other: Inputs) -> None:
    (before, old), (now, new) = hashed(root), hashed(root, other)
    changed = asdict(new)
    assert [key for key, value in asdict(old).items() if value != changed[key]] == [part]
    run_inputs.check("mine", [before], measured(before))
    with pytest.raises(PlanError) as refusal:
        run_inputs.check("mine", [now], measured(before))
    words = str(refusal.value)
    assert f"'mine' has results of x with another {part} than now" in words
    assert "give another -e run_id=<name>" in words


@pytest.mark.parametrize("name", FILES)
def test_hashes_include_every_file_of_the_application(root: Path, name: str) -> None:
    _, before = hashed(root)
    (root / name).write_text(yaml.safe_dump({"changed": True}))
    _, now = hashed(root)
    assert before.application != now.application
    assert replace(before, application=now.application) == now


def test_hashes_include_the_background_endpoint(root: Path) -> None:
    assert hashed(root)[1] != hashed(root, background_endpoint="slow")[1]


def test_check_refuses_another_cell_and_takes_absent_hashes(root: Path) -> None:
    now, _ = hashed(root)
    run_inputs.check("mine", [now], measured(replace(now, input_hashes=None)))
    other = replace(now, cell=replace(now.cell, expected_void=["steal"]))
    with pytest.raises(PlanError, match="another cell than now"):
        run_inputs.check("mine", [now], measured(other))


def test_another_revision_of_the_lab_is_reported_and_not_refused(root: Path) -> None:
    (before, old), (now, new) = hashed(root), hashed(root, lab="3c4d+")
    assert old != new
    run_inputs.check("mine", [now], measured(before))
    same = [builders.repetition(repetition=n, input_hashes=old) for n in (1, 2)]
    unknown = [
        builders.repetition(repetition=3, input_hashes=None),
        builders.repetition(repetition=4, input_hashes=hashed(root, lab=None)[1]),
    ]
    assert run_inputs.labs(same) == run_inputs.labs([*same, *unknown]) == {}
    both = [*same, *unknown, builders.repetition(repetition=5, input_hashes=new)]
    assert run_inputs.labs(both) == {"1a2b": [1, 2], "3c4d+": [5]}
