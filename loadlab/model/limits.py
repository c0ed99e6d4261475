"""What a load waited for, and what limited it."""

from typing import Annotated, Literal

from loadlab.model.base import Count, Fraction, NotNegative, Positive, Reason, Record, doc

ServiceName = Literal["reverse_proxy", "application", "postgresql"]


class Sessions(Record, kw_only=True, frozen=True):
    """Connections of the database in one state, from readings once a second during the load."""

    state: Annotated[
        str, doc("pg_stat_activity.state: active, idle, idle in transaction and so on.")
    ]
    wait: Annotated[
        str | None,
        doc("Type and event that they waited for, such as Lock:tuple; null for none."),
    ]
    mean: Annotated[NotNegative, doc("Mean number of these connections over the readings.")]


class ReverseProxyLog(Record, kw_only=True, frozen=True):
    """The times that the reverse proxy logged, and its errors. nginx logs the requests that end in
    one of every hundred milliseconds, at most 200,000. Its clock has steps of 1 ms.
    """

    requests: Annotated[Count, doc("Requests in the sample.")]
    mean_us: Annotated[
        NotNegative | None,
        doc("Mean time from a request's first byte to the last byte of its answer, µs."),
    ]
    upstream_us: Annotated[
        NotNegative | None,
        doc("Mean part of it from the connection to the application to its last byte, µs."),
    ]
    upstream_connect_us: Annotated[
        NotNegative | None,
        doc("Mean part of that until the connection to the application was there, µs."),
    ]
    upstream_p99_us: Annotated[
        NotNegative | None, doc("99th percentile of the time of the application, µs.")
    ]
    errors: Annotated[
        dict[str, Positive],
        doc("Kind of an error in its error log to the number of its lines."),
    ]


class TcpConnections(Record, kw_only=True, frozen=True):
    """Established connections of the load at the server, as the kernel's tcp_info has them, from
    readings every other second of at most 50 connections each.
    """

    samples: Annotated[Positive, doc("Connections read, over all readings.")]
    rtt_us: Annotated[NotNegative, doc("Median of the smoothed round-trip times, µs.")]
    least_rtt_us: Annotated[NotNegative, doc("Median of the shortest round-trip times, µs.")]
    window: Annotated[
        NotNegative,
        doc(
            "Median of the congestion windows, segments, of the connections that had segments on "
            "the way; of all where none had, or this was not recorded."
        ),
    ]
    unsent_bytes: Annotated[
        NotNegative, doc("Mean bytes that waited in the socket and were never sent yet.")
    ]
    retransmitted: Annotated[
        Fraction, doc("Segments sent again / sent, of the connections at their last reading.")
    ]


class TracedWait(Record, kw_only=True, frozen=True):
    """Time for which threads of a service waited in one system call, until they were woken."""

    call: Annotated[
        str,
        doc(
            "Name of the system call, such as epoll_wait; outside of one, the kernel's function "
            "that waited, such as a page fault's."
        ),
    ]
    seconds: Annotated[NotNegative, doc("Sum over the threads, seconds.")]


class TracedService(Record, kw_only=True, frozen=True):
    """What the trace saw of the threads of one service."""

    service: Annotated[ServiceName, doc("Name of the service.")]
    scheduled: Annotated[Count, doc("How often a thread was ready and got a core.")]
    run_queue_mean_us: Annotated[
        NotNegative, doc("Run-queue latency: mean time until it got the core, µs.")
    ]
    run_queue_p50_us: Annotated[
        Count, doc("Median of that time, µs: the end of its bin, whose bounds are powers of two.")
    ]
    run_queue_p99_us: Annotated[Count, doc("99th percentile in the same way, µs.")]
    waits: Annotated[
        list[TracedWait], doc("Where its threads waited, longest first, the first five.")
    ]


class KernelTrace(Record, kw_only=True, frozen=True):
    """What bpftrace saw in the kernel of the server during a load, and what perf counted. Both slow
    the server.
    """

    services: Annotated[list[TracedService], doc("The services that ran.")]
    retransmits: Annotated[
        dict[str, Positive],
        doc("Lower of both ports of a connection to the TCP segments that were sent again on it."),
    ]
    instructions_per_cycle: Annotated[
        NotNegative | None,
        doc("Instructions for each cycle of all cores that were not idle; null without counters."),
    ]
    uncounted: Annotated[
        str | None, doc("Why perf did not count, as it says; absent where it did.")
    ] = None


class TimePart(Record, kw_only=True, frozen=True):
    """One part of the time of a mean request."""

    part: Annotated[
        str,
        doc(
            "Where the time went: reverse_proxy_cpu, application_cpu, database_cpu, run_queue "
            "(ready, and waiting for a core), accept_queue (waiting for a worker), database_lock, "
            "database_disk, database_other (its waits), application_wait (the rest that the "
            "reverse proxy waited for the application), or elsewhere (the rest: in line for a "
            "worker, the network, the client)."
        ),
    ]
    us: Annotated[NotNegative, doc("Mean time for each request, µs.")]


class CellLimit(Record, kw_only=True, frozen=True):
    """What limited a cell. The evidence is of the median repetition with this limit."""

    limit: Annotated[
        Reason,
        doc(
            "The limit with its evidence: code none where the cell met the objective, unknown "
            "where no check found it; loadlab/reasons/limit_reasons.py explains the codes."
        ),
    ]
    agree: Annotated[Positive, doc("Number of repetitions with this code.")]
    of: Annotated[Positive, doc("Number of repetitions judged: the valid ones, or all if none is.")]
    ruled_out: Annotated[
        list[Reason], doc("Limits that were looked for and not found, each with its evidence.")
    ]
    unrecorded: Annotated[
        list[str], doc("Codes that could not be looked for: their evidence was not recorded.")
    ]
    mean_us: Annotated[
        NotNegative | None,
        doc("Mean time of a request at the client, from its sending, µs; null where unknown."),
    ]
    account: Annotated[
        list[TimePart],
        doc("Where that time went, largest first; parts of one request may overlap."),
    ]
