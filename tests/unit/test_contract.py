from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.lab.bench.plugins.module_utils import contract
from ansible_collections.lab.bench.plugins.module_utils.contract import ContractError
from hypothesis import given
from hypothesis import strategies as st

FILES = Path(__file__).parents[2] / "files"
CONTRACTS: dict[str, Any] = yaml.safe_load((FILES / "endpoints.yml").read_text())
DATASET: dict[str, Any] = yaml.safe_load((FILES / "dataset.yml").read_text())
INDEX = {
    "path": "/index",
    "status": 200,
    "content_type": "application/json",
    "json": {"hello": "world", "ready": True, "n": 1},
}
BODY = b'{"hello": "world", "ready": true, "n": 1}'


def answer(
    body: bytes = BODY, status: str = "200 OK", media: str = "application/json; charset=utf-8"
) -> bytes:
    head = f"HTTP/1.1 {status}\r\nServer: nginx\r\nContent-Type: {media}\r\n\r\n"
    return head.encode() + body


def refusal(given: bytes) -> str:
    with pytest.raises(ContractError) as problem:
        contract.check(INDEX, given, {})
    return str(problem.value)


def test_a_right_answer_is_measured() -> None:
    # Key order and white space are not the contract's; the answer's own bytes are what counts.
    body = b'{"n":1,"ready":true,\n"hello":"world"}'
    given = answer(body, media="Application/JSON")
    assert contract.check(INDEX, given, {}) == {
        "sha256": hashlib.sha256(body).hexdigest(),
        "body_bytes": len(body),
        "wire_bytes": len(given),
    }


def test_the_parts_of_an_answer() -> None:
    given = b"HTTP/2 204 \r\nX-Two:  a: b \r\nETAG:x\r\n\r\nbody\r\n\r\nmore"
    headers = {"x-two": "a: b", "etag": "x"}
    assert contract.split(given) == (204, headers, b"body\r\n\r\nmore")
    assert contract.split(b"HTTP/1.0 200\r\n\r\n") == (200, {}, b"")


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "301 Moved", "201 Created"])
def test_another_status(status: str) -> None:
    told = refusal(answer(status=status))
    assert told.startswith(f"/index answered status {status[:3]}, the contract says 200: ")
    assert "hello" in told


@pytest.mark.parametrize("media", ["text/html", "", "application/jsonx"])
def test_another_type(media: str) -> None:
    assert refusal(answer(media=media)) == (
        f"/index answered content-type '{media}', the contract says 'application/json'"
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        BODY[:-1],  # truncated
        BODY + BODY,
        b"\xff\xfe\x00",
        b"\xc3(",
        b"[" * 200_000,
        b"1" * 10_000,
    ],
    ids=lambda body: repr(body[:12]),
)
def test_what_is_no_json(body: bytes) -> None:
    assert refusal(answer(body)).startswith("/index answered no JSON (")


@pytest.mark.parametrize(
    "found",
    [
        {"hello": "World", "ready": True, "n": 1},
        {"hello": "world", "ready": True},
        {"hello": "world", "ready": True, "n": 1, "more": None},
        [{"hello": "world", "ready": True, "n": 1}],
        None,
        # Equal to Python, and not to whoever reads the answer.
        {"hello": "world", "ready": 1, "n": 1},
        {"hello": "world", "ready": True, "n": True},
        {"hello": "world", "ready": True, "n": 1.0},
        {"hello": "world", "ready": True, "n": float("nan")},
    ],
)
def test_another_body(found: Any) -> None:
    told = refusal(answer(json.dumps(found).encode()))
    assert told == (
        f"/index answered {json.dumps(found)}, the contract says {json.dumps(INDEX['json'])}"
    )


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"curl: (7) Failed to connect to 10.0.0.1 port 80",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",  # cut in its head
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 \r\n\r\n",
        b"HTTP/1.1 \xb200 OK\r\n\r\n",  # a superscript two is a digit to Python
        b"HTTP/1.1 OK 200\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"\x00\xff" * 50 + b"\r\n\r\n",
    ],
)
def test_what_is_no_answer(given: bytes) -> None:
    told = refusal(given)
    assert told == f"not an HTTP answer: {given[:80]!r}"


@given(st.binary(max_size=60), st.sampled_from([b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n"]))
def test_no_bytes_do_worse_than_a_refusal(tail: bytes, head: bytes) -> None:
    for given_bytes in (head + tail, head + tail + b"\r\n\r\n" + BODY, answer(tail)):
        told = refusal(given_bytes)
        # It is shown at a terminal and written to a file.
        assert told.encode()
        assert "\x1b" not in told.partition(", the contract says")[2]


MARK = "=== end of answer ==="


def test_answers_are_told_apart() -> None:
    bodies = {"a": answer(b'"\xff\xfe\xc3\xa9"'), "b": b"", "c": answer(b"\r\n\r\n")}
    text = b"".join(body + MARK.encode() for body in bodies.values()) + b"\n"
    # As Ansible has it: what is no UTF-8 comes back as the same bytes.
    assert contract.cut(text.decode("utf-8", "surrogateescape"), MARK, list(bodies)) == bodies


@pytest.mark.parametrize(("text", "came"), [("", 0), (f"x{MARK}", 1), (f"x{MARK}" * 3, 3)])
def test_too_few_or_too_many_answers(text: str, came: int) -> None:
    with pytest.raises(ContractError, match=f"^2 answers were asked for, {came} came: "):
        contract.cut(text, MARK, ["a", "b"])


def test_the_data_set_is_joined_by_agent() -> None:
    dataset = {
        "agents": [{"id": 7, "name": "x"}, {"id": 3, "name": "y"}],
        "login_status": [
            {"agent_id": 3, "status": "paused", "since": "2015-02-01T00:00:00"},
            {"agent_id": 7, "status": "on_call", "since": "2015-02-02T00:00:00"},
        ],
    }
    assert contract.expected_json({"json_from": "agents"}, dataset) == {
        "agents": [
            {"id": 7, "name": "x", "status": "on_call", "since": "2015-02-02T00:00:00"},
            {"id": 3, "name": "y", "status": "paused", "since": "2015-02-01T00:00:00"},
        ]
    }


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_every_contract_can_be_met_and_missed(name: str) -> None:
    body = json.dumps(contract.expected_json(CONTRACTS[name], DATASET)).encode()
    media = CONTRACTS[name]["content_type"]
    assert contract.check(CONTRACTS[name], answer(body, media=media), DATASET)["body_bytes"] > 2
    with pytest.raises(ContractError, match="the contract says"):
        contract.check(CONTRACTS[name], answer(b"{}", media=media), DATASET)
