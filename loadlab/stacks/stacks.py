"""The stack that the user's options select, of those that files/servers/ offers."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import field
from msgspec.structs import asdict

from loadlab.model import DIRECT, NGINX, Options, SessionStep
from loadlab.model.base import Record
from loadlab.run.catalog import known, names
from loadlab.run.errors import PlanError
from loadlab.stacks import interpreters, requests, requirements
from loadlab.stacks.application import MANIFEST, App, contracts_of, database, manifest, name_of
from loadlab.stacks.contract import Contract, expected_body
from loadlab.stacks.reverse_proxies import Access, access
from loadlab.stacks.servers import Chosen, Offered, PythonLimit, offered, refusal

Choice = Literal[
    "server", "transport", "protocol", "worker_class", "event_loop", "upstream_keepalive"
]
# Options that select a stack; every list of them has this order.
CHOICES: tuple[Choice, ...] = (
    "server", "transport", "protocol", "worker_class", "event_loop", "upstream_keepalive",
)  # fmt: skip


class Constant(Record, kw_only=True, frozen=True):
    """An answer that nginx gives itself: a short body, or the name of a text of the fixtures."""

    path: str
    content_type: str | None
    body: str | None = None
    text_from: str | None = None


class Stack(Chosen, kw_only=True, frozen=True, omit_defaults=True):
    """The stack that is measured.

    - reverse_proxy: its name, or none; port, tls_port: those that clients connect to, tls_port None
      where nothing speaks TLS; http2: whether it speaks HTTP/2 there
    - workers, threads and server_keepalive: as in the options
    - driver: the database driver, None without a choice
    - python: the application's Python, None for the server's own
    - needs: the sorted services that the application's endpoints need, by files/endpoints.yml
    - constants: what nginx answers where there is no application
    - source: the application's folder, relative to the lab's or absolute
    - lock: of an application from outside the tree, its lock file, relative to the lab's folder
    - database: name of the database that the application uses
    - backlog: the accept queue of the tuning profile; measured: names of the endpoints to measure
    - session: what each visitor sends, empty where requests come alone
    """

    framework: str
    app: App
    driver: str | None
    python: str | None
    reverse_proxy: str
    port: int
    tls_port: int | None
    http2: bool
    workers: int | None
    threads: int
    server_keepalive: int | None
    needs: list[str]
    constants: list[Constant]
    source: str
    lock: str | None
    database: str
    backlog: int | None = None
    measured: list[str] = field(default_factory=list)
    session: list[SessionStep] = field(default_factory=list)


def of_application(root: Path, app: App) -> list[Offered]:
    """Return every stack of an application's interface that it runs on, the default first."""
    return [
        stack for stack in offered(root, app.interface) if _own_refusal(app, asdict(stack)) is None
    ]


def _own_refusal(app: App, choices: Mapping[str, object]) -> str | None:
    """Return why an application does not run with these choices; None where it does."""
    for rule in app.refused:
        if all(choices.get(key) == value for key, value in rule.choices.items()):
            return rule.reason
    return None


def fitting(
    root: Path, there_are: Iterable[Offered], values: Options, app: App, own_python: bool
) -> list[Offered]:
    """Return those of an application's stacks that fit the options, in their order.

    ``own_python``: whether the application has a Python of its own.
    """
    reached = access(root, values.reverse_proxy)
    return [
        stack
        for stack in there_are
        if all(getattr(values, key) in (None, getattr(stack, key)) for key in CHOICES)
        and (
            app.language == "none"
            or all(getattr(stack, key) in choices for key, choices in _asked_of(reached).items())
        )
        and (stack.threaded or values.threads == 1)
        and (stack.closes_idle or values.server_keepalive is None)
        and values.backlog in (None, stack.own_backlog or values.backlog)
        and values.workers in (None, stack.only_workers or values.workers)
        and (app.language != "none" or values.workers is None)
        # A server of Debian's packages is linked with Debian's Python.
        and not (own_python and stack.started.packages)
    ]


