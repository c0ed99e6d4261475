"""The other documents of a run: manifest, tuning ledger, calibration and progress."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.model.base import (
    SCHEMA,
    Above0,
    Count,
    Fraction,
    Json,
    Name,
    NotNegative,
    Positive,
    Reason,
    Record,
    Sha256,
    doc,
)
from loadlab.model.certificate import CertificateReference
from loadlab.model.hardware import CloudInstance, Hardware
from loadlab.model.latency import Latency
from loadlab.model.study import GivenOptions


class LabRevision(Record, kw_only=True, frozen=True):
    """Version and revision of the lab's own source."""

    version: Annotated[str | None, doc("Version in pyproject.toml; null where the file has none.")]
    revision: Annotated[str | None, doc("git commit; null outside a repository.")]
    dirty: Annotated[
        bool | None, doc("True where files differed from the commit; null outside a repository.")
    ]


class Command(Record, kw_only=True, frozen=True):
    """Command line and variables of the call, without secrets."""

    argv: Annotated[list[str], doc("Words of the command line.")]
    extra_vars: Annotated[
        GivenOptions, doc("Variables given with -e, without secrets; values as given.")
    ]


class HostDescription(Record, kw_only=True, frozen=True):
    """Machine, kernel and packages of a host."""

    cpu_model: Annotated[str, doc("CPU model as in /proc/cpuinfo.")]
    cores: Annotated[Positive, doc("Number of cores of the machine, 1 or more.")]
    cpus: Annotated[
        Annotated[list[Count], Meta(min_length=1)],
        doc("Numbers of the cores that the host may use."),
    ]
    memory_bytes: Annotated[Count, doc("Memory of the machine, bytes.")]
    kernel: Annotated[str, doc("Kernel release.")]
    os: Annotated[str, doc("Distribution and version.")]
    virtualisation: Annotated[
        str, doc("Kind of virtual machine or container; 'none' on bare metal.")
    ]
    clock_source: Annotated[str, doc("Current clock source of the kernel.")]
    governor: Annotated[
        str | None, doc("CPU frequency governor; null where the kernel shows none.")
    ]
    nofile: Annotated[Positive, doc("Open file limit of a service, 1 or more.")]
    packages: Annotated[dict[str, str], doc("Package name to installed version.")]
    hardware: Annotated[
        Hardware | None,
        doc("What of its hardware affects the steadiness of a measurement; absent until the load."),
    ] = None


class GeneratorProgram(Record, kw_only=True, frozen=True):
    """Executable of a load generator on a client."""

    version: Annotated[str, doc("First line that it prints for --version.")]
    sha256: Annotated[Sha256, doc("SHA-256 of the executable; of a snap, of its image.")]
    snap_revision: Annotated[
        str | None, doc("Revision of the snap that it is from; absent where it is from none.")
    ] = None


class ManifestHost(HostDescription, kw_only=True, frozen=True):
    """One host of the run."""

    role: Annotated[Literal["server", "client"], doc("server: under test. client: load generator.")]
    hardware: Annotated[
        Hardware,
        doc("What of its hardware affects the steadiness of a measurement."),
    ]
    generators: Annotated[
        dict[str, GeneratorProgram] | None,
        doc("Load generator of the run to its executable on this client; absent of a server."),
    ] = None


