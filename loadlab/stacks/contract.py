"""Check answers against the contract of their endpoint, in files/endpoints.yml or requests.yml."""

import hashlib
import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import jsonschema
from msgspec import UNSET, Struct, UnsetType, field

from loadlab.model.base import Json, Record
from loadlab.run.catalog import read_yaml
from loadlab.run.errors import LabError
from loadlab.run.formatting import one_line, plural
from loadlab.stacks import book_text, expected
from loadlab.stacks.expected import Dataset

K = TypeVar("K")

# How much longer than its minimum an answer may take where files/endpoints.yml sets no maximum.
CONTRACT_SLACK_MS = 1000
# Bytes read of an answer with its headers; twice the longest of files/endpoints.yml.
ANSWER_BYTES_MAX = 1 << 20
# Seconds that an answer may take.
_SECONDS = 10
# Functions for the key `text_from` of files/endpoints.yml.
TEXTS = {"book": book_text.text}

# What a server must provide.
Need = Literal["database", "upstream", "book", "cpu_work"]


class Contract(Record, kw_only=True, frozen=True):
    """Contract of one endpoint, as in files/endpoints.yml, which describes the keys.

    Without a status, the first answer is recorded and those after it must be like it.
    """

    path: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    status: int | None = None
    content_type: str | None = None
    answer_headers: dict[str, str] = field(default_factory=dict)
    json: Json | UnsetType = UNSET
    json_from: Literal["agents", "item"] | None = None
    text: str | list[str] | None = None
    text_from: Literal["book"] | None = None
    html_from: Literal["fortunes"] | None = None
    schema: dict[str, Json] | None = None
    pattern: str | None = None
    minimum_ms: int = 0
    maximum_ms: int | None = None
    needs: list[Need] = field(default_factory=list)
    measured: bool = False


# By the name of the endpoint.
Contracts: TypeAlias = dict[str, Contract]


class Answer(Struct, kw_only=True, frozen=True):
    """A verified answer: its status, SHA-256 of its body, and lengths in bytes of its body and of
    the whole with its headers; None for what differs from answer to answer."""

    status: int
    sha256: str | None
    body_bytes: int | None
    wire_bytes: int | None


class ContractError(LabError):
    """An answer differs from the contract; the text says where."""


def contracts(root: Path) -> Contracts:
    """Return the contracts of files/endpoints.yml by endpoint.

    Raises PlanError with the place of a wrong value.
    """
    return read_yaml(root, "files/endpoints.yml", dict[str, Contract])


def is_exact(contract: Contract) -> bool:
    """Return whether the contract gives the answer's whole body."""
    derived = (contract.json_from, contract.text, contract.text_from, contract.html_from)
    return contract.json is not UNSET or any(source is not None for source in derived)


def is_free(contract: Contract) -> bool:
    """Return whether bodies that differ from each other can all be right."""
    return contract.schema is not None or contract.pattern is not None


def is_recorded(contract: Contract) -> bool:
    """Return whether the first answer decides which body is right."""
    return not (is_exact(contract) or is_free(contract))


def expected_body(contract: Contract, dataset: Dataset) -> bytes:
    """Return the exact body that the contract asks for; of `html_from` what ``plain`` makes of it.

    ``dataset`` holds the rows of each table, for the keys `json_from` and `html_from`.
    """
    if contract.html_from is not None:
        return expected.PAGES[contract.html_from](dataset).encode()
    if contract.text_from is not None:
        return TEXTS[contract.text_from]()
    if contract.text is not None:
        return "".join(contract.text).encode()
    content = expected.JSON[contract.json_from](dataset) if contract.json_from else contract.json
    return json.dumps(content, separators=(",", ":")).encode()


