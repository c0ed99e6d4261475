"""What the hosts did during a load."""

from typing import Annotated

from msgspec import Meta, field

from loadlab.model.base import Above0, Count, Fraction, NotNegative, Positive, Record, doc
from loadlab.model.limits import ReverseProxyLog, Sessions, TcpConnections


class CpuModes(Record, kw_only=True, frozen=True):
    """Fractions of the listed cores' time; their sum is 1."""

    user: Annotated[Fraction, doc("Time in mode user, fraction 0 to 1.")]
    nice: Annotated[Fraction, doc("Time in mode nice, fraction 0 to 1.")]
    system: Annotated[Fraction, doc("Time in mode system, fraction 0 to 1.")]
    iowait: Annotated[Fraction, doc("Time in mode iowait, fraction 0 to 1.")]
    irq: Annotated[Fraction, doc("Time in mode irq, fraction 0 to 1.")]
    softirq: Annotated[Fraction, doc("Time in mode softirq, fraction 0 to 1.")]
    steal: Annotated[Fraction, doc("Time in mode steal, fraction 0 to 1.")]
    idle: Annotated[Fraction, doc("Time in mode idle, fraction 0 to 1.")]


class Memory(Record, kw_only=True, frozen=True):
    """Memory of the machine."""

    total_bytes: Annotated[Count, doc("Total memory, bytes.")]
    available_min_bytes: Annotated[Count, doc("Smallest available memory at any scrape, bytes.")]


class TcpCounts(Record, kw_only=True, frozen=True):
    """Counts of TCP events."""

    retransmits: Annotated[Count, doc("Segments retransmitted.")]
    segments: Annotated[Count, doc("Segments sent, with those retransmitted.")]
    listen_overflows: Annotated[
        Count, doc("Connections refused because the accept queue was full.")
    ]
    listen_drops: Annotated[Count, doc("SYNs dropped at a listening socket, including overflows.")]
    active_opens: Annotated[
        Count, doc("Connections that this host opened, including those to itself.")
    ]
    passive_opens: Annotated[
        Count, doc("Connections opened to this host, including those from itself.")
    ]
    delayed_acks: Annotated[
        Count, doc("Acknowledgements sent after the kernel had held them back.")
    ]
    syn_cookies: Annotated[Count, doc("SYN cookies sent.")]


class Drops(Record, kw_only=True, frozen=True):
    """Packets that a host received and lost before TCP saw them, by its own readings once a second,
    from the last before the load to the first after it.
    """

    received: Annotated[Count, doc("Packets that the cards of the load received.")]
    dropped: Annotated[
        Count,
        doc("Packets that these cards or their drivers dropped (rx_dropped, rx_missed_errors)."),
    ]
    softnet_dropped: Annotated[
        Count,
        doc("Packets that the kernel dropped because the backlog of a core was full."),
    ]
    softnet_squeezed: Annotated[
        Count, doc("How often a core stopped receiving with packets left; nothing is lost by it.")
    ]


class SocketCounts(Record, kw_only=True, frozen=True):
    """Largest counts at any scrape during the load."""

    tcp_inuse_max: Annotated[Count, doc("TCP sockets in use.")]
    tcp_time_wait_max: Annotated[Count, doc("TCP sockets in TIME-WAIT.")]
    established_max: Annotated[
        Count, doc("Established connections, including control connections.")
    ]


class Traffic(Record, kw_only=True, frozen=True):
    """Traffic on the interface that carries the load."""

    rx_bytes: Annotated[Count, doc("Bytes received.")]
    tx_bytes: Annotated[Count, doc("Bytes sent.")]
    rx_bits_per_second: Annotated[NotNegative, doc("Mean rate received, bits/s.")]
    tx_bits_per_second: Annotated[NotNegative, doc("Mean rate sent, bits/s.")]


