"""result.json: one repetition of a cell."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.model.base import (
    SCHEMA,
    Above0,
    Count,
    Fraction,
    Name,
    NotNegative,
    Positive,
    Reason,
    Record,
    Sha256,
)
from loadlab.model.cell import Cell, InputHashes, Purpose
from loadlab.model.latency import (
    EncodedHistogram,
    LaneTimes,
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

    connect: Count  #: Requests that got no connection. 0 or more.
    #: Requests whose connection was lost, or that got no valid HTTP, while the generator awaited or
    #: read the answer. 0 or more.
    read: Count
    write: Count  #: Requests whose connection was lost while the request was sent. 0 or more.
    #: Requests without an answer within the request timeout (wrk: answered after the timeout; wrk2:
    #: 0, because it waits without limit; its ticks are a finding). 0 or more.
    timeout: Count
    status_4xx: Count  #: Requests answered with status 400 to 499. 0 or more.
    status_5xx: Count  #: Requests answered with status 500 to 599. 0 or more.
    #: Requests answered with another status outside 2xx (wrk and wrk2: any status of 400 or above,
    #: because they do not report the status). 0 or more.
    status_other: Count
    body: Count  #: Requests answered 2xx with a body length other than the verified one. 0 or more.


class PerSecond(Record, kw_only=True, frozen=True):
    """Series by second of intended start; for a batch, by second of the answer or failure. Entry k
    covers second[k] to second[k]+1 of the load. All arrays have the same length. A request sent a
    few ms late may count in the next second.
    """

    second: list[Count]  #: Seconds since the load began: 0, 1, 2 …
    scheduled: list[Count]  #: Requests scheduled in that second; for a batch, requests begun in it.
    #: Scheduled requests that were answered, at any time; for a batch, answers that arrived in that
    #: second.
    responses: list[Count]
    ok: list[Count]  #: Responses with status 2xx and the right body length.
    #: Median latency of that second's requests, µs; for a batch, of the ok answers that arrived in
    #: it.
    p50_us: list[Count | None]
    #: 99th percentile latency of that second's requests, µs; for a batch, of the ok answers that
    #: arrived in it.
    p99_us: list[Count | None]
    #: Largest latency of that second's requests, µs; for a batch, of the ok answers that arrived in
    #: it.
    max_us: list[Count | None]
    #: Right answers that came in that second, whenever their requests were due; absent of a load
    #: without a ramp, and as stages.
    came: list[Count] | None = None
    #: Answers of that second's requests by latency; for a batch, ok answers that arrived in it. An
    #: entry for each second. Absent where the generator keeps no record of each request.
    latency_bins: LatencyBins | None = None


class Validity(Record, kw_only=True, frozen=True):
    """Whether the repetition is valid. loadlab/reasons/validity_reasons.py has the codes."""

    valid: bool  #: True where no reason makes it void.
    #: Reasons that make it void, such as generator_cpu, generator_late, steal, link or failed.
    reasons: list[Reason]
    #: Remarks that do not make it void, such as saturated, unsent, errors or uncalibrated.
    findings: list[Reason]


class ClientCpu(Record, kw_only=True, frozen=True):
    """CPU time of the client's process during `seconds`."""

    user: NotNegative  #: Seconds in user mode.
    system: NotNegative  #: Seconds in the kernel.


class PythonClient(Record, kw_only=True, frozen=True):
    """Resources that a Python client used, and its failures."""

    seconds: NotNegative  #: Seconds from before the first request to after the last request.
    cpu_s: ClientCpu
    #: Largest resident memory of the process, bytes, including the interpreter and libraries.
    max_rss_bytes: Count
    open_files: Count  #: Soft limit of open files granted to the process.
    #: First and last local port that the client's kernel assigns, net.ipv4.ip_local_port_range.
    local_ports: Annotated[
        list[Annotated[int, Meta(ge=0, le=65535)]], Meta(min_length=2, max_length=2)
    ]
    versions: dict[str, str]  #: Versions of Python and of the client's library, by name.
    #: Requests that were not ok, by the error that the client received: name of the kernel's errno,
    #: timeout, HTTP and the status, body, or the library's exception.
    failures: dict[str, Positive]


