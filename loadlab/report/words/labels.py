"""Name stacks, loads and cells in words: by all of their parts, or by those that differ."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import TypeVar

from loadlab.generators import registry
from loadlab.model import (
    DIRECT,
    NGINX,
    Arrivals,
    Cell,
    CellSummary,
    Comparison,
    CurveSummary,
    Injection,
    LabRevision,
    Load,
    Replay,
    SearchSummary,
    SessionStep,
    SweepSummary,
)
from loadlab.run import formatting
from loadlab.stacks.contract import Contract, Contracts

# Rates of a ramp that its words have; of more, the lowest and the highest.
RAMP_SHOWN = 6

# Measurements of one stack at several loads.
S = TypeVar("S", SweepSummary, SearchSummary, CurveSummary)
# Endpoint -> path, from the manifest's plan.
Paths = Mapping[str, str]

# Servers that are not written as their name with a capital letter.
_SERVERS = {"uwsgi": "uWSGI", "native": "its own server"}
# Reverse proxies that are not named as "behind" theirs.
_PROXIES = {DIRECT: "without a reverse proxy", NGINX: ""}
# Parts in which stacks may differ, besides framework and server.
PARTS = (
    "app", "transport", "protocol", "worker_class", "event_loop", "workers", "threads",
    "server_keepalive_s", "driver", "python", "upstream_keepalive", "reverse_proxy", "backlog",
)  # fmt: skip
# Parts that stack() leaves out.
BESIDE = ("variant", "backlog", "tuning", "network", "hosts")
# Of a stack, what matters most first.
STACK_PARTS = (
    *("framework", "server", "reverse_proxy"),
    *(part for part in PARTS if part != "reverse_proxy"),
)
# Parts in which two cells of one endpoint may differ, besides their loads.
ALL_PARTS = ("variant", *STACK_PARTS, "tuning", "network", "hosts")


def seconds(lengths: Collection[float]) -> str:
    """Return the shortest and the longest of these seconds, once where they are the same."""
    shortest, longest = f"{min(lengths):g} s", f"{max(lengths):g} s"
    return longest if shortest == longest else f"{shortest.removesuffix(' s')} to {longest}"


@dataclass(frozen=True)
class Entry:
    """A cell of summary.json with its titles in the report."""

    cell: CellSummary
    name: str  #: Short name of its stack, see names().
    path: str  #: Of the endpoint.
    #: Path, plus backlog, tuning, network, hosts and faults where they differ between cells.
    where: str
    #: The parts that tell the stacks apart, see differences(), and faults.
    different: Sequence[str]
    stack: str  #: Path, plus these parts.
    title: str  #: Stack, plus the parts in which loads differ.
    anchor: str  #: Id of its section in the page.

    @property
    def is_client(self) -> bool:
        """Whether the cell measures a Python client."""
        return _is_client(self.cell)


def server_name(name: str) -> str:
    """Return an application server's name in words."""
    return _SERVERS.get(name, name.capitalize())


def part(cell: Cell, name: str) -> str:
    """Return one part of a cell in words; empty where it needs no mention."""
    if name == "reverse_proxy":
        return _PROXIES.get(cell.reverse_proxy, f"behind {cell.reverse_proxy}")
    value = getattr(cell, name)
    if value is None or (name == "threads" and value == 1):
        return ""
    if name == "app":
        folder = PurePath(str(value)).name
        return "" if folder == cell.framework else folder
    if name == "upstream_keepalive":
        return "connections kept" if value else "a connection for each request"
    return {
        "workers": f"{value} worker{'' if value == 1 else 's'}",
        "threads": f"{value} threads",
        "server_keepalive_s": f"idle connections closed after {value} s",
        "driver": f"driver {value}",
        "python": f"Python {value}",
        "backlog": f"backlog {value}",
        # A dotted name is a class; its package adds nothing.
        "worker_class": str(value).rsplit(".", 1)[-1],
    }.get(name, str(value))