def stack(root: Path, values: Options, python: str | None) -> Stack:
    """Return the first stack of the framework's interface that fits the options.

    ``python``: the server's Python version, None where it is not known. Raises PlanError where the
    framework is unknown or no stack fits.
    """
    apps = names(root / "apps", "*/app.yml")
    framework = values.framework
    if framework is None:
        raise PlanError(
            "framework: none was given. Give one with -e framework=<name>. "
            f"There are: {', '.join(apps)}. An application of yours: -e app=<folder>."
        )
    folder = values.app
    if folder is None:
        known("framework", framework, apps, " A new one is a folder in apps/, or -e app=<folder>.")
    elif framework != name_of(framework):
        raise PlanError(
            f"framework: '{framework}' cannot name an application. Give at most 40 letters, "
            "digits, dots, dashes and underscores, or leave framework out."
        )
    source = folder or f"apps/{framework}"
    app = manifest(root, source, values.module)
    reached = access(root, values.reverse_proxy)
    _refuse_proxy(values, app, reached)
    driver = _driver(values, app)
    own_python = _own_python(values, app, driver)
    choices: dict[str, object] = {
        key: getattr(values, key) for key in CHOICES if getattr(values, key) is not None
    }
    refused = refusal(root, app.interface, values.server) if values.server else None
    there_are = of_application(root, app)
    matching = fitting(root, there_are, values, app, own_python is not None)
    if not matching:
        refused = refused or _own_refusal(app, choices)
        if own_python and any(
            offer.started.packages for offer in there_are if offer.server == values.server
        ):
            refused = refused or "Debian's package of it has Debian's Python"
        named = ("server_keepalive", "workers", "backlog", "python")
        further = {key: getattr(values, key) for key in named}
        threads = None if values.threads == 1 else values.threads
        words = [
            f"{key}={_word(value)}"
            for key, value in {**choices, "threads": threads, **further}.items()
            if value is not None
        ]
        raise PlanError(
            f"{framework} does not run with {' '.join(words)}{f': {refused}' if refused else ''}. "
            f"It runs with: {'; '.join(_told(there_are))}."
        )
    known_contracts = contracts_of(root, source, app)
    for name in app.endpoints:
        place = f"{source}/{MANIFEST}: endpoints"
        known(place, name, sorted(known_contracts), f" Describe others in {requests.FILE} there.")
    needs = {need for name in app.endpoints for need in known_contracts[name].needs}
    chosen = matching[0]
    refuse_python(framework, chosen, python)
    answered = app.endpoints if app.language == "none" else []
    constants = [_constant(known_contracts[name]) for name in answered]
    return Stack(
        **{name: getattr(chosen, name) for name in Chosen.__struct_fields__},
        framework=framework,
        app=app,
        driver=driver,
        python=own_python,
        reverse_proxy=values.reverse_proxy,
        port=reached.port,
        tls_port=reached.tls_port,
        http2=reached.http2,
        workers=values.workers or chosen.only_workers,
        threads=values.threads,
        server_keepalive=values.server_keepalive,
        needs=sorted(needs),
        constants=constants,
        source=source,
        lock=requirements.lock(root, root / source, app.requirements)
        if app.requirements is not None
        else None,
        database=database(app),
    )


def _constant(contract: Contract) -> Constant:
    text_from = contract.text_from
    body = None if text_from else expected_body(contract, {}).decode()
    kind = contract.content_type
    return Constant(path=contract.path, content_type=kind, body=body, text_from=text_from)


def default_driver(app: App) -> str | None:
    """Return an application's default database driver; None where it has no choice."""
    return next(iter(app.drivers), None)


def _driver(values: Options, app: App) -> str | None:
    """Return the database driver asked for, or the default.

    Raises PlanError where the application has no such driver.
    """
    if values.driver is not None and values.driver not in app.drivers:
        raise PlanError(
            f"driver: {values.framework} has no driver {values.driver}. "
            f"It has: {', '.join(app.drivers) or 'none to choose'}."
        )
    return values.driver or default_driver(app)


