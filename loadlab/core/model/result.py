"""result.json: one repetition of a cell."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.core.model.base import (
    SCHEMA,
    Above0,
    Count,
    Name,
    NotNegative,
    Positive,
    Reason,
    Record,
    Sha256,
    doc,
)
from loadlab.core.model.cell import Cell, InputHashes, Purpose
from loadlab.core.model.latency import EncodedHistogram, Latency, ResponseTime
from loadlab.core.model.telemetry import HostTelemetry, PySpyProfile, Telemetry


class ErrorCounts(Record, kw_only=True, frozen=True):
    """Failed requests by class, counts, each request in one class at most. The first four had no
    answer in time.
    """

    connect: Annotated[Count, doc("Requests: no connection. 0 or more.")]
    read: Annotated[
        Count,
        doc(
            "Requests: connection lost, or not HTTP, while the answer was awaited or "
            "read. 0 or more."
        ),
    ]
    write: Annotated[Count, doc("Requests: connection lost while the request was sent. 0 or more.")]
    timeout: Annotated[
        Count,
        doc(
            "Requests: no answer within the request timeout (wrk: answered later than it; "
            "wrk2: 0, it waits without limit, and its ticks are a finding). 0 or more."
        ),
    ]
    status_4xx: Annotated[Count, doc("Requests: answered with 400 to 499. 0 or more.")]
    status_5xx: Annotated[Count, doc("Requests: answered with 500 to 599. 0 or more.")]
    status_other: Annotated[
        Count,
        doc(
            "Requests: answered with another status that is not 2xx (wrk and wrk2: any of "
            "400 and above, they do not tell). 0 or more."
        ),
    ]
    body: Annotated[
        Count, doc("Requests: answered 2xx with a body of another length than verified. 0 or more.")
    ]


class PerSecond(Record, kw_only=True, frozen=True):
    """Series by second of intended start, of a batch by second of the answer or failure: entry k
    is second[k] to second[k]+1 of the load. All arrays have one length. A request issued a
    few ms late may stand in the next second.
    """

    second: Annotated[list[Count], doc("Seconds since the load began, 0, 1, 2 …")]
    scheduled: Annotated[
        list[Count], doc("Requests scheduled in that second; of a batch those begun in it.")
    ]
    responses: Annotated[
        list[Count],
        doc(
            "Those of them answered, whenever the answer came; of a batch the answers "
            "that came in that second."
        ),
    ]
    ok: Annotated[list[Count], doc("Those of them answered 2xx with the right body length.")]
    p50_us: Annotated[
        list[Count | None],
        doc(
            "Median latency of that second's requests, of a batch of the ok answers that "
            "came in it, µs."
        ),
    ]
    p99_us: Annotated[
        list[Count | None],
        doc(
            "99th percentile latency of that second's requests, of a batch of the ok "
            "answers that came in it, µs."
        ),
    ]
    max_us: Annotated[
        list[Count | None],
        doc(
            "Largest latency of that second's requests, of a batch of the ok answers that "
            "came in it, µs."
        ),
    ]


class Validity(Record, kw_only=True, frozen=True):
    """Whether the repetition may be believed. loadlab/report/words/validity.py has the codes."""

    valid: Annotated[bool, doc("True where there is no reason against it.")]
    reasons: Annotated[
        list[Reason],
        doc("What voids it, such as generator_cpu, rate_missed, steal, link or failed."),
    ]
    findings: Annotated[
        list[Reason],
        doc("What does not, such as saturated, unsent, errors or uncalibrated."),
    ]


class ClientCpu(Record, kw_only=True, frozen=True):
    """CPU time of the client's process in those seconds."""

    user: Annotated[NotNegative, doc("Seconds in user mode.")]
    system: Annotated[NotNegative, doc("Seconds in the kernel.")]


