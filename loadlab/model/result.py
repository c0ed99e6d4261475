"""result.json: one repetition of a cell."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.model.base import (
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
from loadlab.model.cell import Cell, InputHashes, Purpose
from loadlab.model.latency import (
    EncodedHistogram,
    Latency,
    LatencyBins,
    OwnPart,
    ResponseTime,
    Shape,
    Stops,
)
from loadlab.model.limits import KernelTrace
from loadlab.model.telemetry import HostTelemetry, PySpyProfile, Telemetry


class ErrorCounts(Record, kw_only=True, frozen=True):
    """Failed requests by class. Each request counts in at most one class. Requests of the first
    four classes had no answer in time.
    """

    connect: Annotated[Count, doc("Requests that got no connection. 0 or more.")]
    read: Annotated[
        Count,
        doc(
            "Requests whose connection was lost, or that got no valid HTTP, while the generator "
            "awaited or read the answer. 0 or more."
        ),
    ]
    write: Annotated[
        Count, doc("Requests whose connection was lost while the request was sent. 0 or more.")
    ]
    timeout: Annotated[
        Count,
        doc(
            "Requests without an answer within the request timeout (wrk: answered after the "
            "timeout; wrk2: 0, because it waits without limit; its ticks are a finding). 0 or "
            "more."
        ),
    ]
    status_4xx: Annotated[Count, doc("Requests answered with status 400 to 499. 0 or more.")]
    status_5xx: Annotated[Count, doc("Requests answered with status 500 to 599. 0 or more.")]
    status_other: Annotated[
        Count,
        doc(
            "Requests answered with another status outside 2xx (wrk and wrk2: any status of 400 "
            "or above, because they do not report the status). 0 or more."
        ),
    ]
    body: Annotated[
        Count,
        doc("Requests answered 2xx with a body length other than the verified one. 0 or more."),
    ]


class PerSecond(Record, kw_only=True, frozen=True):
    """Series by second of intended start; for a batch, by second of the answer or failure. Entry k
    covers second[k] to second[k]+1 of the load. All arrays have the same length. A request sent a
    few ms late may count in the next second.
    """

    second: Annotated[list[Count], doc("Seconds since the load began: 0, 1, 2 …")]
    scheduled: Annotated[
        list[Count], doc("Requests scheduled in that second; for a batch, requests begun in it.")
    ]
    responses: Annotated[
        list[Count],
        doc(
            "Scheduled requests that were answered, at any time; for a batch, answers that "
            "arrived in that second."
        ),
    ]
    ok: Annotated[list[Count], doc("Responses with status 2xx and the right body length.")]
    p50_us: Annotated[
        list[Count | None],
        doc(
            "Median latency of that second's requests, µs; for a batch, of the ok answers that "
            "arrived in it."
        ),
    ]
    p99_us: Annotated[
        list[Count | None],
        doc(
            "99th percentile latency of that second's requests, µs; for a batch, of the ok "
            "answers that arrived in it."
        ),
    ]
    max_us: Annotated[
        list[Count | None],
        doc(
            "Largest latency of that second's requests, µs; for a batch, of the ok answers that "
            "arrived in it."
        ),
    ]

    came: Annotated[
        list[Count] | None,
        doc(
            "Right answers that came in that second, whenever their requests were due; absent "
            "where the result has no stages."
        ),
    ] = None
    latency_bins: Annotated[
        LatencyBins | None,
        doc(
            "Answers of that second's requests by latency; for a batch, ok answers that arrived in "
            "it. An entry for each second. Absent where the generator keeps no record of each "
            "request."
        ),
    ] = None


class Validity(Record, kw_only=True, frozen=True):
    """Whether the repetition is valid. loadlab/reasons/validity_reasons.py has the codes."""

    valid: Annotated[bool, doc("True where no reason makes it void.")]
    reasons: Annotated[
        list[Reason],
        doc(
            "Reasons that make it void, such as generator_cpu, generator_late, steal, link or "
            "failed."
        ),
    ]
    findings: Annotated[
        list[Reason],
        doc("Remarks that do not make it void, such as saturated, unsent, errors or uncalibrated."),
    ]


class ClientCpu(Record, kw_only=True, frozen=True):
    """CPU time of the client's process during `seconds`."""

    user: Annotated[NotNegative, doc("Seconds in user mode.")]
    system: Annotated[NotNegative, doc("Seconds in the kernel.")]