class Processes(Record, kw_only=True, frozen=True):
    """Processes of one service. The CPU time has that of ended processes; the context switches do
    not.
    """

    cpu_s: Annotated[
        NotNegative | None,
        doc(
            "CPU time, user and system, seconds: exact, of the service's control group. Where the "
            "kernel does not have that, of its processes, exact too, or where threads ended in "
            "steps of the kernel's tick (10 ms) for each process; null where a process ended and "
            "its time was lost."
        ),
    ]
    cpu: Annotated[
        NotNegative | None,
        doc(
            "cpu_s as a fraction of the time of all the server's cores over the load, 0 to 1, "
            "slightly more where work continued after the load's end; null where cpu_s is "
            "null."
        ),
    ]
    system_share: Annotated[
        Fraction | None,
        doc(
            "The part of cpu_s that was spent in the kernel on behalf of the processes, 0 to 1, as "
            "the kernel samples it at its ticks. Absent where it is not known."
        ),
    ] = None
    pss_bytes: Annotated[
        Count | None,
        doc(
            "Proportional set size after the load, bytes: memory that several processes share "
            "counts in each by its share. Absent where it was not recorded."
        ),
    ] = None
    pss_before_bytes: Annotated[
        Count | None,
        doc("The same when the recording began, before the load; absent where pss_bytes is."),
    ] = None
    rss_max_bytes: Annotated[
        Count,
        doc(
            "Largest sum of resident memory at any reading, bytes; each process counts its "
            "shared pages."
        ),
    ]
    threads_max: Annotated[Count, doc("Largest number of threads at any reading.")]
    processes_max: Annotated[Count, doc("Largest number of processes at any reading.")]
    voluntary_switches: Annotated[
        Count | None,
        doc(
            "Context switches of threads that waited, for threads that lived to the end; null "
            "where ended processes used more than 5 % of the CPU time."
        ),
    ]
    involuntary_switches: Annotated[
        Count | None,
        doc(
            "Context switches of threads that could have continued, for threads that lived to "
            "the end; null where voluntary_switches is null."
        ),
    ]
    run_queue_wait_s: Annotated[
        NotNegative | None,
        doc(
            "Run-queue wait: time for which threads were ready to run and waited for a core, "
            "seconds, summed over the threads; the last wait of a thread that ended is lost. "
            "Absent where it was not recorded."
        ),
    ] = None
    busiest_process: Annotated[
        NotNegative | None,
        doc(
            "CPU time of the process that used most, all its threads, as a fraction of one core's "
            "time; absent where it was not recorded."
        ),
    ] = None
    busiest_thread: Annotated[
        NotNegative | None,
        doc(
            "CPU time of the thread that used most, as a fraction of one core's time; absent "
            "where it was not recorded."
        ),
    ] = None


class Frequency(Record, kw_only=True, frozen=True):
    """Clock frequency of the host's cores during the load, from readings once a second."""

    min_hz: Annotated[Positive, doc("Lowest frequency of any core at any reading, Hz.")]
    mean_hz: Annotated[NotNegative, doc("Mean over cores and readings, Hz.")]
    max_hz: Annotated[Positive, doc("Highest frequency of any core at any reading, Hz.")]


class ServiceProcesses(Record, kw_only=True, frozen=True):
    """Processes of the server's services over the load, from readings once a second. The window is
    the start of the load (interpolated between two readings where a warm-up came before) to the
    first reading after its last answer.
    """

    reverse_proxy: Annotated[
        Processes | None,
        doc("The reverse proxy; nginx, idle, where clients connect to the application server."),
    ]
    application: Annotated[Processes | None, doc("The application and its application server.")]
    postgresql: Annotated[
        Processes | None, doc("PostgreSQL, without the connection that reads its statistics.")
    ]


class Query(Record, kw_only=True, frozen=True):
    """One statement of the database."""

    query: Annotated[
        str,
        doc(
            "Text of the statement with $1, $2 … for constants, on one line, at most 500 "
            "characters."
        ),
    ]
    calls: Annotated[Positive, doc("Number of executions, 1 or more.")]
    mean_us: Annotated[NotNegative, doc("Mean execution time in the server, without planning, µs.")]
    total_s: Annotated[
        NotNegative,
        doc("Total execution time in the server, seconds; connections run concurrently."),
    ]


