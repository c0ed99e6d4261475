"""The stacks of files/stacks.yml, and the stack that the user's options select."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NotRequired, TypedDict, TypeVar

from loadlab.core.catalog import known, names, read_yaml
from loadlab.core.errors import PlanError
from loadlab.stacks import requirements
from loadlab.stacks.application import App, contracts_of, database, is_own, manifest, name_of
from loadlab.stacks.contract import Contract, expected_body

T = TypeVar("T")

Choice = Literal[
    "server", "transport", "protocol", "worker_class", "event_loop", "upstream_keepalive"
]
# Options that select a stack; every list of them has this order.
CHOICES: tuple[Choice, ...] = (
    "server", "transport", "protocol", "worker_class", "event_loop", "upstream_keepalive",
)  # fmt: skip
# Port that clients connect to, by the option reverse_proxy; none: of the application server.
PORTS = {"nginx": 80, "none": 8000}
# The server that is a part of the application itself.
NATIVE = "native"
# Transport and protocol that reverse_proxy=none requires.
DIRECT = ("tcp", "http")


class Row(TypedDict):
    """A row of an interface in files/stacks.yml, which describes the keys."""

    server: str
    transport: str | list[str]
    protocol: str | list[str]
    worker_class: NotRequired[str]
    event_loop: NotRequired[str | list[str]]
    upstream_keepalive: bool | list[bool]
    threads: NotRequired[bool]
    server_keepalive: NotRequired[bool]
    loop: NotRequired[str]
    python_below: NotRequired[str]
    python_reason: NotRequired[str]


class Interface(TypedDict):
    """The stacks that run an interface, and why others do not: server -> reason."""

    stacks: list[Row]
    refused: NotRequired[dict[str, str]]


class PythonLimit(TypedDict):
    """Below which Python a server runs, and why; both None where there is no limit."""

    server: str
    python_below: str | None
    python_reason: str | None


class Chosen(PythonLimit):
    """One stack of a row: a value for each choice, and the row's further keys."""

    transport: str
    protocol: str
    worker_class: str | None
    event_loop: str | None
    upstream_keepalive: bool
    loop: str | None


class Offered(Chosen):
    """A stack of a row.

    - threaded: whether its workers can have several threads
    - closes_idle: whether server_keepalive says when it closes an idle connection
    """

    threaded: bool
    closes_idle: bool


class Asked(TypedDict):
    """The user's options that select a stack; None leaves a choice open."""

    framework: str | None
    server: str | None
    transport: str | None
    protocol: str | None
    worker_class: str | None
    event_loop: str | None
    upstream_keepalive: bool | None
    driver: str | None
    front: str
    workers: int | None
    threads: int
    app: NotRequired[str | None]
    module: NotRequired[str | None]
    server_keepalive: int | None


class Constant(TypedDict):
    """An answer that nginx gives itself: a short body, or the name of a text of test_data."""

    path: str
    content_type: str
    body: NotRequired[str]
    text_from: NotRequired[str]


class Stack(Chosen):
    """The stack that is measured.

    - front: nginx or none; port: the port that clients connect to
    - workers, threads and server_keepalive: as in the options
    - driver: the database driver, None without a choice
    - needs: the sorted services that the application's endpoints need, by files/endpoints.yml
    - constants: what nginx answers where there is no application
    - source: the application's folder, relative to the lab's or absolute
    - lock: of an application from outside the tree, its lock file, relative to the lab's folder
    - database: name of the database that the application uses
    - backlog: the accept queue of the tuning profile; measured: names of the endpoints to measure
    """

    framework: str
    app: App
    driver: str | None
    front: str
    port: int
    workers: int | None
    threads: int
    server_keepalive: int | None
    needs: list[str]
    constants: list[Constant]
    source: str
    lock: str | None
    database: str
    backlog: NotRequired[int]
    measured: NotRequired[list[str]]


def interfaces(root: Path) -> dict[str, Interface]:
    """Return files/stacks.yml. Raises PlanError with the place of a wrong value."""
    return read_yaml(root, "files/stacks.yml", dict[str, Interface])


def stacks(rows: Sequence[Row]) -> list[Offered]:
    """Return every stack that the rows of an interface describe, in their order."""
    return [chosen for row in rows for chosen in _of_row(row)]


def _of_row(row: Row) -> Iterator[Offered]:
    for transport, protocol, event_loop, keepalive in itertools.product(
        _several(row["transport"]),
        _several(row["protocol"]),
        _several(row["event_loop"]) if "event_loop" in row else [None],
        _several(row["upstream_keepalive"]),
    ):
        yield {
            "server": row["server"],
            "transport": transport,
            "protocol": protocol,
            "worker_class": row.get("worker_class"),
            "event_loop": event_loop,
            "upstream_keepalive": keepalive,
            "loop": row.get("loop"),
            "python_below": row.get("python_below"),
            "python_reason": row.get("python_reason"),
            "threaded": row.get("threads", False),
            "closes_idle": row.get("server_keepalive", False),
        }


def _several(value: T | list[T]) -> list[T]:
    return value if isinstance(value, list) else [value]


