"""The options that a comparison of variants and a matrix of candidates leave no room for."""

from collections.abc import Mapping, Sequence
from typing import Literal

from loadlab.model import GivenOptions
from loadlab.plan.load_options import connections
from loadlab.run.errors import PlanError

Compared = Literal["variants", "candidates"]


def refuse_options(
    options: GivenOptions, compared: Compared, place: str, own: Mapping[str, str]
) -> None:
    """Raise PlanError for an option that has no ``place``, such as in a matrix.

    ``own``: name -> reason, of the options that this kind of run alone refuses.
    """
    cells = f"the {compared} are the cells. Give one of both"
    refused = {
        **own,
        "profile": "a flame graph belongs to one stack. Give it to lab.yml",
        "trace": "a trace belongs to one stack. Give it to lab.yml",
        "overload": "an overload belongs to one stack. Give it to lab.yml",
        "http2": "the generator of the closed loop speaks HTTP/1.1 alone. Leave it out",
        "scale": "it is of a study. Leave it out",
        **dict.fromkeys(("study", "lesson"), cells),
    }
    for name, reason in refused.items():
        if str(options.get(name, "no")).lower() not in ("no", "false"):
            raise PlanError(f"{name}: '{options[name]}' has no place {place}: {reason}.")
    connections.refuse_beside(options.get(connections.OPTION), compared)


def refuse_several(compared: Compared, name: str, values: Sequence[object]) -> None:
    """Raise PlanError where an option of the one load has another number of values than one."""
    if len(values) != 1:
        noun = "number of connections" if name == connections.OPTION else name
        raise PlanError(
            f"{name}: {compared} are compared at one {noun}. Give one with -e {name}=<value>."
        )
