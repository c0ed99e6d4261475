"""A cell: what is measured."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal, Self, TypeAlias

import msgspec
from msgspec import Meta, field

from loadlab.model.base import Above0, Name, NotNegative, Positive, Record, Sha256

# The default reverse proxy. It answers the calibration also with another one, or with none.
NGINX = "nginx"
# In place of a reverse proxy: the clients connect to the application server.
DIRECT = "none"

# What a measurement of a cell is for. Only `measure` is ranked and compared.
Purpose = Literal[
    "measure",
    "closed_loop",
    "aa_control",
    "probe",
    "curve",
    "overload",
    "saturation",
    "py_spy",
    "trace",
    "calibration",
    "injection",
    "check",
    "cross_check",
]


def kinds_of(endpoint: str) -> dict[str, int]:
    """Return the weight of each endpoint that a cell's `endpoint` names; the only one has 1."""
    pairs = (kind.split(":") for kind in endpoint.split(","))
    return {name: int(*weight or (1,)) for name, *weight in pairs}


class Stall(Record, kw_only=True, frozen=True):
    """The application is stopped during the load."""

    after_s: NotNegative  #: Time from the start of the measured load to the stall, seconds.
    duration_s: Above0  #: Length of the stall, seconds.


class Neighbour(Record, kw_only=True, frozen=True):
    """Programs of somebody else use CPU during the load."""

    #: Where they run: on the first core of a host, or on any core of the controller.
    host: Literal["server", "client", "controller"]
    after_s: NotNegative  #: Time from the start of the measured load, seconds.
    duration_s: Above0  #: How long they run, seconds.
    #: CPU time that each uses in a tenth of a second, at most, as a fraction of one core.
    cpu: Annotated[float, Meta(gt=0, le=1)] = 1
    #: How many there are, 1 to 64, each a session of its own.
    programs: Annotated[int, Meta(ge=1, le=64)] = 1


class Download(Record, kw_only=True, frozen=True):
    """One more program of the client downloads during the load, as fast as TCP lets it."""

    after_s: NotNegative  #: Time from the start of the measured load, seconds.
    duration_s: Above0  #: How long it downloads, seconds.


class HalfOpen(Record, kw_only=True, frozen=True):
    """The client begins connections at once and finishes none: it sends their SYN, and no ACK."""

    connections: Annotated[int, Meta(ge=1, le=1000)]  #: Connections that are begun, 1 to 1,000.
    after_s: NotNegative  #: Time from the start of the measured load, seconds.
    duration_s: Above0  #: How long the client answers nothing, seconds.


class Injection(Record, kw_only=True, frozen=True):
    """Known faults that the hosts inject during the load, not the application."""

    generator_stop: Stall | None = None  #: The generator is stopped during the load.
    neighbour: Neighbour | None = None  #: A busy neighbour on a core of a host.
    half_open: HalfOpen | None = None  #: Connections from the client that stay half open.
    #: The server's kernel refuses every n-th connection.
    refused_every: Annotated[int, Meta(ge=2)] | None = None
    #: The server's kernel drops every n-th packet of the load that arrives.
    lost_every: Annotated[int, Meta(ge=2)] | None = None
    download: Download | None = None  #: A large download from the server over the test link.


# Of a ramp: time and rate.
Point: TypeAlias = tuple[NotNegative, NotNegative]


class Switching(Record, kw_only=True, frozen=True):
    """A Poisson process with two rates, of which each lasts for a time with an exponential
    distribution."""

    ratio: Annotated[float, Meta(ge=1, le=1_000)]  #: Busy rate / calm rate, 1 to 1,000.
    #: Mean time at the calm rate, seconds, 0.01 to 86,400.
    calm_s: Annotated[float, Meta(ge=0.01, le=86_400)]
    busy_s: Annotated[float, Meta(ge=0.01, le=86_400)]  #: Mean time at the busy rate, alike.

    def __str__(self) -> str:
        """Return it as the option has it: mmpp:9:2:0.5."""
        return f"mmpp:{self.ratio:g}:{self.calm_s:g}:{self.busy_s:g}"


