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
)
from loadlab.model.certificate import CertificateReference
from loadlab.model.hardware import CloudInstance, Hardware
from loadlab.model.latency import Latency
from loadlab.model.study import GivenOptions


class LabRevision(Record, kw_only=True, frozen=True):
    """Version and revision of the lab's own source."""

    version: str | None  #: Version in pyproject.toml; null where the file has none.
    revision: str | None  #: git commit; null outside a repository.
    dirty: bool | None  #: True where files differed from the commit; null outside a repository.


class Command(Record, kw_only=True, frozen=True):
    """Command line and variables of the call, without secrets."""

    argv: list[str]  #: Words of the command line.
    extra_vars: GivenOptions  #: Variables given with -e, without secrets; values as given.


class HostDescription(Record, kw_only=True, frozen=True):
    """Machine, kernel and packages of a host."""

    cpu_model: str  #: CPU model as in /proc/cpuinfo.
    cores: Positive  #: Number of cores of the machine, 1 or more.
    cpus: Annotated[list[Count], Meta(min_length=1)]  #: Numbers of the cores that the host may use.
    memory_bytes: Count  #: Memory of the machine, bytes.
    kernel: str  #: Kernel release.
    os: str  #: Distribution and version.
    virtualisation: str  #: Kind of virtual machine or container; 'none' on bare metal.
    clock_source: str  #: Current clock source of the kernel.
    governor: str | None  #: CPU frequency governor; null where the kernel shows none.
    nofile: Positive  #: Open file limit of a service, 1 or more.
    packages: dict[str, str]  #: Package name to installed version.
    #: What of its hardware affects the steadiness of a measurement; absent until the load.
    hardware: Hardware | None = None


class GeneratorProgram(Record, kw_only=True, frozen=True):
    """Executable of a load generator on a client."""

    version: str  #: First line that it prints for --version.
    sha256: Sha256  #: SHA-256 of the executable; of a snap, of its image.
    #: Revision of the snap that it is from; absent where it is from none.
    snap_revision: str | None = None


class ManifestHost(HostDescription, kw_only=True, frozen=True):
    """One host of the run."""

    role: Literal["server", "client"]  #: server: under test. client: load generator.
    hardware: Hardware  #: What of its hardware affects the steadiness of a measurement.
    #: Load generator of the run to its executable on this client; absent of a server.
    generators: dict[str, GeneratorProgram] | None = None


