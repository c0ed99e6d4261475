"""What the hosts did during a load."""

from typing import Annotated

from msgspec import Meta, field

from loadlab.model.base import Above0, Count, Fraction, NotNegative, Positive, Record
from loadlab.model.limits import ReverseProxyLog, Sessions, TcpConnections


class CpuModes(Record, kw_only=True, frozen=True):
    """Fractions of the listed cores' time; their sum is 1."""

    user: Fraction  #: Time in mode user, fraction 0 to 1.
    nice: Fraction  #: Time in mode nice, fraction 0 to 1.
    system: Fraction  #: Time in mode system, fraction 0 to 1.
    iowait: Fraction  #: Time in mode iowait, fraction 0 to 1.
    irq: Fraction  #: Time in mode irq, fraction 0 to 1.
    softirq: Fraction  #: Time in mode softirq, fraction 0 to 1.
    steal: Fraction  #: Time in mode steal, fraction 0 to 1.
    idle: Fraction  #: Time in mode idle, fraction 0 to 1.


class Memory(Record, kw_only=True, frozen=True):
    """Memory of the machine."""

    total_bytes: Count  #: Total memory, bytes.
    available_min_bytes: Count  #: Smallest available memory at any scrape, bytes.


class TcpCounts(Record, kw_only=True, frozen=True):
    """Counts of TCP events."""

    retransmits: Count  #: Segments retransmitted.
    segments: Count  #: Segments sent, with those retransmitted.
    listen_overflows: Count  #: Connections refused because the accept queue was full.
    listen_drops: Count  #: SYNs dropped at a listening socket, including overflows.
    active_opens: Count  #: Connections that this host opened, including those to itself.
    passive_opens: Count  #: Connections opened to this host, including those from itself.
    delayed_acks: Count  #: Acknowledgements sent after the kernel had held them back.
    syn_cookies: Count  #: SYN cookies sent.


class Drops(Record, kw_only=True, frozen=True):
    """Packets that a host received and lost before TCP saw them, by its own readings once a second,
    from the last before the load to the first after it.
    """

    received: Count  #: Packets that the cards of the load received.
    #: Packets that these cards or their drivers dropped (rx_dropped, rx_missed_errors).
    dropped: Count
    #: Packets that the kernel dropped because the backlog of a core was full.
    softnet_dropped: Count
    #: How often a core stopped receiving with packets left; nothing is lost by it.
    softnet_squeezed: Count


class SocketCounts(Record, kw_only=True, frozen=True):
    """Largest counts at any scrape during the load."""

    tcp_inuse_max: Count  #: TCP sockets in use.
    tcp_time_wait_max: Count  #: TCP sockets in TIME-WAIT.
    established_max: Count  #: Established connections, including control connections.


class Traffic(Record, kw_only=True, frozen=True):
    """Traffic on the interface that carries the load."""

    rx_bytes: Count  #: Bytes received.
    tx_bytes: Count  #: Bytes sent.
    rx_bits_per_second: NotNegative  #: Mean rate received, bits/s.
    tx_bits_per_second: NotNegative  #: Mean rate sent, bits/s.


