"""Judge whether a host serves somebody else, from what roles/host_check/files/in_use.sh reports.

The lab takes the reverse proxies and PostgreSQL of a server, some ports and some names. Where these
are the owner's, the host is refused, or taken over where the inventory says so.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from loadlab.run.errors import LabError
from loadlab.stacks import places
from loadlab.stacks.application import DATASET, OWN
from loadlab.stacks.reverse_proxies import ReverseProxy

# Of the lab's node_exporter, beside one of the owner's on 9100.
EXPORTER_PORT = 9109
POSTGRESQL_PORT = 5432
# Ports of a server that the lab uses -> units that may listen there beside the lab's own. Sites of
# reverse proxies and clusters of PostgreSQL have rules of their own.
_PORTS = {5201: "", POSTGRESQL_PORT: "postgresql@", 8000: "", 8081: "", EXPORTER_PORT: ""}
_LAB_UNITS = "loadlab-"
_HOME = "/opt/loadlab"
_PROGRAMS = "/usr/local/bin"
# The note on the host that its clusters hold only the lab's databases.
_CLUSTERS = "postgresql"
# Home and shell of the lab's user: nobody logs in.
_USER = "/nonexistent:/usr/sbin/nologin"
# Settings without which a crash loses or destroys databases.
_DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
_PRELOADS = "shared_preload_libraries"


class Cluster(Struct, frozen=True, kw_only=True):
    """A cluster of PostgreSQL; ``holds``: its databases that PostgreSQL did not make itself."""

    name: str
    port: int
    online: bool
    holds: int


class Listener(Struct, frozen=True, kw_only=True):
    """A process that listens; ``unit``: its service, or "-"."""

    address: str
    port: int
    unit: str
    process: str


class HostUse(Struct, frozen=True, kw_only=True):
    """What a host serves, and what of the lab's names it has.

    - owned: what the lab has noted that it makes there
    - paths: those of the lab's that exist; user: home:shell of the user loadlab, or ""
    - exporters: active units; sites: reverse proxy -> its files that are not as distributed
    - clusters; databases: name -> whether it is the lab's; role: whether another's is called
      loadlab; preloads: libraries that the owner's settings load
    - unreadable: why the databases could not be listed, or ""
    - run: id of the run that loads or calibrates it now, or ""
    - deployed: fingerprints of what the lab deployed there and nobody changed since, or ""
    """

    owned: list[str] = []
    paths: list[str] = []
    user: str = ""
    exporters: list[str] = []
    sites: dict[str, list[str]] = {}
    listeners: list[Listener] = []
    clusters: list[Cluster] = []
    databases: dict[str, bool] = {}
    role: bool = False
    preloads: list[str] = []
    unreadable: str = ""
    run: str = ""
    deployed: str = ""

    @property
    def foreign(self) -> list[str]:
        """The databases that are not the lab's."""
        return [name for name, of_lab in self.databases.items() if not of_lab]


class Use(Struct, frozen=True, kw_only=True):
    """What the lab is to do with a host.

    - is_server; take_over: whether the inventory lets it take the place of what is there
    - paths: files and folders that it makes there
    - postgresql: tuning profile -> name -> value of the settings that it may apply
    - ports: those of the run's stacks -> the unit that may listen there beside the lab's own
    - results: folder of the runs that this clone began, "" for none
    - remake: the command that removes a host that the lab made, "" for a user's own host
    """

    is_server: bool
    paths: list[str]
    take_over: bool = False
    postgresql: dict[str, dict[str, str]] = {}
    ports: dict[str, str] = {}
    results: str = ""
    remake: str = ""


def ports(proxies: Mapping[str, ReverseProxy], together: int) -> dict[str, str]:
    """Return the ports of reverse proxies, and of ``together`` stacks that are up at once -> the
    unit that may listen there, "" for none but the lab's."""
    of_places = {str(port): "" for port in places.ports(together)}
    return of_places | {
        str(port): f"{name}.service"
        for name, proxy in proxies.items()
        for port in (proxy.port, proxy.tls_port)
        if port is not None
    }


def proxies_in_use(proxies: Mapping[str, ReverseProxy]) -> str:
    """Return PROXIES of in_use.sh."""
    return "\n".join(
        f"{name}\t{proxy.mark}\t{' '.join([proxy.configuration, *proxy.sites])}"
        for name, proxy in proxies.items()
    )


def paths(programs: Iterable[str]) -> list[str]:
    """Return the paths that the lab makes on a host to which it copies these programs."""
    return [_HOME, *(f"{_PROGRAMS}/{program}" for program in programs)]


