"""Check an answer against the contract of its endpoint in files/endpoints.yml."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

from loadlab.core.catalog import read_yaml
from loadlab.core.model.base import Json
from loadlab.stacks import book_text

# How much longer than its minimum an answer may take where files/endpoints.yml sets no maximum.
CONTRACT_SLACK_MS = 1000
# Functions for the key `text_from` of files/endpoints.yml.
TEXTS = {"book": book_text.text}

# Rows of each table of files/dataset.yml.
Dataset = Mapping[str, Sequence[Mapping[str, Json]]]
# What a server must provide.
Need = Literal["database", "upstream", "book", "cpu_work"]


class Contract(TypedDict):
    """Contract of one endpoint, as in files/endpoints.yml, which describes the keys."""

    path: str
    method: NotRequired[str]
    status: int
    content_type: str
    json: NotRequired[Json]
    json_from: NotRequired[str]
    text: NotRequired[str | list[str]]
    text_from: NotRequired[Literal["book"]]
    minimum_ms: NotRequired[int]
    maximum_ms: NotRequired[int]
    needs: NotRequired[list[Need]]
    measured: NotRequired[bool]


class Answer(TypedDict):
    """A verified answer: lengths in bytes of its body, and of the whole with its headers."""

    sha256: str
    body_bytes: int
    wire_bytes: int


class ContractError(ValueError):
    """An answer differs from the contract; the text says where."""


def contracts(root: Path) -> dict[str, Contract]:
    """Return the contracts of files/endpoints.yml by endpoint.

    Raises PlanError with the place of a wrong value.
    """
    return read_yaml(root, "files/endpoints.yml", dict[str, Contract])


def expected_body(contract: Contract, dataset: Dataset) -> bytes:
    """Return the exact body that the contract asks for.

    ``dataset`` holds the rows of each table, for contracts with the key `json_from`.
    """
    if "text_from" in contract:
        return TEXTS[contract["text_from"]]()
    if "text" in contract:
        text = contract["text"]
        return (text if isinstance(text, str) else "".join(text)).encode()
    return json.dumps(_expected_json(contract, dataset), separators=(",", ":")).encode()


def _expected_json(contract: Contract, dataset: Dataset) -> Json:
    if "json" in contract:
        return contract["json"]
    name = contract["json_from"]
    status = {row["agent_id"]: row for row in dataset["login_status"]}
    return {
        name: [
            {**row, "status": status[row["id"]]["status"], "since": status[row["id"]]["since"]}
            for row in dataset[name]
        ]
    }


def split(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return (status, headers, body) of an HTTP/1.x answer as curl prints it.

    Header names are in lower case. Raises ContractError where the text is no HTTP answer.
    """
    head, separator, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    status = re.match(r"HTTP/\S+ ([0-9]{3})(?: |$)", lines[0])
    if not separator or not status:
        raise ContractError(f"not an HTTP answer: {answer[:80]!r}")
    pairs = (line.partition(":") for line in lines[1:])
    return int(status[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}, body


def cut(text: str, mark: str, names: Sequence[str]) -> dict[str, tuple[bytes, float]]:
    """Split answers that were printed one after another; return name -> (answer, seconds).

    After each answer come ``mark``, the seconds the answer took, and ``mark`` again. Raises
    ContractError where the number of answers or a time is wrong.
    """
    *parts, rest = text.encode("utf-8", "surrogateescape").split(mark.encode())
    if len(parts) != 2 * len(names) or rest.strip():
        raise ContractError(
            f"{len(names)} answers were asked for, {len(parts) // 2} came"
            f"{' and something after them' if parts and rest.strip() else ''}: {text[-200:]!r}"
        )
    try:
        return {
            name: (answer, float(seconds))
            for name, answer, seconds in zip(names, parts[::2], parts[1::2], strict=True)
        }
    except ValueError as problem:
        raise ContractError(f"the time of an answer is no number: {problem}") from None


def check(contract: Contract, answer: bytes, seconds: float, dataset: Dataset) -> Answer:
    """Return what is recorded of an answer that took ``seconds``.

    Raises ContractError where the answer differs from the contract.
    """
    status, headers, body = split(answer)
    path = contract["path"]
    if status != contract["status"]:
        raise ContractError(
            f"{path} answered status {status}, the contract says {contract['status']}: "
            f"{body[:200].decode('utf-8', 'replace')!r}"
        )
    wanted = expected_body(contract, dataset)
    _header(path, headers, "content-type", contract["content_type"])
    # A chunked answer would be longer on the wire than the other applications' answers.
    _header(path, headers, "content-length", str(len(wanted)))
    if body != wanted:
        first = next(
            (n for n, (a, b) in enumerate(zip(body, wanted, strict=False)) if a != b),
            min(len(body), len(wanted)),
        )
        raise ContractError(
            f"{path} answered {len(body)} bytes, the contract says {len(wanted)}; from byte "
            f"{first} on {body[first : first + 80]!r} instead of {wanted[first : first + 80]!r}"
        )
    least = contract.get("minimum_ms", 0)
    most = contract.get("maximum_ms", least + CONTRACT_SLACK_MS)
    if not least <= seconds * 1000 <= most:
        raise ContractError(
            f"{path} took {seconds * 1000:.1f} ms, the contract says {least} to {most} ms"
        )
    return {
        "sha256": hashlib.sha256(body).hexdigest(),
        "body_bytes": len(body),
        "wire_bytes": len(answer),
    }


def _header(path: str, headers: Mapping[str, str], name: str, wanted: str) -> None:
    found = headers.get(name, "").lower()
    if found != wanted:
        raise ContractError(
            f"{path} answered {name} {found or '(none)'!r}, the contract says {wanted!r}"
        )