def stack(cell: Cell) -> str:
    """Return a stack in words.

    The backlog is left out, as only a comparison of backlogs needs it, and so is a worker class
    that the event loop determines.
    """
    if cell.transport == "none":
        return name(cell)
    left_out = {"backlog", "worker_class" if cell.event_loop else ""}
    words = [part(cell, own) for own in PARTS if own not in left_out]
    return f"{name(cell)} ({', '.join(filter(None, words))})"


def name(cell: Cell) -> str:
    """Return the short name of a stack: its framework and server."""
    if cell.transport == "none":
        return "nginx alone"
    return f"{cell.framework} on {server_name(cell.server)}"


def _is_client(cell: CellSummary) -> bool:
    return cell.cell.load.mode == "batch"


def differences(cells: Sequence[CellSummary], names: Sequence[str] = ALL_PARTS) -> list[list[str]]:
    """Return, for each cell, the words for the parts in which the cells differ.

    Of the parts of a stack, only the fewest that tell the stacks apart: where each framework has a
    server of its own, the framework is enough.
    """
    parts = [_parts(cell.cell, _hosts(cell)) for cell in cells]
    enough = _enough(parts, [])
    return _different(parts, [name for name in names if name in enough or name not in STACK_PARTS])


def names(cells: Sequence[Cell]) -> list[str]:
    """Return the short name of each cell's stack: framework and server, and of its other parts the
    fewest that tell the stacks apart."""
    parts = [_parts(cell, "") for cell in cells]
    _, _, *more = _enough(parts, ["framework", "server"])
    return [
        title(name(cell), different if cell.transport != "none" else [])
        for cell, different in zip(cells, _different(parts, more), strict=True)
    ]


def _enough(parts: Sequence[Mapping[str, str]], shown: Sequence[str]) -> list[str]:
    """Return ``shown``, parts of a stack, and the fewest others that tell the stacks apart."""
    enough = [*shown]
    for name in STACK_PARTS:
        # A tuning decides the backlog.
        certain = [*enough, *(["tuning"] if name == "backlog" else [])]
        if _count(parts, [*certain, name]) > _count(parts, certain):
            enough.append(name)
    return enough


def _count(mappings: Sequence[Mapping[str, str]], names: Sequence[str]) -> int:
    """Return how many combinations the named parts have."""
    return len({tuple(parts[name] for name in names) for parts in mappings})


def entries(cells: Sequence[CellSummary], paths: Paths) -> list[Entry]:
    """Return the cells as report entries with distinct titles, in order."""
    stacks, beside, paces = differences(cells), differences(cells, BESIDE), loads(cells)
    faults = _different([{"fault": _fault(cell.cell.load.injection)} for cell in cells], ["fault"])
    short = names([cell.cell for cell in cells])
    own = zip(cells, short, stacks, beside, paces, faults, strict=True)
    subjects = []
    for number, (cell, name, stack, near, pace, fault) in enumerate(own, start=1):
        path, different = path_of(cell.cell, paths), stack + fault
        where, whole = title(path, near + fault), title(path, different)
        subjects.append(
            Entry(
                cell, name, path, where, different, whole, title(path, stack + pace),
                f"cell-{number}",
            )
        )  # fmt: skip
    return subjects