class Database(Record, kw_only=True, frozen=True):
    """Work of the database over the load."""

    connections_max: Annotated[
        Count, doc("Largest number of connected clients at any reading, once a second.")
    ]
    sessions: Annotated[
        Count,
        doc(
            "Connections made to the database. PostgreSQL counts them when a connection "
            "reports its statistics, at most once a second."
        ),
    ]
    transactions: Annotated[
        Count,
        doc(
            "Transactions committed and rolled back; counted like sessions, so those of the "
            "last second may be missing."
        ),
    ]
    wal_syncs: Annotated[
        Count | None,
        doc(
            "Flushes of the write-ahead log to the disk (pg_stat_wal.wal_sync), of the whole "
            "server; counted like sessions. Absent where PostgreSQL does not count them there "
            "(from version 18 on)."
        ),
    ] = None
    connections_limit: Annotated[
        Count,
        doc(
            "Connections that applications may open: max_connections less those reserved, or the "
            "database's own limit, if that is lower."
        ),
    ]
    activity: Annotated[
        list[Sessions] | None,
        doc(
            "Connections by state and wait, from pg_stat_activity; absent without a reading "
            "during the load."
        ),
    ] = None
    statements: Annotated[
        Annotated[list[Query], Meta(max_length=5)],
        doc("Statements with the longest total time, longest first."),
    ]


class HostSeries(Record, kw_only=True, frozen=True):
    """Series over the load: each second where the host recorded itself, else each interval between
    scrapes; the first begins and the last ends with the load. All arrays have the same length.
    """

    t: Annotated[list[float], doc("End of the interval, seconds since the start of the load.")]
    cpu_busy: Annotated[
        list[Fraction],
        doc("Busy time: what passed less idle and iowait, including steal; fraction 0 to 1."),
    ]
    cpu_user: Annotated[list[Fraction], doc("Time in mode user, fraction 0 to 1.")]
    cpu_system: Annotated[list[Fraction], doc("Time in mode system, fraction 0 to 1.")]
    cpu_softirq: Annotated[list[Fraction], doc("Time in mode softirq, fraction 0 to 1.")]
    cpu_iowait: Annotated[list[Fraction], doc("Time in mode iowait, fraction 0 to 1.")]
    cpu_steal: Annotated[list[Fraction], doc("Time in mode steal, fraction 0 to 1.")]
    cpu_busiest_core: Annotated[
        list[Fraction], doc("Busy time of the core that had most of it, fraction 0 to 1.")
    ]
    softirq_busiest_core: Annotated[
        list[Fraction],
        doc("Time in mode softirq of the core that had most of it, fraction 0 to 1."),
    ]
    foreign_cpu: Annotated[
        list[Fraction] | None,
        doc("As foreign_cpu of the host; absent where that is."),
    ] = None
    cpu_pressure: Annotated[
        list[Fraction] | None,
        doc("As cpu_pressure of the host; absent where that is."),
    ] = None
    disturbed: Annotated[
        list[bool],
        doc(
            "Whether foreign CPU or steal was above its threshold (foreign_cpu_disturbing, "
            "steal_disturbing of files/validity.yml)."
        ),
    ] = field(default_factory=list)
    rx_bits: Annotated[list[NotNegative], doc("Rate received, bits/s.")]
    tx_bits: Annotated[list[NotNegative], doc("Rate sent, bits/s.")]


