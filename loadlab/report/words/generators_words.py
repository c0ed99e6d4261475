"""Words for the reasons why a client cannot have a generator, from loadlab/plan."""

from loadlab.generators import registry
from loadlab.generators.load.proof import Outcome
from loadlab.model import Reason
from loadlab.report import words
from loadlab.run.formatting import plural


def refusal(reason: Reason) -> str:
    """Return the words for a generator that a client cannot have, with the remedy for it."""
    name = str(reason.facts["generator"])
    generator, other = registry.get(name), registry.first("constant")
    own = f"-e {generator.binary}=/path/to/{name}"
    cause = words.reason(reason)
    if reason.code == "generator_machine":
        return f"{cause}. Name one for {reason.facts['machine']} with {own}."
    return (
        f"{cause}. Name an executable of yours with {own}, install it there yourself (the snap "
        f"{reason.facts['snap']} has it, if you trust its publisher: `snap info`), or "
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
        f"itself it got {plural(outcome.answered, 'answer')}, ended with {outcome.exit_code} and "
        f"said '{said[-300:]}'. {remedy[:1].upper()}{remedy[1:]}. No load was offered."
    )