class PythonClient(Record, kw_only=True, frozen=True):
    """Resources that a Python client used, and its failures."""

    seconds: Annotated[
        NotNegative, doc("Seconds from before the first request to after the last request.")
    ]
    cpu_s: ClientCpu
    max_rss_bytes: Annotated[
        Count,
        doc(
            "Largest resident memory of the process, bytes, including the interpreter and "
            "libraries."
        ),
    ]
    open_files: Annotated[Count, doc("Soft limit of open files granted to the process.")]
    local_ports: Annotated[
        Annotated[list[Annotated[int, Meta(ge=0, le=65535)]], Meta(min_length=2, max_length=2)],
        doc(
            "First and last local port that the client's kernel assigns, "
            "net.ipv4.ip_local_port_range."
        ),
    ]
    versions: Annotated[
        dict[str, str], doc("Versions of Python and of the client's library, by name.")
    ]
    failures: Annotated[
        dict[str, Positive],
        doc(
            "Requests that were not ok, by the error that the client received: name of the "
            "kernel's errno, timeout, HTTP and the status, body, or the library's exception."
        ),
    ]


class ClientLoad(Record, kw_only=True, frozen=True):
    """One of several clients of a server: its share of the cell's load, and its results."""

    name: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")],
        doc("Inventory name of the client; its raw files are in the folder clients/<name>."),
    ]
    rate: Annotated[
        Above0 | None, doc("Client's share of the rate, requests/s; null for a closed loop.")
    ]
    connections: Annotated[Positive, doc("Client's share of the connections.")]
    requests: Annotated[Count, doc("Requests that the client sent.")]
    responses: Annotated[Count, doc("Requests answered in full, with any status.")]
    rate_achieved: Annotated[NotNegative, doc("Responses per second.")]
    errors: Annotated[ErrorCounts, doc("Failed requests of the client.")]
    unsent: Annotated[
        Count | None,
        doc("Requests scheduled for the client and never sent; null for a closed loop."),
    ]
    latency_us: Annotated[Latency, doc("Latencies of the client, µs.")]
    telemetry: Annotated[HostTelemetry, doc("Telemetry of the client's host during the load.")]
    validity: Annotated[
        Validity, doc("Whether the client's part is valid; the repetition is void where it is not.")
    ]
    started: Annotated[
        NotNegative, doc("Start of the client's load, unix seconds of its own clock.")
    ]
    clock_offset_s: Annotated[
        float, doc("Client's clock minus the controller's clock during the load, seconds.")
    ]


class Saturated(Record, kw_only=True, frozen=True):
    """What a stack served in its slices of a closed loop, in turn with other stacks."""

    goodput: Annotated[NotNegative, doc("Right answers per second of the slices.")]
    right: Annotated[Count, doc("Right answers of these.")]
    slices: Annotated[Count, doc("Number of slices.")]
    seconds: Annotated[NotNegative, doc("Their length together, seconds.")]
    cut: Annotated[Count, doc("Slices that were over before all of their requests.")]