class AcceptQueue(Record, kw_only=True, frozen=True):
    """The accept queue of one address or path on which a service of the server listens, from
    readings five times a second. Several sockets with that address (SO_REUSEPORT) count as one.
    """

    service: Annotated[str, doc("Service that listens: reverse_proxy, application or postgresql.")]
    socket: Annotated[str, doc("Address and port, or path of the unix socket.")]
    limit: Annotated[
        Count,
        doc(
            "Connections that may wait, as the kernel took it from the service and somaxconn; it "
            "lets one more in."
        ),
    ]
    depth: Annotated[
        list[Count | None],
        doc(
            "Connections that waited: the most at any reading of each interval of per_second; null "
            "without a reading."
        ),
    ]
    mean_depth: Annotated[NotNegative, doc("Mean of all readings during the load.")]


class HostTelemetry(Record, kw_only=True, frozen=True):
    """One host over the load. CPU and traffic are those from its start to its end, by the host's
    own readings five times a second. The rest is from its node_exporter once a second, from the
    last scrape before the start to the first after the end. CPU, memory and swap are those of the
    machine; TCP and sockets are those of the host's network namespace.
    """

    cpu: CpuModes
    cpu_busy: Annotated[
        Fraction,
        doc("Busy time: what passed less idle and iowait, including steal; fraction 0 to 1."),
    ]
    polling: Annotated[
        Fraction | None,
        doc(
            "Part of the CPU time, fraction, in which the generator looked for work and had none; "
            "cpu_busy, also by the second, does not contain it. Absent for another generator or "
            "host."
        ),
    ] = None
    cpu_busiest_core: Annotated[
        Fraction,
        doc("Busy time of the core that had most of it over the load, fraction 0 to 1."),
    ]
    softirq_busiest_core: Annotated[
        Fraction,
        doc("Time in mode softirq of the core that had most of it over the load, fraction 0 to 1."),
    ]
    foreign_cpu: Annotated[
        Fraction | None,
        doc(
            "Foreign CPU: the fraction of the host's cores' time that processes other than the "
            "lab's used, 0 to 1; interrupts count as the lab's. Absent where it was not recorded "
            "or the kernel does not have the CPU time of control groups (version 2)."
        ),
    ] = None
    cpu_pressure: Annotated[
        Fraction | None,
        doc(
            "PSI: the fraction of the time in which a process of the machine was ready to run and "
            "waited for a core, 0 to 1; absent where it was not recorded or the kernel has no PSI."
        ),
    ] = None
    memory_pressure: Annotated[
        Fraction | None,
        doc(
            "PSI: the fraction of the time in which a process of the machine waited for memory, 0 "
            "to 1; absent as cpu_pressure is."
        ),
    ] = None
    io_pressure: Annotated[
        Fraction | None,
        doc("The same for a disk."),
    ] = None
    seconds: Annotated[
        Above0 | None, doc("Length of the time that CPU and traffic are of, seconds.")
    ] = None
    exact: Annotated[
        bool,
        doc(
            "Whether CPU and traffic are from the host's own readings; otherwise from scrapes, "
            "linear between two."
        ),
    ] = False
    frequency: Annotated[
        Frequency | None,
        doc("Clock frequency of the host's cores; absent where the host does not tell it."),
    ] = None
    throttled: Annotated[
        Count | None,
        doc(
            "How often cores were throttled for heat during the load; absent where the host does "
            "not tell it."
        ),
    ] = None
    energy_j: Annotated[
        NotNegative | None,
        doc(
            "Energy of the machine's processors and memory over the load, by their own counters "
            "(RAPL: packages and dram), joules; what else ran on the machine is in it. Absent "
            "where the host does not tell it."
        ),
    ] = None
    generator: Annotated[
        Processes | None,
        doc("Processes of the generator; on a client only, absent where they were not recorded."),
    ] = None
    cores: Annotated[Positive, doc("Cores that the host may use, 1 or more.")]
    memory: Memory
    swap_pages: Annotated[Count, doc("Pages swapped in and out, 0 or more.")]
    oom_kills: Annotated[
        Count,
        doc(
            "Processes that the machine's kernel killed because the machine or a control group had "
            "no memory left."
        ),
    ]
    tcp: TcpCounts
    drops: Annotated[
        Drops | None,
        doc("Packets that the host received and lost; absent where it was not recorded."),
    ] = None
    sockets: SocketCounts
    network: Traffic
    allowances_exceeded: Annotated[
        dict[str, Count] | None,
        doc(
            "Counter of the network card (ethtool -S) to the packets that the cloud held back or "
            "dropped because the host was above an allowance of its instance type, from the start "
            "to the end of the recording, warm-up included. Absent where the card has no such "
            "counters."
        ),
    ] = None
    clock_step_s: Annotated[
        NotNegative,
        doc(
            "Largest jump of the host's clock relative to the controller's between two "
            "scrapes, seconds, 0 or more."
        ),
    ]
    samples: Annotated[Annotated[int, Meta(ge=2)], doc("Successful scrapes used, 2 or more.")]
    missed: Annotated[Count, doc("Failed scrapes between the first and the last one used.")]
    processes: Annotated[
        ServiceProcesses | None,
        doc("Of the server only; absent where they were not recorded."),
    ] = None
    database: Annotated[
        Database | None,
        doc(
            "Work of the database over the load, from its own statistics (pg_stat_statements, "
            "pg_stat_database). For the server only; absent where the endpoint needs no "
            "database, where the statistics could not be read, and where processes is absent."
        ),
    ] = None
    per_second: Annotated[
        HostSeries | None,
        doc("Absent of each of several clients."),
    ] = None
    accept_queues: Annotated[
        list[AcceptQueue] | None,
        doc(
            "Accept queues of the server's services, by service and socket. For the server only; "
            "absent where they were not recorded."
        ),
    ] = None
    connections: Annotated[
        TcpConnections | None,
        doc(
            "TCP's view of the load's connections. For the server only; absent where they were "
            "not recorded."
        ),
    ] = None
    reverse_proxy: Annotated[
        ReverseProxyLog | None,
        doc(
            "The reverse proxy's own times and errors. For the server only; absent where they were "
            "not recorded."
        ),
    ] = None


