"""The load generators and Python clients of the lab: one entry each, from one module each."""

from collections.abc import Iterable, Sequence

from loadlab.generators import metronome, oha, python_client, wrk, wrk2
from loadlab.generators.generator import Generator, Mode
from loadlab.run.errors import PlanError

# A generator is added here. Of several that can do the same, messages suggest the first.
_MODULES = (metronome, oha, wrk2, wrk, python_client)
GENERATORS: dict[str, Generator] = {
    entry.name: entry for module in _MODULES for entry in module.GENERATORS
}


def get(name: str) -> Generator:
    """Return a generator's entry. Raises PlanError for an unknown name."""
    if name not in GENERATORS:
        raise PlanError(f"generator: '{name}' is not known. There are: {', '.join(GENERATORS)}.")
    return GENERATORS[name]


def names(*modes: Mode) -> list[str]:
    """Return the names of the generators of these modes, in the registry's order."""
    return [entry.name for entry in GENERATORS.values() if entry.mode in modes]


def first(mode: Mode) -> str:
    """Return the generator that the lab itself takes for a mode, and suggests."""
    return names(mode)[0]


def saturating() -> str:
    """Return the closed-loop generator that measures saturation throughput."""
    return first("closed")


def cross_checking() -> str:
    """Return the generator of cross-checks: that of the published studies."""
    return "wrk2"


def calibrating(used: Iterable[str]) -> str:
    """Return the generator to calibrate for among those of a run.

    It is the first with a constant rate, whose own latency matters. Without one it is the closed
    loop, also for Python clients, which are under test themselves.
    """
    return next((name for name in names("constant") if name in used), saturating())


def readers(option: str) -> list[str]:
    """Return the generators that read an option; none where every generator is affected by it."""
    return [entry.name for entry in GENERATORS.values() if option in entry.options]


def opening_on_demand() -> str:
    """Return the first generator that can open connections on demand."""
    return next(entry.name for entry in GENERATORS.values() if entry.on_demand)


def outputs() -> set[str]:
    """Return the names of the files that generators leave in a repetition's folder."""
    return {entry.output for entry in GENERATORS.values()}


def speaking_http2() -> list[str]:
    """Return the generators that can use HTTP/2."""
    return [entry.name for entry in GENERATORS.values() if entry.http2]


def choices(option: str) -> list[str]:
    """Return the values of an option that names a generator; none for another option."""
    return [*GENERATORS] if option == "generator" else []


def described(used: Sequence[str]) -> list[dict[str, object]]:
    """Return what roles and playbooks need to know of these generators.

    Each has name, role, on_controller, built, snap, binary and program of its entry.
    """
    fields = ("name", "role", "built", "snap", "binary", "program")
    return [
        {
            "on_controller": list(entry.on_controller),
            **{name: getattr(entry, name) for name in fields},
        }
        for entry in map(get, used)
    ]
