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

    cell_id: Annotated[Name, doc("Name of the cell.")]
    purpose: Annotated[Purpose, doc("Purpose of the measurement; measure: a cell of the plan.")]
    base: Annotated[
        Word | None, doc("cell_id of the cell that this one repeats, probes or limits.")
    ]
    repetition: Annotated[Positive, doc("Number of the repetition, 1 or more.")]
    block: Annotated[Positive | None, doc("Number of its block of the schedule, 1 or more.")]
    valid: Annotated[bool, doc("Whether it is valid: true or false.")]
    void_reasons: Annotated[
        Word | None, doc("Codes of the reasons that make it void, separated by spaces.")
    ]
    findings: Annotated[
        Word | None, doc("Codes of the remarks that do not make it void, separated by spaces.")
    ]
    host: Annotated[
        Word, doc("Inventory name of the server of the pair of hosts that measured it.")
    ]
    started_unix_s: Annotated[NotNegative | None, doc("Start of the load, unix seconds.")]

    framework: Annotated[Word, doc("Name of the application's folder in apps/.")]
    server: Annotated[Word, doc("Application server, a folder in files/servers/.")]
    transport: Annotated[Word, doc("Socket of the application server: unix or tcp.")]
    protocol: Annotated[Word, doc("Protocol on that socket: http, uwsgi or fastcgi.")]
    worker_class: Annotated[Word | None, doc("Gunicorn's worker class.")]
    event_loop: Annotated[Word | None, doc("Event loop: asyncio or uvloop.")]
    upstream_keepalive: Annotated[
        bool | None, doc("Whether the reverse proxy kept its connections to it.")
    ]
    workers: Annotated[
        Positive | None, doc("Processes of the application server; empty: one for each core.")
    ]
    threads: Annotated[Positive | None, doc("Threads of each process.")]
    server_keepalive_s: Annotated[
        Positive | None,
        doc("Seconds until the application server closes an idle connection; empty: the lab's."),
    ]
    backlog: Annotated[Positive | None, doc("Accept queue requested, connections.")]
    driver: Annotated[
        Word | None, doc("Database driver; empty where it is the application's default.")
    ]
    python: Annotated[
        Word | None, doc("Python of the application; empty where it is the server's own.")
    ]
    reverse_proxy: Annotated[
        Word, doc("What clients connect to; none: directly to the application server.")
    ]
    endpoint: Annotated[Word, doc("Name of the requested endpoint.")]
    tuning: Annotated[Word, doc("Tuning profile.")]
    network: Annotated[Word, doc("Network profile.")]

    generator: Annotated[Word, doc("Program that offers the load.")]
    mode: Annotated[
        Literal["constant", "closed", "batch"], doc("Constant rate, closed loop or batch.")
    ]
    rate_per_s: Annotated[
        Above0 | None, doc("Requested rate, requests/s; empty without a constant rate.")
    ]
    arrivals: Annotated[
        Word | None, doc("How requests come at that rate; empty where evenly, or without one.")
    ]
    connections: Annotated[Positive, doc("Connections; of a batch: most requests at once.")]
    burst_every_s: Annotated[
        Above0 | None, doc("Seconds between the bursts of a closed loop; empty where it has none.")
    ]
    clients: Annotated[Positive, doc("Clients that offered the load together, 1 or more.")]
    asked_duration_s: Annotated[
        Above0 | None, doc("Requested length of the load, seconds; empty of a batch.")
    ]
    warmup_s: Annotated[NotNegative, doc("Length of the warm-up, seconds.")]
    keepalive: Annotated[bool | None, doc("Whether the generator kept its connections.")]
    tls: Annotated[bool, doc("Whether the load was HTTPS.")]
    http2: Annotated[bool, doc("Whether the load was HTTP/2.")]

    duration_s: Annotated[NotNegative | None, doc("Measured time, seconds.")]
    requests: Annotated[Count | None, doc("Requests sent.")]
    responses: Annotated[Count | None, doc("Requests answered in full, with any status.")]
    ok: Annotated[Count | None, doc("Verified answers.")]
    aborted: Annotated[Count | None, doc("Requests that the generator cut off at its deadline.")]
    scheduled: Annotated[Count | None, doc("Requests of the schedule.")]
    unsent: Annotated[Count | None, doc("Requests of the schedule that were never sent.")]
    late: Annotated[Count | None, doc("Requests that the generator itself made late.")]
    goodput_per_s: Annotated[NotNegative | None, doc("Verified answers per second.")]
    rate_achieved_per_s: Annotated[NotNegative | None, doc("Answers per second.")]
    errors_connect: Annotated[Count | None, doc("Requests that got no connection.")]
    errors_read: Annotated[Count | None, doc("Requests whose answer was lost.")]
    errors_write: Annotated[Count | None, doc("Requests that were lost while being sent.")]
    errors_timeout: Annotated[Count | None, doc("Requests without an answer in time.")]
    errors_status_4xx: Annotated[Count | None, doc("Requests answered with 400 to 499.")]
    errors_status_5xx: Annotated[Count | None, doc("Requests answered with 500 to 599.")]
    errors_status_other: Annotated[Count | None, doc("Requests with another status outside 2xx.")]
    errors_body: Annotated[Count | None, doc("Requests answered with another body length.")]

    latency_basis: Annotated[
        Literal["scheduled", "sent"] | None,
        doc("Latency counts from the scheduled or the actual send time; never compare the two."),
    ]
    mean_ms: Annotated[NotNegative | None, doc("Mean latency of the answers, ms.")]
    stdev_ms: Annotated[NotNegative | None, doc("Its standard deviation (population), ms.")]
    min_ms: Annotated[NotNegative | None, doc("Smallest latency, ms.")]
    p50_ms: Annotated[NotNegative | None, doc("50th percentile over all requests due, ms.")]
    p75_ms: Annotated[NotNegative | None, doc("75th percentile over all requests due, ms.")]
    p90_ms: Annotated[NotNegative | None, doc("90th percentile over all requests due, ms.")]
    p95_ms: Annotated[NotNegative | None, doc("95th percentile over all requests due, ms.")]
    p99_ms: Annotated[NotNegative | None, doc("99th percentile over all requests due, ms.")]
    p99_9_ms: Annotated[NotNegative | None, doc("99.9th percentile over all requests due, ms.")]
    p99_99_ms: Annotated[NotNegative | None, doc("99.99th percentile over all requests due, ms.")]
    max_ms: Annotated[NotNegative | None, doc("Largest latency, ms.")]
    censored: Annotated[Count | None, doc("Requests due without an answer, behind every answer.")]
    at_least: Annotated[
        Word | None,
        doc(
            "Which of p50 to max fall among the censored requests, separated by spaces: their "
            "values are lower bounds."
        ),
    ]
    response_time_mean_ms: Annotated[NotNegative | None, doc("Mean response time, ms.")]
    response_time_p50_ms: Annotated[NotNegative | None, doc("Median response time, ms.")]
    response_time_p99_ms: Annotated[NotNegative | None, doc("p99 of the response time, ms.")]
    service_time_mean_ms: Annotated[
        NotNegative | None, doc("Mean time from a request's actual start to its end, ms.")
    ]
    send_delay_p99_ms: Annotated[NotNegative | None, doc("p99 of the send delay, ms.")]
    gap_error_p99_us: Annotated[NotNegative | None, doc("p99 of the inter-arrival error, µs.")]
    generator_p50_ms: Annotated[
        NotNegative | None, doc("What the generator itself added to p50_ms, ms.")
    ]
    generator_p99_ms: Annotated[
        NotNegative | None, doc("What the generator itself added to p99_ms, ms.")
    ]


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

    server_cpu_fraction: Annotated[
        Fraction | None, doc("Busy time of the server's cores, fraction 0 to 1.")
    ]
    server_steal_fraction: Annotated[Fraction | None, doc("Steal on the server, fraction 0 to 1.")]
    server_foreign_cpu_fraction: Annotated[
        Fraction | None, doc("Foreign CPU on the server, fraction 0 to 1.")
    ]
    server_retransmits: Annotated[Count | None, doc("TCP segments that the server sent again.")]
    server_listen_overflows: Annotated[
        Count | None, doc("Connections that the server refused because the accept queue was full.")
    ]
    client_cpu_fraction: Annotated[
        Fraction | None,
        doc("Busy time of the client's cores, fraction 0 to 1; of several, the busiest client's."),
    ]
    client_steal_fraction: Annotated[Fraction | None, doc("Steal on that client, 0 to 1.")]
    client_foreign_cpu_fraction: Annotated[
        Fraction | None, doc("Foreign CPU on that client, fraction 0 to 1.")
    ]
    client_retransmits: Annotated[Count | None, doc("TCP segments that this client sent again.")]
    batch_s: Annotated[NotNegative | None, doc("Time of a Python client's batch, seconds.")]
    batch_cpu_s: Annotated[NotNegative | None, doc("CPU time of the Python client, seconds.")]
    batch_memory_mib: Annotated[
        NotNegative | None, doc("Largest resident memory of the Python client, MiB.")
    ]
