"""Verify the requests of a session: two visits, each of which carries cookies and values on."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadlab.model import SessionStep
from loadlab.stacks import contract, take_value
from loadlab.stacks.contract import (
    Answer,
    Contract,
    ContractError,
    Contracts,
    VerifyingRequest,
    times,
)
from loadlab.stacks.expected import Dataset

# Visits from which the run learns what their answers have in common.
VISITS = 2
_SCRIPT = Path(take_value.__file__).read_text(encoding="utf-8")


def asked(contracts: Contracts, session: Sequence[SessionStep]) -> list[tuple[str, int]]:
    """Return the requests that verify endpoints, (endpoint, its number among these), in order."""
    of_visit = [step.request for step in session]
    alone = [
        (name, number)
        for name, contract in contracts.items()
        if name not in of_visit
        for number in range(times(contract))
    ]
    return [*alone, *((name, number) for number, name in enumerate(VISITS * of_visit))]


def requests(
    contracts: Contracts, urls: Mapping[str, str], mark: str, session: Sequence[SessionStep]
) -> list[VerifyingRequest]:
    """Return the requests to verify endpoints with, in the order of ``asked``.

    Each command prints as contract.requests says, but those without a name, which print nothing.
    All run in one shell.
    """
    names = {step.request for step in session}
    alone = {name: own for name, own in contracts.items() if name not in names}
    values = {name for step in session for name in step.take}
    visit = [
        VerifyingRequest(step.request, _command(step, contracts[step.request], urls, mark, values))
        for step in session
    ]
    if not visit:
        return contract.requests(alone, urls, mark)
    begin = VerifyingRequest("", "jar=$(mktemp); answer=$(mktemp)")
    end = VerifyingRequest("", 'rm -f "$jar" "$answer"')
    return [*contract.requests(alone, urls, mark), *VISITS * [begin, *visit, end]]


def _command(
    step: SessionStep, own: Contract, urls: Mapping[str, str], mark: str, values: set[str]
) -> str:
    sending = contract.sending(own, urls[step.request], mark)
    for name in values:
        # The words are quoted, as braces are.
        sending = sending.replace(f"{{{name}}}", f"'\"$value_{name}\"'")
    takes = [
        f'value_{name}=$(python3 -c {shlex.quote(_SCRIPT)} "$answer" {shlex.quote(place)})'
        for name, place in step.take.items()
    ]
    cookies = '--cookie "$jar" --cookie-jar "$jar"'
    return "\n".join([contract.printing(f"{sending} {cookies}", 'tee "$answer"'), *takes])


def verified(
    contracts: Contracts,
    answers: Mapping[tuple[str, int], tuple[bytes, float]],
    session: Sequence[SessionStep],
    dataset: Dataset,
    before: Mapping[str, Answer],
) -> dict[str, Answer]:
    """Return what is recorded of the answers to the requests of ``asked``, by endpoint.

    Where two visits had different answers, those of others may have any length. Raises
    ContractError as contract.verified does, and for an answer without a value that a later request
    has.
    """
    for number, step in enumerate(VISITS * [*session]):
        own, (answer, seconds) = contracts[step.request], answers[step.request, number]
        contract.check(own, answer, seconds, dataset)
        for name, place in step.take.items():
            if not take_value.value(answer, place):
                raise ContractError(
                    f"{own.path} answered nothing at {place}, which the session takes as {name}: "
                    f"{contract.split(answer)[2][:200]!r}"
                )
    names = {step.request for step in session}
    whole = {}
    for name, own in contracts.items():
        of_name = [answers[request] for request in answers if request[0] == name]
        earlier = None if name in names else before.get(name)
        same = contract.verified(own, of_name, dataset, earlier)
        if name in names and same.sha256 is None:
            same = Answer(status=same.status, sha256=None, body_bytes=None, wire_bytes=None)
        whole[name] = same
    return whole