def stack(root: Path, values: Asked, python: str | None) -> Stack:
    """Return the first stack of files/stacks.yml that fits the options.

    ``python``: the server's Python version, None where it is not known. Raises PlanError where the
    framework is unknown or no stack fits.
    """
    apps = names(root / "apps", "*/app.yml")
    framework = values["framework"]
    if framework is None:
        raise PlanError(
            "framework: none was given. Give one with -e framework=<name>. "
            f"There are: {', '.join(apps)}."
        )
    given = values.get("app")
    if given is None or framework != name_of(given):
        known("framework", framework, apps, " A new one is a folder in apps/, or -e app=<folder>.")
    source = given or f"apps/{framework}"
    app = manifest(root, source, values.get("module"))
    _refuse_direct(values, app)
    driver = _driver(values, app)
    interface = interfaces(root)[app["interface"]]
    asked = {key: values[key] for key in CHOICES if values[key] is not None}
    fitting = [
        one
        for one in stacks(interface["stacks"])
        if all(one[key] == value for key, value in asked.items())
        and (values["front"] != "none" or (one["transport"], one["protocol"]) == DIRECT)
        and (one["threaded"] or values["threads"] == 1)
        and (one["closes_idle"] or values["server_keepalive"] is None)
        and (app["language"] != "none" or values["workers"] is None)
        and not (is_own(app) and one["server"] == NATIVE)
    ]
    if not fitting:
        words = [f"{key}={_word(value)}" for key, value in asked.items()]
        words += [f"threads={values['threads']}"] if values["threads"] != 1 else []
        if values["server_keepalive"]:
            words.append(f"server_keepalive={values['server_keepalive']}")
        if app["language"] == "none" and values["workers"]:
            words.append(f"workers={values['workers']}")
        reason = interface.get("refused", {}).get(values["server"] or "")
        rows = [r for r in interface["stacks"] if not (is_own(app) and r["server"] == NATIVE)]
        raise PlanError(
            f"{framework} does not run with {' '.join(words)}{f': {reason}' if reason else ''}. "
            f"It runs with: {'; '.join(_row(row) for row in rows)}."
        )
    known_contracts = contracts_of(root, source, app)
    needs = {need for name in app["endpoints"] for need in known_contracts[name].get("needs", [])}
    chosen = fitting[0]
    refuse_python(framework, chosen, python)
    constants = [
        _constant(known_contracts[name]) for name in app["endpoints"] if app["language"] == "none"
    ]
    return {
        "framework": framework,
        "app": app,
        "server": chosen["server"],
        "transport": chosen["transport"],
        "protocol": chosen["protocol"],
        "worker_class": chosen["worker_class"],
        "event_loop": chosen["event_loop"],
        "upstream_keepalive": chosen["upstream_keepalive"],
        "loop": chosen["loop"],
        "python_below": chosen["python_below"],
        "python_reason": chosen["python_reason"],
        "driver": driver,
        "front": values["front"],
        "port": PORTS[values["front"]],
        "workers": values["workers"],
        "threads": values["threads"],
        "server_keepalive": values["server_keepalive"],
        "needs": sorted(needs),
        "constants": constants,
        "source": source,
        "lock": requirements.lock(root, root / source, app["requirements"])
        if is_own(app)
        else None,
        "database": database(app),
    }


def _constant(contract: Contract) -> Constant:
    found: Constant = {"path": contract["path"], "content_type": contract["content_type"]}
    if "text_from" in contract:
        return {**found, "text_from": contract["text_from"]}
    return {**found, "body": expected_body(contract, {}).decode()}


def default_driver(app: App) -> str | None:
    """Return an application's default database driver; None where it has no choice."""
    return next(iter(app.get("drivers", [])), None)


def _driver(values: Asked, app: App) -> str | None:
    """Return the database driver asked for, or the default.

    Raises PlanError where the application has no such driver.
    """
    asked, there_are = values["driver"], app.get("drivers", [])
    if asked is None:
        return default_driver(app)
    if asked not in there_are:
        raise PlanError(
            f"driver: {values['framework']} has no driver {asked}. "
            f"It has: {', '.join(there_are) or 'none to choose'}."
        )
    return asked


def _refuse_direct(values: Asked, app: App) -> None:
    """Raise PlanError where reverse_proxy=none is asked and clients cannot reach the server."""
    if values["front"] != "none":
        return
    if app["language"] == "none":
        raise PlanError(
            f"reverse_proxy: {values['framework']} is answered by nginx itself, reverse_proxy=none "
            "leaves nobody. Leave reverse_proxy out."
        )
    fixed: tuple[tuple[Choice, str], ...] = (("transport", "tcp"), ("protocol", "http"))
    for name, wanted in fixed:
        if values[name] not in (None, wanted):
            raise PlanError(
                f"reverse_proxy: without nginx the generator asks the application server itself, "
                f"which is {wanted} and not {name}={values[name]}. Leave {name} out, or "
                "reverse_proxy."
            )
    # uWSGI alone keeps connections open without nginx, on a separate socket.
    if values["upstream_keepalive"] is not None and values["server"] != "uwsgi":
        raise PlanError(
            "reverse_proxy: upstream_keepalive is of nginx's connections, and reverse_proxy=none "
            "leaves nginx out. Leave it out; the generator's own are kept or not by -e keepalive=."
        )


def refuse_python(framework: str, chosen: PythonLimit, python: str | None) -> None:
    """Raise PlanError where the stack does not run on this Python; None means not known yet."""
    if python is None or chosen["python_below"] is None:
        return
    if _release(python) >= _release(chosen["python_below"]):
        raise PlanError(
            f"{framework} does not run with server={chosen['server']} on Python {python}: "
            f"{chosen['python_reason']}. Use Debian 12 on the server (local hosts: "
            "-e local_hosts_release=bookworm), or leave server and protocol out: then its own "
            "server stands in."
        )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _row(row: Row) -> str:
    """Return a row of files/stacks.yml as options; alternatives are separated by "|"."""
    words = []
    for key in CHOICES:
        value: object = row.get(key, "none")
        if value != "none":
            several = value if isinstance(value, list) else [value]
            words.append(f"{key}={'|'.join(map(_word, several))}")
    words += ["threads=<n>"] if row.get("threads") else []
    words += ["server_keepalive=<seconds>"] if row.get("server_keepalive") else []
    return " ".join(words)
