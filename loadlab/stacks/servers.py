"""The application servers of files/servers/, the interfaces that they run, and their commands."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field

from loadlab.model.base import Record
from loadlab.run.catalog import read_yaml
from loadlab.run.errors import PlanError

T = TypeVar("T")

# Folder of the servers, each with server.yml and, for Python's, requirements.in and its lock file.
FOLDER = "files/servers"


class Unasked(Record, kw_only=True, frozen=True):
    """Processes, and threads of each, that a server starts where nobody names a number."""

    workers: int
    threads: int


class Row(Record, kw_only=True, frozen=True):
    """Stacks of a server and an interface; a list of values stands for one stack each."""

    transport: str | list[str]
    protocol: str | list[str]
    worker_class: str | None = None
    event_loop: str | list[str] | None = None
    upstream_keepalive: bool | list[bool]
    threads: bool = False  #: Whether a worker can have several.
    #: Of the row that the server starts where nobody names class, workers or threads; a server
    #: without it starts one worker with one thread of its first row.
    unasked: Unasked | None = None
    #: Whether the option of that name says when it closes an idle connection.
    server_keepalive: bool = False
    backlog: int | None = None  #: Accept queue that it always has, whatever was asked for.
    arguments: str = ""  #: Further words of the command.
    packages: list[str] = field(default_factory=list)  #: Further ones of the distribution.
    #: python_below, python_reason: upper bound (exclusive) of the Python version, and why.
    python_below: str | None = None
    python_reason: str | None = None


class Server(Record, kw_only=True, frozen=True):
    """Content of files/servers/<server>/server.yml."""

    #: What systemd starts; Places has the words in braces, besides those of the stack.
    command: str
    #: {socket} of the command by transport, where {listen} does not suit.
    socket: dict[str, str] = field(default_factory=dict)
    #: Whether it tells systemd when it is ready; otherwise its first answer tells.
    notifies: bool = False
    stop: str = "SIGTERM"  #: Signal that ends it at once, SIGTERM if left out.
    packages: list[str] = field(default_factory=list)  #: Of the distribution.
    workers: int | None = None  #: The only number of processes that it can have.
    stacks: dict[str, list[Row]]  #: Interface -> rows, the first that fits is used.


class Interface(Record, kw_only=True, frozen=True):
    """An interface of files/interfaces.yml, which describes the keys."""

    default: str
    plural: str
    also: str | None = None
    refused: dict[str, str] = field(default_factory=dict)


class PythonLimit(Struct, kw_only=True, frozen=True):
    """Below which Python a server runs, and why; both None where there is no limit."""

    server: str
    python_below: str | None
    python_reason: str | None


class Started(Record, kw_only=True, frozen=True):
    """How a stack is started: its keys as in Server, with the words in braces."""

    command: str
    socket: str
    notifies: bool
    stop: str
    packages: list[str]
    lock: str  #: The lock file of the server's own packages, relative to the lab's folder, or "".


class Chosen(PythonLimit, kw_only=True, frozen=True):
    """One stack of a row: a value for each choice, and how it is started."""

    transport: str
    protocol: str
    worker_class: str | None
    event_loop: str | None
    upstream_keepalive: bool
    #: The accept queue that the server always has; None where it does as asked.
    own_backlog: int | None
    started: Started


class Offered(Chosen, kw_only=True, frozen=True):
    """A stack of a row."""

    threaded: bool  #: Whether its workers can have several threads.
    closes_idle: bool  #: Whether server_keepalive says when it closes an idle connection.
    only_workers: int | None  #: The only number of processes that it can have, or None.
    unasked: Unasked | None  #: As in Row, or None.


class Places(Struct, frozen=True, kw_only=True):
    """What a command needs of the host."""

    listen: str  #: unix:<path> or <address>:<port>.
    router: str  #: Socket between uWSGI's router and workers.
    deps: str  #: Folder of the dependencies.
    workers: int  #: Processes, 1 or more.
    threads: int
    keepalive: int  #: Seconds until an idle connection is closed.
    backlog: int
    #: module, uwsgi_module: "module:object" of the application.
    module: str = ""
    uwsgi_module: str = ""


def interfaces(root: Path) -> dict[str, Interface]:
    """Return files/interfaces.yml. Raises PlanError with the place of a wrong value."""
    return read_yaml(root, "files/interfaces.yml", dict[str, Interface])


def servers(root: Path) -> dict[str, Server]:
    """Return the servers by name, in its order. Raises PlanError as interfaces() does."""
    server_names = sorted(path.parent.name for path in (root / FOLDER).glob("*/server.yml"))
    return {name: read_yaml(root, f"{FOLDER}/{name}/server.yml", Server) for name in server_names}


def offered(root: Path, interface: str) -> list[Offered]:
    """Return every stack of an interface: those of its default server first, the others by name."""
    own = interfaces(root)[interface]
    spoken = [interface, *([own.also] if own.also else [])]
    all_servers = servers(root)
    order = sorted(all_servers, key=lambda name: (name != own.default, name))
    return [
        stack
        for name in order
        for key in spoken
        for row in all_servers[name].stacks.get(key, [])
        for stack in _of_row(name, all_servers[name], row, lock(root, name))
    ]


def lock(root: Path, server: str) -> str:
    """Return a server's lock file, relative to ``root``; "" where it has none."""
    place = f"{FOLDER}/{server}/requirements.txt"
    return place if (root / place).exists() else ""


