"""Compute tuning values that depend on the host, and check the number of database connections."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from loadlab.hosts.probe import HostProbe
from loadlab.run.catalog import read_yaml
from loadlab.run.formatting import plural
from loadlab.stacks.reverse_proxies import ReverseProxy
from loadlab.tuning.ledger import RequestedSetting
from loadlab.tuning.profiles import Computed, HostSetting, ServiceSetting, TuningProfile

# PostgreSQL's default, and how many connections it reserves for the superuser (3) and telemetry
# (1).
MAX_CONNECTIONS = 100
RESERVED = 4
# systemd's default of a service's open files.
OPEN_FILES = 1024


class Sizes(Struct, frozen=True, kw_only=True):
    """The sizes of a host.

    ``memory`` is in MB, divided by the number of hosts on the same machine; ``cores`` is the number
    of processors that services may use; ``connections`` is the number of database connections that
    all workers may open at once.
    """

    memory: int
    cores: int
    connections: int


class Pool(Struct, frozen=True, kw_only=True):
    """Of an application, the database connections of each worker's pool."""

    pool_size: int = 0


class PooledStack(Struct, frozen=True, kw_only=True):
    """Of a stack, what decides how many database connections it opens."""

    framework: str
    app: Pool
    workers: int | None  #: None for one on each core.
    threads: int


class OpenFiles(Struct, frozen=True, kw_only=True):
    """Open files that the reverse proxy and the application ask for, and whether that is more than
    the profile, or systemd's default, gives."""

    needed: int
    raised: bool


def sizes(
    host: HostProbe,
    hosts: Iterable[HostProbe],
    stacks: Iterable[PooledStack],
    pool_size: int,
    together: int = 1,
) -> Sizes:
    """Return the sizes of a host.

    ``hosts``: all hosts. ``stacks``: those to be run; empty where nothing is planned.
    ``pool_size``: connections of a worker's pool, see largest_pool. ``together``: how many stacks
    are up at once.
    """
    cores = len(host.cpus)
    sharing = sum(_one_machine(host, other) for other in hosts)
    return Sizes(
        memory=host.manifest.memory_bytes // 1024**2 // max(sharing, 1),
        cores=cores,
        connections=together * connections(stacks, cores, pool_size),
    )


def connections(stacks: Iterable[PooledStack], cores: int, pool_size: int) -> int:
    """Return the number of database connections that all workers of any stack may open at once."""
    by_stack = [workers(stack, cores) * (pool_size + stack.threads) for stack in stacks]
    return max([cores * (pool_size + 1), *by_stack])


def _one_machine(host: HostProbe, other: HostProbe) -> bool:
    """Return whether two hosts run on one kernel: same version, memory and boot time."""
    alike = (host.manifest.kernel, host.manifest.memory_bytes) == (
        other.manifest.kernel,
        other.manifest.memory_bytes,
    )
    # Clocks may differ by one second.
    return alike and abs(host.booted - other.booted) <= 1


def workers(stack: PooledStack, cores: int) -> int:
    """Return the number of a stack's worker processes: as asked for, or one for each core."""
    return stack.workers or cores


def largest_pool(root: Path) -> int:
    """Return the largest pool_size of any application.

    Sized for it, PostgreSQL has the same settings for all applications. Raises PlanError naming a
    manifest that is malformed.
    """
    places = (str(path.relative_to(root)) for path in root.glob("apps/*/app.yml"))
    return max((read_yaml(root, place, Pool).pool_size for place in places), default=0)


def value(setting: int | str | Computed, size: Sizes) -> str:
    """Return a profile's value as text, either literal or computed from one of the sizes."""
    if not isinstance(setting, Computed):
        return " ".join(str(setting).split())
    sizes_of = {"memory": size.memory, "cores": size.cores, "connections": size.connections}
    number = int(sizes_of[setting.of] * setting.times + setting.plus)
    if setting.at_most is not None:
        number = min(number, setting.at_most)
    if setting.at_least is not None:
        number = max(number, setting.at_least)
    return f"{number}{setting.unit}"


def machine_settings(
    profile: TuningProfile, groups: Iterable[str], size: Sizes
) -> list[RequestedSetting]:
    """Return the settings of kernel and machine for a host in these groups, with its values."""
    return [
        replace(_requested(entry.key, entry, size), lower=entry.lower)
        for entry in [*profile.sysctl, *profile.machine]
        if not set(groups).isdisjoint(entry.hosts)
    ]


def postgresql_settings(profile: TuningProfile, size: Sizes) -> list[RequestedSetting]:
    """Return the settings of PostgreSQL with the values they have on a host of these sizes."""
    return [_requested(f"postgresql.{entry.name}", entry, size) for entry in profile.postgresql]


