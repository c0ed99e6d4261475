"""The other documents of a run: manifest, tuning ledger, calibration and progress."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.core.model.base import (
    SCHEMA,
    Above0,
    Count,
    Fraction,
    Json,
    Name,
    NotNegative,
    Positive,
    Record,
    doc,
)
from loadlab.core.model.latency import Latency


class LabRevision(Record, kw_only=True, frozen=True):
    """The lab's own source."""

    version: Annotated[str | None, doc("Version in pyproject.toml; null where it has none.")]
    revision: Annotated[str | None, doc("git commit; null outside a repository.")]
    dirty: Annotated[
        bool | None, doc("True where files differed from it; null outside a repository.")
    ]


class Command(Record, kw_only=True, frozen=True):
    """What was called, without secrets."""

    argv: Annotated[list[str], doc("Words of the command line.")]
    extra_vars: Annotated[
        dict[str, Json], doc("Variables given with -e, without secrets; values as given.")
    ]


class Nic(Record, kw_only=True, frozen=True):
    """Card of the link that carries load."""

    name: Annotated[str, doc("Interface.")]
    driver: Annotated[str | None, doc("Its driver.")]
    speed_mbit: Annotated[Positive | None, doc("Speed of the link, Mb/s, 1 or more.")]
    duplex: Annotated[Literal["full", "half"] | None, doc("full: both directions at once.")]
    queues: Annotated[Positive | None, doc("Queues that receive, 1 or more.")]
    interrupts: Annotated[
        dict[str, list[Count]] | None,
        doc("Number of an interrupt of the card to the processors that it comes to."),
    ]
    offloads: Annotated[
        dict[str, bool] | None,
        doc("What the card or the kernel does for many packets at once, by ethtool's name."),
    ]


class Hardware(Record, kw_only=True, frozen=True):
    """What of its hardware decides how steady a measurement is, as it was when the load began;
    null is what the host does not have or tell. Runs of an older lab have no such thing.
    """

    nic: Annotated[Nic | None, doc("Card of the link that carries load.")]
    management_nic: Annotated[str | None, doc("Interface by which the controller comes.")]
    governors: Annotated[
        dict[str, Positive] | None, doc("CPU frequency governor to how many processors have it.")
    ]
    turbo: Annotated[
        bool | None, doc("True where processors may be faster than their nominal frequency.")
    ]
    smt: Annotated[bool | None, doc("True where processors share cores.")]
    numa_nodes: Annotated[Positive | None, doc("NUMA nodes that have processors, 1 or more.")]
    clock_synchronised: Annotated[
        bool | None, doc("True where the kernel's clock is synchronised; null in a container.")
    ]


class HostDescription(Record, kw_only=True, frozen=True):
    """What a host is: machine, kernel and packages."""

    cpu_model: Annotated[str, doc("CPU model as /proc/cpuinfo names it.")]
    cores: Annotated[Positive, doc("Cores of the machine, 1 or more.")]
    cpus: Annotated[
        Annotated[list[Count], Meta(min_length=1)], doc("Numbers of the cores the host may use.")
    ]
    memory_bytes: Annotated[Count, doc("Memory of the machine, bytes.")]
    kernel: Annotated[str, doc("Kernel release.")]
    os: Annotated[str, doc("Distribution and version.")]
    virtualisation: Annotated[
        str, doc("Kind of virtual machine or container; 'none' on bare metal.")
    ]
    clock_source: Annotated[str, doc("Kernel's current clock source.")]
    governor: Annotated[
        str | None, doc("CPU frequency governor; null where the kernel shows none.")
    ]
    nofile: Annotated[Positive, doc("Open files granted to a service, 1 or more.")]
    hardware: Annotated[
        Hardware | None,
        doc(
            "What of its hardware decides how steady a measurement is, as it was when the "
            "load began; null is what the host does not have or tell. Runs of an older "
            "lab have no such thing."
        ),
    ] = None
    packages: Annotated[dict[str, str], doc("Package to installed version.")]


