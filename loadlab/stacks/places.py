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
    at, direct = _Place(root, stack, address, place), stack.reverse_proxy == DIRECT
    url = f"http://{address}:{(_APPLICATION_PORT if direct else _PROXY_PORT) + place}"
    units = {f"application-{place}": at.unit("app")} if at.has_application else {}
    if not direct:
        units[f"{stack.reverse_proxy}-{place}"] = at.unit(stack.reverse_proxy)
    return Served(
        running=list(units.values()),
        url=url,
        tls_url=own.tls_url and f"https://{address}:{_TLS_PORT + place}",
        status=own.status.replace(own.url, url),
        units={**units, "postgresql": own.units["postgresql"]},
        configuration="" if direct else f"{at.folder}/{Path(own.configuration).name}",
        requests_log=at.folder + own.requests_log if not direct and own.requests_log else "",
        errors_log=at.folder + own.errors_log if not direct and own.errors_log else "",
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
            _Place(root, stack["definition"], address, stack["place"]).arrangement(
                f"{kept}/{stack['stack_name']}.tar", one_application
            )
            for stack in placed
        ]
    )


class _Place:
    """A place of a server with this address, and its stack."""

    def __init__(self, root: Path, stack: Stack, address: str, place: int) -> None:
        self.stack, self.address, self.place = stack, address, place
        self.folder, self.has_application = f"{FOLDER}/{place}", stack.app.language != "none"
        self.proxy: ReverseProxy | None = None
        if stack.reverse_proxy != DIRECT:
            self.proxy = reverse_proxies.reverse_proxy(root, stack.reverse_proxy)
        self.host = "127.0.0.1" if self.proxy else address
        # Of the lab's own place, and of this one.
        self.ports = reverse_proxies.access(root, DIRECT).port, _APPLICATION_PORT + place

    def unit(self, name: str) -> str:
        return f"loadlab-{name}-{self.place}.service"

    def arrangement(self, archive: str, one_application: bool) -> Arrangement:
        tcp, proxy = self.stack.transport == "tcp", self.proxy
        ports = self.ports[1:] if tcp else ()
        logs = _logs(proxy) if proxy else []
        return Arrangement(
            place=self.place,
            archive=archive,
            folder=self.folder,
            files=[
                *([self._application(one_application)] if self.has_application else []),
                *([self._configuration(proxy), self._proxy_unit(proxy)] if proxy else []),
            ],
            folders=[self.folder + log for log in logs],
            ports=[
                *ports,
                *([_PROXY_PORT + self.place] if proxy else []),
                *([_TLS_PORT + self.place] if proxy and proxy.tls_port else []),
            ],
        )

    def _target(self, name: str) -> str:
        return f"{Path(UNITS).parent}/{self.unit(name)}"

    def _sockets(self) -> list[Substitution]:
        tcp = self.stack.transport == "tcp"
        of_lab, own = (f"{self.host}:{port}" for port in self.ports)
        return [
            *([Substitution(of_lab, own)] if tcp else []),
            # Over TCP, uWSGI's router has one to its workers.
            Substitution("/run/loadlab", f"/run/loadlab-{self.place}", required=not tcp),
        ]

    def _application(self, shared: bool) -> PlaceFile:
        own = [] if shared else ["/opt/loadlab/app"]
        own += ["/etc/loadlab/application.env"] if own and self.stack.app.environment else []
        database = "?host=/var/run/postgresql"
        # Some servers take address and port as two words.
        words = self.stack.started.socket.replace("{address}", self.host)
        of_lab, of_place = (words.replace("{port}", str(port)) for port in self.ports)
        place = self.place
        return PlaceFile(
            source="/etc/systemd/system/loadlab-app.service",
            target=self._target("app"),
            substitutions=[
                *([Substitution(of_lab, of_place)] if "{port}" in words else []),
                *self._sockets(),
                Substitution("RuntimeDirectory=loadlab", f"RuntimeDirectory=loadlab-{place}"),
                *(Substitution(path, self.folder + path) for path in own),
                # PostgreSQL's backends of a place bear its name.
                Substitution(database, f"{database}&application_name=loadlab-{place}"),
            ],
        )

    def _configuration(self, proxy: ReverseProxy) -> PlaceFile:
        ports = [(proxy.port, _PROXY_PORT, True)]
        ports += [(proxy.tls_port, _TLS_PORT, False)] if proxy.tls_port else []
        return PlaceFile(
            source=proxy.configuration,
            target=f"{self.folder}/{Path(proxy.configuration).name}",
            substitutions=[
                *(self._sockets() if self.has_application else []),
                *(
                    Substitution(
                        f"{self.address}:{port}", f"{self.address}:{first + self.place}", required
                    )
                    for port, first, required in ports
                ),
                *self._pid(proxy),
            ],
        )

    def _proxy_unit(self, proxy: ReverseProxy) -> PlaceFile:
        name, conf = self.stack.reverse_proxy, proxy.configuration
        return PlaceFile(
            fragment=name,
            source=reverse_proxies.proxy_files({name: proxy})[name][1],
            target=self._target(name),
            substitutions=self._pid(proxy),
            added="\n".join(
                [
                    "[Service]",
                    f"BindReadOnlyPaths={self.folder}/{Path(conf).name}:{conf}",
                    *(f"BindPaths={self.folder}{log}:{log}" for log in _logs(proxy)),
                    "",
                ]
            ),
        )

    def _pid(self, proxy: ReverseProxy) -> list[Substitution]:
        return [Substitution(proxy.pid, f"{proxy.pid}-{self.place}")] if proxy.pid else []


def _logs(proxy: ReverseProxy) -> list[str]:
    """Return the folders of a reverse proxy's logs."""
    files = [proxy.log.requests, proxy.log.errors] if proxy.log else []
    return sorted({str(Path(file).parent) for file in files})
