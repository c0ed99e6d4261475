"""Documents as they are written and read."""

from pathlib import Path

import pytest
from ansible.template import trust_as_template

from loadlab.model import GeneratorRun, LabRevision, Result, Summary
from loadlab.run import documents
from loadlab.run.errors import ResultError


def test_dump_takes_records_within_plain_values() -> None:
    record = LabRevision(version=None, revision="abc", dirty=False)
    assert documents.dump({"b": [record], "a": 1}) == (
        b'{\n "a": 1,\n "b": [\n  {\n   "dirty": false,\n   "revision": "abc",\n'
        b'   "version": null\n  }\n ]\n}\n'
    )


def test_dump_takes_the_strings_of_ansible() -> None:
    assert documents.dump({"name": trust_as_template("{{ x }}")}) == b'{\n "name": "{{ x }}"\n}\n'


def test_dump_refuses_what_json_has_not() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        documents.dump({"x": float("nan")})


@pytest.mark.parametrize(("name", "record"), [("result.json", Result), ("summary.json", Summary)])
def test_read_refuses_a_document_of_an_older_version(
    tmp_path: Path, name: str, record: type[Result] | type[Summary]
) -> None:
    path = tmp_path / "old-run" / name
    path.parent.mkdir()
    path.write_text('{"schema": "lab/1", "verdict": {}}')
    with pytest.raises(ResultError) as problem:
        documents.read(path, record)
    assert str(problem.value) == (
        f"{path} has schema lab/1, and this version of the lab reads lab/3 alone: measure again as "
        "a new run, or use the release that wrote it, which the run's manifest.json names"
    )


def test_read_refuses_a_document_without_its_schema(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('{"cells": []}')
    with pytest.raises(ResultError, match=r"summary.json has no schema, and this version"):
        documents.read(tmp_path / "summary.json", Summary)


def test_read_takes_a_raw_document_which_has_no_schema(tmp_path: Path) -> None:
    run = GeneratorRun(started=1.0, finished=2.0, exit_code=0)
    (tmp_path / "run.json").write_text('{"started": 1, "finished": 2, "exit_code": 0}')
    assert documents.read(tmp_path / "run.json", GeneratorRun) == run
