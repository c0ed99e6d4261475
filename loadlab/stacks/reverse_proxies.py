"""The reverse proxies of files/reverse_proxies/, and what clients reach without one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NotRequired, TypedDict

from loadlab.model import DIRECT
from loadlab.run.catalog import known, read_yaml

# Folder of the reverse proxies, each with reverse_proxy.yml and the template of its configuration.
FOLDER = "files/reverse_proxies"


class Access(TypedDict):
    """How clients reach the application.

    - port: TCP port that clients connect to; tls_port: with TLS, where it can; http2: whether it
      speaks HTTP/2 there
    - transports, protocols: those to the application server
    - upstream_keepalive: whether it can keep its connections to the application server, or close
      them
    """

    port: int
    tls_port: NotRequired[int]
    http2: NotRequired[bool]
    transports: list[str]
    protocols: list[str]
    upstream_keepalive: list[bool]


class Counters(TypedDict):
    """``path``: of the page that counts requests, on ``port``; ``requests``: regular expression
    of the whole page, whose group is the number, this page's request included."""

    path: str
    requests: str


class Log(TypedDict):
    """The log of a sample of the requests, which must be small.

    - requests: its file; line: regular expression of a line, with the groups end (unix seconds),
      whole, connect and upstream (seconds; of several values the sum, "-" for none)
    - errors: file of the errors; kinds: kind of an error -> regular expression of its line
    """

    requests: str
    line: str
    errors: str
    kinds: dict[str, str]


class ReverseProxy(Access):
    """Content of files/reverse_proxies/<name>/reverse_proxy.yml.

    - unit: its service; packages: of the distribution
    - configuration: the file that the lab writes, from the folder's <its name>.j2; sites: further
      files that it reads; mark: a text that only the lab's configuration has
    - check: command that refuses a wrong configuration, its path is appended
    - writes: folders that the service writes to
    - settings: name -> value where a tuning profile has none; connections: that of the connections
      of a process, which the lab raises where a load needs more
    - read: shell commands that print "name value" of each setting
    - counters, log: absent where it has none
    """

    unit: str
    packages: list[str]
    configuration: str
    sites: NotRequired[list[str]]
    mark: str
    check: str
    writes: list[str]
    settings: NotRequired[dict[str, str]]
    connections: NotRequired[str]
    read: NotRequired[str]
    counters: NotRequired[Counters]
    log: NotRequired[Log]


# Without a reverse proxy, clients reach the application server.
_DIRECT: Access = {
    "port": 8000,
    "transports": ["tcp"],
    "protocols": ["http"],
    "upstream_keepalive": [True, False],
}


def reverse_proxies(root: Path) -> dict[str, ReverseProxy]:
    """Return the reverse proxies by name. Raises PlanError with the place of a wrong value."""
    folders = sorted(path.parent.name for path in (root / FOLDER).glob("*/reverse_proxy.yml"))
    return {name: reverse_proxy(root, name) for name in folders}


def reverse_proxy(root: Path, name: str) -> ReverseProxy:
    """Return a reverse proxy. Raises PlanError as reverse_proxies() does."""
    return read_yaml(root, f"{FOLDER}/{name}/reverse_proxy.yml", ReverseProxy)


def access(root: Path, name: str) -> Access:
    """Return how clients reach the application with the option reverse_proxy=<name>.

    Raises PlanError where there is no such reverse proxy.
    """
    choices: Mapping[str, Access] = {**reverse_proxies(root), DIRECT: _DIRECT}
    known("reverse_proxy", name, list(choices), f" A new one is a folder in {FOLDER}/.")
    return choices[name]
