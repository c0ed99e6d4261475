"""Parse what roles/host_check/files/probe.sh reports of a host, and find unsuitable hosts."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from loadlab.hosts.hardware import cpu_list
from loadlab.hosts.package_sources import name_and_port
from loadlab.hosts.qdisc import RELAY_INTERFACE, NetworkProfile, needs_netem
from loadlab.model import HostDescription
from loadlab.run.errors import LabError, PlanError
from loadlab.run.formatting import one_line, size
from loadlab.stacks.servers import PythonLimit
from loadlab.stacks.stacks import refuse_python

SUPPORTED = ("debian 12", "debian 13", "ubuntu 24.04")
# An executable's machine number, from elf.h, and what `uname -m` prints there.
_ELF_MACHINES = {62: "x86_64", 183: "aarch64"}


class HostProbe(Struct, frozen=True, kw_only=True):
    """What the probe reports of a host."""

    user: str  #: Who logs in.
    machine_id: str  #: The machine's own id and that of its kernel's boot.
    booted: int  #: Unix seconds.
    os: str  #: Such as "debian 13".
    machine: str  #: As `uname -m` prints it.
    cpus: list[int]  #: Processor numbers that services may use.
    interface: str  #: The one with the test address, or "".
    #: Peer's address -> [interface, source address], or [] where there is none.
    routes: dict[str, list[str]]
    own_address: str  #: The address that SSH connected to.
    python: str  #: Version of /usr/bin/python3, or "".
    netem: bool  #: Whether the kernel has it.
    untraced: list[str]  #: What keeps bpftrace from it: container, tracefs, cgroup, lockdown.
    #: Name -> path, or "", of each generator's program that was asked for.
    programs: dict[str, str]
    sources: list[str]  #: "name:port" of each package source.
    free_bytes: int  #: Of the file system of raw files.
    available_bytes: int  #: Of memory.
    manifest: HostDescription  #: The host's fields in manifest.json.


class PythonStack(PythonLimit, frozen=True, kw_only=True):
    """Of a stack to run, what decides on which Python it runs."""

    framework: str


class Demands(Struct, frozen=True, kw_only=True):
    """What a run asks of one host."""

    name: str  #: Of the host in the inventory.
    test_address: str  #: Its address there, or "".
    machine_ids: dict[str, str]  #: Inventory name -> machine id of every host, as in HostProbe.
    #: What a server is to run; empty for a client or where nothing is planned.
    stacks: list[PythonStack] = []
    networks: dict[str, NetworkProfile] = {}  #: The network profiles by name.
    #: disk_bytes, memory_bytes: what the load needs there.
    disk_bytes: int = 0
    memory_bytes: int = 0
    trace: bool = False  #: Whether its kernel is traced.
    #: For a host without internet the "name:port" of each source that the controller fetches from,
    #: else None.
    fetched_sources: list[str] | None = None


class Problem(Struct, frozen=True):
    """Why a host cannot serve: the code of the rule, and a sentence with value and remedy."""

    code: str
    message: str


class Rule(Struct, frozen=True):
    """A requirement of a host.

    ``check`` returns the values of ``message`` for each violation, nothing where it is met.
    """

    code: str
    check: Callable[[HostProbe, Demands], Iterable[Mapping[str, str]]]
    message: str


def parse(text: str) -> HostProbe:
    """Return what the probe's lines say. Raises ValueError for a malformed or missing line."""
    fields: dict[str, str] = {}
    packages: dict[str, str] = {}
    programs: dict[str, str] = {}
    routes: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, separator, value = line.partition("\t")
        if not separator:
            raise LabError(f"not a line of the probe: {line!r}")
        if name == "package":
            package, version, state = value.split(" ", 2)
            # dpkg lists removed packages too; count installed ones only, including those on hold
            # (hi).
            if state[1:2] == "i":
                packages[package] = version
        elif name == "program":
            program, _, path = value.partition(" ")
            programs[program] = path
        elif name == "route":
            peer, *way = value.split()
            routes[peer] = way
        else:
            fields[name] = value
    try:
        cpus = cpu_list(fields["cpus"])
        return HostProbe(
            user=fields["user"],
            machine_id=fields["machine_id"],
            booted=int(fields["booted"]),
            os=fields["os"],
            machine=fields["machine"],
            cpus=cpus,
            interface=fields["interface"],
            routes=routes,
            own_address=fields["own_address"],
            python=fields["python"],
            netem=fields["netem"] == "yes",
            untraced=fields["untraced"].split(),
            programs=programs,
            sources=[name_and_port(url) for url in fields["sources"].split()],
            free_bytes=int(fields["free_bytes"]),
            available_bytes=int(fields["available_kib"]) * 1024,
            manifest=HostDescription(
                cpu_model=fields["cpu_model"] or "unknown",
                cores=int(fields["cores"]),
                cpus=cpus,
                memory_bytes=int(fields["memory_kib"]) * 1024,
                kernel=fields["kernel"],
                os=fields["os_name"],
                virtualisation=fields["virtualisation"],
                clock_source=fields["clock_source"],
                governor=fields.get("governor"),
                nofile=int(fields["nofile"]),
                packages=packages,
            ),
        )
    except KeyError as missing:
        raise LabError(f"the probe did not report {missing}: {text[:200]!r}") from None