def parse(text: str) -> HostUse:
    """Return what the script's lines say. Raises ValueError for a malformed or missing line."""
    lines = [line.partition("\t")[::2] for line in text.splitlines() if "\t" in line]
    if ("looked", "yes") not in lines:
        raise LabError(f"the look at what the host serves did not end: {text[-200:]!r}")

    def said(name: str) -> list[str]:
        return [value for key, value in lines if key == name]

    return HostUse(
        owned=said("owned"),
        paths=said("path"),
        user="".join(said("user")),
        exporters=said("exporter"),
        sites=_sites_by_proxy(said("site")),
        listeners=[_listener(*value.split(" ", 2)) for value in said("listener")],
        clusters=[_cluster(*value.split(" ", 3)) for value in said("cluster")],
        databases={
            name: kind == "lab" for kind, _, name in (x.partition(" ") for x in said("database"))
        },
        role=bool(said("role")),
        preloads=_libraries(",".join(said("preloads"))),
        unreadable=" ".join(said("unreadable")),
        run="".join(said("run")),
        deployed="".join(said("deployed")),
    )


def _sites_by_proxy(lines: Iterable[str]) -> dict[str, list[str]]:
    sites: dict[str, list[str]] = {}
    for proxy, _, file in (line.partition(" ") for line in lines):
        sites.setdefault(proxy, []).append(file)
    return sites


def _listener(local: str, unit: str, process: str) -> Listener:
    address, _, port = local.rpartition(":")
    return Listener(address=address, port=int(port), unit=unit, process=process)


def _cluster(name: str, port: str, status: str, holds: str) -> Cluster:
    online = status.startswith("online")
    return Cluster(name=name, port=int(port), online=online, holds=int(holds))


def _libraries(value: str) -> list[str]:
    return [name for library in value.split(",") if (name := library.strip().strip("\"'"))]


Facts = Mapping[str, object]


class Rule(Struct, frozen=True):
    """What makes a host not the lab's to use.

    ``check`` returns the values of ``message`` for each case. ``remedy``: what the owner does; ""
    where taking the host over is enough.
    """

    code: str
    check: Callable[[HostUse, Use], Iterable[Facts]]
    message: str
    remedy: str = ""
    servers_only: bool = True


def _others_clusters(host: HostUse, use: Use) -> Iterable[Facts]:
    return (
        {"name": cluster.name, "port": cluster.port}
        for cluster in host.clusters
        if cluster.port != POSTGRESQL_PORT
    )


def _no_cluster(host: HostUse, use: Use) -> Iterable[Facts]:
    ports = {cluster.port for cluster in host.clusters}
    return [{}] if ports and POSTGRESQL_PORT not in ports else []


def _closed_clusters(host: HostUse, use: Use) -> Iterable[Facts]:
    return (
        {"name": cluster.name}
        for cluster in host.clusters
        if cluster.port == POSTGRESQL_PORT
        and not cluster.online
        and cluster.holds
        and _CLUSTERS not in host.owned
    )


def _databases(host: HostUse, use: Use) -> Iterable[Facts]:
    return [{"names": ", ".join(host.foreign)}] if host.foreign else []


def _same_names(host: HostUse, use: Use) -> Iterable[Facts]:
    for name in host.foreign:
        if name in (DATASET, OWN):
            yield {"kind": "database", "name": name}
    if host.role:
        yield {"kind": "role", "name": DATASET}


def _is_off(value: str) -> bool:
    """Return whether PostgreSQL reads a value as off; it takes any beginning that is unique."""
    word = value.strip().lower()
    words = [off for off in ("off", "false", "no") if off.startswith(word)]
    return word == "0" or (words != [] and word not in ("", "o"))


def _not_durable(host: HostUse, use: Use) -> Iterable[Facts]:
    for profile, settings in use.postgresql.items() if host.foreign else []:
        off = [name for name in _DURABLE if _is_off(settings.get(name, ""))]
        if off:
            names = ", ".join(host.foreign)
            yield {"profile": profile, "settings": ", ".join(off), "names": names}


def _not_preloaded(host: HostUse, use: Use) -> Iterable[Facts]:
    for profile, settings in use.postgresql.items():
        loaded = _libraries(settings.get(_PRELOADS, ""))
        missing = [name for name in host.preloads if name not in loaded]
        if _PRELOADS in settings and missing:
            yield {"profile": profile, "names": ", ".join(missing)}


def _sites(host: HostUse, use: Use) -> Iterable[Facts]:
    return ({"name": name, "files": ", ".join(files)} for name, files in host.sites.items())


def _listeners(host: HostUse, use: Use) -> Iterable[Facts]:
    for listener in host.listeners:
        admitted = use.ports.get(str(listener.port), _PORTS.get(listener.port))
        if admitted is None or listener.unit.startswith(_LAB_UNITS):
            continue
        if use.is_server or listener.port == EXPORTER_PORT:
            if admitted and listener.unit.startswith(admitted):
                continue
            of = "" if listener.unit == "-" else f" ({listener.unit})"
            yield {
                "process": listener.process + of,
                "socket": f"{listener.address}:{listener.port}",
            }


def _exporters(host: HostUse, use: Use) -> Iterable[Facts]:
    return ({"unit": unit} for unit in host.exporters)