class PythonClient(Record, kw_only=True, frozen=True):
    """What a Python client used, and what broke."""

    seconds: Annotated[NotNegative, doc("Seconds from before the first request to after the last.")]
    cpu_s: Annotated[ClientCpu, doc("CPU time of the client's process in those seconds.")]
    max_rss_bytes: Annotated[
        Count,
        doc("Largest resident memory of the process, interpreter and libraries included, bytes."),
    ]
    open_files: Annotated[Count, doc("Soft limit of open files that the process was granted.")]
    local_ports: Annotated[
        Annotated[list[Annotated[int, Meta(ge=0, le=65535)]], Meta(min_length=2, max_length=2)],
        doc(
            "First and last local port that the client's kernel gives out, "
            "net.ipv4.ip_local_port_range."
        ),
    ]
    versions: Annotated[dict[str, str], doc("Python and the client's library, name to version.")]
    failures: Annotated[
        dict[str, Positive],
        doc(
            "Requests that were not ok, by what the client was told: the kernel's errno "
            "by name, timeout, HTTP and the status, body, or the library's exception."
        ),
    ]


class ClientLoad(Record, kw_only=True, frozen=True):
    """What one of several clients of a server offered, its share of the cell's load, and what
    came of it.
    """

    name: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")],
        doc("Its name in the inventory, and that of the folder of its raw files, clients/<name>."),
    ]
    rate: Annotated[
        Above0 | None, doc("Its share of the rate, requests/s; null for a closed loop.")
    ]
    connections: Annotated[Positive, doc("Its share of the connections.")]
    requests: Annotated[Count, doc("Requests it sent.")]
    responses: Annotated[Count, doc("Of these answered in full, whatever the status.")]
    rate_achieved: Annotated[NotNegative, doc("Its responses per second.")]
    errors: Annotated[ErrorCounts, doc("Its failed requests.")]
    unsent: Annotated[Count | None, doc("Scheduled for it and never sent; null for a closed loop.")]
    latency_us: Annotated[Latency, doc("Its latencies.")]
    telemetry: Annotated[HostTelemetry, doc("Its machine during the load.")]
    validity: Annotated[
        Validity, doc("Whether its part may be believed; the repetition is void where it may not.")
    ]
    started: Annotated[NotNegative, doc("When its load began, unix seconds of its own clock.")]
    clock_offset_s: Annotated[
        float, doc("Its clock less the controller's during the load, seconds.")
    ]