class ManifestHost(HostDescription, kw_only=True, frozen=True):
    """One host."""

    role: Annotated[Literal["server", "client"], doc("server: under test. client: load generator.")]


class Manifest(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """manifest.json: what was run, by what, on what."""

    run_id: Annotated[Name, doc("Name of the run.")]
    started: Annotated[str, doc("When the run began, ISO 8601 with its offset")]
    finished: Annotated[
        str | None, doc("When it ended; null while it runs, ISO 8601 with its offset")
    ]
    lab: Annotated[LabRevision, doc("The lab's own source.")]
    command: Annotated[Command, doc("What was called, without secrets.")]
    controller: Annotated[
        dict[str, Json],
        doc(
            "Where the lab ran: names and values as found (operating system, kernel, "
            "Python, Ansible)."
        ),
    ]
    hosts: Annotated[dict[str, ManifestHost], doc("Host's name in the inventory to what it is.")]
    pins: Annotated[dict[str, str], doc("Everything pinned or resolved, name to version.")]
    plan: Annotated[
        dict[str, Json],
        doc("What the run was to do: options, cells in their order, seed. Free in form."),
    ]


LedgerState = Literal[
    "applied",
    "already",
    "absent",
    "read_only",
    "clamped",
    "not_namespaced",
    "restored",
    "rejected",
]


class LedgerRow(Record, kw_only=True, frozen=True):
    """One key."""

    key: Annotated[
        str,
        doc(
            "Kernel key as sysctl has it, a file below /sys, swap, limit.<of>.<name>, "
            "unit.<name>, nic.<group>.<name>, postgresql.<name>, nginx.<name>, or "
            "application.<name>."
        ),
    ]
    requested: Annotated[str | None, doc("Value asked for; null where none was.")]
    original: Annotated[
        str | None,
        doc(
            "Of a key of the kernel or the machine, the value before any profile of the "
            "lab changed it."
        ),
    ] = None
    before: Annotated[str | None, doc("Value found; null where there was none.")]
    after: Annotated[str | None, doc("Value read back; null where there is none.")]
    state: Annotated[
        LedgerState,
        doc(
            "applied: changed to the value requested. already: had that value before. absent: "
            "this host has no such key. read_only: this host must not write it. clamped: "
            "accepted, and reads back as another value. not_namespaced: belongs to the whole "
            "machine, not to this host. restored: the value found first is back. rejected: "
            "refused, and unchanged, or nothing here has such a setting."
        ),
    ]
    required: Annotated[bool, doc("True where the profile fails without it.")]
    reason: Annotated[str, doc("Why the profile asks for it, in its words.")]


class TuningLedger(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """tuning.json, the ledger: what tuning asked for, found, and read back."""

    profile: Annotated[str, doc("Tuning profile.")]
    hosts: Annotated[dict[str, list[LedgerRow]], doc("Host's name to its rows.")]


class CalibrationOrigin(Record, kw_only=True, frozen=True):
    """Where its raw files come from: this run, or one of the hour before, whose calibration it
    uses again. Absent from runs of an older lab.
    """

    run_id: Annotated[str, doc("Run that measured it.")]
    measured: Annotated[Above0, doc("When it had, unix seconds of the controller's clock.")]


class CalibrationConditions(Record, kw_only=True, frozen=True):
    """conditions.json of a calibration: who measured it when, and under what."""

    run_id: Annotated[str, doc("Run that measured it.")]
    measured: Annotated[Above0, doc("When it had, unix seconds of the controller's clock.")]
    conditions: Annotated[
        dict[str, Json],
        doc("All that a run which uses it again must have in common with it. Free in form."),
    ]


class Iperf3Cpu(Record, kw_only=True, frozen=True):
    """CPU of both ends, percent of one core."""

    local: Annotated[NotNegative, doc("Where iperf3's client ran, 0 or more.")]
    remote: Annotated[NotNegative, doc("Where its server ran, 0 or more.")]


class Iperf3Direction(Record, kw_only=True, frozen=True):
    """Requests' direction."""

    bits_per_second: Annotated[Above0, doc("Received, bits/s, above 0.")]
    retransmits: Annotated[Count, doc("Segments the sender sent again.")]
    seconds: Annotated[Above0, doc("Seconds measured.")]
    cpu_percent: Annotated[Iperf3Cpu, doc("CPU of both ends, percent of one core.")]


class Iperf3(Record, kw_only=True, frozen=True):
    """TCP throughput over the interface that carries the load."""

    client_to_server: Annotated[Iperf3Direction, doc("Requests' direction.")]
    server_to_client: Annotated[Iperf3Direction, doc("Answers' direction.")]


class Ceiling(Record, kw_only=True, frozen=True):
    """The most the closed-loop generator had from nginx's own static answer."""

    requests_per_second: Annotated[Above0, doc("Answers per second, above 0.")]
    connections: Annotated[Positive, doc("Connections, 1 or more.")]
    duration_s: Annotated[Above0, doc("Seconds.")]
    client_cpu_busy: Annotated[Fraction, doc("Client's cores busy, fraction 0 to 1")]
    server_cpu_busy: Annotated[Fraction, doc("Server's cores busy, fraction 0 to 1")]
    generator: Annotated[str, doc("Program that measured it.")]


class RoundTrip(Record, kw_only=True, frozen=True):
    """ping over the interface that carries the load."""

    min: Annotated[NotNegative, doc("Smallest, µs")]
    mean: Annotated[NotNegative, doc("Mean, µs")]
    max: Annotated[NotNegative, doc("Largest, µs")]
    mdev: Annotated[NotNegative, doc("Mean deviation, µs")]


class ClockOffsets(Record, kw_only=True, frozen=True):
    """Clock of each host less the controller's, seconds, either sign."""

    server: Annotated[float, doc("Seconds.")]
    client: Annotated[float, doc("Seconds.")]


class Calibration(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """calibration.json: what the network and the generator can do, before any stack is measured."""

    origin: Annotated[
        CalibrationOrigin | None,
        doc(
            "Where its raw files come from: this run, or one of the hour before, whose "
            "calibration it uses again. Absent from runs of an older lab."
        ),
    ] = None
    generator: Annotated[str, doc("Constant-rate generator that was calibrated.")]
    iperf3: Annotated[Iperf3, doc("TCP throughput over the interface that carries the load.")]
    ceiling: Annotated[
        Ceiling, doc("The most the closed-loop generator had from nginx's own static answer.")
    ]
    send_delay_us: Annotated[
        Latency | None,
        doc(
            "How late the constant-rate generator issues requests, µs; null where it "
            "cannot be told."
        ),
    ]
    baseline_latency_us: Annotated[
        Latency | None,
        doc(
            "Latency of nginx's own static answer at the asked rate, µs: nothing below it "
            "is the stack's. Null where only the closed loop is used."
        ),
    ]
    round_trip_us: Annotated[RoundTrip, doc("ping over the interface that carries the load.")]
    clock_offset_s: Annotated[
        ClockOffsets, doc("Clock of each host less the controller's, seconds, either sign.")
    ]


class Progress(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """progress.json: how far a run is, rewritten at each step of its load."""

    run_id: Annotated[str, doc("Name of the run.")]
    updated: Annotated[NotNegative, doc("When this was written, unix seconds.")]
    done: Annotated[Count, doc("Measurements that did not fail.")]
    total: Annotated[Count, doc("Measurements that there are, at most.")]
    seconds_left: Annotated[
        NotNegative, doc("Seconds until the load is over, with what it costs beside the load.")
    ]
    ends: Annotated[NotNegative, doc("When that is, unix seconds.")]
    abandoned: Annotated[
        dict[str, str],
        doc("Each cell that failed twice and is not tried again now, to the reason."),
    ]