class Manifest(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """manifest.json: the plan, software and hosts of a run."""

    run_id: Annotated[Name, doc("Name of the run.")]
    started: Annotated[str, doc("Start of the run, ISO 8601 with its offset.")]
    finished: Annotated[
        str | None, doc("End of the run, ISO 8601 with its offset; null while it runs.")
    ]
    lab: LabRevision
    command: Command
    controller: Annotated[
        dict[str, str],
        doc(
            "Properties of the controller, names and values as found: operating system, "
            "kernel, Python, Ansible."
        ),
    ]
    hosts: Annotated[dict[str, ManifestHost], doc("Inventory name of the host to its description.")]
    pins: Annotated[dict[str, str], doc("Every pinned or resolved item, name to version.")]
    locks: Annotated[dict[str, Sha256], doc("Lock file of the lab to its SHA-256.")]
    plan: Annotated[
        dict[str, Json],
        doc("Plan of the run: options, cells in their order, seed. Free in form."),
    ]
    certificate: Annotated[
        CertificateReference | None,
        doc("Newest certificate of hosts like these; absent where there is none."),
    ] = None
    instances: Annotated[
        list[CloudInstance] | None,
        doc(
            "Cloud instances that were its hosts, with their cost, also those that ended before "
            "the run went on; absent where its hosts are none."
        ),
    ] = None


LedgerState = Literal[
    "applied",
    "already",
    "absent",
    "read_only",
    "clamped",
    "not_namespaced",
    "restored",
    "rejected",
    "kept",
]


class LedgerRow(Record, kw_only=True, frozen=True):
    """One tuned key on one host."""

    key: Annotated[
        str,
        doc(
            "Kernel key as in sysctl, a file below /sys, swap, limit.<of>.<name>, "
            "unit.<name>, snap.<option>, nic.<group>.<name>, postgresql.<name>, nginx.<name>, or "
            "application.<name>."
        ),
    ]
    requested: Annotated[str | None, doc("Value requested; null where none was requested.")]
    original: Annotated[
        str | None,
        doc(
            "Value of a kernel or machine key before any profile of the lab changed it; "
            "absent for other keys."
        ),
    ] = None
    before: Annotated[str | None, doc("Value found; null where there was none.")]
    after: Annotated[str | None, doc("Value read back; null where there is none.")]
    state: Annotated[
        LedgerState,
        doc(
            "applied: changed to the value requested. already: had that value before. "
            "absent: this host has no such key. read_only: this host must not write it. "
            "clamped: accepted, but reads back as another value; a card gets the most that it "
            "can. not_namespaced: belongs to "
            "the whole machine, not to this host. restored: the value found first is back. "
            "rejected: refused and unchanged, or no such setting exists here. kept: the host "
            "has more than requested, and keeps it."
        ),
    ]
    required: Annotated[bool, doc("True where the profile fails without the key.")]
    reason: Annotated[str, doc("Reason for the value, as the profile words it.")]


class TuningLedger(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """tuning.json, the ledger: values that tuning requested, found and read back."""

    profile: Annotated[str, doc("Name of the tuning profile.")]
    hosts: Annotated[dict[str, list[LedgerRow]], doc("Name of the host to its ledger rows.")]


class CalibrationOrigin(Record, kw_only=True, frozen=True):
    """Source of the raw calibration files: this run, or a run of the hour before whose
    calibration is reused."""

    run_id: Annotated[str, doc("Name of the run that measured the calibration.")]
    measured: Annotated[
        Above0, doc("Time of the measurement, unix seconds of the controller's clock.")
    ]


class CalibrationConditions(Record, kw_only=True, frozen=True):
    """conditions.json: run, time and conditions of a calibration."""

    run_id: Annotated[str, doc("Name of the run that measured the calibration.")]
    measured: Annotated[
        Above0, doc("Time of the measurement, unix seconds of the controller's clock.")
    ]
    conditions: Annotated[
        dict[str, Json],
        doc("Conditions that a run must share to reuse the calibration. Free in form."),
    ]


class Iperf3Cpu(Record, kw_only=True, frozen=True):
    """CPU use of both ends, percent of one core."""

    local: Annotated[
        NotNegative,
        doc("CPU use on the host of the iperf3 client, percent of one core, 0 or more."),
    ]
    remote: Annotated[
        NotNegative,
        doc("CPU use on the host of the iperf3 server, percent of one core, 0 or more."),
    ]


class Iperf3Direction(Record, kw_only=True, frozen=True):
    """TCP throughput in one direction."""

    bits_per_second: Annotated[Above0, doc("Throughput at the receiver, bits/s, above 0.")]
    retransmits: Annotated[Count, doc("Segments that the sender retransmitted.")]
    seconds: Annotated[Above0, doc("Duration of the measurement, seconds, above 0.")]
    cpu_percent: Iperf3Cpu
    spread: Annotated[
        NotNegative | None,
        doc(
            "(Fastest - slowest second) / mean of the throughput; absent for fewer than two whole "
            "seconds."
        ),
    ] = None
    retransmitted: Annotated[
        Fraction | None,
        doc(
            "Segments retransmitted / segments sent, with segments of the largest size; absent "
            "where iperf3 does not tell that size."
        ),
    ] = None
    streams: Annotated[Positive, doc("TCP connections at once.")]
    core_limited: Annotated[
        bool,
        doc(
            "True where iperf3 filled the cores that it can use, one for each stream (before "
            "iperf3 3.16 one in all): the link may carry more."
        ),
    ]


class Iperf3(Record, kw_only=True, frozen=True):
    """TCP throughput over the interface that carries the load."""

    client_to_server: Annotated[Iperf3Direction, doc("Direction of the requests.")]
    server_to_client: Annotated[Iperf3Direction, doc("Direction of the answers.")]
    lower: Annotated[
        dict[str, Iperf3Direction] | None,
        doc(
            "Direction to its lower figure, where one stream filled a core and several were "
            "measured too. The link's figure is the higher, above. Absent where one stream "
            "filled no core."
        ),
    ] = None


class Ceiling(Record, kw_only=True, frozen=True):
    """Highest request rate of the closed-loop generator against nginx's own static answer."""

    requests_per_second: Annotated[Above0, doc("Answers per second, above 0.")]
    connections: Annotated[Positive, doc("Number of connections, 1 or more.")]
    duration_s: Annotated[Above0, doc("Duration of the measurement, seconds, above 0.")]
    client_cpu_busy: Annotated[Fraction, doc("Busy time of the client's cores, fraction 0 to 1.")]
    server_cpu_busy: Annotated[Fraction, doc("Busy time of the server's cores, fraction 0 to 1.")]
    generator: Annotated[str, doc("Name of the generator that measured the ceiling.")]


class RoundTrip(Record, kw_only=True, frozen=True):
    """Round-trip time of ping over the interface that carries the load, µs."""

    min: Annotated[NotNegative, doc("Shortest round-trip time, µs.")]
    mean: Annotated[NotNegative, doc("Mean round-trip time, µs.")]
    max: Annotated[NotNegative, doc("Longest round-trip time, µs.")]
    mdev: Annotated[NotNegative, doc("Mean deviation of the round-trip time, µs.")]


class ClockOffsets(Record, kw_only=True, frozen=True):
    """Offset of each host's clock: host minus controller, seconds, either sign."""

    server: Annotated[float, doc("Offset of the server's clock, seconds.")]
    client: Annotated[float, doc("Offset of the client's clock, seconds.")]


class Calibration(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """calibration.json: limits of the network and the generator, measured before any stack."""

    origin: Annotated[CalibrationOrigin, doc("Where its raw files come from.")]
    generator: Annotated[str, doc("Name of the constant-rate generator that was calibrated.")]
    iperf3: Iperf3
    ceiling: Ceiling
    send_delay_us: Annotated[
        Latency | None,
        doc(
            "Delay of the constant-rate generator in issuing requests, µs; null where it "
            "cannot be determined."
        ),
    ]
    baseline_latency_us: Annotated[
        Latency | None,
        doc(
            "Latency of nginx's own static answer at the asked rate, µs. The stack causes "
            "no latency below it. Null where only the closed loop is used."
        ),
    ]
    round_trip_us: RoundTrip
    clock_offset_s: ClockOffsets
    link_reasons: Annotated[
        list[Reason] | None,
        doc(
            "Why the measurement of the link was disturbed; absent where it was not. Such a "
            "measurement makes no link void."
        ),
    ] = None
    ceiling_reasons: Annotated[
        list[Reason] | None,
        doc(
            "Why the measurement of the ceiling is void; absent where it is valid. A void ceiling "
            "refuses no rate."
        ),
    ] = None


class Progress(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """progress.json: progress of a run, rewritten at each step of its load."""

    run_id: Annotated[str, doc("Name of the run.")]
    updated: Annotated[NotNegative, doc("Time of writing, unix seconds.")]
    done: Annotated[Count, doc("Measurements that did not fail.")]
    total: Annotated[Count, doc("Largest possible number of measurements.")]
    seconds_left: Annotated[
        NotNegative, doc("Seconds until the load ends, including the time spent beside the load.")
    ]
    ends: Annotated[NotNegative, doc("Time at which the load ends, unix seconds.")]
    abandoned: Annotated[
        dict[str, str],
        doc("Each cell that failed twice and is not tried again now, to the reason."),
    ]