def ssh_reason(said: str) -> str:
    """Return SSH's own words from the text of Ansible's error, on one line."""
    words = re.sub(r"^.*?(via ssh|over ssh): ", "", one_line(said), flags=re.IGNORECASE)
    return words.removeprefix("Task failed: ").rstrip(".")


def out_of_reach(address: str, said: str, make: str, unchanged: str) -> str:
    """Return the message for a host that does not answer over SSH.

    ``said``: the error's text. ``make``: the command that creates the host, "" for a user's own
    host. ``unchanged``: a sentence on what was not changed.
    """
    remedy = (
        f"Where it is not there yet, {make} makes it."
        if make
        else "See that it is up and that ansible_host in the inventory is its address, that its "
        f"host key is in your known_hosts, and that `ssh {address}` as the same user logs in."
    )
    return (
        f"{address} does not answer over SSH: {ssh_reason(said)}. {remedy} Then run the same "
        f"command again. {unchanged}"
    )


Facts = Mapping[str, str]


def _python_too_new(host: HostProbe, demands: Demands) -> Iterable[Facts]:
    for stack in demands.stacks if host.python else []:
        try:
            refuse_python(stack.framework, stack, host.python)
        except PlanError as refusal:
            yield {"refusal": str(refusal)}


def _netem_from(host: HostProbe) -> str:
    """Return how the host can have netem. Ubuntu has the module of its cloud kernels in a package
    of its own."""
    if host.os.startswith("ubuntu"):
        return f"Install the package linux-modules-extra-{host.manifest.kernel} there, or use"
    return "Use a host with that module, or use"


def _no_netem(host: HostProbe, demands: Demands) -> list[Facts]:
    return [
        {"network": name, "kernel": host.manifest.kernel, "remedy": _netem_from(host)}
        for name, profile in demands.networks.items()
        if needs_netem(profile) and not host.netem
    ]


def _sources_not_fetched(host: HostProbe, demands: Demands) -> list[Facts]:
    if demands.fetched_sources is None:
        return []
    missing = [source for source in host.sources if source not in demands.fetched_sources]
    return [{"sources": ", ".join(missing)}] if missing else []


def _twins(host: HostProbe, demands: Demands) -> list[str]:
    """Return the other hosts of the inventory that are the same machine."""
    machines = demands.machine_ids.items()
    return [name for name, id_ in machines if name != demands.name and id_ == host.machine_id]


def _other_link(host: HostProbe, demands: Demands) -> list[Facts]:
    if not host.interface or _twins(host, demands):
        # Another rule names the cause.
        return []
    # The lab's relay sends on what it delayed through the interface.
    links = [[name, demands.test_address] for name in (host.interface, RELAY_INTERFACE)]
    return [
        {
            "peer": peer,
            "way": " from ".join(way) or "none",
            "interface": host.interface,
            "address": demands.test_address,
        }
        for peer, way in host.routes.items()
        if way not in links
    ]


def _same_machine(host: HostProbe, demands: Demands) -> list[Facts]:
    twins = _twins(host, demands)
    return [{"others": ", ".join(twins)}] if twins else []