class Arrivals(Record, kw_only=True, frozen=True):
    """How the requests of a mean rate come: at random or in bursts, and along a ramp."""

    #: Shape of the gamma distribution of the gaps between requests, 0.25 to 100: 1 is a Poisson
    #: process, less is burstier, more is nearer to constant.
    smoothness: Annotated[float, Meta(ge=0.25, le=100)] | None = None
    #: Requests that are due at the same moment, 2 to 10,000.
    burst: Annotated[int, Meta(ge=2, le=10_000)] | None = None
    #: Two rates, between which a Poisson process switches at random.
    switching: Switching | None = None
    #: Pairs of a time, ascending, and a rate, from the begin to the end, with straight lines
    #: between them; at the same time twice, the rate jumps. Only ratios count, as the load has a
    #: length and a mean rate.
    ramp: Annotated[list[Point], Meta(min_length=2, max_length=1000)] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where nothing is there, or what excludes each other."""
        fields = (self.smoothness, self.burst, self.switching, self.ramp)
        if fields == (None,) * 4 or fields[:3].count(None) < 2:
            raise ValueError(
                "arrivals of smoothness {}, burst {}, switching {} and ramp {}".format(*fields)
            )

    def __str__(self) -> str:
        """Return them as the options have them: poisson, gamma:0.5, bursts:20 ramp:0..300."""
        words = []
        if self.burst is not None:
            words.append(f"bursts:{self.burst}")
        elif self.smoothness is not None:
            words.append("poisson" if self.smoothness == 1 else f"gamma:{self.smoothness:g}")
        elif self.switching is not None:
            words.append(str(self.switching))
        if self.ramp:
            words.append(f"ramp:{ramp_text(self.ramp)}")
        return " ".join(words)

    @property
    def is_random(self) -> bool:
        """Whether they follow from a seed."""
        return self.smoothness is not None or self.switching is not None

    @property
    def level(self) -> Self | None:
        """The same at a rate that does not change; None where these are constant."""
        if (self.smoothness, self.burst, self.switching) == (None, None, None):
            return None
        return msgspec.structs.replace(self, ramp=None)

    def first_rate(self, rate: float) -> float:
        """Return the rate at the begin of a load with this mean; the mean where it begins at 0."""
        begin = self.ramp[0][1] if self.ramp else 0
        return rate * begin / ramp_mean(self.ramp) if self.ramp and begin else rate

    def stages(self, rate: float, duration_s: float) -> list[tuple[float, float, float]]:
        """Return (begin, end, rate) of each part of a load in which the rate is level.

        ``rate``: the mean, requests/s; times are in seconds of the load. Empty without a ramp.
        """
        points = self.ramp or []
        if not points:
            return []
        first, length = points[0][0], points[-1][0] - points[0][0]
        faster, longer = rate / ramp_mean(points), duration_s / length
        parts: list[tuple[float, float, float]] = []
        for (begin, level), (end, after) in pairwise(points):
            if level != after or end == begin:
                continue
            # A row in the middle of a level part does not divide it.
            joined = parts and parts[-1][1:] == (begin, level)
            parts.append((parts.pop()[0] if joined else begin, end, level))
        return [
            ((begin - first) * longer, (end - first) * longer, level * faster)
            for begin, end, level in parts
        ]


def ramp_mean(points: Sequence[Point]) -> float:
    """Return the mean rate of a ramp that has a length."""
    requests = sum((b - a) * (x + y) / 2 for (a, x), (b, y) in pairwise(points))
    return requests / (points[-1][0] - points[0][0])


def ramp_text(points: Sequence[Point]) -> str:
    """Return a ramp as the option has it: 100..2000 of equal distances, else 0:100,60:2000."""
    if [time for time, _ in points] == [*range(len(points))]:
        return "..".join(f"{rate:.15g}" for _, rate in points)
    return timed_ramp_text(points)


def timed_ramp_text(points: Sequence[Point]) -> str:
    """Return a ramp as the option has it with the second of each rate."""
    return ",".join(f"{time:.15g}:{rate:.15g}" for time, rate in points)


class Replay(Record, kw_only=True, frozen=True):
    """An access log whose requests a load sends, each once, in order and at its time."""

    log_sha256: Sha256  #: SHA-256 of the log, which stays on the controller.
    speed: Above0  #: Seconds of the log that pass in a second.
    query: bool  #: Whether queries are sent as in the log; otherwise without.
    lines: Positive  #: Lines of the log.
    requests: Positive  #: Lines that are sent.
    busiest: Above0  #: Requests/s in the second of the log that has most, at that speed.
    #: Path, with its method where that is no GET, and its requests; the rest at last.
    kinds: list[tuple[str, Positive]]
    #: Why lines are not sent -> their number: their method, no endpoint, or malformed.
    left_out: dict[str, Positive]


class SessionStep(Record, kw_only=True, frozen=True):
    """A request of a session, which each visitor sends when the answer before is there, after a
    time of thinking.
    """

    request: str  #: Name of its endpoint.
    think_s: Annotated[float, Meta(ge=0, le=3600)] = 0  #: Time of thinking before it, seconds.
    #: Mean of that time where it is random, with an exponential distribution, seconds; else absent.
    think_mean_s: Annotated[float, Meta(gt=0, le=3600)] | None = None
    #: Values that later requests have in place of {name}: name -> place in the answer, a JSON path
    #: such as $.items[0].id or the name of a header.
    take: dict[str, str] = field(default_factory=dict)

    @property
    def thinks_s(self) -> float:
        """The time of thinking, on average, seconds."""
        return self.think_s if self.think_mean_s is None else self.think_mean_s


class LaneTurns(Record, kw_only=True, frozen=True):
    """How one load alternates between several stacks, each in a lane with connections of its own.

    At a rate the lanes take turns request by request, and a closed loop may follow. Closed loops
    take turns in slices of time. How many lanes there are may differ from load to load.
    """

    closed_s: NotNegative = 0  #: Length of the closed loop that follows, seconds; 0 for none.
    #: Length of its slices, seconds, without the wait for the last answers.
    slice_s: NotNegative = 0


class Load(Record, kw_only=True, frozen=True):
    """The offered load."""

    #: Program that offers the load. oha and wrk2 keep a constant rate; wrk is a closed loop. The
    #: Python clients are measured themselves: they send one request after another, all at once, or
    #: a bounded number at once.
    generator: str
    #: constant: requests follow a schedule, whatever the server does. closed: each connection sends
    #: its next request when it has its answer. batch: a fixed number of requests, sent as the
    #: client is designed to.
    mode: Literal["constant", "closed", "batch"]
    #: Requested rate, requests per second, above 0; null for a closed loop or a batch, and in a
    #: plan for a fraction that is not known yet.
    rate: Above0 | None
    #: How requests come at that rate; absent where each comes so long after the last.
    arrivals: Arrivals | None = None
    #: Log whose requests are sent; absent where a load has none. rate is then its mean.
    replay: Replay | None = None
    #: What each visitor sends, one request after another; absent where requests come alone. rate is
    #: then of visitors, and arrivals are theirs.
    session: Annotated[list[SessionStep], Meta(min_length=1, max_length=16)] | None = None
    #: The rule of a study or a curve: rate is this fraction of the lowest goodput that the cells in
    #: of_saturation reached in a short closed loop. Absent where the rate was given.
    fraction: Above0 | None = None
    #: Names of the study's cells that fraction refers to, or of a curve the cell_id of the closed
    #: loop; absent where the rate was given.
    of_saturation: list[str] | None = None
    #: Connections kept open, 1 or more; on demand: most connections at once. For a batch: most
    #: requests under way at once.
    connections: Positive
    #: Whether a connection is opened when a request is due and none is free; absent where all are
    #: kept open.
    on_demand: bool | None = None
    #: Clients of the server that offer the load together, 2 or more; rate and connections are
    #: totals over all clients. Absent where there is one client.
    clients: Annotated[int, Meta(ge=2)] | None = None
    #: How the load alternates between stacks that are up together. rate and connections are of
    #: each; in its turn a stack gets the rate of all. Absent where a load is of one.
    lanes: LaneTurns | None = None
    #: Requests of a batch, 1 to 1,000,000; absent for other modes.
    requests: Annotated[int, Meta(ge=1, le=1000000)] | None = None
    #: Requested soft limit of open files for a batch's client; absent for other modes.
    open_files: Positive | None = None
    #: Whether a batch's client keeps and reuses connections; absent for other modes.
    reuse: bool | None = None
    #: Requested length of the measurement, seconds, above 0; null for a batch, which ends with its
    #: last request.
    duration_s: Above0 | None
    #: Whether the generator keeps its connections; if not, each request opens a new one. Absent for
    #: a batch, which has reuse.
    keepalive: bool | None = None
    #: Seconds between the bursts of a closed loop: its connections send their next request
    #: together, when the client's clock is at a multiple of this. Absent where each sends when it
    #: has its answer.
    burst_every_s: Above0 | None = None
    stall: Stall | None = None  #: The application is stopped during the load.
    #: Known faults that the lab injects; absent where there are none.
    injection: Injection | None = None
    #: Endpoint that one more client requests during the load, one request after another.
    background_endpoint: str | None = None
    #: Length of the warm-up, seconds, 0 or more: the same load, not measured.
    warmup_s: NotNegative
    #: Request timeout, seconds, above 0; absent where it is the threshold timeout_s.
    timeout_s: Above0 | None = None
    #: HTTPS with a certificate that the server signed itself. Absent where it is plain HTTP.
    tls: bool | None = None
    #: HTTP/2, with one stream at a time on each connection. Absent where it is HTTP/1.1.
    http2: bool | None = None
    #: Headers of each request in addition to the generator's own, by name. Absent where there are
    #: none.
    headers: dict[str, str] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where the fields contradict the mode."""
        batch = self.mode == "batch"
        for name in ("requests", "open_files", "reuse"):
            if (getattr(self, name) is not None) != batch:
                raise ValueError(f"mode {self.mode} {'needs' if batch else 'has no'} {name}")
        if (self.duration_s is None) != batch or (batch and self.rate is not None):
            raise ValueError(f"mode {self.mode} with rate {self.rate}, duration {self.duration_s}")