def split(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return (status, headers, body) of an HTTP/1.x answer as curl prints it.

    Header names are in lower case. Raises ContractError where the text is no HTTP answer.
    """
    head, separator, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    status = re.match(r"HTTP/\S+ ([0-9]{3})(?: |$)", lines[0])
    if answer.startswith(b"curl: ("):
        raise ContractError(
            f"no answer: {one_line(answer.decode('latin-1'), 200)}. See that the stack runs on the "
            "server, and that no firewall between the hosts closes the port"
        )
    if not separator or not status:
        raise ContractError(f"not an HTTP answer: {answer[:80]!r}")
    pairs = (line.partition(":") for line in lines[1:])
    return int(status[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}, body


def cut(text: str, mark: str, names: Sequence[K]) -> dict[K, tuple[bytes, float]]:
    """Split answers that were printed one after another; return name -> (answer, seconds).

    After each answer come ``mark``, the seconds the answer took, and ``mark`` again. Raises
    ContractError where the number of answers or a time is wrong.
    """
    *parts, rest = text.encode("utf-8", "surrogateescape").split(mark.encode())
    if len(parts) != 2 * len(names) or rest.strip():
        raise ContractError(
            f"asked for {plural(len(names), 'answer')}, {len(parts) // 2} came"
            f"{' and something after them' if parts and rest.strip() else ''}: {text[-200:]!r}"
        )
    try:
        return {
            name: (answer, float(seconds))
            for name, answer, seconds in zip(names, parts[::2], parts[1::2], strict=True)
        }
    except ValueError as problem:
        raise ContractError(f"the time of an answer is no number: {problem}") from None


def verified(
    contract: Contract,
    answers: Sequence[tuple[bytes, float]],
    dataset: Dataset,
    before: Answer | None = None,
) -> Answer:
    """Return what is recorded of (answer, seconds) to the same request, one or several.

    ``before``: what the run recorded earlier, of a contract that leaves the body to the first
    answer. Raises ContractError where an answer differs from the contract, or from ``before``.
    """
    checked = [check(contract, answer, seconds, dataset) for answer, seconds in answers]
    same = _common(checked)
    if is_free(contract):
        return Answer(status=same.status, sha256=None, body_bytes=None, wire_bytes=None)
    if before is None or not is_recorded(contract):
        return same
    now = _common([before, same])
    for key in ("status", "sha256", "body_bytes"):
        recorded = getattr(before, key)
        if recorded is not None and getattr(now, key) != recorded:
            raise ContractError(
                f"{contract.path} answers otherwise than the first time in this run: {key} "
                f"was {recorded}, and is {getattr(same, key) or 'not always the same'}. Say in "
                "requests.yml what is right, with schema or pattern"
            )
    return now


def _common(answers: Sequence[Answer]) -> Answer:
    """Return what answers have in common; the status is that of the last."""
    last = answers[-1]
    same = {
        key
        for key in ("sha256", "body_bytes", "wire_bytes")
        if len({getattr(answer, key) for answer in answers}) == 1
    }
    return Answer(
        status=last.status,
        sha256=last.sha256 if "sha256" in same else None,
        body_bytes=last.body_bytes if "body_bytes" in same else None,
        # The length of a header alone may differ.
        wire_bytes=last.wire_bytes if {"body_bytes", "wire_bytes"} <= same else None,
    )


def check(contract: Contract, answer: bytes, seconds: float, dataset: Dataset) -> Answer:
    """Return what is recorded of an answer that took ``seconds``.

    Raises ContractError where the answer differs from the contract.
    """
    status, headers, body = split(answer)
    path = contract.path
    _check_status(contract, status, body)
    if contract.content_type is not None:
        _header(path, headers, "content-type", contract.content_type)
    for name, value in contract.answer_headers.items():
        _header(path, headers, name.lower(), value.lower())
    _check_length(path, headers, body)
    if is_exact(contract):
        _check_body(contract, headers, body, expected_body(contract, dataset))
    if contract.schema is not None:
        _check_schema(path, body, contract.schema)
    if contract.pattern is not None and not re.search(
        contract.pattern, body.decode("utf-8", "replace")
    ):
        raise ContractError(
            f"{path} answered {body[:200].decode('utf-8', 'replace')!r}, and the pattern "
            f"{contract.pattern!r} is not in it"
        )
    least = contract.minimum_ms
    longest = least + CONTRACT_SLACK_MS if is_exact(contract) else math.inf
    most = longest if contract.maximum_ms is None else contract.maximum_ms
    if not least <= seconds * 1000 <= most:
        raise ContractError(
            f"{path} took {seconds * 1000:.1f} ms, the contract says {least} to {most} ms"
        )
    return Answer(
        status=status,
        sha256=hashlib.sha256(body).hexdigest(),
        body_bytes=len(body),
        wire_bytes=len(answer),
    )


def _check_status(contract: Contract, status: int, body: bytes) -> None:
    said = f"{contract.path} answered status {status}, "
    start = repr(body[:200].decode("utf-8", "replace"))
    if contract.status is None and not 200 <= status <= 299:
        raise ContractError(
            f"{said}and goodput counts 200 to 299 alone: {start}. Name another path or further "
            "headers in requests.yml, in the application's folder"
        )
    if contract.status not in (None, status):
        raise ContractError(f"{said}the contract says {contract.status}: {start}")


def _check_length(path: str, headers: Mapping[str, str], body: bytes) -> None:
    content_length = headers.get("content-length", "")
    if len(body) == ANSWER_BYTES_MAX or (
        content_length.isdigit() and int(content_length) > ANSWER_BYTES_MAX
    ):
        raise ContractError(
            f"{path} answered {content_length or len(body)} bytes or more, at most "
            f"{ANSWER_BYTES_MAX} with headers are read. Name a smaller answer"
        )


def _check_body(contract: Contract, headers: Mapping[str, str], body: bytes, right: bytes) -> None:
    path, length = contract.path, len(right)
    if contract.html_from is not None:
        length = len(body)
        body = expected.plain(body.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )
    # A chunked answer would be longer on the wire than the other applications' answers.
    _header(path, headers, "content-length", str(length))
    if body != right:
        first = next(
            (n for n, (a, b) in enumerate(zip(body, right, strict=False)) if a != b),
            min(len(body), len(right)),
        )
        raise ContractError(
            f"{path} answered {len(body)} bytes, the contract says {len(right)}; from byte "
            f"{first} on {body[first : first + 80]!r} instead of {right[first : first + 80]!r}"
        )


def _check_schema(path: str, body: bytes, schema: Mapping[str, Json]) -> None:
    try:
        jsonschema.validate(json.loads(body), schema)
    except (ValueError, RecursionError) as problem:
        raise ContractError(f"{path} answered no JSON: {str(problem)[:200]!r}") from None
    except jsonschema.ValidationError as problem:
        raise ContractError(
            f"{path} answered {problem.json_path} otherwise than its schema says: "
            f"{problem.message[:200]!r}"
        ) from None


def _header(path: str, headers: Mapping[str, str], name: str, expected: str) -> None:
    value = headers.get(name, "").lower()
    if value != expected:
        raise ContractError(
            f"{path} answered {name} {value or '(none)'!r}, the contract says {expected!r}"
        )


class VerifyingRequest(Struct, frozen=True):
    """One request: the endpoint's name, and the shell command that prints its whole answer."""

    name: str
    command: str


def times(contract: Contract) -> int:
    """Return how often an endpoint is asked: twice to learn what its answers have in common."""
    return 2 if is_recorded(contract) else 1


def request_options(contract: Contract) -> list[str]:
    """Return curl's options for the method, headers and body of an endpoint."""
    options = ["--request", contract.method]
    for name, value in contract.headers.items():
        options += ["--header", f"{name}: {value}"]
    return [*options, *(["--data-raw", contract.body] if contract.body else [])]


def requests(
    contracts: Mapping[str, Contract], urls: Mapping[str, str], mark: str
) -> list[VerifyingRequest]:
    """Return the requests to verify endpoints with, in the order of ``contracts``.

    ``urls``: name -> scheme, host and port. Each command prints the answer, at most
    ANSWER_BYTES_MAX, and curl's message, ``mark``, the seconds it took and ``mark`` again.
    """
    commands = []
    for name, contract in contracts.items():
        command = printing(sending(contract, urls[name], mark))
        commands += [VerifyingRequest(name, command)] * times(contract)
    return commands


def sending(contract: Contract, url: str, mark: str) -> str:
    """Return curl's command for the request of an endpoint."""
    return shlex.join([
        *("curl", "--silent", "--show-error", "--include", "--max-time", str(_SECONDS)),
        *request_options(contract),
        *("--write-out", f"%{{stderr}}{mark}%{{time_total}}{mark}", "--output", "-"),
        url + contract.path,
    ])  # fmt: skip


def printing(curl: str, through: str = "") -> str:
    """Return the command that prints the answer to curl's; it goes through another, or none."""
    # An answer may be endless. curl's message and total time follow the answer.
    pipe = " | ".join(filter(None, (f"{curl} 2>&4", f"head -c {ANSWER_BYTES_MAX}", through)))
    return f"said=$({{ {pipe} >&3; }} 4>&1)\nprintf '%s' \"$said\""
