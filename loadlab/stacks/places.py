"""Stacks that are up at once on one server, each at a place: a number from 1 to 99.

A stack is deployed and verified at the lab's own place, as loadlab-app.service and the service of
its reverse proxy, and its files are kept. A place is a folder with a copy of these files, and units
with ports and sockets of their own.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from msgspec import Struct

from loadlab.model import DIRECT
from loadlab.stacks import reverse_proxies
from loadlab.stacks.reverse_proxies import ReverseProxy, Served
from loadlab.stacks.stacks import Stack

# Folder of the places on a server.
FOLDER = "/opt/loadlab/places"
# Pattern of their units, which a reboot removes, as it does the files that are kept.
UNITS = "/run/systemd/system/loadlab-*-[0-9]*.service"
# The place is added to each.
_APPLICATION_PORT, _PROXY_PORT, _TLS_PORT = 8100, 8200, 8300


class Placed(TypedDict):
    """A stack that is to be at a place; ``stack_name``: of its kept files."""

    place: int
    stack_name: str
    definition: Stack


class Substitution(Struct, frozen=True):
    """A whole word of a kept file, and that of the place; ``required``: whether the file must
    have it, or the place would serve another server's answers."""

    text: str
    replacement: str
    required: bool = True


class PlaceFile(Struct, frozen=True, kw_only=True):
    """A file that a place has instead of a kept one."""

    fragment: str = ""  #: Service whose unit, as distributed, is the first part; "" for none.
    source: str  #: Path of the kept file, which follows.
    target: str  #: Where the place's is.
    substitutions: list[Substitution]  #: In this order.
    added: str = ""  #: Text at the end.


class Arrangement(Struct, frozen=True, kw_only=True):
    """The files, folders and ports of a stack at a place."""

    place: int
    archive: str  #: Of its kept files, which is unpacked into ``folder``.
    folder: str
    #: files, folders: what is made there besides.
    files: list[PlaceFile]
    folders: list[str]
    ports: list[int]  #: TCP ports that must be free.


class Arrangements(Struct, frozen=True):
    """Argument of roles/stack/files/place-stacks.py; ``folder``, ``units``: FOLDER and UNITS."""

    places: list[Arrangement]
    folder: str = FOLDER
    units: str = UNITS


def ports(together: int) -> list[int]:
    """Return the TCP ports of so many stacks that are up at once, none for one."""
    places = range(1, together + 1) if together > 1 else ()
    return [
        first + place for first in (_APPLICATION_PORT, _PROXY_PORT, _TLS_PORT) for place in places
    ]


def served(root: Path, stack: Stack, address: str, place: int) -> Served:
    """Return how a server with this address serves a stack at a place.

    ``running``: the place's units, which a load restarts. Each service in ``units`` ends with its
    place, except PostgreSQL, which serves all places.
    """
    own = reverse_proxies.served(root, stack.reverse_proxy, address)
    first = _APPLICATION_PORT if stack.reverse_proxy == DIRECT else _PROXY_PORT
    url = f"http://{address}:{first + place}"
    units = {
        **({f"application-{place}": _unit("app", place)} if _has_application(stack) else {}),
        **{f"{name}-{place}": _unit(name, place) for name in _proxies(stack)},
    }
    folder, proxied = _folder(place), bool(_proxies(stack))
    return Served(
        running=list(units.values()),
        url=url,
        tls_url=own.tls_url and f"https://{address}:{_TLS_PORT + place}",
        status=own.status.replace(own.url, url),
        units={**units, "postgresql": own.units["postgresql"]},
        configuration=f"{folder}/{Path(own.configuration).name}" if proxied else "",
        requests_log=folder + own.requests_log if proxied and own.requests_log else "",
        errors_log=folder + own.errors_log if proxied and own.errors_log else "",
    )


def arrangements(
    root: Path, placed: Iterable[Placed], address: str, kept: str, one_application: bool
) -> Arrangements:
    """Return how stacks come to their places on a server with this address.

    ``kept``: folder of the archives of their files; ``one_application``: whether these lack the
    application, which then stays where it is.
    """
    return Arrangements(
        [
            _arrangement(root, stack, address, f"{kept}/{stack['stack_name']}.tar", one_application)
            for stack in placed
        ]
    )