def _own_python(values: Options, app: App, driver: str | None) -> str | None:
    """Return the Python asked for; None for the server's own.

    Raises PlanError where it names none, or the application or its driver does not run on it.
    """
    python = values.python
    if python is None:
        return None
    interpreters.refuse(python, driver)
    if app.language != "python":
        raise PlanError(
            f"python: {values.framework} is not an application of Python. Leave python out."
        )
    return python


def _asked_of(reached: Access) -> dict[Choice, Sequence[str | bool]]:
    """Return what clients or a reverse proxy ask of a stack: choice -> values that it can have."""
    return {
        "transport": reached.transports,
        "protocol": reached.protocols,
        "upstream_keepalive": reached.upstream_keepalive,
    }


def _refuse_proxy(values: Options, app: App, reached: Access) -> None:
    """Raise PlanError where clients cannot reach the application through the reverse proxy."""
    proxy = values.reverse_proxy
    if app.language == "none" and proxy != NGINX:
        raise PlanError(
            f"reverse_proxy: {values.framework} is answered by nginx itself, which "
            f"reverse_proxy={proxy} leaves out. Leave reverse_proxy out."
        )
    asking = "without one the generator" if proxy == DIRECT else proxy
    for name, choices in _asked_of(reached).items():
        choice = getattr(values, name)
        if choice is not None and choice not in choices:
            raise PlanError(
                f"reverse_proxy: {asking} asks the application server with "
                f"{name}={'|'.join(map(_word, choices))} and not {name}={_word(choice)}. "
                f"Leave {name} out, or choose another reverse_proxy."
            )
    # uWSGI alone keeps connections open without a reverse proxy, on a separate socket.
    if proxy == DIRECT and values.upstream_keepalive is not None and values.server != "uwsgi":
        raise PlanError(
            "reverse_proxy: upstream_keepalive is of the reverse proxy's connections, and "
            "reverse_proxy=none leaves it out. Leave upstream_keepalive out; the generator's own "
            "connections are kept or not by -e keepalive=."
        )


def too_new(chosen: PythonLimit, python: str | None) -> bool:
    """Return whether this Python is newer than a stack can use; None means not known yet."""
    below = chosen.python_below
    return python is not None and below is not None and _release(python) >= _release(below)


def refuse_python(framework: str, chosen: PythonLimit, python: str | None) -> None:
    """Raise PlanError where the stack does not run on this Python; None means not known yet."""
    if too_new(chosen, python):
        raise PlanError(
            f"{framework} does not run with server={chosen.server} on Python {python}: "
            f"{chosen.python_reason}. Use Debian 12 on the server (local hosts: "
            "-e local_hosts_release=bookworm), or leave server and protocol out: then its own "
            "server stands in."
        )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _told(there_are: Iterable[Offered]) -> list[str]:
    """Return the stacks as options, those that are started alike in one text."""
    groups: dict[tuple[str, str | None, str], list[Offered]] = {}
    for stack in there_are:
        key = (stack.server, stack.worker_class, stack.started.command)
        groups.setdefault(key, []).append(stack)
    return [_options(alike) for alike in groups.values()]


def _options(alike: Sequence[Offered]) -> str:
    """Return stacks as options; alternatives are separated by "|"."""
    words = []
    for key in CHOICES:
        choices = dict.fromkeys(
            _word(getattr(stack, key))
            for stack in alike
            if getattr(stack, key) not in (None, "none")
        )
        words += [f"{key}={'|'.join(choices)}"] if choices else []
    first = alike[0]
    words += ["threads=<n>"] if first.threaded else []
    words += ["server_keepalive=<seconds>"] if first.closes_idle else []
    words += [f"workers={first.only_workers}"] if first.only_workers else []
    words += [f"backlog={first.own_backlog}"] if first.own_backlog else []
    return " ".join(words)
