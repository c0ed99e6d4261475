"""What the hosts did during a load."""

from typing import Annotated

from msgspec import Meta

from loadlab.core.model.base import Count, Fraction, NotNegative, Positive, Record, doc


class CpuModes(Record, kw_only=True, frozen=True):
    """Fractions of the listed cores' time, which add up to 1."""

    user: Annotated[Fraction, doc("Time in mode user, fraction 0 to 1")]
    nice: Annotated[Fraction, doc("Time in mode nice, fraction 0 to 1")]
    system: Annotated[Fraction, doc("Time in mode system, fraction 0 to 1")]
    iowait: Annotated[Fraction, doc("Time in mode iowait, fraction 0 to 1")]
    irq: Annotated[Fraction, doc("Time in mode irq, fraction 0 to 1")]
    softirq: Annotated[Fraction, doc("Time in mode softirq, fraction 0 to 1")]
    steal: Annotated[Fraction, doc("Time in mode steal, fraction 0 to 1")]
    idle: Annotated[Fraction, doc("Time in mode idle, fraction 0 to 1")]


class Memory(Record, kw_only=True, frozen=True):
    """Memory of the machine."""

    total_bytes: Annotated[Count, doc("Bytes in all.")]
    available_min_bytes: Annotated[Count, doc("Least available at any scrape, bytes.")]


class TcpCounts(Record, kw_only=True, frozen=True):
    """TCP events, counts."""

    retransmits: Annotated[Count, doc("Segments sent again.")]
    listen_overflows: Annotated[Count, doc("Connections refused for a full accept queue.")]
    listen_drops: Annotated[Count, doc("SYNs dropped at a listening socket, overflows among them.")]
    active_opens: Annotated[
        Count | None, doc("Connections that this host opened, those to itself among them.")
    ] = None
    passive_opens: Annotated[
        Count | None, doc("Connections that were opened to this host, by itself among others.")
    ] = None


class SocketCounts(Record, kw_only=True, frozen=True):
    """Largest count at any scrape during the load."""

    tcp_inuse_max: Annotated[Count, doc("TCP sockets in use.")]
    tcp_time_wait_max: Annotated[Count, doc("TCP sockets in TIME-WAIT.")]
    established_max: Annotated[Count, doc("Established connections, those of control among them.")]


class Traffic(Record, kw_only=True, frozen=True):
    """Traffic on the interface that carries the load."""

    rx_bytes: Annotated[Count, doc("Bytes received.")]
    tx_bytes: Annotated[Count, doc("Bytes sent.")]
    rx_bits_per_second: Annotated[NotNegative, doc("Mean received, bits/s.")]
    tx_bits_per_second: Annotated[NotNegative, doc("Mean sent, bits/s.")]


class Processes(Record, kw_only=True, frozen=True):
    """One service's processes. Those that ended are in the CPU time, by way of the parent that
    waited for them, but not in the context switches.
    """

    cpu_s: Annotated[
        NotNegative | None,
        doc(
            "CPU time, user and system, seconds, in steps of the kernel's tick (10 ms) "
            "for each process; null where a process ended and its time went with it."
        ),
    ]
    cpu: Annotated[
        NotNegative | None,
        doc(
            "cpu_s as a fraction of all the server's cores' time over the load, 0 to 1, a "
            "little more where work went on after the load's end; null as cpu_s is."
        ),
    ]
    rss_max_bytes: Annotated[
        Count,
        doc(
            "Largest sum of resident memory at any reading, bytes; pages that processes "
            "share count in each of them."
        ),
    ]
    threads_max: Annotated[Count, doc("Most threads at any reading.")]
    processes_max: Annotated[Count, doc("Most processes at any reading.")]
    voluntary_switches: Annotated[
        Count | None,
        doc(
            "Context switches of threads that waited, of those threads that were there to "
            "the end; null where more than 5 % of the CPU time was of processes that "
            "ended."
        ),
    ]
    involuntary_switches: Annotated[
        Count | None,
        doc(
            "Context switches of threads that could have gone on, of those threads that "
            "were there to the end; null as voluntary_switches is."
        ),
    ]


class ServiceProcesses(Record, kw_only=True, frozen=True):
    """Of the server: its services' processes over the load, from readings once a second; absent
    where they were not recorded. From the load's beginning (interpolated between two readings
    where a warm-up came before it) to the first reading after its end.
    """

    nginx: Annotated[Processes | None, doc("nginx: master and workers.")]
    application: Annotated[Processes | None, doc("The application and its server.")]
    postgresql: Annotated[
        Processes | None, doc("PostgreSQL, without the connection that its statistics are read by.")
    ]


class Query(Record, kw_only=True, frozen=True):
    """One statement."""

    query: Annotated[
        str, doc("Its text with $1, $2 … for constants, on one line, at most 500 characters.")
    ]
    calls: Annotated[Positive, doc("How often it ran.")]
    mean_us: Annotated[NotNegative, doc("Mean time in the server, planning not counted, µs.")]
    total_s: Annotated[
        NotNegative, doc("Time in the server in all, seconds; connections run at once.")
    ]


