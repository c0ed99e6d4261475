"""The JSON Schema of the documents, and documents decoded into records."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.model import Result, Summary
from loadlab.run import documents, schema
from loadlab.run.errors import ResultError
from tests.unit import builders

ROOT = Path(__file__).parents[3]


def test_schema_file_is_what_make_schema_writes() -> None:
    written = (ROOT / "files/schema/lab-3.schema.json").read_text()
    assert written == schema.text(), "run `make generate`"
    assert json.loads(written) == schema.build()


def test_schema_gives_each_field_a_meaning() -> None:
    definitions = schema.build()["$defs"]
    assert isinstance(definitions, dict)
    missing = [
        f"{record}.{name}"
        for record, definition in definitions.items()
        for name, field in definition["properties"].items()
        if name not in ("schema", "kind")
        and not {**definitions.get(field.get("$ref", "").rpartition("/")[2], {}), **field}.get(
            "description"
        )
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (
            ("cell", "load", "connections"),
            0,
            r"result.json: Expected `int` >= 1 - at `\$.cell.load",
        ),
        (("validity",), "fine", r"result.json: Expected `object`, got `str` - at `\$.validity`"),
        (("goodput",), None, None),
        (("surprise",), 1, r"result.json: Object contains unknown field `surprise`"),
        (("cell", "load", "requests"), 3, r"mode constant has no requests - at `\$.cell.load`"),
    ],
)
def test_read_names_the_path_and_the_reason(
    tmp_path: Path, place: tuple[str, ...], value: object, message: str | None
) -> None:
    document = json.loads(documents.dump(builders.result()))
    part = document
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    (tmp_path / "result.json").write_text(json.dumps(document))
    if message is None:
        documents.read(tmp_path / "result.json", Result)
    else:
        with pytest.raises(ResultError, match=message):
            documents.read(tmp_path / "result.json", Result)


def test_encode_refuses_a_value_that_its_field_does_not_allow() -> None:
    with pytest.raises(ResultError, match=r"Result: Expected `float` >= 0.0 .*\$.goodput"):
        documents.encode(replace(builders.result(), goodput=-1.0))


def test_record_keeps_all_values_through_its_document(tmp_path: Path) -> None:
    summary = builders.summary()
    documents.write(tmp_path / "summary.json", documents.encode(summary))
    assert documents.read(tmp_path / "summary.json", Summary) == summary