class ClientLoad(Record, kw_only=True, frozen=True):
    """One of several clients of a server: its share of the cell's load, and its results."""

    #: Inventory name of the client; its raw files are in the folder clients/<name>.
    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")]
    rate: Above0 | None  #: Client's share of the rate, requests/s; null for a closed loop.
    connections: Positive  #: Client's share of the connections.
    requests: Count  #: Requests that the client sent.
    responses: Count  #: Requests answered in full, with any status.
    rate_achieved: NotNegative  #: Responses per second.
    errors: ErrorCounts  #: Failed requests of the client.
    #: Requests scheduled for the client and never sent; null for a closed loop.
    unsent: Count | None
    latency_us: Latency  #: Latencies of the client, µs.
    telemetry: HostTelemetry  #: Telemetry of the client's host during the load.
    #: Whether the client's part is valid; the repetition is void where it is not.
    validity: Validity
    started: NotNegative  #: Start of the client's load, unix seconds of its own clock.
    clock_offset_s: float  #: Client's clock minus the controller's clock during the load, seconds.


class Saturated(Record, kw_only=True, frozen=True):
    """What a stack served in its slices of a closed loop, in turn with other stacks."""

    goodput: NotNegative  #: Right answers per second of the slices.
    right: Count  #: Right answers of these.
    slices: Count  #: Number of slices.
    seconds: NotNegative  #: Their length together, seconds.
    cut: Count  #: Slices that were over before all of their requests.
    #: When the closed loops of all stacks began, unix seconds of the client's clock; absent from an
    #: earlier lab, as is what follows.
    started: NotNegative | None = None
    finished: NotNegative | None = None  #: When they ended, in the same way.
    #: Part of that time in its slices, with the first, which opens the connections; fraction 0 to
    #: 1.
    turns: Fraction | None = None
    #: The server from started to finished, without its series, queues and log; absent where it was
    #: not recorded until then.
    server: HostTelemetry | None = None


class Opened(Record, kw_only=True, frozen=True):
    """The connections of a load that opens one whenever a request is due and none is free."""

    count: Count  #: Connections that were opened, or tried to.
    most: Count  #: Those at once, at most; with several clients, each client's added.
    waited: Count  #: Requests that were due while none was free and no more could be opened.


class KindLoad(Record, kw_only=True, frozen=True):
    """One kind of request of a mix: its part of the load, and its results."""

    name: str  #: Name of its endpoint.
    weight: Positive  #: Its requests in each block of the mix.
    requests: Count  #: Requests of the kind that were sent.
    responses: Count  #: Of these answered in full, with any status.
    ok: Count  #: Answers with the status and the body of the verified one.
    scheduled: Count  #: Requests of the kind in the schedule.
    unsent: Count  #: Of these never sent.
    goodput: NotNegative  #: ok answers per second, over the span of the whole load.
    errors: ErrorCounts  #: Failed requests by class.
    latency_us: Latency  #: Latencies of all requests of the kind that were due, µs.
    own_us: OwnPart | None  #: What the generator itself added to each percentile of latency_us.
    histogram: EncodedHistogram | None  #: Histogram of its latencies; null in summary.json.
    ideal: EncodedHistogram | None  #: As the whole load's, of the kind; null in summary.json.
    censored: EncodedHistogram | None  #: As the whole load's, of the kind; null in summary.json.


class BrokenVisits(Record, kw_only=True, frozen=True):
    """The visits of a session that ended at one of its steps."""

    request: str  #: Name of the step's endpoint.
    wrong: Count  #: Visits without a right answer to it.
    missing: Count  #: Visits whose right answer lacked a value for a later request.


