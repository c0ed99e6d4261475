"""What a load waited for, and what limited it."""

from typing import Literal

from loadlab.model.base import Count, Fraction, NotNegative, Positive, Reason, Record

ServiceName = Literal["reverse_proxy", "application", "postgresql"]


class Sessions(Record, kw_only=True, frozen=True):
    """Connections of the database in one state, from readings once a second during the load."""

    state: str  #: pg_stat_activity.state: active, idle, idle in transaction and so on.
    wait: str | None  #: Type and event that they waited for, such as Lock:tuple; null for none.
    mean: NotNegative  #: Mean number of these connections over the readings.


class ReverseProxyLog(Record, kw_only=True, frozen=True):
    """The times that the reverse proxy logged, and its errors. nginx logs the requests that end in
    one of every hundred milliseconds, at most 200,000. Its clock has steps of 1 ms.
    """

    requests: Count  #: Requests in the sample.
    #: Mean time from a request's first byte to the last byte of its answer, µs.
    mean_us: NotNegative | None
    #: Mean part of it from the connection to the application to its last byte, µs.
    upstream_us: NotNegative | None
    #: Mean part of that until the connection to the application was there, µs.
    upstream_connect_us: NotNegative | None
    upstream_p99_us: NotNegative | None  #: 99th percentile of the time of the application, µs.
    errors: dict[str, Positive]  #: Kind of an error in its error log to the number of its lines.


class TcpConnections(Record, kw_only=True, frozen=True):
    """Established connections of the load at the server, as the kernel's tcp_info has them, from
    readings every other second of at most 50 connections each.
    """

    samples: Positive  #: Connections read, over all readings.
    rtt_us: NotNegative  #: Median of the smoothed round-trip times, µs.
    least_rtt_us: NotNegative  #: Median of the shortest round-trip times, µs.
    #: Median of the congestion windows, segments, of the connections that had segments on the way;
    #: of all where none had, or this was not recorded.
    window: NotNegative
    unsent_bytes: NotNegative  #: Mean bytes that waited in the socket and were never sent yet.
    #: Segments sent again / sent, of the connections at their last reading.
    retransmitted: Fraction


class TracedWait(Record, kw_only=True, frozen=True):
    """Time for which threads of a service waited in one system call, until they were woken."""

    #: Name of the system call, such as epoll_wait; outside of one, the kernel's function that
    #: waited, such as a page fault's.
    call: str
    seconds: NotNegative  #: Sum over the threads, seconds.


class TracedService(Record, kw_only=True, frozen=True):
    """What the trace saw of the threads of one service."""

    service: ServiceName  #: Name of the service.
    scheduled: Count  #: How often a thread was ready and got a core.
    run_queue_mean_us: NotNegative  #: Run-queue latency: mean time until it got the core, µs.
    #: Median of that time, µs: the end of its bin, whose bounds are powers of two.
    run_queue_p50_us: Count
    run_queue_p99_us: Count  #: 99th percentile in the same way, µs.
    waits: list[TracedWait]  #: Where its threads waited, longest first, the first five.


class KernelTrace(Record, kw_only=True, frozen=True):
    """What bpftrace saw in the kernel of the server during a load, and what perf counted. Both slow
    the server.
    """

    services: list[TracedService]  #: The services that ran.
    #: Lower of both ports of a connection to the TCP segments that were sent again on it.
    retransmits: dict[str, Positive]
    #: Instructions for each cycle of all cores that were not idle; null without counters.
    instructions_per_cycle: NotNegative | None
    uncounted: str | None = None  #: Why perf did not count, as it says; absent where it did.


class TimePart(Record, kw_only=True, frozen=True):
    """One part of the time of a mean request."""

    #: Where the time went: reverse_proxy_cpu, application_cpu, database_cpu, run_queue (ready, and
    #: waiting for a core), accept_queue (waiting for a worker), database_lock, database_disk,
    #: database_other (its waits), application_wait (the rest that the reverse proxy waited for the
    #: application), or elsewhere (the rest: in line for a worker, the network, the client).
    part: str
    us: NotNegative  #: Mean time for each request, µs.


class CellLimit(Record, kw_only=True, frozen=True):
    """What limited a cell. The evidence is of the median repetition with this limit."""

    #: The limit with its evidence: code none where the cell met the objective, unknown where no
    #: check found it; loadlab/reasons/limit_reasons.py explains the codes.
    limit: Reason
    agree: Positive  #: Number of repetitions with this code.
    of: Positive  #: Number of repetitions judged: the valid ones, or all if none is.
    ruled_out: list[Reason]  #: Limits that were looked for and not found, each with its evidence.
    unrecorded: list[str]  #: Codes that could not be looked for: their evidence was not recorded.
    #: Mean time of a request at the client, from its sending, µs; null where unknown.
    mean_us: NotNegative | None
    #: Where that time went, largest first; parts of one request may overlap.
    account: list[TimePart]