def _short(free_bytes: int, needed_bytes: int) -> list[Facts]:
    if free_bytes >= needed_bytes:
        return []
    return [{"free": size(free_bytes), "needed": size(needed_bytes)}]


# Reason -> why bpftrace cannot run on a host.
_UNTRACED = {
    "container": "it is a container ({kind}), which may not call bpf(2)",
    "tracefs": "its kernel {kernel} was built without tracing (there is no /sys/kernel/tracing)",
    "lockdown": "its kernel is locked down for confidentiality (/sys/kernel/security/lockdown)",
    "cgroup": "it has no control groups of version 2, by which the services are told apart",
}


def _not_traced(host: HostProbe, demands: Demands) -> list[Facts]:
    reasons = [text for code, text in _UNTRACED.items() if code in host.untraced]
    if not demands.trace or not reasons:
        return []
    manifest = host.manifest
    return [{"reason": reasons[0].format(kind=manifest.virtualisation, kernel=manifest.kernel)}]


_LESS = "give a lower -e rate= or a shorter -e duration=."
RULES = (
    Rule(
        "no_python",
        lambda host, demands: [{}] if demands.stacks and not host.python else [],
        "it has no /usr/bin/python3. Install the package python3.",
    ),
    Rule("python_too_new", _python_too_new, "{refusal}"),
    Rule(
        "unsupported_system",
        lambda host, demands: [] if host.os in SUPPORTED else [{"os": host.manifest.os}],
        "it runs {os}; the lab knows Debian 12, Debian 13 and Ubuntu 24.04. Install one of these.",
    ),
    Rule(
        "no_interface",
        lambda host, demands: (
            [] if host.interface else [{"address": demands.test_address or "(none)"}]
        ),
        "the address {address} is on none of its interfaces. Set test_address in the inventory to "
        "the host's own address on the link that carries load.",
    ),
    Rule(
        "no_netem",
        _no_netem,
        "the network profile {network} needs netem (jitter, loss, a delay above 100 Mbit/s), which "
        "its kernel {kernel} does not have (module sch_netem). {remedy} a profile with a rate only "
        "(-e network=gigabit).",
    ),
    Rule(
        "not_traced",
        _not_traced,
        "trace=true needs bpftrace, which cannot run there: {reason}. Leave trace out, or use a "
        "machine of its own.",
    ),
    Rule(
        "sources_not_fetched",
        _sources_not_fetched,
        "its packages come from {sources}, which this machine does not fetch from for a host "
        "without internet. Give the host the sources that this machine's own apt has, or add that "
        "to package_sources in the inventory's group_vars/lab.yml.",
    ),
    Rule(
        "other_link",
        _other_link,
        "its way to {peer} is {way}, and not {interface} from {address}: load would take another "
        "link than the one that is looked at. Give it a route there "
        "(ip route replace {peer} dev {interface} src {address}), or set test_address of all hosts "
        "to their addresses on one link.",
    ),
    Rule(
        "disk_full",
        lambda host, demands: _short(host.free_bytes, demands.disk_bytes),
        "the disk of /var/lib has {free} free, and a measurement needs {needed}. Free some, or "
        + _LESS,
    ),
    Rule(
        "memory_short",
        lambda host, demands: _short(host.available_bytes, demands.memory_bytes),
        "it has {free} of available memory, and the generator needs {needed}. Stop other work "
        "there, or " + _LESS,
    ),
    Rule(
        "same_machine",
        _same_machine,
        "it is the same machine as {others}; a client on its own server measures itself. Give two "
        "machines.",
    ),
)


def problems(host: HostProbe, demands: Demands) -> list[Problem]:
    """Return the reasons why a host cannot serve; empty where it can."""
    return [
        Problem(rule.code, rule.message.format_map(facts))
        for rule in RULES
        for facts in rule.check(host, demands)
    ]


def program_machine(path: str) -> str:
    """Return the machine that an executable is built for, as `uname -m` prints it.

    "" where the file is not ELF, such as a script, and where ``path`` is empty. Reads the file;
    raises OSError where it cannot.
    """
    if not path:
        return ""
    with Path(path).open("rb") as file:
        head = file.read(20)
    if head[:4] != b"\x7fELF" or len(head) < 20:
        return ""
    # The sixth byte gives the byte order.
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    return _ELF_MACHINES.get(number, f"another (ELF machine {number})")
