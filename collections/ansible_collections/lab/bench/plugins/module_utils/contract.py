"""The endpoints' contract: is an answer what files/endpoints.yml says? Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Dataset = Mapping[str, Sequence[Mapping[str, Any]]]


class ContractError(ValueError):
    """An answer differs from the contract; the text says where."""


def expected_json(contract: Mapping[str, Any], dataset: Dataset) -> Any:
    """The body that the contract asks for, as parsed JSON."""
    if "json_from" in contract:
        name = contract["json_from"]
        status = {row["agent_id"]: row for row in dataset["login_status"]}
        return {
            name: [
                {**row, "status": status[row["id"]]["status"], "since": status[row["id"]]["since"]}
                for row in dataset[name]
            ]
        }
    return contract["json"]


def split(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers (names in lower case) and body of an HTTP/1.x answer as curl prints it."""
    head, separator, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    status = re.match(r"HTTP/\S+ ([0-9]{3})(?: |$)", lines[0])
    if not separator or not status:
        raise ContractError(f"not an HTTP answer: {answer[:80]!r}")
    pairs = (line.partition(":") for line in lines[1:])
    return int(status[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}, body


def cut(text: str, mark: str, names: Sequence[str]) -> dict[str, bytes]:
    """Answers printed one after another, each followed by ``mark``: name to answer."""
    parts = text.encode("utf-8", "surrogateescape").split(mark.encode())
    if len(parts) != len(names) + 1:
        raise ContractError(
            f"{len(names)} answers were asked for, {len(parts) - 1} came: {text[-200:]!r}"
        )
    return dict(zip(names, parts, strict=False))


def check(contract: Mapping[str, Any], answer: bytes, dataset: Dataset) -> dict[str, Any]:
    """Raise ContractError where the answer differs; else its {sha256, body_bytes, wire_bytes}."""
    status, headers, body = split(answer)
    path = contract["path"]
    if status != contract["status"]:
        raise ContractError(
            f"{path} answered status {status}, the contract says {contract['status']}: "
            f"{body[:200].decode('utf-8', 'replace')!r}"
        )
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != contract["content_type"]:
        raise ContractError(
            f"{path} answered content-type '{media}', the contract says "
            f"'{contract['content_type']}'"
        )
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise ContractError(f"{path} answered no JSON ({problem}): {body[:80]!r}") from None
    wanted = expected_json(contract, dataset)
    # As text: to Python true equals 1 and 50.0 equals 50, to a client of the endpoint they do not.
    if json.dumps(found, sort_keys=True) != json.dumps(wanted, sort_keys=True):
        raise ContractError(
            f"{path} answered {json.dumps(found)[:200]}, the contract says "
            f"{json.dumps(wanted)[:200]}"
        )
    return {
        "sha256": hashlib.sha256(body).hexdigest(),
        "body_bytes": len(body),
        "wire_bytes": len(answer),
    }