class Cell(Record, kw_only=True, frozen=True):
    """A cell: one stack, endpoint, tuning profile, network profile and load."""

    framework: str  #: Name of the application's folder in apps/.
    #: Folder that was deployed in place of apps/<framework>; absent where none was.
    app: str | None = None
    server: str  #: Application server, a folder in files/servers/.
    transport: str  #: Socket of the application server: unix or tcp.
    protocol: str  #: Protocol on that socket: http, uwsgi or fastcgi.
    worker_class: str | None = None  #: Gunicorn's worker class; absent for other servers.
    #: Event loop: asyncio or uvloop; absent where it cannot be chosen.
    event_loop: str | None = None
    upstream_keepalive: bool | None = None  #: Whether the reverse proxy kept its connections to it.
    #: Processes of the application server; absent: one for each of the server's cpus in
    #: manifest.json.
    workers: Positive | None = None
    threads: Positive | None = None  #: Threads of each process.
    #: Seconds until the application server closes an idle connection; absent: the lab's 75, more
    #: than nginx's 60.
    server_keepalive_s: Positive | None = None
    #: Accept queue that the reverse proxy and the application server request of the kernel,
    #: connections.
    backlog: Positive | None = None
    #: Database driver: psycopg2, psycopg (3) or asyncpg; absent where it is the application's
    #: default, the first of `drivers` in its app.yml.
    driver: str | None = None
    #: Python that the application runs on: a version, with a t where it is free-threaded, or pypy3;
    #: absent: the server's own.
    python: str | None = None
    #: Reverse proxy that the clients connect to; absent: nginx. none: they connect to the
    #: application server directly. transport and protocol are then those of the clients, and
    #: upstream_keepalive says whether the server kept their connections.
    reverse_proxy: Name = NGINX
    #: Name of the requested endpoint; of a mix its endpoints with their weights, such as
    #: index:70,agents:25; of a replay those that its log names, with their requests; of a session
    #: those of a visit.
    endpoint: str
    tuning: str  #: Tuning profile.
    network: str  #: Network profile.
    #: base or head, where the run compares variants; they may differ in nothing else.
    variant: str | None = None
    #: Void reasons that are the subject of the cell and therefore do not void it.
    expected_void: list[str] | None = None
    load: Load

    @property
    def kinds(self) -> dict[str, int]:
        """The weight of each requested endpoint by its name; the only one has 1. Of a replay, the
        requests of each kind."""
        return dict(self.load.replay.kinds) if self.load.replay else kinds_of(self.endpoint)

    @property
    def direct(self) -> bool:
        """Whether the clients connect to the application server."""
        return self.reverse_proxy == DIRECT