class VisitLoad(Record, kw_only=True, frozen=True):
    """The visits of a load of sessions. A visit that was started and is neither completed nor
    broken was under way when the load ended.
    """

    scheduled: Count  #: Visitors that were to come.
    started: Count  #: Those of whom a request was sent.
    completed: Count  #: Visits with a right answer to each of their requests.
    broken: list[BrokenVisits]  #: The visits that ended before, by the step, in its order.
    #: Median time of the completed visits, from when the first request was due to the last answer,
    #: µs, at most an hour, as which a longer visit counts; null where they are too few.
    p50_us: NotNegative | None = None
    p99_us: NotNegative | None = None  #: 99th percentile of it, µs; null as above.
    histogram: EncodedHistogram | None = None  #: Histogram of these times; null in summary.json.

    @property
    def broken_sum(self) -> int:
        """The visits that ended at any step."""
        return sum(step.wrong + step.missing for step in self.broken)

    @property
    def cut(self) -> int:
        """The visits that were under way when the load ended."""
        return self.started - self.completed - self.broken_sum


class StageLoad(Record, kw_only=True, frozen=True):
    """A part of a ramp in which the rate is level, in whole seconds. Percentiles are of all
    requests that were due in it: one without an answer ranks behind every answer. Each is null
    where it falls among these, or too few were due.
    """

    begin_s: Count  #: Its first second, from the begin of the load.
    end_s: Positive  #: The second after its last.
    rate: NotNegative  #: Requests/s that were asked for.
    scheduled: Count  #: Requests that were due in it.
    failed: Count  #: Those of them without a right answer, whenever that came, or never sent.
    #: Right answers that came in it, per second, whenever their requests were due.
    goodput: NotNegative
    p50_us: Positive | None  #: Median latency, µs.
    p99_us: Positive | None  #: 99th percentile of the latency, µs.


class Queue(Record, kw_only=True, frozen=True):
    """Latencies of one connection by queueing theory, if each request held it for the mean time of
    the load: it serves one request after the other, in the order in which they are due. What the
    generator takes to use the free connection is part of that time, as it delays all that wait.
    """

    busy: Above0  #: Part of the time in which it serves, rate times that time.
    mean_us: Above0  #: Mean latency, µs, of the due times as recorded (Lindley's recursion).
    p99_us: Above0 | None  #: p99 of these; null where they are too few.
    #: Mean latency, µs, of all loads of such arrivals: constant ones and bursts with the mean
    #: service time (D/D/1), Poisson ones with the service times as recorded (M/G/1: M/D/1 if they
    #: are alike, M/M/1 if exponential); null where the lab has no closed form, or busy is 0.99 or
    #: more.
    closed_mean_us: Above0 | None
    closed_p99_us: Above0 | None  #: p99 of these, null as above.
    #: Between these chance alone leaves the mean of 99 % of the Poisson loads with so many
    #: requests, µs; absent of other arrivals, and where the closed form is null.
    chance_mean_low_us: Above0 | None = None
    chance_mean_high_us: Above0 | None = None  #: The upper end, µs, absent as above.
    chance_p99_low_us: Above0 | None = None  #: The same of their p99, µs.
    chance_p99_high_us: Above0 | None = None  #: The upper end, µs, absent as above.


class Recovery(Record, kw_only=True, frozen=True):
    """How a load went on after its overload. Times count from the begin of the last stage."""

    #: p99 of the first stage and the threshold recovered_max more, µs; null where reason says why
    #: it is not known.
    limit_us: Positive | None
    #: Seconds until p99 was back within this limit; null where it was not.
    recovered_s: Count | None
    window_s: Positive | None  #: Seconds from there on whose p99 this was; null where it was not.
    waiting: Count  #: Requests that were due before the last stage and had not ended at its begin.
    #: Seconds until no more requests waited than at some second of the first stage; null where more
    #: did to the end.
    drained_s: Count | None
    #: That p99 was back, but from there to the end of the load it is above the limit, or among the
    #: failed requests.
    rose: bool = False
    reason: Reason | None = None  #: Why it is not known whether p99 came back; absent where it is.