class KindLoad(Record, kw_only=True, frozen=True):
    """One kind of request of a mix: its part of the load, and its results."""

    name: Annotated[str, doc("Name of its endpoint.")]
    weight: Annotated[Positive, doc("Its requests in each block of the mix.")]
    requests: Annotated[Count, doc("Requests of the kind that were sent.")]
    responses: Annotated[Count, doc("Of these answered in full, with any status.")]
    ok: Annotated[Count, doc("Answers with the status and the body of the verified one.")]
    scheduled: Annotated[Count, doc("Requests of the kind in the schedule.")]
    unsent: Annotated[Count, doc("Of these never sent.")]
    goodput: Annotated[NotNegative, doc("ok answers per second, over the span of the whole load.")]
    errors: Annotated[ErrorCounts, doc("Failed requests by class.")]
    latency_us: Annotated[Latency, doc("Latencies of all requests of the kind that were due, µs.")]
    own_us: Annotated[
        OwnPart | None, doc("What the generator itself added to each percentile of latency_us.")
    ]
    histogram: Annotated[
        EncodedHistogram | None, doc("Histogram of its latencies; null in summary.json.")
    ]
    ideal: Annotated[
        EncodedHistogram | None, doc("As the whole load's, of the kind; null in summary.json.")
    ]
    censored: Annotated[
        EncodedHistogram | None, doc("As the whole load's, of the kind; null in summary.json.")
    ]


class StageLoad(Record, kw_only=True, frozen=True):
    """A part of a ramp in which the rate is level, in whole seconds. Percentiles are of all
    requests that were due in it: one without an answer ranks behind every answer. Each is null
    where it falls among these, or too few were due.
    """

    begin_s: Annotated[Count, doc("Its first second, from the begin of the load.")]
    end_s: Annotated[Positive, doc("The second after its last.")]
    rate: Annotated[NotNegative, doc("Requests/s that were asked for.")]
    scheduled: Annotated[Count, doc("Requests that were due in it.")]
    failed: Annotated[
        Count, doc("Those of them without a right answer, whenever that came, or never sent.")
    ]
    goodput: Annotated[
        NotNegative,
        doc("Right answers that came in it, per second, whenever their requests were due."),
    ]
    p50_us: Annotated[Positive | None, doc("Median latency, µs.")]
    p99_us: Annotated[Positive | None, doc("99th percentile of the latency, µs.")]


class Queue(Record, kw_only=True, frozen=True):
    """Latencies of one connection by queueing theory, if each request took the mean service time of
    the load: it serves one request after the other, in the order in which they are due.
    """

    busy: Annotated[Above0, doc("Part of the time in which it serves, rate times service time.")]
    mean_us: Annotated[
        Above0, doc("Mean latency, µs, of the due times as recorded (Lindley's recursion).")
    ]
    p99_us: Annotated[Above0 | None, doc("p99 of these; null where they are too few.")]
    closed_mean_us: Annotated[
        Above0 | None,
        doc(
            "Mean latency, µs, of all loads of such arrivals (D/D/1, M/D/1, bursts); null where "
            "the lab has no closed form, or busy is 0.99 or more."
        ),
    ]
    closed_p99_us: Annotated[Above0 | None, doc("p99 of these, null as above.")]


class Recovery(Record, kw_only=True, frozen=True):
    """How a load went on after its overload. Times count from the begin of the last stage."""

    limit_us: Annotated[
        Positive | None,
        doc(
            "p99 of the first stage and recovered_max of files/validity.yml more, µs; null where "
            "reason says why it is not known."
        ),
    ]
    recovered_s: Annotated[
        Count | None,
        doc("Seconds until p99 was back within this limit; null where it was not."),
    ]
    window_s: Annotated[
        Positive | None,
        doc("Seconds from there on whose p99 this was; null where it was not."),
    ]
    waiting: Annotated[
        Count, doc("Requests that were due before the last stage and had not ended at its begin.")
    ]
    drained_s: Annotated[
        Count | None,
        doc(
            "Seconds until no more requests waited than at some second of the first stage; null "
            "where more did to the end."
        ),
    ]
    reason: Annotated[
        Reason | None, doc("Why it is not known whether p99 came back; absent where it is.")
    ] = None


