"""The option sessions: read what each visitor sends, and refuse it where a load cannot have it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from loadlab.model import Options, Record, SessionStep
from loadlab.model.base import Json
from loadlab.plan.load_options import request_records
from loadlab.run.errors import PlanError
from loadlab.run.formatting import one_line, plain, plural
from loadlab.stacks.contract import Contract

OPTION = "sessions"
STEPS_MAX, THINK_MAX_S = 16, 3_600
_EXAMPLE = (
    "Give a list such as [{request: login, take: {token: $.token}}, {request: cart, think: 2}]"
)
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# A value in a request.
_VALUE = re.compile(rf"\{{({_NAME})\}}")
_JSON_PATH = re.compile(r"\$(\.[^.\[\]]+|\[[0-9]+\])+")
_HEADER = re.compile(r"[!#%&'*+.^_`|~0-9A-Za-z-]+")


class _Mean(Record, kw_only=True, frozen=True):
    mean: float


class _Step(Record, kw_only=True, frozen=True):
    """A step as a file has it."""

    request: str
    think: float | _Mean = 0
    take: dict[str, str] = msgspec.field(default_factory=dict)


def with_text(variables: Mapping[str, object]) -> dict[str, object]:
    """Return variables, a session among them as the option has it: as JSON, where it is a list."""
    session = variables.get(OPTION)
    if session is None or isinstance(session, str):
        return {**variables}
    return {**variables, OPTION: json.dumps(session, default=str)}


def parse(text: str) -> str:
    """Return a session, which ``text`` has as JSON, in one form.

    Raises PlanError for another form, without a request, and for a value out of limits.
    """
    try:
        entries = msgspec.convert(json.loads(text), list[Json])
    except (ValueError, RecursionError, msgspec.ValidationError):
        raise PlanError(f"{OPTION}: '{one_line(text, 100)}' is no list. {_EXAMPLE}.") from None
    if not 1 <= len(entries) <= STEPS_MAX:
        raise PlanError(
            f"{OPTION}: it has {len(entries)} requests, and a session has 1 to {STEPS_MAX}. "
            f"{_EXAMPLE}."
        )
    parsed = [_step(number, entry) for number, entry in enumerate(entries, 1)]
    _refuse_takes(parsed)
    if parsed[0].thinks_s:
        raise PlanError(
            f"{OPTION}: {parsed[0].request}, its first request, has think, and it is due when the "
            "visitor arrives. Leave think out there."
        )
    return json.dumps(msgspec.to_builtins(parsed), separators=(",", ":"))


def _step(number: int, entry: Json) -> SessionStep:
    try:
        step = msgspec.convert(entry, _Step)
    except msgspec.ValidationError as problem:
        raise PlanError(
            f"{OPTION}: request {number}: {one_line(str(problem))}. {_EXAMPLE}."
        ) from None
    random = isinstance(step.think, _Mean)
    seconds = step.think.mean if isinstance(step.think, _Mean) else step.think
    if not 0 <= seconds <= THINK_MAX_S or (random and not seconds):
        raise PlanError(
            f"{OPTION}: {step.request}: think {plain(seconds)} is out of limits. Give 0 to "
            f"{THINK_MAX_S:,} seconds, or {{mean: <seconds>}} above 0 for random ones."
        )
    return SessionStep(
        request=step.request.lstrip("/"),
        think_s=0 if random else seconds,
        think_mean_s=seconds if random else None,
        take=step.take,
    )


def _refuse_takes(parsed: Sequence[SessionStep]) -> None:
    """Raise PlanError for a value without a proper name or place, and for an unused value."""
    for step in parsed:
        for name, place in step.take.items():
            if not re.fullmatch(_NAME, name):
                raise PlanError(
                    f"{OPTION}: {step.request}: take has the name '{name}'. Give letters, digits "
                    "and underscores, the first no digit, for example take: {token: $.token}."
                )
            if not (_JSON_PATH if place.startswith("$") else _HEADER).fullmatch(place):
                raise PlanError(
                    f"{OPTION}: {step.request}: take: {name}: '{place}' is neither a JSON path "
                    "such as $.items[0].id nor the name of a header."
                )
    if parsed[-1].take:
        raise PlanError(
            f"{OPTION}: {parsed[-1].request}, its last request, has take, and no request comes "
            "after it. Leave take out there."
        )


def steps(text: str) -> list[SessionStep]:
    """Return the steps of an option that parse has returned."""
    return msgspec.json.decode(text, type=list[SessionStep])


def weights(parsed: Sequence[SessionStep]) -> dict[str, int]:
    """Return the requests of a visit: endpoint -> their number, in the order of the first."""
    return dict(Counter(step.request for step in parsed))


def endpoint(parsed: Sequence[SessionStep]) -> str:
    """Return the endpoint of a cell: those of a visit, with their numbers where there are two."""
    kinds = weights(parsed)
    if len(kinds) == 1:
        return parsed[0].request
    return ",".join(f"{name}:{weight}" for name, weight in kinds.items())


def refuse(options: Options) -> None:
    """Raise PlanError for a session that the generator, its records or the duration cannot keep."""
    if options.sessions is None:
        return
    parsed, visits = steps(options.sessions), request_records.requests_due(options)
    amount = f"{visits:,.0f} visits of {plural(len(parsed), 'request')}"
    request_records.refuse_unread(options, OPTION, "sends requests that come alone")
    request_records.refuse_unrecorded(options, OPTION, "the visit of a request is")
    request_records.refuse_beyond(options, OPTION, amount, visits * len(parsed))
    thinks_s = sum(step.thinks_s for step in parsed)
    if thinks_s >= options.duration:
        raise PlanError(
            f"{OPTION}: a visitor thinks for {plain(thinks_s)} s, and the load lasts "
            f"{plain(options.duration)} s: no visit would be completed. Give a duration of several "
            "visits with -e duration=, or a shorter think."
        )


def refuse_values(parsed: Sequence[SessionStep], contracts: Mapping[str, Contract]) -> None:
    """Raise PlanError where a request names a value that no request before it takes."""
    taken: set[str] = set()
    for step in parsed:
        for name in _named(contracts[step.request]):
            if name not in taken:
                choices = f"These are: {', '.join(sorted(taken))}." if taken else "None does."
                raise PlanError(
                    f"{OPTION}: {step.request} has {{{name}}}, which no request before it takes. "
                    f"{choices} Give take: {{{name}: <JSON path or header>}} to an earlier request."
                )
        taken |= step.take.keys()


def _named(contract: Contract) -> Iterator[str]:
    """Yield the names of values in a request."""
    for text in (contract.path, *contract.headers.values(), contract.body):
        yield from _VALUE.findall(text)
