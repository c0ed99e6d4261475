"""requests.yml, beside an application: named requests, and what is right as their answers.

A request is its path, or a mapping with the keys of OwnRequest. Without json, text, schema and
pattern, the first answers of a run say which body is right.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import jsonschema
import msgspec
import yaml
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from loadlab.model.base import Json
from loadlab.run import http_headers
from loadlab.run.catalog import load_yaml
from loadlab.run.errors import PlanError
from loadlab.run.formatting import one_line
from loadlab.stacks.contract import Contract, Contracts

FILE = "requests.yml"
# Where an application has no requests.yml.
DEFAULT = {"root": "/"}
# A request's body is a part of command lines.
BODY_BYTES_MAX = 16_384
# The generators send the address, which an application that checks its host does not know.
HOST = "localhost"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_PATH = re.compile(r"/[!-~]*")
_HOW = "Give them as name: value."

Status: TypeAlias = Annotated[int, Meta(ge=200, le=299)]
Ms: TypeAlias = Annotated[int, Meta(ge=0, le=300_000)]


class OwnRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """A request of requests.yml."""

    #: path, method, headers: as they are sent.
    path: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    headers: dict[str, str | int | float] = {}
    body: Json = None  #: Text, or a mapping or list, which is sent as JSON.
    status: Status | None = None  #: Of the answer.
    #: content_type, answer_headers: values of the answer's headers.
    content_type: str | None = None
    answer_headers: dict[str, str] = {}
    #: json, text: the answer's whole body.
    json: Json | UnsetType = UNSET
    text: str | None = None
    schema: dict[str, Json] | None = None  #: JSON Schema of it.
    pattern: str | None = None  #: Regular expression that is found in it.
    #: minimum_ms, maximum_ms: time that an answer takes, ms.
    minimum_ms: Ms = 0
    maximum_ms: Ms | None = None
    #: Measured if the user names no endpoint; the first is, where none has it.
    measured: bool = False


_BODIES = ("json", "text", "schema", "pattern")


def read(folder: Path) -> Contracts:
    """Return the contracts of an application's requests by name; DEFAULT without requests.yml.

    Raises PlanError with the request and the place of a wrong value.
    """
    path = folder / FILE
    try:
        document = load_yaml(path) if path.exists() else DEFAULT
        entries = msgspec.convert(document, dict[str, str | dict[str, Json]])
    except (yaml.YAMLError, msgspec.ValidationError) as problem:
        raise PlanError(
            f"{path}: {one_line(str(problem))}. Give name: path, or name: a mapping with path."
        ) from None
    if not entries:
        raise PlanError(f"{path}: it names no request. Give name: path, or remove the file.")
    requests: dict[str, OwnRequest] = {}
    for name, entry in entries.items():
        if not _NAME.fullmatch(name):
            raise PlanError(
                f"{path}: '{name}' cannot name a request. Give 1 to 40 letters, digits, dashes or "
                "underscores."
            )
        with _named(path, name):
            requests[name] = _request(entry)
    measured = [name for name, request in requests.items() if request.measured] or [*requests][:1]
    contracts: Contracts = {}
    for name, request in requests.items():
        with _named(path, name):
            contracts[name] = _contract(request, measured=name in measured)
    return contracts


@contextmanager
def _named(path: Path, name: str) -> Iterator[None]:
    """Raise PlanError with the file and the request for what is wrong in a request."""
    try:
        yield
    except msgspec.ValidationError as problem:
        is_status = "status" in str(problem)
        limit = " Goodput counts answers with status 200 to 299." if is_status else ""
        raise PlanError(f"{path}: {name}: {one_line(str(problem))}.{limit}") from None
    except PlanError as problem:
        raise PlanError(f"{path}: {name}: {one_line(str(problem))}") from None
    except re.error as problem:
        raise PlanError(f"{path}: {name}: pattern: {problem}.") from None
    except jsonschema.SchemaError as problem:
        place = problem.json_path.removeprefix("$")
        raise PlanError(f"{path}: {name}: schema{place}: {one_line(problem.message)}.") from None


def _request(entry: str | dict[str, Json]) -> OwnRequest:
    request = msgspec.convert({"path": entry} if isinstance(entry, str) else entry, OwnRequest)
    if not _PATH.fullmatch(request.path):
        raise PlanError(
            f"path '{request.path}' does not begin with / or is not all printable ASCII. Encode "
            "other characters, such as a space as %20."
        )
    bodies = [
        key for key in _BODIES if getattr(request, key) is not (UNSET if key == "json" else None)
    ]
    if len(bodies) > 1:
        raise PlanError(f"{' and '.join(bodies)} both say which body is right. Give one.")
    return request


def _contract(request: OwnRequest, *, measured: bool) -> Contract:
    body = _body(request)
    headers = {key: str(value) for key, value in request.headers.items()}
    kinds = {key.lower() for key in headers}
    if "host" not in kinds:
        headers["Host"] = HOST
    if body and "content-type" not in kinds:
        kind = "x-www-form-urlencoded" if isinstance(request.body, str) else "json"
        headers["Content-Type"] = f"application/{kind}"
    allowed = [key for key in http_headers.RESERVED if key != "host"]
    headers = http_headers.checked(headers.items(), _HOW, allowed)
    if request.pattern is not None:
        re.compile(request.pattern)
    if request.schema is not None:
        jsonschema.validators.validator_for(request.schema).check_schema(request.schema)
    own = {**asdict(request), "headers": headers, "body": body, "measured": measured}
    return Contract(**own)


def _body(request: OwnRequest) -> str:
    body = request.body
    if body is None:
        return ""
    if request.method == "GET":
        raise PlanError("a GET has no body. Give method: POST, or leave body out.")
    text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
    size = len(text.encode())
    if size > BODY_BYTES_MAX or "\0" in text:
        raise PlanError(
            f"the body has {size} bytes, and may have at most {BODY_BYTES_MAX} and no NUL "
            "character. Give another one."
        )
    return text