class Knee(Record, kw_only=True, frozen=True):
    """The rate up to which the stack answered as many requests as a rising ramp offered."""

    #: Requests/s; null where there is none up to the end of the rise, or it is not known.
    rate: Above0 | None
    low: NotNegative | None  #: Lower bound of its 95 % interval, within the repetition.
    high: Above0 | None  #: Upper bound of the interval.
    #: Requests/s in the last seconds of the rise, where the stack still answered as many as were
    #: offered, so there is no knee up to it; absent where there is one, or it is not known.
    above: Above0 | None = None
    reason: Reason | None = None  #: Why it is not known; absent where it is.


class BurstLoad(Record, kw_only=True, frozen=True):
    """The bursts of a load. A burst has drained when the last of its requests is answered; its time
    counts from when it was due. Percentiles are of all bursts: one that did not drain ranks behind
    those that did. Each is null where it falls among the former, or the bursts are too few.
    """

    scheduled: Positive  #: Bursts that were due.
    undrained: Count  #: Those of them with a request that got no answer or was never sent.
    #: Bursts that were due while a request of an earlier one still waited for its answer.
    met: Count
    p50_us: NotNegative | None  #: Median time, µs.
    p99_us: NotNegative | None  #: 99th percentile of the time, µs.
    max_us: Count | None  #: Longest time of those that drained, µs; null where none did.


