"""Choose the generator of a run where neither the user nor a study names one.

It is the preferred one if every client has it or can get it, and otherwise the one that the lab
itself obtains. What the options decide is decided when the run is planned; the rest when the
clients are first asked, before anything is changed on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from loadlab.core.errors import PlanError
from loadlab.core.model import Reason
from loadlab.generators import registry
from loadlab.hosts.probe import HostProbe
from loadlab.planning import client_programs
from loadlab.planning.plan import plan
from loadlab.planning.request import Request
from loadlab.scheduling.plan import Plan


class Alternatives(Struct, frozen=True):
    """The plan, and the plan that replaces it if a client cannot have its generator.

    ``instead`` is None where nothing is left to be decided.
    """

    plan: Plan
    instead: Plan | None = None


def alternatives(ask: Request, binaries: Mapping[str, str], can_have_snaps: bool) -> Alternatives:
    """Return the plan of a run, or two of them where the clients decide.

    ``binaries``: main variable -> path of the user's own executable, or "". Raises PlanError as
    plan() does.
    """
    name, other = registry.preferred(), registry.first("constant")
    if name is None:
        return Alternatives(plan(ask))
    entry = registry.get(name)
    if binaries.get(entry.binary):
        # The user's executable says what is wanted, so its refusal is the one to tell.
        first = _planned(ask, name)
        if isinstance(first, Plan):
            return Alternatives(_settled(first, client_programs.reason("generator_named", entry)))
        second = _planned(ask, other)
        if isinstance(second, PlanError):
            raise first
        return Alternatives(_settled(second, _unfit(name, first)))
    fallback = plan(replace(ask, generator=other))
    if fallback.choice is None or fallback.choice.settled:
        return Alternatives(fallback)
    if not can_have_snaps:
        return Alternatives(_settled(fallback, client_programs.reason("snap_container", entry)))
    wanted = _planned(ask, name)
    if isinstance(wanted, PlanError):
        return Alternatives(_settled(fallback, _unfit(name, wanted)))
    return Alternatives(wanted, fallback)


def _planned(ask: Request, generator: str) -> Plan | PlanError:
    try:
        return plan(replace(ask, generator=generator))
    except PlanError as refusal:
        return refusal


def _unfit(name: str, refusal: PlanError) -> Reason:
    return Reason(code="generator_unfit", facts={"generator": name, "why": str(refusal)})


def _settled(found: Plan, *reasons: Reason) -> Plan:
    """Return the plan with its choice settled; unchanged where there is nothing to choose."""
    if found.choice is None or found.choice.settled:
        return found
    choice = replace(found.choice, settled=True, reasons=list(reasons))
    used = {choice.generator} if choice.used else set()
    return replace(found, choice=choice, generators=sorted({*found.generators, *used}))


def settle(
    found: Alternatives,
    clients: Mapping[str, HostProbe],
    fetched: Mapping[str, Sequence[str] | None],
) -> Plan:
    """Return the plan that the clients can carry out: the same generator on all of them.

    ``clients``: name -> what its probe found, of every client. ``fetched``: name -> None, or for a
    client without internet what is fetched for it.
    """
    if found.plan.choice is None or found.plan.choice.settled or found.instead is None:
        return found.plan
    entry = registry.get(found.plan.choice.generator)
    ways = {
        name: client_programs.way(host, entry, "", "", fetched[name])
        for name, host in clients.items()
    }
    named = [
        (possible, replace(reason, facts={**reason.facts, "client": name}))
        for name, (possible, reason) in ways.items()
    ]
    obstacles = [reason for possible, reason in named if not possible]
    if obstacles:
        return _settled(found.instead, *obstacles)
    return _settled(found.plan, *(reason for _, reason in named))
