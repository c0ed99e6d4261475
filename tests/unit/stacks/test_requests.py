from pathlib import Path
from typing import Any

import pytest
import yaml

from loadlab.run.errors import PlanError
from loadlab.stacks import contract, requests
from loadlab.stacks.contract import Contract, Contracts


def read(folder: Path, content: Any) -> Contracts:
    (folder / requests.FILE).write_text(yaml.safe_dump(content))
    return requests.read(folder)


def test_without_the_file_the_root_is_asked(tmp_path: Path) -> None:
    assert requests.read(tmp_path) == {
        "root": Contract(path="/", headers={"Host": "localhost"}, measured=True)
    }


def test_requests_have_what_is_sent_and_what_is_right(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {
            "one": "/one?a=b",
            "two": {
                "path": "/two",
                "method": "POST",
                "headers": {"host": "shop.example", "X-Number": 1},
                "body": {"a": [1, "é"]},
                "status": 201,
                "schema": {"type": "object"},
                "answer_headers": {"X-Made": "yes"},
            },
            "three": {
                "path": "/3",
                "method": "PUT",
                "body": "a=1",
                "text": "done",
                "measured": True,
            },
        },
    )
    assert found["one"].path == "/one?a=b"
    assert found["two"].headers == {
        "host": "shop.example",
        "X-Number": "1",
        "Content-Type": "application/json",
    }
    assert found["two"].body == '{"a":[1,"\\u00e9"]}'
    assert found["three"].headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert [name for name, one in found.items() if one.measured] == ["three"]


REFUSED: dict[str, tuple[Any, str]] = {
    "a list": (["/"], "Expected `object`"),
    "nothing": ({}, "names no request"),
    "a name": ({"a b": "/"}, "'a b' cannot name a request"),
    "no path": ({"a": {"method": "GET"}}, "a: Object missing required field `path`"),
    "a relative path": ({"a": "x"}, "path 'x' does not begin with /"),
    "a space": ({"a": "/x y"}, "such as a space as %20"),
    "a method": ({"a": {"path": "/", "method": "HEAD"}}, "Invalid enum value 'HEAD'"),
    "a typing error": ({"a": {"path": "/", "statsu": 200}}, "unknown field `statsu`"),
    "a redirect": ({"a": {"path": "/", "status": 302}}, "Goodput counts answers with status 200"),
    "two bodies": ({"a": {"path": "/", "json": 1, "pattern": "x"}}, "json and pattern both say"),
    "a pattern": ({"a": {"path": "/", "pattern": "("}}, "a: pattern: missing \\)"),
    "a schema": (
        {"a": {"path": "/", "schema": {"type": "thing"}}},
        r"a: schema\.type: 'thing' is not valid under any of the given schemas\.$",
    ),
    "a header": (
        {"a": {"path": "/", "headers": {"Connection": "close"}}},
        "Connection is not to be",
    ),
    "a body of GET": ({"a": {"path": "/", "body": "x"}}, "a GET has no body"),
    "a long body": (
        {"a": {"path": "/", "method": "POST", "body": "x" * 16_385}},
        "the body has 16385 bytes, and may have at most 16384",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_file_is_refused_with_the_request(tmp_path: Path, name: str) -> None:
    content, words = REFUSED[name]
    with pytest.raises(PlanError, match=words) as refusal:
        read(tmp_path, content)
    assert str(refusal.value).startswith(str(tmp_path / requests.FILE))


def test_only_answers_that_are_recorded_are_asked_for_twice(tmp_path: Path) -> None:
    found = read(tmp_path, {"one": "/1", "two": {"path": "/2", "pattern": "x"}})
    asked = contract.requests(found, dict.fromkeys(found, "http://10.0.0.1:80"), "mark")
    assert [one.name for one in asked] == ["one", "one", "two"]
    assert "--header 'Host: localhost'" in asked[0].command
    assert "http://10.0.0.1:80/1" in asked[0].command