class Processes(Record, kw_only=True, frozen=True):
    """Processes of one service. The CPU time has that of ended processes; the context switches do
    not.
    """

    #: CPU time, user and system, seconds: exact, of the service's control group. Where the kernel
    #: does not have that, of its processes, exact too, or where threads ended in steps of the
    #: kernel's tick (10 ms) for each process; null where a process ended and its time was lost.
    cpu_s: NotNegative | None
    #: cpu_s as a fraction of the time of all the server's cores over the load, 0 to 1, slightly
    #: more where work continued after the load's end; null where cpu_s is null.
    cpu: NotNegative | None
    #: The part of cpu_s that was spent in the kernel on behalf of the processes, 0 to 1, as the
    #: kernel samples it at its ticks. Absent where it is not known.
    system_share: Fraction | None = None
    #: Proportional set size after the load, bytes: what the processes share counts once, whoever
    #: else has it. Absent where it was not recorded.
    pss_bytes: Count | None = None
    #: The same when the recording began, before the load; absent where pss_bytes is.
    pss_before_bytes: Count | None = None
    #: Largest sum of resident memory at any reading, bytes; each process counts its shared pages.
    rss_max_bytes: Count
    threads_max: Count  #: Largest number of threads at any reading.
    processes_max: Count  #: Largest number of processes at any reading.
    #: Context switches of threads that waited, for threads that lived to the end; null where ended
    #: processes used more than 5 % of the CPU time.
    voluntary_switches: Count | None
    #: Context switches of threads that could have continued, for threads that lived to the end;
    #: null where voluntary_switches is null.
    involuntary_switches: Count | None
    #: Run-queue wait: time for which threads were ready to run and waited for a core, seconds,
    #: summed over the threads; the last wait of a thread that ended is lost. Absent where it was
    #: not recorded.
    run_queue_wait_s: NotNegative | None = None
    #: CPU time of the process that used most, all its threads, as a fraction of one core's time;
    #: absent where it was not recorded.
    busiest_process: NotNegative | None = None
    #: CPU time of the thread that used most, as a fraction of one core's time; absent where it was
    #: not recorded.
    busiest_thread: NotNegative | None = None
    #: Run-queue wait of the thread that waited longest, as a fraction of the load's time; absent
    #: where it was not recorded.
    longest_wait: NotNegative | None = None


class Frequency(Record, kw_only=True, frozen=True):
    """Clock frequency of the host's cores during the load, from readings once a second."""

    min_hz: Positive  #: Lowest frequency of any core at any reading, Hz.
    mean_hz: NotNegative  #: Mean over cores and readings, Hz.
    max_hz: Positive  #: Highest frequency of any core at any reading, Hz.


class ServiceProcesses(Record, kw_only=True, frozen=True):
    """Processes of the server's services over the load, from readings once a second. The window is
    the start of the load (interpolated between two readings where a warm-up came before) to the
    first reading after its last answer.
    """

    #: The reverse proxy; nginx, idle, where clients connect to the application server.
    reverse_proxy: Processes | None
    application: Processes | None  #: The application and its application server.
    postgresql: Processes | None  #: PostgreSQL, without the connection that reads its statistics.


class Query(Record, kw_only=True, frozen=True):
    """One statement of the database."""

    #: Text of the statement with $1, $2 … for constants, on one line, at most 500 characters.
    query: str
    calls: Positive  #: Number of executions, 1 or more.
    mean_us: NotNegative  #: Mean execution time in the server, without planning, µs.
    #: Total execution time in the server, seconds; connections run concurrently.
    total_s: NotNegative


class Database(Record, kw_only=True, frozen=True):
    """Work of the database over the load."""

    connections_max: Count  #: Largest number of connected clients at any reading, once a second.
    #: Connections made to the database. PostgreSQL counts them when a connection reports its
    #: statistics, at most once a second.
    sessions: Count
    #: Transactions committed and rolled back; counted like sessions, so those of the last second
    #: may be missing.
    transactions: Count
    #: Flushes of the write-ahead log to the disk (pg_stat_wal.wal_sync), of the whole server;
    #: counted like sessions. Absent where PostgreSQL does not count them there (from version 18
    #: on).
    wal_syncs: Count | None = None
    #: Connections that applications may open: max_connections less those reserved, or the
    #: database's own limit, if that is lower; the lowest during the load.
    connections_limit: Count
    #: Connections by state and wait, from pg_stat_activity; absent without a reading during the
    #: load.
    activity: list[Sessions] | None = None
    #: Statements with the longest total time, longest first.
    statements: Annotated[list[Query], Meta(max_length=5)]