class InputHashes(Record, kw_only=True, frozen=True):
    """SHA-256 of the inputs of a cell, and the revision of the lab."""

    application: Sha256  #: The application's files, its manifest and its lock file.
    endpoint: Sha256  #: The contracts of the requested endpoints.
    tuning: Sha256  #: The tuning profile.
    network: Sha256  #: The network profile.
    #: Revision of the lab, with a + where it had uncommitted changes; absent outside a git
    #: repository.
    lab: str | None = None


class Item(Record, kw_only=True, frozen=True):
    """A cell to measure: one entry of a run's plan."""

    cell_id: Name  #: Name of the cell and of its directory.
    purpose: Purpose  #: Purpose of the measurement.
    #: cell_id of the cell that this one repeats or probes, whose limit it measures, or to whose
    #: curve it belongs; absent for `measure`.
    base: str | None = None
    cell: Cell  #: What is measured.
    stack: str  #: Id of the stack, a key of the plan's stacks.
    expected_s: NotNegative  #: Expected length of the load, seconds, warm-up included.
    #: Hashes of the cell's inputs; absent until they are computed.
    input_hashes: InputHashes | None = None
    #: Objective of a search or a curve: p50_ms and so on in ms, errors as a fraction; absent
    #: without one.
    slo: dict[str, float] | None = None
    #: Fraction of the schedule that must be sent to meet the objective; absent without one.
    sent_min: float | None = None