class Repetition(Record, kw_only=True, frozen=True):
    """A result without its histogram, its series and the fields that its cell holds."""

    repetition: Annotated[Positive, doc("Number of the repetition, 1 or more.")]
    block: Annotated[
        Positive | None,
        doc("Number of the block of the schedule that it belongs to; absent outside the schedule."),
    ] = None
    server: Annotated[str, doc("Inventory name of the server of the pair that measured it.")]
    input_hashes: Annotated[
        InputHashes | None,
        doc("Input hashes of the cell and revision of the lab; absent for a calibration."),
    ] = None
    error: Annotated[
        str | None,
        doc(
            "Reason why the repetition failed, in which case all numbers are null; null where it "
            "did not fail."
        ),
    ]
    requests: Annotated[Count | None, doc("Requests sent, whether answered, failed or aborted.")]
    responses: Annotated[Count | None, doc("Requests answered in full, with any status.")]
    ok: Annotated[
        Count | None,
        doc(
            "Answers with status 2xx and the verified body length (wrk: status below 400, in "
            "time; wrk2: status below 400)."
        ),
    ]
    rate_achieved: Annotated[
        NotNegative | None,
        doc(
            "Answers per second. oha: answers before the deadline, divided by the deadline minus "
            "the fastest service time. wrk, wrk2 and the Python clients: answers divided by the "
            "run time."
        ),
    ]
    goodput: Annotated[
        NotNegative | None, doc("ok answers per second, over the same span as rate_achieved.")
    ]
    saturated: Annotated[
        Saturated | None,
        doc("The closed loop after a load of several lanes; absent where there was none."),
    ] = None
    errors: Annotated[
        ErrorCounts | None, doc("Failed requests by class; null where the repetition failed.")
    ]
    aborted: Annotated[
        Count | None, doc("Requests that the generator cut off at its own deadline.")
    ]
    scheduled: Annotated[
        Count | None,
        doc(
            "Requests of the constant rate's schedule (wrk2: each connection counts from its own "
            "start, 5 ms after the previous one); null for a closed loop or a batch."
        ),
    ]
    unsent: Annotated[
        Count | None,
        doc(
            "scheduled minus requests (wrk2: minus answers and one request per connection, which "
            "may have been in flight at the end), at least 0. null for a closed loop or a batch."
        ),
    ]
    duration_s: Annotated[
        NotNegative | None, doc("Measured time until the last answer waited for, seconds.")
    ]
    reverse_proxy_requests: Annotated[
        int | None,
        doc(
            "Requests that the reverse proxy counted during the load; null where none counted, "
            "or the repetition failed."
        ),
    ]
    mean_service_time_us: Annotated[
        NotNegative | None,
        doc(
            "Mean time from a request's actual start to its end, µs, without any wait before "
            "sending; null where the generator does not report it."
        ),
    ]
    latency_us: Annotated[
        Latency | None,
        doc(
            "Latencies of all requests that were due, µs; without a schedule, of all answers. "
            "Python clients: ok answers only. wrk2: requests after its calibration of 10 s. oha: "
            "requests after the opening of its connections. metronome: until the client's kernel "
            "had the answer. A percentile is null where it may be of the generator's making."
        ),
    ]
    latency_basis: Annotated[
        Literal["scheduled", "sent"] | None,
        doc(
            "scheduled: latency counts from the intended send time. sent: latency counts from the "
            "actual send time. The two are never compared."
        ),
    ]
    send_delay_us: Annotated[
        Latency | None,
        doc(
            "Delay by the generator itself, µs: from when a request was due and a connection was "
            "free to its start. Latency contains it. null where it is unknown, as for several "
            "clients together."
        ),
    ]
    own_us: Annotated[
        OwnPart | None,
        doc(
            "What the generator itself added to each percentile of latency_us; absent where it "
            "does not report it."
        ),
    ] = None
    shape: Annotated[
        Shape | None,
        doc(
            "How the arrivals of the schedule were kept; absent where the generator does not "
            "report it, as for several clients together or several stacks side by side."
        ),
    ] = None
    stops: Annotated[
        Stops | None,
        doc("Times in which the generator stood still; absent where it does not report them."),
    ] = None
    late: Annotated[
        Count | None,
        doc(
            "Requests that oha itself made markedly later than an ideal generator, to the median "
            "or above, or did not send although that would have; absent for another generator, "
            "which has own_us or no record of each request, or where failed requests hide it."
        ),
    ] = None
    telemetry: Annotated[
        Telemetry | None,
        doc("Telemetry of both hosts during the load; null where the repetition failed."),
    ]
    client: Annotated[
        PythonClient | None,
        doc(
            "Resources that a Python client used, and its failures; absent for another generator, "
            "or where the repetition failed."
        ),
    ] = None
    validity: Validity
    started: Annotated[
        NotNegative | None,
        doc(
            "Start of the load, unix seconds of the client's clock; with several clients, the "
            "first client's start and clock."
        ),
    ]
    finished: Annotated[
        NotNegative | None,
        doc(
            "End of the generator, or of a batch's last request, unix seconds of the client's "
            "clock; with several clients, the first client's clock."
        ),
    ]
    raw_sha256: Annotated[
        dict[str, Sha256],
        doc(
            "SHA-256 in hexadecimal of each raw file that the result was derived from, by file "
            "name. requests.json.gz contains the hash of oha.sqlite, which it replaces."
        ),
    ]
    response_time: Annotated[
        ResponseTime | None,
        doc(
            "Response time of all requests that were due; absent without a schedule (closed loop, "
            "batch), where wrk2 does not separate right answers from wrong ones, or where the "
            "repetition failed."
        ),
    ] = None
    py_spy: Annotated[
        PySpyProfile | None,
        doc("py-spy profile of a worker of the application; absent where it was not profiled."),
    ] = None
    trace: Annotated[
        KernelTrace | None,
        doc("Trace of the server's kernel; absent where it was not traced."),
    ] = None
    queue: Annotated[
        Queue | None,
        doc(
            "Latencies of a load over one connection by queueing theory; absent of several "
            "connections, without a rate, and where no record of each request is kept."
        ),
    ] = None
    stages: Annotated[
        list[StageLoad] | None,
        doc(
            "Each part of a ramp in which the rate is level for a second or more; absent of "
            "another load, of several clients, and where no record of each request is kept."
        ),
    ] = None
    recovery: Annotated[
        Recovery | None,
        doc(
            "The last stage against the first, where both have the same rate and one between them "
            "a higher rate; absent of other loads."
        ),
    ] = None
    kinds: Annotated[
        list[KindLoad] | None,
        doc("Each kind of request of a mix; absent without one, or where the repetition failed."),
    ] = None
    clients: Annotated[
        Annotated[list[ClientLoad], Meta(min_length=2)] | None,
        doc(
            "Each of several clients of the server, its telemetry without series; absent where "
            "there was one client, or where the repetition failed."
        ),
    ] = None


class Result(Repetition, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """cells/<cell_id>/rep-<n>/result.json: one repetition, the same for every generator."""

    cell_id: Annotated[Name, doc("Name of the cell and of its directory.")]
    purpose: Annotated[Purpose, doc("Purpose of the measurement.")]
    base: Annotated[
        str | None,
        doc("cell_id of the cell that this cell repeats, probes or limits; absent for `measure`."),
    ] = None
    cell: Annotated[Cell, doc("Cell that was measured.")]
    histogram: Annotated[
        EncodedHistogram | None,
        doc("Histogram of all latencies; null where the repetition failed."),
    ]
    per_second: Annotated[
        PerSecond | None, doc("Series by second; null where the generator has none.")
    ]
    ideal: Annotated[
        EncodedHistogram | None,
        doc(
            "Histogram of the latencies that the same answers would have had with a generator that "
            "adds nothing; absent where the generator does not report them."
        ),
    ] = None
    censored: Annotated[
        EncodedHistogram | None,
        doc(
            "Histogram of the waits that are certain, of the requests that were due and have no "
            "answer; absent where there are none."
        ),
    ] = None
