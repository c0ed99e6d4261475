"""Split a load over several clients that offer it to one server together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadlab.core.errors import PlanError
from loadlab.core.formatting import plain
from loadlab.generators.registry import CLIENTS

# A share that is not a whole number is a multiple of 1/_FRACTIONS.
_FRACTIONS = 1_000_000


def split(total: float, clients: int) -> list[float]:
    """Split ``total`` (above 0) into ``clients`` shares whose sum is ``total``, larger ones first.

    Shares are whole numbers where ``total`` is one and every client gets 1 or more; otherwise they
    are multiples of a millionth.
    """
    if clients == 1:
        return [total]
    steps = 1 if float(total).is_integer() and total >= clients else _FRACTIONS
    each, more = divmod(round(total * steps), clients)
    shares = [each + (at < more) for at in range(clients)]
    return [*shares] if steps == 1 else [share / steps for share in shares]


def shares(load: Mapping[str, Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return [{name, rate, connections}], each client's share of a cell's load.

    rate is in requests/s, None where the load has none.
    """
    several = len(names)
    rate = load["rate"]
    rates = [None] * several if rate is None else split(rate, several)
    connections = split(load["connections"], several)
    return [
        {"name": name, "rate": rates[at], "connections": connections[at]}
        for at, name in enumerate(names)
    ]


def offered(
    load: Mapping[str, Any], names: Sequence[str], hosts: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return shares() with each client's cpus and interface, from its probe.parse.

    ``hosts`` has the order of ``names``.
    """
    return [
        {**share, **{key: host[key] for key in ("cpus", "interface")}}
        for share, host in zip(shares(load, names), hosts, strict=True)
    ]


def refuse(values: Mapping[str, Any]) -> None:
    """Raise PlanError where a server's clients cannot share the load of the checked options."""
    clients, generator = values.get("clients", 1), values["generator"]
    if clients == 1:
        return
    fewer = "or take `serves` from clients in the inventory."
    if generator in CLIENTS:
        raise PlanError(
            f"generator: {generator} is itself what is measured, and the inventory has {clients} "
            f"clients to a server. Give a load generator with -e generator=oha, {fewer}"
        )
    for name, whole in (("connections", True), ("rate", generator == "wrk2")):
        least = min((number for number in values[name] if number is not None), default=clients)
        if whole and least < clients:
            raise PlanError(
                f"{name}: {plain(least)} cannot be split over the {clients} clients of a server, "
                f"of which each offers 1 or more. Give at least -e {name}={clients}, {fewer}"
            )