class Repetition(Record, kw_only=True, frozen=True):
    """A result without its histogram, its series and what stands at the cell."""

    repetition: Annotated[Positive, doc("Number of the repetition, 1 or more.")]
    server: Annotated[
        str | None,
        doc(
            "Inventory name of the server of the pair of hosts that measured it; null "
            "where an earlier version did not say."
        ),
    ] = None
    input_hashes: Annotated[
        InputHashes | None,
        doc(
            "What the cell was made of beside its own words; null of a calibration, or "
            "where an earlier version did not say."
        ),
    ] = None
    error: Annotated[
        str | None, doc("Why the repetition failed, and all numbers are null; or null.")
    ]
    requests: Annotated[Count | None, doc("Requests sent: answered, failed or aborted.")]
    responses: Annotated[Count | None, doc("Requests answered in full, whatever the status.")]
    ok: Annotated[
        Count | None,
        doc(
            "Answered 2xx with the verified body length (wrk: below 400 and in time; "
            "wrk2: below 400)."
        ),
    ]
    rate_achieved: Annotated[
        NotNegative | None,
        doc(
            "Answers per second. oha: those before the deadline, over the deadline less "
            "the fastest service time. wrk, wrk2 and the Python clients: over the run "
            "time."
        ),
    ]
    goodput: Annotated[NotNegative | None, doc("ok answers per second, over the same span.")]
    errors: Annotated[
        ErrorCounts | None, doc("Failed requests by class; null where the repetition failed.")
    ]
    aborted: Annotated[Count | None, doc("Requests cut off by the generator's own deadline.")]
    scheduled: Annotated[
        Count | None,
        doc(
            "Requests the constant rate asked for (wrk2: of each connection from when it "
            "begins, 5 ms after the one before); null for a closed loop or a batch."
        ),
    ]
    unsent: Annotated[
        Count | None,
        doc(
            "scheduled less requests (wrk2: less answers and one for each connection, "
            "which may have been under way at the end), never below 0: they are in no "
            "percentile; null for a closed loop or a batch."
        ),
    ]
    duration_s: Annotated[
        NotNegative | None, doc("Seconds measured, up to the last answer waited for.")
    ]
    nginx_requests: Annotated[
        int | None,
        doc(
            "Requests nginx counted meanwhile; null where it was not in the path, or the "
            "repetition failed."
        ),
    ]
    mean_service_time_us: Annotated[
        NotNegative | None,
        doc(
            "Mean µs from a request's actual start to its end, without any wait before "
            "sending; null where the generator does not tell."
        ),
    ]
    latency_us: Annotated[
        Latency | None,
        doc(
            "Latencies of all answers, of a Python client's ok ones, of wrk2's those "
            "after its calibration of 10 s, µs."
        ),
    ]
    latency_basis: Annotated[
        Literal["scheduled", "sent"] | None,
        doc(
            "scheduled: from when the schedule wanted the request sent. sent: from when it "
            "was. Never compared with each other."
        ),
    ]
    send_delay_us: Annotated[
        Latency | None,
        doc(
            "How late the generator's schedule itself was, µs; null where it cannot be "
            "told, as of several clients together. It is in no latency."
        ),
    ]
    telemetry: Annotated[
        Telemetry | None, doc("Both hosts during the load; null where the repetition failed.")
    ]
    client: Annotated[
        PythonClient | None,
        doc(
            "What a Python client used, and what broke; null for another generator, or "
            "where the repetition failed."
        ),
    ] = None
    validity: Annotated[Validity, doc("Whether it may be believed.")]
    started: Annotated[
        NotNegative | None,
        doc("When the load began, unix seconds of the client's clock, the first's of several."),
    ]
    finished: Annotated[
        NotNegative | None,
        doc(
            "When the generator ended, of a batch the last request, unix seconds of the "
            "client's clock, the first's of several."
        ),
    ]
    raw_sha256: Annotated[
        dict[str, Sha256],
        doc(
            "Name of each raw file it was made from, to its SHA-256 in hexadecimal. "
            "oha.sqlite is named also where only its reduction is kept: requests.json.gz "
            "has that hash inside."
        ),
    ]
    response_time: Annotated[
        ResponseTime | None,
        doc(
            "Wait of all requests that were due; null without a schedule (closed loop, "
            "batch), where wrk2 does not tell right answers from wrong ones, or where the "
            "repetition failed."
        ),
    ] = None
    py_spy: Annotated[
        PySpyProfile | None,
        doc("What a worker of the application did; null where it was not profiled."),
    ] = None
    clients: Annotated[
        Annotated[list[ClientLoad], Meta(min_length=2)] | None,
        doc(
            "Each of several clients of the server; absent where there was one, or where "
            "the repetition failed. Telemetry is without its series."
        ),
    ] = None


class Result(Repetition, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """cells/<cell_id>/rep-<n>/result.json: one repetition, the same for every generator."""

    cell_id: Annotated[Name, doc("Name of the cell and of its directory.")]
    purpose: Annotated[Purpose, doc("What the measurement is for.")]
    base: Annotated[
        str | None,
        doc("cell_id of the cell that this one repeats, probes or limits; absent for `measure`."),
    ] = None
    cell: Annotated[Cell, doc("What was measured.")]
    histogram: Annotated[
        EncodedHistogram | None, doc("All latencies; null where the repetition failed.")
    ]
    per_second: Annotated[PerSecond | None, doc("Series; null where the generator has none.")]
