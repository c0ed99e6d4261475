"""The reverse proxies of files/reverse_proxies/, and what clients reach without one.

The name of a reverse proxy is that of its folder and of its service.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec import field

from loadlab.model import DIRECT, NGINX
from loadlab.model.base import Record
from loadlab.run.catalog import known, read_yaml

# Folder of the reverse proxies, each with reverse_proxy.yml and the template of its configuration.
FOLDER = "files/reverse_proxies"


class Access(Record, kw_only=True, frozen=True):
    """How clients reach the application."""

    port: int  #: TCP port that clients connect to.
    tls_port: int | None = None  #: With TLS, where it can.
    http2: bool = False  #: Whether it speaks HTTP/2 there.
    #: transports, protocols: those to the application server.
    transports: list[str]
    protocols: list[str]
    #: Whether it can keep its connections to the application server, or close them.
    upstream_keepalive: list[bool]


class Counters(Record, kw_only=True, frozen=True):
    """``path``: of the page that counts requests, on ``port``; ``requests``: regular expression
    of the whole page, whose group is the number, this page's request included."""

    path: str
    requests: str


class Log(Record, kw_only=True, frozen=True):
    """The log of a sample of the requests, which must be small."""

    requests: str  #: Its file.
    #: Regular expression of a line, with the groups end (unix seconds), whole, connect and upstream
    #: (seconds; of several values the sum, "-" for none).
    line: str
    errors: str  #: File of the errors.
    errors_time: str  #: Form of the local time that a line begins with, as of strftime.
    kinds: dict[str, str]  #: Kind of an error -> regular expression of its line.


class ReverseProxy(Access, kw_only=True, frozen=True):
    """Content of files/reverse_proxies/<name>/reverse_proxy.yml."""

    packages: list[str]  #: Of the distribution.
    configuration: str  #: The file that the lab writes, from the folder's <its name>.j2.
    sites: list[str] = field(default_factory=list)  #: Further files that it reads.
    mark: str  #: A text that only the lab's configuration has.
    check: str  #: Command that refuses a wrong configuration, its path is appended.
    writes: list[str]  #: Folders that the service writes to.
    pid: str = ""  #: File with its process's number, which configuration and unit name.
    #: Name -> value where a tuning profile has none.
    settings: dict[str, str] = field(default_factory=dict)
    #: That of the connections of a process, which the lab raises where a load needs more.
    connections: str | None = None
    read: str = ""  #: Shell commands that print "name value" of each setting.
    #: counters, log: absent where it has none.
    counters: Counters | None = None
    log: Log | None = None


class Served(Record, kw_only=True, frozen=True):
    """How a server serves a stack."""

    running: list[str]  #: The reverse proxies that run, last that of the stack.
    #: url, tls_url: what clients ask, without a path; tls_url "" where nothing speaks TLS.
    url: str
    tls_url: str
    status: str  #: URL of the counters of the reverse proxy in the path, "" where nothing counts.
    units: dict[str, str]  #: Service that is recorded -> its unit or a pattern of it.
    #: configuration, requests_log, errors_log: files of the last reverse proxy; "" for none.
    configuration: str
    requests_log: str
    errors_log: str


# Without a reverse proxy, clients reach the application server.
_DIRECT = Access(
    port=8000, transports=["tcp"], protocols=["http"], upstream_keepalive=[True, False]
)


def reverse_proxies(root: Path) -> dict[str, ReverseProxy]:
    """Return the reverse proxies by name. Raises PlanError with the place of a wrong value."""
    folders = sorted(path.parent.name for path in (root / FOLDER).glob("*/reverse_proxy.yml"))
    return {name: reverse_proxy(root, name) for name in folders}


def reverse_proxy(root: Path, name: str) -> ReverseProxy:
    """Return a reverse proxy. Raises PlanError as reverse_proxies() does."""
    return read_yaml(root, f"{FOLDER}/{name}/reverse_proxy.yml", ReverseProxy)


def proxy_files(proxies: Mapping[str, ReverseProxy]) -> dict[str, list[str]]:
    """Return the files by which a server runs each reverse proxy: its configuration first, and the
    drop-in of its unit."""
    return {
        name: [proxy.configuration, f"/etc/systemd/system/{name}.service.d/loadlab.conf"]
        for name, proxy in proxies.items()
    }


def running(name: str) -> list[str]:
    """Return the reverse proxies that run with the option reverse_proxy=<name>, its own last.

    nginx answers the calibration in any case.
    """
    return [proxy for proxy in dict.fromkeys((NGINX, name)) if proxy != DIRECT]


def served(root: Path, name: str, address: str) -> Served:
    """Return how a server with this address serves a stack with the option reverse_proxy=<name>."""
    reached, proxies = access(root, name), running(name)
    own = reverse_proxy(root, proxies[-1])
    url = f"http://{address}:{reached.port}"
    log, tls_port = own.log, reached.tls_port
    at_port = "" if tls_port == 443 else f":{tls_port}"
    return Served(
        running=proxies,
        url=url,
        tls_url="" if tls_port is None else f"https://{address}{at_port}",
        status=url + own.counters.path if name != DIRECT and own.counters else "",
        units={
            proxies[-1]: f"{proxies[-1]}.service",
            "application": "loadlab-app.service",
            "postgresql": "postgresql@*.service",
        },
        configuration=own.configuration,
        requests_log=log.requests if log else "",
        errors_log=log.errors if log else "",
    )


def access(root: Path, name: str) -> Access:
    """Return how clients reach the application with the option reverse_proxy=<name>.

    Raises PlanError where there is no such reverse proxy.
    """
    choices = {**reverse_proxies(root), DIRECT: _DIRECT}
    known("reverse_proxy", name, list(choices), f" A new one is a folder in {FOLDER}/.")
    return choices[name]