def _requested(key: str, entry: HostSetting | ServiceSetting, size: Sizes) -> RequestedSetting:
    return RequestedSetting(
        key=key, value=value(entry.value, size), reason=entry.reason, required=entry.required
    )


def max_connections(profile: TuningProfile, size: Sizes) -> int:
    """Return the number of connections that PostgreSQL admits under a profile's settings."""
    settings = profile.postgresql
    values = [entry.value for entry in settings if entry.name == "max_connections"]
    return int(value(values[0], size)) if values else MAX_CONNECTIONS


def pools_refusal(
    stack: PooledStack, cores: int, admitted: int, where: str, together: int = 1
) -> str | None:
    """Return why the pools of a stack's workers exceed PostgreSQL's max_connections; None if they
    fit.

    ``cores``: of the server. ``admitted``: max_connections. ``where``: what sets it, for the
    message. ``together``: how many such stacks are up at once.
    """
    pool_size, processes = stack.app.pool_size, together * workers(stack, cores)
    room = admitted - RESERVED
    opened = processes * pool_size
    if opened <= max(room, 0):
        return None
    return (
        f"{stack.framework} would open {plural(processes, 'worker')} x {pool_size} = {opened} "
        f"database connections, more than max_connections = {admitted} of {where} leaves ({room}; "
        f"{RESERVED} are kept for the superuser and for telemetry). Give fewer with -e "
        f"workers={room // (together * pool_size)}, lower pool_size in "
        f"apps/{stack.framework}/app.yml, or choose another profile with -e tuning=<name>."
    )


def admitted(
    stacks: Mapping[str, PooledStack],
    profile: TuningProfile,
    cores: int,
    pool_size: int,
    together: int = 1,
) -> set[str]:
    """Return the names of the stacks whose pools fit a server of which only the cores are known.

    ``pool_size``, ``together``: see sizes.
    """
    size = Sizes(
        # Enough to refuse none.
        memory=2**40,
        cores=cores,
        connections=together * connections(stacks.values(), cores, pool_size),
    )
    most = max_connections(profile, size)
    return {
        name
        for name, stack in stacks.items()
        if pools_refusal(stack, cores, most, "", together) is None
    }


def pools_refusals(
    stacks: Mapping[str, PooledStack],
    tunings: Mapping[str, TuningProfile],
    planned: Iterable[tuple[str, str]],
    host: HostProbe,
    pool_size: int,
    together: int = 1,
) -> list[str]:
    """Return a sentence for each stack and tuning profile of a plan whose pools do not fit the
    server.

    ``planned``: the (stack, tuning) of each item. ``host``: the server. ``pool_size``,
    ``together``: see sizes.
    """
    size = sizes(host, [], stacks.values(), pool_size, together)
    refusals = [
        pools_refusal(
            stacks[stack],
            size.cores,
            max_connections(tunings[tuning], size),
            f"the tuning profile {tuning}",
            together,
        )
        for stack, tuning in dict.fromkeys(planned)
    ]
    return [reason for reason in refusals if reason]


def open_files(machine: Iterable[HostSetting], connections: int) -> OpenFiles:
    """Return the open files that the reverse proxy and the application need for the load.

    ``machine``: the profile's entries of that section. ``connections``: of the clients.
    """
    values = [entry.value for entry in machine if entry.key == "limit.systemd.nofile"]
    anyway = int(str(values[0])) if values else OPEN_FILES
    # A reverse proxy opens one connection to the application for each of a client; 512 are for
    # logs, pools and libraries.
    needed = 2 * connections + 512
    return OpenFiles(needed=max(anyway, needed), raised=needed > anyway)


def proxy_settings(
    settings: Sequence[ServiceSetting], connections: int, proxy: ReverseProxy
) -> list[ServiceSetting]:
    """Return a profile's settings of a reverse proxy with room for this many client connections.

    Its setting ``connections`` is raised where it is too low for one process to take them all.
    """
    name = proxy.connections
    if name is None:
        return list(settings)
    # One connection to the application for each client connection; 128 are for listening sockets,
    # kept connections and reading counters.
    needed = 2 * connections + 128
    values = [*(entry.value for entry in settings if entry.name == name), proxy.settings[name]]
    if needed <= int(str(values[0])):
        return list(settings)
    raised = ServiceSetting(
        name=name,
        value=str(needed),
        reason="for the connections of this load, which need more than the profile has",
    )
    return [*(entry for entry in settings if entry.name != name), raised]
