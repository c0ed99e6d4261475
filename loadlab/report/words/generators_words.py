"""Words for the reasons why a client cannot have a generator, from loadlab/plan."""

from __future__ import annotations

from loadlab.generators import registry
from loadlab.generators.proof import Outcome
from loadlab.model import Reason
from loadlab.reasons.row import ReasonRow, ReasonTable

_NAMED = "Name an executable with -e <generator>_binary="


def _fact(reason: Reason, name: str) -> str:
    return str(reason.facts[name])


TABLE: ReasonTable = {
    "generator_machine": ReasonRow(
        lambda reason: (
            f"it is {_fact(reason, 'machine')}, and the {_fact(reason, 'generator')} that it "
            f"would get from this machine is for {_fact(reason, 'made_for')}"
        ),
        "Name one for the client's machine with -e <generator>_binary=",
        meaning="The executable is for another machine than the client's.",
    ),
    "generator_absent": ReasonRow(
        lambda reason: (
            f"the generator {_fact(reason, 'generator')} is not there, and no package of its "
            "distribution has it"
        ),
        f"{_NAMED}, install it on the client yourself, or take another with -e generator=",
        meaning="The client lacks the generator, and no package has it.",
    ),
}


def refusal(reason: Reason) -> str:
    """Return the words for a generator that a client cannot have, with the remedy for it."""
    name = _fact(reason, "generator")
    generator, other = registry.get(name), registry.first("constant")
    own = f"-e {generator.binary}=/path/to/{name}"
    words = TABLE[reason.code].words(reason)
    if reason.code == "generator_machine":
        return f"{words}. Name one for {_fact(reason, 'machine')} with {own}."
    return (
        f"{words}. Name an executable of yours with {own}, install it there yourself (the snap "
        f"{_fact(reason, 'snap')} has it, if you trust its publisher: `snap info`), or "
        f"{_instead(other)}."
    )


def _instead(other: str) -> str:
    return f"measure with -e generator={other}"


def proof_refusal(host: str, name: str, outcome: Outcome) -> str:
    """Return why a generator did not prove itself, with the remedy; "" where it did."""
    if outcome.exit_code == 0 and outcome.answered > 0:
        return ""
    generator, other = registry.get(name), registry.first("constant")
    own = f"Name another with -e {generator.binary}=/path/to/{name}" if generator.binary else ""
    else_ = _instead(other) if name != other else ""
    if name == registry.cross_checking():
        else_ += " -e cross_check=false"
    remedy = ", or ".join(way for way in (own, else_) if way)
    said = outcome.said or "nothing"
    return (
        f"{host}: {name} does not work there. In one second of load against a server on the host "
        f"itself {outcome.answered} requests were answered, it ended with {outcome.exit_code} "
        "and said "
        f"'{said[-300:]}'. {remedy[:1].upper()}{remedy[1:]}. No load was offered."
    )