def _paths(host: HostUse, use: Use) -> Iterable[Facts]:
    return ({"path": path} for path in taken(host, use))


def _others_run(host: HostUse, use: Use) -> Iterable[Facts]:
    """What this clone left when it was cut off is its own to end."""
    return [{"run": host.run}] if host.run and not (Path(use.results) / host.run).exists() else []


RULES = (
    Rule("cluster", _others_clusters, "PostgreSQL has the cluster {name} on port {port}"),
    Rule("databases", _databases, "PostgreSQL has the databases {names}"),
    Rule("sites", _sites, "{name} has what its package did not bring: {files}"),
    Rule("exporter", _exporters, "{unit} runs", servers_only=False),
    Rule("path", _paths, "{path} is there and not the lab's", servers_only=False),
    Rule(
        "listener",
        _listeners,
        "{process} listens on {socket}, a port of the lab's",
        "stop it, as the lab stops no other service than its reverse proxies",
        servers_only=False,
    ),
    Rule(
        "no_cluster",
        _no_cluster,
        f"no cluster of PostgreSQL has the port {POSTGRESQL_PORT}, where the lab looks for it",
        f"give one that port, or make one (pg_createcluster --port {POSTGRESQL_PORT})",
    ),
    Rule(
        "closed_cluster",
        _closed_clusters,
        "PostgreSQL's cluster {name} is stopped, so nobody knows whose databases it holds",
        "start it (systemctl start postgresql)",
    ),
    Rule(
        "unreadable",
        lambda host, use: [{"reason": host.unreadable}] if host.unreadable else [],
        "PostgreSQL does not tell its user postgres which databases it has: {reason}",
        "let postgres log in by peer authentication",
    ),
    Rule(
        "same_name",
        _same_names,
        "PostgreSQL's {kind} {name} is not the lab's, which uses that name and drops no other's",
        "rename it (ALTER {kind} {name} RENAME TO ...), drop it if an earlier version of the lab "
        "made it",
    ),
    Rule(
        "not_durable",
        _not_durable,
        "the tuning profile {profile} switches {settings} off, and a crash would then lose or "
        "destroy the databases {names}",
        "choose another profile with -e tuning=<name>",
    ),
    Rule(
        "not_preloaded",
        _not_preloaded,
        f"the tuning profile {{profile}} sets {_PRELOADS} without {{names}}, which PostgreSQL "
        "loads there",
        "add it to the profile, or choose another with -e tuning=<name>",
    ),
    Rule(
        "others_run",
        _others_run,
        "the run {run}, which another clone of the lab began, measures there",
        "wait for its end, or end what it left (systemctl stop loadlab-load loadlab-record)",
        servers_only=False,
    ),
    Rule(
        "user",
        lambda host, use: [{"says": host.user}] if host.user not in ("", _USER) else [],
        "its user loadlab is not the lab's ({says})",
        "rename it (usermod --login <name> loadlab)",
        servers_only=False,
    ),
)


class Problem(Struct, frozen=True):
    """What is in the lab's way: the rule's code, a clause, and what the owner does ("" where
    taking over the host is enough)."""

    code: str
    message: str
    remedy: str


def problems(host: HostUse, use: Use) -> list[Problem]:
    """Return all that is in the lab's way on a host, taken over or not."""
    return [
        Problem(rule.code, rule.message.format_map(facts), rule.remedy.format_map(facts))
        for rule in RULES
        if use.is_server or not rule.servers_only
        for facts in rule.check(host, use)
    ]


def refusal(host: HostUse, use: Use) -> str:
    """Return why the lab does not use a host (host_in_use), with the remedies; "" where it does."""
    obstacles = problems(host, use)
    yields = (
        [] if use.take_over else [problem.message for problem in obstacles if not problem.remedy]
    )
    sentences = []
    if yields:
        another = f"Make it anew ({use.remake} removes it)" if use.remake else "Use another machine"
        sentences += [
            f"it is in use: {'; '.join(yields)}.",
            f"{another}, or set take_over: true for this host in the inventory, whose meaning "
            "docs/bare-metal.md describes.",
        ]
    for problem in obstacles:
        if problem.remedy:
            sentences.append(f"{problem.message}: {problem.remedy}, or use another machine.")
    return " ".join(sentences)


def taken(host: HostUse, use: Use) -> list[str]:
    """Return the owner's paths whose place the lab takes: they are put aside."""
    return [path for path in use.paths if path in host.paths and path not in host.owned]


def owned(host: HostUse, use: Use) -> list[str]:
    """Return what the lab notes that it makes on a host; see MARK."""
    alone = use.is_server and not host.foreign and not host.unreadable
    kept = {*host.owned, *use.paths} - {_CLUSTERS}
    closed = any(_closed_clusters(host, use))
    return sorted(kept | ({_CLUSTERS} if alone and not closed else set()))
