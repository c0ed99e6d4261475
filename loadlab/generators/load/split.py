"""Split a load over several clients that offer it to one server together."""

from collections.abc import Sequence

from msgspec import Struct

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
    least, more = divmod(round(total * steps), clients)
    shares = [least + (at < more) for at in range(clients)]
    return [*shares] if steps == 1 else [share / steps for share in shares]


class Share(Struct):
    """One client's share of a load: rate in requests/s, None where the load has none."""

    name: str
    rate: float | None
    connections: int


def shares(rate: float | None, connections: int, names: Sequence[str]) -> list[Share]:
    """Return each client's share of a load, in the order of ``names``."""
    clients = len(names)
    rates = [None] * clients if rate is None else split(rate, clients)
    client_loads = zip(names, rates, split(connections, clients), strict=True)
    return [Share(name, part, int(own)) for name, part, own in client_loads]