class Repetition(Record, kw_only=True, frozen=True):
    """A result without its histogram, its series and the fields that its cell holds."""

    repetition: Positive  #: Number of the repetition, 1 or more.
    #: Number of the block of the schedule that it belongs to; absent outside the schedule.
    block: Positive | None = None
    #: How many blocks the schedule had when it was measured; absent outside the schedule.
    blocks: Positive | None = None
    server: str  #: Inventory name of the server of the pair that measured it.
    #: Input hashes of the cell and revision of the lab; absent for a calibration.
    input_hashes: InputHashes | None = None
    #: Reason why the repetition failed, in which case all numbers are null; null where it did not
    #: fail.
    error: str | None
    requests: Count | None  #: Requests sent, whether answered, failed or aborted.
    responses: Count | None  #: Requests answered in full, with any status.
    #: Answers with status 2xx and the verified body length (wrk: status below 400, in time; wrk2:
    #: status below 400).
    ok: Count | None
    #: Answers per second. oha: answers before the deadline, divided by the deadline minus the
    #: fastest service time. wrk, wrk2 and the Python clients: answers divided by the run time.
    rate_achieved: NotNegative | None
    goodput: NotNegative | None  #: ok answers per second, over the same span as rate_achieved.
    #: The closed loop after a load of several lanes; absent where there was none.
    saturated: Saturated | None = None
    errors: ErrorCounts | None  #: Failed requests by class; null where the repetition failed.
    aborted: Count | None  #: Requests that the generator cut off at its own deadline.
    #: Requests of the constant rate's schedule (wrk2: each connection counts from its own start, 5
    #: ms after the previous one); null for a closed loop or a batch.
    scheduled: Count | None
    #: scheduled minus requests (wrk2: minus answers and one request per connection, which may have
    #: been in flight at the end), at least 0. null for a closed loop or a batch.
    unsent: Count | None
    duration_s: NotNegative | None  #: Measured time until the last answer waited for, seconds.
    #: Requests that the reverse proxy counted during the load; null where none counted, or the
    #: repetition failed.
    reverse_proxy_requests: int | None
    #: Mean time from a request's actual start to its end, µs, without any wait before sending; null
    #: where the generator does not report it.
    mean_service_time_us: NotNegative | None
    #: Latencies of all requests that were due, µs; without a schedule, of all answers. Python
    #: clients: ok answers only. wrk2: requests after its calibration of 10 s. oha: requests after
    #: the opening of its connections. metronome: until the client's kernel had the answer. A
    #: percentile is null where it may be of the generator's making.
    latency_us: Latency | None
    #: scheduled: latency counts from the intended send time. sent: latency counts from the actual
    #: send time. The two are never compared.
    latency_basis: Literal["scheduled", "sent"] | None
    #: Delay by the generator itself, µs: from when a request was due and a connection was free to
    #: its start. Latency contains it. null where it is unknown, as for several clients together.
    send_delay_us: Latency | None
    #: What the generator itself added to each percentile of latency_us; absent where it does not
    #: report it.
    own_us: OwnPart | None = None
    #: How the arrivals of the schedule were kept; absent where the generator does not report it, as
    #: for several clients together or several stacks side by side.
    shape: Shape | None = None
    #: Connections that were opened on demand; absent of a load that keeps a number of them open.
    opened: Opened | None = None
    visits: VisitLoad | None = None  #: The visits; absent where the load has no session.
    #: Times in which the generator stood still; absent where it does not report them.
    stops: Stops | None = None
    #: Requests that oha itself made markedly later than an ideal generator, to the median or above,
    #: or did not send although that would have; absent for another generator, which has own_us or
    #: no record of each request, or where failed requests hide it.
    late: Count | None = None
    #: Telemetry of both hosts during the load; null where the repetition failed.
    telemetry: Telemetry | None
    #: Resources that a Python client used, and its failures; absent for another generator, or where
    #: the repetition failed.
    client: PythonClient | None = None
    validity: Validity
    #: Start of the load, unix seconds of the client's clock; with several clients, the first
    #: client's start and clock.
    started: NotNegative | None
    #: End of the generator, or of a batch's last request, unix seconds of the client's clock; with
    #: several clients, the first client's clock.
    finished: NotNegative | None
    #: SHA-256 in hexadecimal of each raw file that the result was derived from, by file name.
    #: requests.json.gz contains the hash of oha.sqlite, which it replaces.
    raw_sha256: dict[str, Sha256]
    #: Response time of all requests that were due; absent without a schedule (closed loop, batch),
    #: where wrk2 does not separate right answers from wrong ones, or where the repetition failed.
    response_time: ResponseTime | None = None
    #: Absent of a load of one stack, or where the repetition failed.
    lane_times: LaneTimes | None = None
    #: py-spy profile of a worker of the application; absent where it was not profiled.
    py_spy: PySpyProfile | None = None
    #: Trace of the server's kernel; absent where it was not traced.
    trace: KernelTrace | None = None
    #: Latencies of a load over one connection by queueing theory; absent of several connections,
    #: without a rate, and where no record of each request is kept.
    queue: Queue | None = None
    #: Each part of a ramp in which the rate is level for a second or more; absent of another load,
    #: of several clients, and where no record of each request is kept.
    stages: list[StageLoad] | None = None
    #: The last stage against the first, where both have the same rate and one between them a higher
    #: rate; absent of other loads.
    recovery: Recovery | None = None
    #: Where the answers of a ramp stayed behind its rate; absent of a load whose rate does not rise
    #: evenly from the begin to its highest, and as stages.
    knee: Knee | None = None
    #: How long its bursts took to drain; absent of a load without bursts, of sessions, and as
    #: stages.
    bursts: BurstLoad | None = None
    #: Each kind of request of a mix; absent without one, or where the repetition failed.
    kinds: list[KindLoad] | None = None
    #: Each of several clients of the server, its telemetry without series; absent where there was
    #: one client, or where the repetition failed.
    clients: Annotated[list[ClientLoad], Meta(min_length=2)] | None = None


class Result(Repetition, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """cells/<cell_id>/rep-<n>/result.json: one repetition, the same for every generator."""

    cell_id: Name  #: Name of the cell and of its directory.
    purpose: Purpose  #: Purpose of the measurement.
    #: cell_id of the cell that this cell repeats, probes or limits; absent for `measure`.
    base: str | None = None
    cell: Cell  #: Cell that was measured.
    #: Histogram of all latencies; null where the repetition failed.
    histogram: EncodedHistogram | None
    per_second: PerSecond | None  #: Series by second; null where the generator has none.
    #: Histogram of the latencies that the same answers would have had with a generator that adds
    #: nothing; absent where the generator does not report them.
    ideal: EncodedHistogram | None = None
    #: Histogram of the waits that are certain, of the requests that were due and have no answer;
    #: absent where there are none.
    censored: EncodedHistogram | None = None