class HostSeries(Record, kw_only=True, frozen=True):
    """Series over the load: each second where the host recorded itself, else each interval between
    scrapes; the first begins and the last ends with the load. All arrays have the same length.
    """

    t: list[float]  #: End of the interval, seconds since the start of the load.
    #: Busy time: what passed less idle and iowait, including steal; fraction 0 to 1.
    cpu_busy: list[Fraction]
    cpu_user: list[Fraction]  #: Time in mode user, fraction 0 to 1.
    cpu_system: list[Fraction]  #: Time in mode system, fraction 0 to 1.
    cpu_softirq: list[Fraction]  #: Time in mode softirq, fraction 0 to 1.
    cpu_iowait: list[Fraction]  #: Time in mode iowait, fraction 0 to 1.
    cpu_steal: list[Fraction]  #: Time in mode steal, fraction 0 to 1.
    cpu_busiest_core: list[Fraction]  #: Busy time of the core that had most of it, fraction 0 to 1.
    #: Time in mode softirq of the core that had most of it, fraction 0 to 1.
    softirq_busiest_core: list[Fraction]
    foreign_cpu: list[Fraction] | None = None  #: As foreign_cpu of the host; absent where that is.
    #: As cpu_pressure of the host; absent where that is.
    cpu_pressure: list[Fraction] | None = None
    #: Whether foreign CPU or steal was above its threshold, foreign_cpu_disturbing or
    #: steal_disturbing.
    disturbed: list[bool] = field(default_factory=list)
    rx_bits: list[NotNegative]  #: Rate received, bits/s.
    tx_bits: list[NotNegative]  #: Rate sent, bits/s.


class AcceptQueue(Record, kw_only=True, frozen=True):
    """The accept queue of one address or path on which a service of the server listens, from
    readings five times a second. Several sockets with that address (SO_REUSEPORT) count as one.
    """

    service: str  #: Service that listens: reverse_proxy, application or postgresql.
    socket: str  #: Address and port, or path of the unix socket.
    #: Connections that may wait, as the kernel took it from the service and somaxconn; it lets one
    #: more in.
    limit: Count
    #: Connections that waited: the most at any reading of each interval of per_second; null without
    #: a reading.
    depth: list[Count | None]
    mean_depth: NotNegative  #: Mean of all readings during the load.


class HostTelemetry(Record, kw_only=True, frozen=True):
    """One host over the load. CPU and traffic are those from its start to its end, by the host's
    own readings five times a second. The rest is from its node_exporter once a second, from the
    last scrape before the start to the first after the end. CPU, memory and swap are those of the
    machine; TCP and sockets are those of the host's network namespace.
    """

    cpu: CpuModes
    #: Busy time: what passed less idle and iowait, including steal; fraction 0 to 1.
    cpu_busy: Fraction
    #: Part of the CPU time, fraction, in which the generator looked for work and had none;
    #: cpu_busy, also by the second, does not contain it. Absent for another generator or host.
    polling: Fraction | None = None
    #: Busy time of the core that had most of it over the load, fraction 0 to 1.
    cpu_busiest_core: Fraction
    #: Time in mode softirq of the core that had most of it over the load, fraction 0 to 1.
    softirq_busiest_core: Fraction
    #: Foreign CPU: the fraction of the host's cores' time that processes other than the lab's used,
    #: 0 to 1; interrupts count as the lab's. Absent where it was not recorded or the kernel does
    #: not have the CPU time of control groups (version 2).
    foreign_cpu: Fraction | None = None
    #: PSI: the fraction of the time in which a process of the machine was ready to run and waited
    #: for a core, 0 to 1; absent where it was not recorded or the kernel has no PSI.
    cpu_pressure: Fraction | None = None
    #: PSI: the fraction of the time in which a process of the machine waited for memory, 0 to 1;
    #: absent as cpu_pressure is.
    memory_pressure: Fraction | None = None
    io_pressure: Fraction | None = None  #: The same for a disk.
    seconds: Above0 | None = None  #: Length of the time that CPU and traffic are of, seconds.
    #: Whether CPU and traffic are from the host's own readings; otherwise from scrapes, linear
    #: between two. Null where nothing was recorded.
    exact: bool | None = None
    #: Clock frequency of the host's cores; absent where the host does not tell it.
    frequency: Frequency | None = None
    #: How often cores were throttled for heat during the load; absent where the host does not tell
    #: it.
    throttled: Count | None = None
    #: Energy of the machine's processors and memory over the load, by their own counters (RAPL:
    #: packages and dram), joules; what else ran on the machine is in it. Absent where the host does
    #: not tell it.
    energy_j: NotNegative | None = None
    #: Processes of the generator; on a client only, absent where they were not recorded.
    generator: Processes | None = None
    cores: Positive  #: Cores that the host may use, 1 or more.
    memory: Memory
    swap_pages: Count  #: Pages swapped in and out, 0 or more.
    #: Processes that the machine's kernel killed because the machine or a control group had no
    #: memory left.
    oom_kills: Count
    tcp: TcpCounts
    #: Packets that the host received and lost; absent where it was not recorded.
    drops: Drops | None = None
    #: How often the interface that carries the load lost its link; absent where it was not
    #: recorded.
    link_losses: Count | None = None
    sockets: SocketCounts
    network: Traffic
    #: Counter of the network card (ethtool -S) to the packets that the cloud held back or dropped
    #: because the host was above an allowance of its instance type, from the start to the end of
    #: the recording, warm-up included. Absent where the card has no such counters.
    allowances_exceeded: dict[str, Count] | None = None
    #: Largest jump of the host's clock relative to the controller's between two scrapes, seconds, 0
    #: or more.
    clock_step_s: NotNegative
    samples: Annotated[int, Meta(ge=2)]  #: Successful scrapes used, 2 or more.
    missed: Count  #: Failed scrapes between the first and the last one used.
    #: Of the server only; absent where they were not recorded.
    processes: ServiceProcesses | None = None
    #: Work of the database over the load, from its own statistics (pg_stat_statements,
    #: pg_stat_database). For the server only; absent where the endpoint needs no database, where
    #: the statistics could not be read, and where processes is absent.
    database: Database | None = None
    per_second: HostSeries | None = None  #: Absent of each of several clients.
    #: Accept queues of the server's services, by service and socket. For the server only; absent
    #: where they were not recorded.
    accept_queues: list[AcceptQueue] | None = None
    #: TCP's view of the load's connections. For the server only; absent where they were not
    #: recorded.
    connections: TcpConnections | None = None
    #: The reverse proxy's own times and errors. For the server only; absent where they were not
    #: recorded.
    reverse_proxy: ReverseProxyLog | None = None