def by_path(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return the entries of each path."""
    paths: dict[str, list[Entry]] = {}
    for entry in entries:
        paths.setdefault(entry.path, []).append(entry)
    return paths


def compared(comparisons: Sequence[Comparison], paths: Paths) -> list[str]:
    """Return a title for each comparison: the path, and how it differs from the others."""
    parts = [
        {
            name: words
            for name, words in _parts(comparison.cell, "").items()
            if name != comparison.by or name == "endpoint"
        }
        for comparison in comparisons
    ]
    stacks = _different(parts, ALL_PARTS)
    loads = _different_loads([comparison.cell.load for comparison in comparisons])
    return [
        title(path_of(comparison.cell, paths), own + load)
        for comparison, own, load in zip(comparisons, stacks, loads, strict=True)
    ]


def subjects(cells: Sequence[Cell], paths: Paths) -> list[str]:
    """Return each cell's short name and path, and the words in which it differs from the others."""
    beside = _different([_parts(cell, "") for cell in cells], BESIDE)
    return [
        f"{short} on {title(path_of(cell, paths), words)}"
        for cell, short, words in zip(cells, names(cells), beside, strict=True)
    ]


def with_subjects(series: Sequence[S], paths: Paths) -> list[tuple[S, str]]:
    """Return each sweep, search or curve with its subject."""
    cells = [measurements.cell for measurements in series]
    return list(zip(series, subjects(cells, paths), strict=True))


def title(path: str, more: Sequence[str]) -> str:
    """Return a path or name, followed by words in parentheses if there are any."""
    return f"{path} ({', '.join(more)})" if more else path


def paths(endpoints: Contracts) -> dict[str, str]:
    """Return name -> path of each endpoint: with the method where it is no GET, and with the name
    where others have the same."""
    plain = {name: _path(contract) for name, contract in endpoints.items()}
    alike = Counter(plain.values())
    return {name: path if alike[path] == 1 else f"{path} ({name})" for name, path in plain.items()}


def _path(contract: Contract) -> str:
    return contract.path if contract.method == "GET" else f"{contract.method} {contract.path}"


def path_of(cell: Cell, paths: Paths) -> str:
    """Return a cell's path, or those of its mix with their weights; of a log how many it has."""
    if cell.load.replay:
        return f"{formatting.plural(len(cell.kinds), 'path')} of a log"
    if cell.load.session:
        steps = (paths.get(step.request, f"/{step.request}") for step in cell.load.session)
        return f"a session of {', '.join(steps)}"
    kinds = [(paths.get(name, f"/{name}"), weight) for name, weight in cell.kinds.items()]
    if len(kinds) == 1:
        return kinds[0][0]
    return f"a mix of {', '.join(f'{path} {weight}' for path, weight in kinds)}"


def lab(lab_revision: LabRevision) -> str:
    """Return the lab's version and the revision of its source."""
    revision = lab_revision.revision or "not from a git repository"
    changes = " with local changes" if lab_revision.dirty else ""
    return f"{lab_revision.version or 'without a version'}, {revision}{changes}"


def short_lab(lab_revision: LabRevision) -> str:
    """Return the lab's version and the begin of its revision, with a + for local changes."""
    changes = "+" if lab_revision.dirty else ""
    revision = f", {lab_revision.revision[:12]}{changes}" if lab_revision.revision else ""
    return f"{lab_revision.version or 'no version'}{revision}"


def objective(slo: Mapping[str, float]) -> str:
    """Return an objective in words: p99 up to 100 ms and no errors."""
    parts = [
        f"{formatting.percentile(name.removesuffix('_ms'))} up to {limit:g} ms"
        for name, limit in slo.items()
        if name != "errors"
    ]
    if "errors" in slo:
        most = slo["errors"]
        parts.append(f"errors up to {formatting.part_of(most)}" if most else "no errors")
    return formatting.listed(parts)


def load(load: Load) -> str:
    """Return the generator and what is asked of it: wrk2, 1,000/s."""
    return ", ".join([load.generator, pace(load), *shape(load)])


def shape(load: Load) -> list[str]:
    """Return how the requests of a rate come, where it is not at even intervals, and what opens
    connections for them."""
    words = [arrivals(load.arrivals)] if load.arrivals else []
    words += [replayed(load.replay)] if load.replay else []
    return words + (["connections on demand"] if load.on_demand else [])


def pace(load: Load) -> str:
    """Return what is asked of a generator: 1,000/s, closed loop."""
    unit = " visits/s" if load.session else "/s"
    return f"{formatting.asked(load)}{unit if load.mode == 'constant' else ''}"


def common(cells: Sequence[Cell], paths: Paths) -> str:
    """Return in a sentence what all cells have in common: the stack, or parts of it, the path, and
    the load."""
    stacks = set(map(stack, cells))
    ways = [_parts(cell, "") for cell in cells if cell.transport != "none"]
    same = [*stacks]
    if len(stacks) > 1:
        own = [part for part in PARTS if part not in ("backlog", "worker_class")]
        names = [name for name in ("framework", *own) if _count(ways, [name]) == 1]
        same = [ways[0][name] for name in names]
    own_paths = {path_of(cell, paths) for cell in cells}
    loads = [load_parts(cell.load) for cell in cells]
    alike = [
        loads[0].get(name)
        for name in ("connections", "duration_s")
        if len({parts.get(name) for parts in loads}) == 1
    ]
    generators = " and ".join(dict.fromkeys(cell.load.generator for cell in cells))
    words = [
        ", ".join(filter(None, same)),
        *(own_paths if len(own_paths) == 1 else []),
        ", ".join(filter(None, [generators, *alike])),
    ]
    return f"All: {'; '.join(filter(None, words))}. Latencies in ms, CPU in µs/request."


def load_parts(load: Load) -> dict[str, str]:
    """Return the parts in which two loads may differ, in words."""
    protocol = "HTTP/2 over TLS" if load.http2 else "TLS" if load.tls else "no TLS"
    named = [f"{name}: {text}" for name, text in (load.headers or {}).items()]
    options = {
        "tls": protocol,
        "headers": f"with {', '.join(named)}" if named else "no headers",
        "clients": f"from {formatting.plural(load.clients or 1, 'client')}",
    }
    if load.mode == "batch":
        bound = "connections" in registry.get(load.generator).options
        return {
            "pace": f"{load.generator}, {formatting.asked(load)}",
            "connections": f"{load.connections:,} at a time" if bound else "",
            "open_files": f"{load.open_files:,} open files",
            "reuse": "connections reused" if load.reuse else "new connections",
            **options,
        }
    kept = load.keepalive is not False
    words = {
        "pace": "closed loop" if load.rate is None else pace(load),
        "connections": connections(load),
        "duration_s": f"{load.duration_s:g} s",
        "keepalive": "client connections kept" if kept else "a client connection for each request",
        **options,
    }
    if load.arrivals:
        words["arrivals"] = arrivals(load.arrivals)
    if load.replay:
        words["replay"] = replayed(load.replay)
    if load.session:
        words["session"] = thinking(load.session)
    if load.burst_every_s:
        words["bursts"] = f"a burst every {load.burst_every_s:g} s"
    if load.injection:
        words["fault"] = _fault(load.injection)
    if load.stall:
        words["stall"] = f"stopped for {load.stall.duration_s:g} s"
    if load.background_endpoint:
        words["background"] = f"beside {load.background_endpoint}"
    return words


def connections(load: Load) -> str:
    """Return the connections of a load, in words."""
    number = formatting.plural(load.connections, "connection")
    return f"up to {number}, opened on demand" if load.on_demand else number


def replayed(log: Replay) -> str:
    """Return that a log is followed, in words: a log at speed 10."""
    return f"a log at speed {log.speed:g}"


def replay(log: Replay) -> str:
    """Return in a sentence what of a log is sent, and what is not."""
    sent = (
        f"Of {formatting.plural(log.lines, 'line')} of the log {log.requests:,} are sent"
        f"{', with their queries' if log.query else ', without queries'}"
    )
    words = {"malformed": "malformed", "no endpoint": "of no endpoint of the application"}
    left = [
        f"{count:,} {words.get(name, f'{name} without a body')}"
        for name, count in log.left_out.items()
    ]
    return f"{sent}; left out: {', '.join(left)}." if left else f"{sent}; none is left out."


def thinking(session: Sequence[SessionStep]) -> str:
    """Return how long visitors think, in words: 4 requests, 3 s of thinking."""
    seconds = sum(step.thinks_s for step in session)
    random = " on average" if any(step.think_mean_s for step in session) else ""
    return f"{formatting.plural(len(session), 'request')}, {seconds:g} s of thinking{random}"


def arrivals(shape: Arrivals) -> str:
    """Return how requests come, in words: Poisson arrivals."""
    words = []
    if shape.burst:
        words.append(f"bursts of {shape.burst:,}")
    elif shape.smoothness:
        gamma = f"gamma arrivals of smoothness {shape.smoothness:g}"
        words.append("Poisson arrivals" if shape.smoothness == 1 else gamma)
    elif shape.switching:
        calm_s, busy_s = shape.switching.calm_s, shape.switching.busy_s
        words.append(
            f"Poisson arrivals, {shape.switching.ratio:g} times as many for {busy_s:g} s as for "
            f"{calm_s:g} s before"
        )
    if shape.ramp:
        # A rate that stays is there twice.
        steps = [rate for rate, _ in groupby(rate for _, rate in shape.ramp)]
        shown = steps if len(steps) <= RAMP_SHOWN else [min(steps), max(steps)]
        words.append(f"a ramp {' to '.join(formatting.number(rate) for rate in shown)}")
    return ", ".join(words)


def _fault(injection: Injection | None) -> str:
    """Return the faults that the hosts inject, in words; empty where there are none."""
    if injection is None:
        return ""
    words = []
    if neighbour := injection.neighbour:
        part = f"{formatting.part_of(neighbour.cpu)} of a core of the {neighbour.host}"
        programs = f"{neighbour.programs} neighbours, each with up to {part}"
        words.append(programs if neighbour.programs > 1 else f"a neighbour with {part}")
    if stop := injection.generator_stop:
        words.append(f"generator stopped for {stop.duration_s:g} s")
    if injection.refused_every:
        words.append(f"one of {injection.refused_every} connections refused")
    if injection.lost_every:
        words.append(f"one of {injection.lost_every} packets lost")
    if injection.half_open:
        words.append(formatting.plural(injection.half_open.connections, "half-open connection"))
    if injection.download:
        words.append("beside a download")
    return ", ".join(words)


def _parts(cell: Cell, hosts: str) -> dict[str, str]:
    """Return the parts of a cell in words; ``hosts``: the host pair that measured it."""
    names = (name for name in ALL_PARTS if name != "hosts")
    return {**{name: part(cell, name) for name in names}, "hosts": hosts}


def _hosts(cell: CellSummary) -> str:
    """Return the host pair that measured a cell, by its server."""
    return next((f"on {rep.server}" for rep in cell.repetitions), "")


def loads(cells: Sequence[CellSummary]) -> list[list[str]]:
    """Return, for each cell, the words for the parts in which the loads differ.

    The loads of Python clients differ from each other only, and so do those of stacks.
    """
    titles: list[list[str]] = [[] for _ in cells]
    for kind in (False, True):
        chosen = [index for index, cell in enumerate(cells) if _is_client(cell) is kind]
        loads = _different_loads([cells[index].cell.load for index in chosen])
        for index, words in zip(chosen, loads, strict=True):
            titles[index] = words
    return titles


def _different_loads(loads: Sequence[Load]) -> list[list[str]]:
    parts_of_loads = [load_parts(load) for load in loads]
    return _different(
        parts_of_loads, list(dict.fromkeys(name for parts in parts_of_loads for name in parts))
    )


def _different(mappings: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[list[str]]:
    """Return, for each, the words of the named parts that differ between them."""
    differ = [name for name in names if len({parts.get(name, "") for parts in mappings}) > 1]
    return [[words for name in differ if (words := parts.get(name, ""))] for parts in mappings]