class Telemetry(Record, kw_only=True, frozen=True):
    """Both hosts during the load."""

    server: Annotated[HostTelemetry, doc("The machine under test.")]
    client: Annotated[
        HostTelemetry, doc("The load generator's machine; with several clients, the busiest.")
    ]


class FunctionFraction(Record, kw_only=True, frozen=True):
    """One function of the profile."""

    function: Annotated[str, doc("Name of the function, and the file or library that contains it.")]
    fraction: Annotated[Fraction, doc("Fraction of the samples that did not wait, 0 to 1.")]


class PySpyProfile(Record, kw_only=True, frozen=True):
    """Stack samples of one worker of the application, by py-spy, 100 a second."""

    samples: Annotated[Positive, doc("Samples of all threads of the process.")]
    idle_fraction: Annotated[
        Fraction,
        doc("Fraction of the samples in which the thread waited for a socket, a lock or time."),
    ]
    depth_median: Annotated[
        NotNegative | None,
        doc(
            "Median number of Python frames in the stacks of the other samples; null where "
            "all samples waited."
        ),
    ]
    depth_interval: Annotated[
        Annotated[list[Count], Meta(min_length=2, max_length=2)] | None,
        doc(
            "95 % interval of depth_median, for the sampling error of these samples; absent "
            "where the samples are too few."
        ),
    ] = None
    gil_fraction: Annotated[
        Fraction | None,
        doc(
            "Fraction of the time in which a thread of the worker held Python's global lock (GIL), "
            "by a quarter of the samples, after the others; absent for loads of less than 6 s and "
            "where py-spy cannot tell."
        ),
    ] = None
    native: Annotated[
        bool, doc("Whether the stacks contain native frames in addition to Python's.")
    ]
    top: Annotated[
        list[FunctionFraction],
        doc(
            "Innermost functions of the samples that did not wait, in descending order of samples."
        ),
    ]