class Manifest(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """manifest.json: the plan, software and hosts of a run."""

    run_id: Name  #: Name of the run.
    started: str  #: Start of the run, ISO 8601 with its offset.
    finished: str | None  #: End of the run, ISO 8601 with its offset; null while it runs.
    lab: LabRevision
    command: Command
    #: Properties of the controller, names and values as found: operating system, kernel, Python,
    #: Ansible.
    controller: dict[str, str]
    hosts: dict[str, ManifestHost]  #: Inventory name of the host to its description.
    pins: dict[str, str]  #: Every pinned or resolved item, name to version.
    locks: dict[str, Sha256]  #: Lock file of the lab to its SHA-256.
    plan: dict[str, Json]  #: Plan of the run: options, cells in their order, seed. Free in form.
    #: Newest certificate of hosts like these; absent where there is none.
    certificate: CertificateReference | None = None
    #: Cloud instances that were its hosts, with their cost, also those that ended before the run
    #: went on; absent where its hosts are none.
    instances: list[CloudInstance] | None = None


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

    #: Kernel key as in sysctl, a file below /sys, swap, limit.<of>.<name>, unit.<name>,
    #: snap.<option>, nic.<group>.<name>, postgresql.<name>, nginx.<name>, or application.<name>.
    key: str
    requested: str | None  #: Value requested; null where none was requested.
    #: Value of a kernel or machine key before any profile of the lab changed it; absent for other
    #: keys.
    original: str | None = None
    before: str | None  #: Value found; null where there was none.
    after: str | None  #: Value read back; null where there is none.
    #: applied: changed to the value requested. already: had that value before. absent: this host
    #: has no such key. read_only: this host must not write it. clamped: accepted, but reads back as
    #: another value; a card gets the most that it can. not_namespaced: belongs to the whole
    #: machine, not to this host. restored: the value found first is back. rejected: refused and
    #: unchanged, or no such setting exists here. kept: the host has more than requested, and keeps
    #: it.
    state: LedgerState
    required: bool  #: True where the profile fails without the key.
    reason: str  #: Reason for the value, as the profile words it.


class TuningLedger(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """tuning.json, the ledger: values that tuning requested, found and read back."""

    profile: str  #: Name of the tuning profile.
    hosts: dict[str, list[LedgerRow]]  #: Name of the host to its ledger rows.


class CalibrationOrigin(Record, kw_only=True, frozen=True):
    """Source of the raw calibration files: this run, or a run of the hour before whose
    calibration is reused."""

    run_id: str  #: Name of the run that measured the calibration.
    measured: Above0  #: Time of the measurement, unix seconds of the controller's clock.


class CalibrationConditions(Record, kw_only=True, frozen=True):
    """conditions.json: run, time and conditions of a calibration."""

    run_id: str  #: Name of the run that measured the calibration.
    measured: Above0  #: Time of the measurement, unix seconds of the controller's clock.
    #: Conditions that a run must share to reuse the calibration. Free in form.
    conditions: dict[str, Json]


class Iperf3Cpu(Record, kw_only=True, frozen=True):
    """CPU use of both ends, percent of one core."""

    local: NotNegative  #: CPU use on the host of the iperf3 client, percent of one core, 0 or more.
    #: CPU use on the host of the iperf3 server, percent of one core, 0 or more.
    remote: NotNegative


class Iperf3Direction(Record, kw_only=True, frozen=True):
    """TCP throughput in one direction."""

    bits_per_second: Above0  #: Throughput at the receiver, bits/s, above 0.
    retransmits: Count  #: Segments that the sender retransmitted.
    seconds: Above0  #: Duration of the measurement, seconds, above 0.
    cpu_percent: Iperf3Cpu
    #: (Fastest - slowest second) / mean of the throughput; absent for fewer than two whole seconds.
    spread: NotNegative | None = None
    #: Segments retransmitted / segments sent, with segments of the largest size; absent where
    #: iperf3 does not tell that size.
    retransmitted: Fraction | None = None
    streams: Positive  #: TCP connections at once.
    #: True where iperf3 filled the cores that it can use, one for each stream (before iperf3 3.16
    #: one in all): the link may carry more.
    core_limited: bool


class Iperf3(Record, kw_only=True, frozen=True):
    """TCP throughput over the interface that carries the load."""

    client_to_server: Iperf3Direction  #: Direction of the requests.
    server_to_client: Iperf3Direction  #: Direction of the answers.
    #: Direction to its lower figure, where one stream filled a core and several were measured too.
    #: The link's figure is the higher, above. Absent where one stream filled no core.
    lower: dict[str, Iperf3Direction] | None = None


class Ceiling(Record, kw_only=True, frozen=True):
    """Highest request rate of the closed-loop generator against nginx's own static answer."""

    requests_per_second: Above0  #: Answers per second, above 0.
    connections: Positive  #: Number of connections, 1 or more.
    duration_s: Above0  #: Duration of the measurement, seconds, above 0.
    client_cpu_busy: Fraction  #: Busy time of the client's cores, fraction 0 to 1.
    server_cpu_busy: Fraction  #: Busy time of the server's cores, fraction 0 to 1.
    generator: str  #: Name of the generator that measured the ceiling.


class RoundTrip(Record, kw_only=True, frozen=True):
    """Round-trip time of ping over the interface that carries the load, µs."""

    min: NotNegative  #: Shortest round-trip time, µs.
    mean: NotNegative  #: Mean round-trip time, µs.
    max: NotNegative  #: Longest round-trip time, µs.
    mdev: NotNegative  #: Mean deviation of the round-trip time, µs.


class ClockOffsets(Record, kw_only=True, frozen=True):
    """Offset of each host's clock: host minus controller, seconds, either sign."""

    server: float  #: Offset of the server's clock, seconds.
    client: float  #: Offset of the client's clock, seconds.


class Calibration(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """calibration.json: limits of the network and the generator, measured before any stack."""

    origin: CalibrationOrigin  #: Where its raw files come from.
    generator: str  #: Name of the constant-rate generator that was calibrated.
    iperf3: Iperf3
    ceiling: Ceiling
    #: Delay of the constant-rate generator in issuing requests, µs; null where it cannot be
    #: determined.
    send_delay_us: Latency | None
    #: Latency of nginx's own static answer at the asked rate, µs. The stack causes no latency below
    #: it. Null where only the closed loop is used.
    baseline_latency_us: Latency | None
    round_trip_us: RoundTrip
    clock_offset_s: ClockOffsets
    #: Why the measurement of the link was disturbed; absent where it was not. Such a measurement
    #: makes no link void.
    link_reasons: list[Reason] | None = None
    #: Why the measurement of the ceiling is void; absent where it is valid. A void ceiling refuses
    #: no rate.
    ceiling_reasons: list[Reason] | None = None


class Progress(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """progress.json: progress of a run, rewritten at each step of its load."""

    run_id: str  #: Name of the run.
    updated: NotNegative  #: Time of writing, unix seconds.
    done: Count  #: Measurements that did not fail.
    total: Count  #: Largest possible number of measurements.
    #: Seconds until the load ends, including the time spent beside the load.
    seconds_left: NotNegative
    ends: NotNegative  #: Time at which the load ends, unix seconds.
    #: Each cell that failed twice and is not tried again now, to the reason.
    abandoned: dict[str, str]
