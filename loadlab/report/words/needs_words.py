"""Words for the disk and memory that a run needs."""

from __future__ import annotations

from loadlab.plan.plan_document import HostNeeds, Needs

# The plan names an amount from this many bytes on. Every machine has less than that to spare.
NAMED_FROM = 100 * 2**20


def told(needs: Needs) -> str:
    """Return what a run needs, for the terminal; empty where no figure reaches NAMED_FROM."""
    here = needs.controller
    parts = [
        _host(needs.client, "on each client"),
        _host(needs.server, "on each server"),
        _host(
            HostNeeds(
                disk_bytes=here.disk_bytes + needs.temporary_bytes, memory_bytes=here.memory_bytes
            ),
            "here",
        ),
    ]
    stated = "; ".join(filter(None, parts))
    return f"Needs at least {stated}" if stated else ""


def _host(needs: HostNeeds, where: str) -> str:
    named = {"disk": needs.disk_bytes, "memory": needs.memory_bytes}
    amounts = [
        f"{_round(amount)} of {name}" for name, amount in named.items() if amount >= NAMED_FROM
    ]
    return f"{' and '.join(amounts)} {where}" if amounts else ""


def _round(octets: int) -> str:
    """Return a number of bytes with two significant digits: 620 MiB."""
    unit, name = (2**30, "GiB") if octets >= 2**30 else (2**20, "MiB")
    return f"{float(f'{octets / unit:.2g}'):,g} {name}"
