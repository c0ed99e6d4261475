"""The reverse proxies of files/reverse_proxies/, and what clients reach without one.

The name of a reverse proxy is that of its folder and of its service.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import field

from loadlab.model import DIRECT, NGINX
from loadlab.model.base import Record
from loadlab.run.catalog import known, read_yaml

# Folder of the reverse proxies, each with reverse_proxy.yml and the template of its configuration.
FOLDER = "files/reverse_proxies"


class Access(Record, kw_only=True, frozen=True):
    """How clients reach the application.

    - port: TCP port that clients connect to; tls_port: with TLS, where it can; http2: whether it
      speaks HTTP/2 there
    - transports, protocols: those to the application server
    - upstream_keepalive: whether it can keep its connections to the application server, or close
      them
    """

    port: int
    tls_port: int | None = None
    http2: bool = False
    transports: list[str]
    protocols: list[str]
    upstream_keepalive: list[bool]


class Counters(Record, kw_only=True, frozen=True):
    """``path``: of the page that counts requests, on ``port``; ``requests``: regular expression
    of the whole page, whose group is the number, this page's request included."""

    path: str
    requests: str


class Log(Record, kw_only=True, frozen=True):
    """The log of a sample of the requests, which must be small.

    - requests: its file; line: regular expression of a line, with the groups end (unix seconds),
      whole, connect and upstream (seconds; of several values the sum, "-" for none)
    - errors: file of the errors; errors_time: form of the local time that a line begins with, as
      of strftime; kinds: kind of an error -> regular expression of its line
    """

    requests: str
    line: str
    errors: str
    errors_time: str
    kinds: dict[str, str]


class ReverseProxy(Access, kw_only=True, frozen=True):
    """Content of files/reverse_proxies/<name>/reverse_proxy.yml.

    - packages: of the distribution
    - configuration: the file that the lab writes, from the folder's <its name>.j2; sites: further
      files that it reads; mark: a text that only the lab's configuration has
    - check: command that refuses a wrong configuration, its path is appended
    - writes: folders that the service writes to
    - pid: file with its process's number, which configuration and unit name
    - settings: name -> value where a tuning profile has none; connections: that of the connections
      of a process, which the lab raises where a load needs more
    - read: shell commands that print "name value" of each setting
    - counters, log: absent where it has none
    """

    packages: list[str]
    configuration: str
    sites: list[str] = field(default_factory=list)
    mark: str
    check: str
    writes: list[str]
    pid: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    connections: str | None = None
    read: str = ""
    counters: Counters | None = None
    log: Log | None = None


class Served(Record, kw_only=True, frozen=True):
    """How a server serves a stack.

    - running: the reverse proxies that run, last that of the stack
    - url, tls_url: what clients ask, without a path; tls_url "" where nothing speaks TLS
    - status: URL of the counters of the reverse proxy in the path, "" where nothing counts
    - units: service that is recorded -> its unit or a pattern of it
    - configuration, requests_log, errors_log: files of the last reverse proxy; "" for none
    """

    running: list[str]
    url: str
    tls_url: str
    status: str
    units: dict[str, str]
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