def _arrangement(
    root: Path, placed: Placed, address: str, archive: str, one_application: bool
) -> Arrangement:
    stack, place = placed["definition"], placed["place"]
    host = address if stack.reverse_proxy == DIRECT else "127.0.0.1"
    port = reverse_proxies.access(root, DIRECT).port
    ports = [_APPLICATION_PORT + place] if stack.transport == "tcp" else []
    files, folders, sockets = [], [], []
    if _has_application(stack):
        sockets = _sockets(stack, host, port, place)
        files.append(_application(stack, host, port, place, sockets, one_application))
    for name in _proxies(stack):
        proxy = reverse_proxies.reverse_proxy(root, name)
        files += [_configuration(proxy, address, place, sockets), _proxy_unit(name, proxy, place)]
        folders += [_folder(place) + log for log in _logs(proxy)]
        ports += [_PROXY_PORT + place] + [_TLS_PORT + place] * bool(proxy.tls_port)
    return Arrangement(
        place=place, archive=archive, folder=_folder(place), files=files, folders=folders,
        ports=ports,
    )  # fmt: skip


def _application(
    stack: Stack, host: str, port: int, place: int, sockets: list[Substitution], shared: bool
) -> PlaceFile:
    own = [] if shared else ["/opt/loadlab/app"]
    own += ["/etc/loadlab/application.env"] if not shared and stack.app.environment else []
    database = "?host=/var/run/postgresql"
    # Of a server that is told address and port as two words.
    words = stack.started.socket.replace("{address}", host)
    as_words = [
        Substitution(words.replace("{port}", str(port)), words.replace("{port}", str(new)))
        for new in [_APPLICATION_PORT + place]
        if "{port}" in words
    ]
    return PlaceFile(
        source="/etc/systemd/system/loadlab-app.service",
        target=_target("app", place),
        substitutions=[
            *as_words,
            *sockets,
            Substitution("RuntimeDirectory=loadlab", f"RuntimeDirectory=loadlab-{place}"),
            *(Substitution(path, _folder(place) + path) for path in own),
            # PostgreSQL's backends of a place bear its name.
            Substitution(database, f"{database}&application_name=loadlab-{place}"),
        ],
    )


def _sockets(stack: Stack, host: str, port: int, place: int) -> list[Substitution]:
    tcp = stack.transport == "tcp"
    own = f"{host}:{_APPLICATION_PORT + place}"
    return [
        *([Substitution(f"{host}:{port}", own)] if tcp else []),
        # Over TCP, uWSGI's router has one to its workers.
        Substitution("/run/loadlab", f"/run/loadlab-{place}", required=not tcp),
    ]


def _configuration(
    proxy: ReverseProxy, address: str, place: int, sockets: list[Substitution]
) -> PlaceFile:
    ports = [(proxy.port, _PROXY_PORT + place, True)]
    ports += [(proxy.tls_port, _TLS_PORT + place, False)] if proxy.tls_port else []
    return PlaceFile(
        source=proxy.configuration,
        target=f"{_folder(place)}/{Path(proxy.configuration).name}",
        substitutions=[
            *sockets,
            *(
                Substitution(f"{address}:{port}", f"{address}:{own}", required)
                for port, own, required in ports
            ),
            *_pid(proxy, place),
        ],
    )


def _proxy_unit(name: str, proxy: ReverseProxy, place: int) -> PlaceFile:
    folder, conf = _folder(place), proxy.configuration
    limits = reverse_proxies.proxy_files({name: proxy})[name][1]
    return PlaceFile(
        fragment=name,
        source=limits,
        target=_target(name, place),
        substitutions=_pid(proxy, place),
        added="\n".join(
            [
                "[Service]",
                f"BindReadOnlyPaths={folder}/{Path(conf).name}:{conf}",
                *(f"BindPaths={folder}{log}:{log}" for log in _logs(proxy)),
                "",
            ]
        ),
    )


def _pid(proxy: ReverseProxy, place: int) -> list[Substitution]:
    file = proxy.pid
    return [Substitution(file, f"{file}-{place}")] if file else []


def _logs(proxy: ReverseProxy) -> list[str]:
    """Return the folders of a reverse proxy's logs."""
    log = proxy.log
    files = [log.requests, log.errors] if log else []
    return sorted({str(Path(file).parent) for file in files})


def _has_application(stack: Stack) -> bool:
    return stack.app.language != "none"


def _proxies(stack: Stack) -> list[str]:
    """Return the reverse proxies in the path of a stack."""
    name = stack.reverse_proxy
    return [] if name == DIRECT else [name]


def _folder(place: int) -> str:
    return f"{FOLDER}/{place}"


def _unit(name: str, place: int) -> str:
    return f"loadlab-{name}-{place}.service"


def _target(name: str, place: int) -> str:
    return f"{Path(UNITS).parent}/{_unit(name, place)}"
