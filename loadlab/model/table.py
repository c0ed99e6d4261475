"""cells.csv: all repetitions of a run as one table."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from loadlab.model.base import Above0, Count, Fraction, Name, NotNegative, Positive, Record, doc
from loadlab.model.cell import Purpose
from loadlab.model.metric_rows import ROWS, Reading

# No text begins as a formula does in a spreadsheet: the table has names and codes, no messages.
Word = Annotated[str, Meta(pattern=r"^(?![=+@\t\r-])")]


class _BeforeCost(Record, kw_only=True, frozen=True):
    """The columns before those of what a request cost."""

    cell_id: Name  #: Name of the cell.
    purpose: Purpose  #: Purpose of the measurement; measure: a cell of the plan.
    base: Word | None  #: cell_id of the cell that this one repeats, probes or limits.
    repetition: Positive  #: Number of the repetition, 1 or more.
    block: Positive | None  #: Number of its block of the schedule, 1 or more.
    valid: bool  #: Whether it is valid: true or false.
    void_reasons: Word | None  #: Codes of the reasons that make it void, separated by spaces.
    findings: Word | None  #: Codes of the remarks that do not make it void, separated by spaces.
    host: Word  #: Inventory name of the server of the pair of hosts that measured it.
    started_unix_s: NotNegative | None  #: Start of the load, unix seconds.

    framework: Word  #: Name of the application's folder in apps/.
    server: Word  #: Application server, a folder in files/servers/.
    transport: Word  #: Socket of the application server: unix or tcp.
    protocol: Word  #: Protocol on that socket: http, uwsgi or fastcgi.
    worker_class: Word | None  #: Gunicorn's worker class.
    event_loop: Word | None  #: Event loop: asyncio or uvloop.
    upstream_keepalive: bool | None  #: Whether the reverse proxy kept its connections to it.
    workers: Positive | None  #: Processes of the application server; empty: one for each core.
    threads: Positive | None  #: Threads of each process.
    #: Seconds until the application server closes an idle connection; empty: the lab's.
    server_keepalive_s: Positive | None
    backlog: Positive | None  #: Accept queue requested, connections.
    driver: Word | None  #: Database driver; empty where it is the application's default.
    python: Word | None  #: Python of the application; empty where it is the server's own.
    reverse_proxy: Word  #: What clients connect to; none: directly to the application server.
    endpoint: Word  #: Name of the requested endpoint.
    tuning: Word  #: Tuning profile.
    network: Word  #: Network profile.

    generator: Word  #: Program that offers the load.
    mode: Literal["constant", "closed", "batch"]  #: Constant rate, closed loop or batch.
    rate_per_s: Above0 | None  #: Requested rate, requests/s; empty without a constant rate.
    arrivals: Word | None  #: How requests come at that rate; empty where evenly, or without one.
    #: Connections; on demand: most at once; of a batch: most requests at once.
    connections: Positive
    on_demand: bool  #: Whether connections are opened when requests need them.
    #: Seconds between the bursts of a closed loop; empty where it has none.
    burst_every_s: Above0 | None
    clients: Positive  #: Clients that offered the load together, 1 or more.
    asked_duration_s: Above0 | None  #: Requested length of the load, seconds; empty of a batch.
    warmup_s: NotNegative  #: Length of the warm-up, seconds.
    keepalive: bool | None  #: Whether the generator kept its connections.
    tls: bool  #: Whether the load was HTTPS.
    http2: bool  #: Whether the load was HTTP/2.

    duration_s: NotNegative | None  #: Measured time, seconds.
    requests: Count | None  #: Requests sent.
    responses: Count | None  #: Requests answered in full, with any status.
    ok: Count | None  #: Verified answers.
    aborted: Count | None  #: Requests that the generator cut off at its deadline.
    scheduled: Count | None  #: Requests of the schedule.
    unsent: Count | None  #: Requests of the schedule that were never sent.
    late: Count | None  #: Requests that the generator itself made late.
    goodput_per_s: NotNegative | None  #: Verified answers per second.
    rate_achieved_per_s: NotNegative | None  #: Answers per second.
    errors_connect: Count | None  #: Requests that got no connection.
    errors_read: Count | None  #: Requests whose answer was lost.
    errors_write: Count | None  #: Requests that were lost while being sent.
    errors_timeout: Count | None  #: Requests without an answer in time.
    errors_status_4xx: Count | None  #: Requests answered with 400 to 499.
    errors_status_5xx: Count | None  #: Requests answered with 500 to 599.
    errors_status_other: Count | None  #: Requests with another status outside 2xx.
    errors_body: Count | None  #: Requests answered with another body length.

    #: Latency counts from the scheduled or the actual send time; never compare the two.
    latency_basis: Literal["scheduled", "sent"] | None
    mean_ms: NotNegative | None  #: Mean latency of the answers, ms.
    stdev_ms: NotNegative | None  #: Its standard deviation (population), ms.
    min_ms: NotNegative | None  #: Smallest latency, ms.
    p50_ms: NotNegative | None  #: 50th percentile over all requests due, ms.
    p75_ms: NotNegative | None  #: 75th percentile over all requests due, ms.
    p90_ms: NotNegative | None  #: 90th percentile over all requests due, ms.
    p95_ms: NotNegative | None  #: 95th percentile over all requests due, ms.
    p99_ms: NotNegative | None  #: 99th percentile over all requests due, ms.
    p99_9_ms: NotNegative | None  #: 99.9th percentile over all requests due, ms.
    p99_99_ms: NotNegative | None  #: 99.99th percentile over all requests due, ms.
    max_ms: NotNegative | None  #: Largest latency, ms.
    censored: Count | None  #: Requests due without an answer, behind every answer.
    #: Which of p50 to max fall among the censored requests, separated by spaces: their values are
    #: lower bounds.
    at_least: Word | None
    response_time_mean_ms: NotNegative | None  #: Mean response time, ms.
    response_time_p50_ms: NotNegative | None  #: Median response time, ms.
    response_time_p99_ms: NotNegative | None  #: p99 of the response time, ms.
    #: Mean time from a request's actual start to its end, ms.
    service_time_mean_ms: NotNegative | None
    send_delay_p99_ms: NotNegative | None  #: p99 of the send delay, ms.
    gap_error_p99_us: NotNegative | None  #: p99 of the inter-arrival error, µs.
    generator_p50_ms: NotNegative | None  #: What the generator itself added to p50_ms, ms.
    generator_p99_ms: NotNegative | None  #: What the generator itself added to p99_ms, ms.


# Column -> its reading, of each metric: the usual memory before the other.
COST_COLUMNS: dict[str, Reading] = {
    reading.column: reading
    for row in ROWS.values()
    for reading in reversed(row.readings)
    if reading.column
}
if TYPE_CHECKING:
    _WithCost: TypeAlias = _BeforeCost
else:
    _WithCost = msgspec.defstruct(
        "_WithCost",
        [
            (column, Annotated[NotNegative | None, doc(reading.meaning)])
            for column, reading in COST_COLUMNS.items()
        ],
        bases=(_BeforeCost,),
        module=__name__,
        kw_only=True,
        frozen=True,
    )


class RepetitionRow(_WithCost, kw_only=True, frozen=True):
    """A row of cells.csv: one repetition, whether valid, void or failed. A name ends in the unit
    that it has. A field is empty where the repetition has no such value: null here.
    """

    server_cpu_fraction: Fraction | None  #: Busy time of the server's cores, fraction 0 to 1.
    server_steal_fraction: Fraction | None  #: Steal on the server, fraction 0 to 1.
    server_foreign_cpu_fraction: Fraction | None  #: Foreign CPU on the server, fraction 0 to 1.
    server_retransmits: Count | None  #: TCP segments that the server sent again.
    #: Connections that the server refused because the accept queue was full.
    server_listen_overflows: Count | None
    #: Busy time of the client's cores, fraction 0 to 1; of several, the busiest client's.
    client_cpu_fraction: Fraction | None
    client_steal_fraction: Fraction | None  #: Steal on that client, 0 to 1.
    client_foreign_cpu_fraction: Fraction | None  #: Foreign CPU on that client, fraction 0 to 1.
    client_retransmits: Count | None  #: TCP segments that this client sent again.
    batch_s: NotNegative | None  #: Time of a Python client's batch, seconds.
    batch_cpu_s: NotNegative | None  #: CPU time of the Python client, seconds.
    batch_memory_mib: NotNegative | None  #: Largest resident memory of the Python client, MiB.
    visits_started: Count | None  #: Visits of which a request was sent.
    visits_completed: Count | None  #: Visits with a right answer to each of their requests.
    visits_broken: Count | None  #: Visits that ended before.
    visit_p50_ms: NotNegative | None  #: Median time of the completed visits, ms.
    visit_p99_ms: NotNegative | None  #: 99th percentile of it, ms.