def without(lock: str, other: str) -> str:
    """Return a lock file without the packages that another one has on every machine.

    Both are texts. pip would not replace an installed package by a wheel of the same version.
    """
    entries = [entry for entry in re.split(r"^(?=\S)", lock, flags=re.MULTILINE) if entry]
    lines = [line for line in other.splitlines() if ";" not in line]
    installed = {_package(line) for line in lines} - {""}
    return "".join(entry for entry in entries if _package(entry) not in installed)


def _package(line: str) -> str:
    """Return the normal name of the package that a line of a lock file names; "" without one."""
    match = re.match(r"(?:\S*/)?([A-Za-z0-9][A-Za-z0-9._-]*?)(?:\[|==| @ |-[0-9]\S*\.whl)", line)
    return re.sub(r"[-_.]+", "-", match[1]).lower() if match else ""


def _of_row(name: str, server: Server, row: Row, lock: str) -> Iterator[Offered]:
    for transport, protocol, event_loop, keepalive in itertools.product(
        _several(row.transport),
        _several(row.protocol),
        _several(row.event_loop) if row.event_loop else [None],
        _several(row.upstream_keepalive),
    ):
        yield Offered(
            server=name,
            transport=transport,
            protocol=protocol,
            worker_class=row.worker_class,
            event_loop=event_loop,
            upstream_keepalive=keepalive,
            own_backlog=row.backlog,
            python_below=row.python_below,
            python_reason=row.python_reason,
            started=Started(
                command=server.command.replace("{arguments}", row.arguments),
                socket=server.socket.get(transport, ""),
                notifies=server.notifies,
                stop=server.stop,
                packages=[*server.packages, *row.packages],
                lock=lock,
            ),
            threaded=row.threads,
            closes_idle=row.server_keepalive,
            only_workers=server.workers,
            unasked=row.unasked,
        )


def _several(value: T | list[T]) -> list[T]:
    return value if isinstance(value, list) else [value]


def command(stack: Chosen, places: Places) -> str:
    """Return the command that starts a stack, in one line, as a unit of systemd has it.

    Raises PlanError where files/servers/ has a word in braces that is not known.
    """
    where = places.listen.removeprefix("unix:")
    address, _, port = where.rpartition(":")
    words = {
        "listen": places.listen, "where": where, "path": where, "address": address, "port": port,
        "router": places.router, "deps": places.deps, "venv": f"{places.deps}/venv",
        "workers": places.workers, "threads": places.threads, "keepalive": places.keepalive,
        "backlog": places.backlog, "module": places.module,
        "uwsgi_module": places.uwsgi_module or places.module,
        "protocol": stack.protocol, "worker_class": stack.worker_class,
    }  # fmt: skip
    started = stack.started
    try:
        text = started.command.replace("{socket}", started.socket).format_map(words)
    except KeyError as error:
        raise PlanError(
            f"{FOLDER}/{stack.server}/server.yml: {{{error.args[0]}}} is not known. There are: "
            f"{', '.join(sorted(words))}."
        ) from None
    return " ".join(text.split())


def refusal(root: Path, interface: str, server: str) -> str | None:
    """Return why a server does not run an interface; None where it does.

    Raises PlanError where there is no such server.
    """
    all_servers, own = servers(root), interfaces(root)[interface]
    if server not in all_servers:
        raise PlanError(
            f"server: '{server}' is not known. There are: {', '.join(all_servers)}. A new one is a "
            f"folder in {FOLDER}/."
        )
    if {interface, own.also} & all_servers[server].stacks.keys():
        return None
    return own.refused.get(server, f"{server} runs no {own.plural}")