class Database(Record, kw_only=True, frozen=True):
    """What the database did over the load."""

    connections_max: Annotated[
        Count, doc("Most clients connected to it at any reading, once a second.")
    ]
    sessions: Annotated[
        Count,
        doc(
            "Connections made to it. PostgreSQL counts them when a connection hands its "
            "figures in, which it does once a second at most."
        ),
    ]
    transactions: Annotated[
        Count,
        doc(
            "Transactions committed and rolled back; counted as sessions are, so the last "
            "second's may be missing."
        ),
    ]
    statements: Annotated[
        Annotated[list[Query], Meta(max_length=5)],
        doc("Statements with the longest total time, longest first."),
    ]


class HostSeries(Record, kw_only=True, frozen=True):
    """Series between neighbouring scrapes. All arrays have one length."""

    t: Annotated[list[float], doc("End of the interval, seconds since the load began.")]
    cpu_busy: Annotated[list[Fraction], doc("Busy, fraction 0 to 1.")]
    cpu_user: Annotated[list[Fraction], doc("Mode user, fraction 0 to 1.")]
    cpu_system: Annotated[list[Fraction], doc("Mode system, fraction 0 to 1.")]
    cpu_softirq: Annotated[list[Fraction], doc("Mode softirq, fraction 0 to 1.")]
    cpu_iowait: Annotated[list[Fraction], doc("Mode iowait, fraction 0 to 1.")]
    cpu_steal: Annotated[list[Fraction], doc("Mode steal, fraction 0 to 1.")]
    rx_bits: Annotated[list[NotNegative], doc("Received, bits/s.")]
    tx_bits: Annotated[list[NotNegative], doc("Sent, bits/s.")]


class HostTelemetry(Record, kw_only=True, frozen=True):
    """One host over the load, from its node_exporter once a second: the last scrape before the
    start to the first after the end. CPU, memory and swap are the machine's; TCP and sockets
    those of the host's network namespace.
    """

    cpu: Annotated[CpuModes, doc("Fractions of the listed cores' time, which add up to 1.")]
    cpu_busy: Annotated[Fraction, doc("All but idle and iowait, steal included, fraction 0 to 1")]
    cores: Annotated[Positive, doc("Cores the host may use, 1 or more.")]
    memory: Annotated[Memory, doc("Memory of the machine.")]
    swap_pages: Annotated[Count, doc("Pages swapped in and out, 0 or more.")]
    tcp: Annotated[TcpCounts, doc("TCP events, counts.")]
    sockets: Annotated[SocketCounts, doc("Largest count at any scrape during the load.")]
    network: Annotated[Traffic, doc("Traffic on the interface that carries the load.")]
    clock_step_s: Annotated[
        NotNegative,
        doc(
            "Largest jump of the host's clock against the controller's between two "
            "scrapes, seconds, 0 or more."
        ),
    ]
    samples: Annotated[Annotated[int, Meta(ge=2)], doc("Scrapes used, 2 or more.")]
    missed: Annotated[Count, doc("Scrapes among them that failed.")]
    processes: Annotated[
        ServiceProcesses | None,
        doc(
            "Of the server: its services' processes over the load, from readings once a "
            "second; absent where they were not recorded. From the load's beginning "
            "(interpolated between two readings where a warm-up came before it) to the "
            "first reading after its end."
        ),
    ] = None
    database: Annotated[
        Database | None,
        doc(
            "Of the server: what the database did over the load, as its own statistics "
            "say (pg_stat_statements, pg_stat_database); null where the endpoint needs "
            "none or they could not be read; absent where processes is."
        ),
    ] = None
    per_second: Annotated[
        HostSeries | None, doc("Series between neighbouring scrapes. All arrays have one length.")
    ] = None


class Telemetry(Record, kw_only=True, frozen=True):
    """Both hosts during the load."""

    server: Annotated[HostTelemetry, doc("The machine under test.")]
    client: Annotated[HostTelemetry, doc("The load generator's machine; of several the busiest.")]


class FunctionFraction(Record, kw_only=True, frozen=True):
    """One function."""

    function: Annotated[str, doc("Its name, and the file or library that it is in.")]
    fraction: Annotated[Fraction, doc("Fraction of these samples.")]


class PySpyProfile(Record, kw_only=True, frozen=True):
    """Samples of the stacks of one worker of the application, by py-spy, 100 a second."""

    samples: Annotated[Positive, doc("Samples of all threads of the process.")]
    idle_fraction: Annotated[
        Fraction,
        doc("Fraction of the samples in which the thread waited for sockets, a lock or time."),
    ]
    depth_median: Annotated[
        NotNegative | None,
        doc("Median of the Python frames in the other samples' stacks; null where all waited."),
    ]
    depth_interval: Annotated[
        Annotated[list[Count], Meta(min_length=2, max_length=2)] | None,
        doc(
            "Its interval of 95 %, the sampling error of these samples; null where they "
            "are too few. Missing where none was recorded."
        ),
    ] = None
    native: Annotated[bool, doc("Whether native frames were had beside Python's.")]
    top: Annotated[
        list[FunctionFraction],
        doc("Innermost functions of the samples that did not wait, those with most of them first."),
    ]