class Telemetry(Record, kw_only=True, frozen=True):
    """Both hosts during the load."""

    server: HostTelemetry  #: The machine under test.
    client: HostTelemetry  #: The load generator's machine; with several clients, the busiest.


class FunctionFraction(Record, kw_only=True, frozen=True):
    """One function of the profile."""

    function: str  #: Name of the function, and the file or library that contains it.
    fraction: Fraction  #: Fraction of the samples that did not wait, 0 to 1.


class KindCpu(Record, kw_only=True, frozen=True):
    """The part of the samples that did not wait which a kind of request has."""

    name: str | None  #: Name of the kind; null for the samples of no kind.
    #: Fraction of the samples, 0 to 1; null where no sample has a function named after the kind.
    fraction: Fraction | None
    #: 95 % interval of fraction, for the sampling error of these samples; absent without it.
    interval: Annotated[list[Fraction], Meta(min_length=2, max_length=2)] | None = None


class PySpyProfile(Record, kw_only=True, frozen=True):
    """Stack samples of one worker of the application, by py-spy, 100 a second."""

    samples: Positive  #: Samples of all threads of the process.
    #: Fraction of the samples in which the thread waited for a socket, a lock or time.
    idle_fraction: Fraction
    #: Median number of Python frames in the stacks of the other samples; null where all samples
    #: waited.
    depth_median: NotNegative | None
    #: 95 % interval of depth_median, for the sampling error of these samples; absent where the
    #: samples are too few.
    depth_interval: Annotated[list[Count], Meta(min_length=2, max_length=2)] | None = None
    #: Fraction of the time in which a thread of the worker held Python's global lock (GIL), by a
    #: quarter of the samples, after the others; absent for loads of less than 6 s and where py-spy
    #: cannot tell.
    gil_fraction: Fraction | None = None
    native: bool  #: Whether the stacks contain native frames in addition to Python's.
    #: Innermost functions of the samples that did not wait, in descending order of samples.
    top: list[FunctionFraction]
    #: Each kind of request by the function or class of the application that is named after it, the
    #: samples of no kind last; absent of one kind of request, where all samples waited, and where
    #: profile.log names no files of the application.
    kinds: list[KindCpu] | None = None
