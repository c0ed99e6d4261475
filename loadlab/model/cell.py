"""A cell: what is measured."""

from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta

from loadlab.model.base import Above0, Name, NotNegative, Positive, Record, Sha256, doc

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

    after_s: Annotated[
        NotNegative, doc("Time from the start of the measured load to the stall, seconds.")
    ]
    duration_s: Annotated[Above0, doc("Length of the stall, seconds.")]


class Neighbour(Record, kw_only=True, frozen=True):
    """Programs of somebody else use CPU during the load."""

    host: Annotated[
        Literal["server", "client", "controller"],
        doc("Where they run: on the first core of a host, or on any core of the controller."),
    ]
    after_s: Annotated[NotNegative, doc("Time from the start of the measured load, seconds.")]
    duration_s: Annotated[Above0, doc("How long they run, seconds.")]
    cpu: Annotated[
        Annotated[float, Meta(gt=0, le=1)],
        doc("CPU time that each uses in a tenth of a second, at most, as a fraction of one core."),
    ] = 1
    programs: Annotated[
        Annotated[int, Meta(ge=1, le=64)],
        doc("How many there are, 1 to 64, each a session of its own."),
    ] = 1


class Download(Record, kw_only=True, frozen=True):
    """One more program of the client downloads during the load, as fast as TCP lets it."""

    after_s: Annotated[NotNegative, doc("Time from the start of the measured load, seconds.")]
    duration_s: Annotated[Above0, doc("How long it downloads, seconds.")]


class HalfOpen(Record, kw_only=True, frozen=True):
    """The client begins connections at once and finishes none: it sends their SYN, and no ACK."""

    connections: Annotated[
        Annotated[int, Meta(ge=1, le=1000)], doc("Connections that are begun, 1 to 1,000.")
    ]
    after_s: Annotated[NotNegative, doc("Time from the start of the measured load, seconds.")]
    duration_s: Annotated[Above0, doc("How long the client answers nothing, seconds.")]


class Injection(Record, kw_only=True, frozen=True):
    """Known faults that the hosts inject during the load, not the application."""

    generator_stop: Annotated[Stall | None, doc("The generator is stopped during the load.")] = None
    neighbour: Annotated[Neighbour | None, doc("A busy neighbour on a core of a host.")] = None
    half_open: Annotated[
        HalfOpen | None, doc("Connections from the client that stay half open.")
    ] = None
    refused_every: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        doc("The server's kernel refuses every n-th connection."),
    ] = None
    lost_every: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        doc("The server's kernel drops every n-th packet of the load that arrives."),
    ] = None
    download: Annotated[
        Download | None, doc("A large download from the server over the test link.")
    ] = None


class Arrivals(Record, kw_only=True, frozen=True):
    """How the requests of a mean rate come: at random or in bursts, and along a ramp."""

    smoothness: Annotated[
        Annotated[float, Meta(ge=0.25, le=100)] | None,
        doc(
            "Shape of the gamma distribution of the gaps between requests, 0.25 to 100: 1 is a "
            "Poisson process, less is burstier, more is nearer to constant."
        ),
    ] = None
    burst: Annotated[
        Annotated[int, Meta(ge=2, le=10_000)] | None,
        doc("Requests that are due at the same moment, 2 to 10,000."),
    ] = None

    ramp: Annotated[
        Annotated[list[NotNegative], Meta(min_length=2, max_length=1000)] | None,
        doc(
            "Rates at equal distances in time, from the begin to the end, with straight lines "
            "between them. Only their ratios count, as the load has a mean rate."
        ),
    ] = None

    def __post_init__(self) -> None:
        """Raise ValueError where nothing is there, or what excludes each other."""
        fields = (self.smoothness, self.burst, self.ramp)
        if fields == (None, None, None) or None not in fields[:2]:
            raise ValueError("arrivals of smoothness {}, burst {} and ramp {}".format(*fields))

    def __str__(self) -> str:
        """Return them as the options have them: poisson, gamma:0.5, bursts:20 ramp:0..300."""
        words = []
        if self.burst is not None:
            words.append(f"bursts:{self.burst}")
        elif self.smoothness is not None:
            words.append("poisson" if self.smoothness == 1 else f"gamma:{self.smoothness:g}")
        if self.ramp:
            words.append("ramp:" + "..".join(f"{rate:g}" for rate in self.ramp))
        return " ".join(words)

    @property
    def level(self) -> Self | None:
        """The same at a rate that does not change; None where these are constant."""
        if (self.smoothness, self.burst) == (None, None):
            return None
        return msgspec.structs.replace(self, ramp=None)


class Replay(Record, kw_only=True, frozen=True):
    """An access log whose requests a load sends, each once, in order and at its time."""

    log_sha256: Annotated[Sha256, doc("SHA-256 of the log, which stays on the controller.")]
    speed: Annotated[Above0, doc("Seconds of the log that pass in a second.")]
    query: Annotated[bool, doc("Whether queries are sent as in the log; otherwise without.")]
    lines: Annotated[Positive, doc("Lines of the log.")]
    requests: Annotated[Positive, doc("Lines that are sent.")]
    busiest: Annotated[
        Above0, doc("Requests/s in the second of the log that has most, at that speed.")
    ]
    kinds: Annotated[
        list[tuple[str, Positive]],
        doc("Path, with its method where that is no GET, and its requests; the rest at last."),
    ]
    left_out: Annotated[
        dict[str, Positive],
        doc("Why lines are not sent -> their number: their method, no endpoint, or malformed."),
    ]


class LaneTurns(Record, kw_only=True, frozen=True):
    """How one load alternates between several stacks, each in a lane with connections of its own.

    At a rate the lanes take turns request by request, and a closed loop may follow. Closed loops
    take turns in slices of time. How many lanes there are may differ from load to load.
    """

    closed_s: Annotated[
        NotNegative, doc("Length of the closed loop that follows, seconds; 0 for none.")
    ] = 0
    slice_s: Annotated[
        NotNegative, doc("Length of its slices, seconds, without the wait for the last answers.")
    ] = 0


class Load(Record, kw_only=True, frozen=True):
    """The offered load."""

    generator: Annotated[
        str,
        doc(
            "Program that offers the load. oha and wrk2 keep a constant rate; wrk is a closed "
            "loop. The Python clients are measured themselves: they send one request after "
            "another, all at once, or a bounded number at once."
        ),
    ]
    mode: Annotated[
        Literal["constant", "closed", "batch"],
        doc(
            "constant: requests follow a schedule, whatever the server does. closed: each "
            "connection sends its next request when it has its answer. batch: a fixed number "
            "of requests, sent as the client is designed to."
        ),
    ]
    rate: Annotated[
        Above0 | None,
        doc(
            "Requested rate, requests per second, above 0; null for a closed loop or a batch, "
            "and in a plan for a fraction that is not known yet."
        ),
    ]
    arrivals: Annotated[
        Arrivals | None,
        doc("How requests come at that rate; absent where each comes so long after the last."),
    ] = None
    replay: Annotated[
        Replay | None,
        doc("Log whose requests are sent; absent where a load has none. rate is then its mean."),
    ] = None
    fraction: Annotated[
        Above0 | None,
        doc(
            "The rule of a study or a curve: rate is this fraction of the lowest goodput that "
            "the cells in of_saturation reached in a short closed loop. Absent where the rate "
            "was given."
        ),
    ] = None
    of_saturation: Annotated[
        list[str] | None,
        doc(
            "Names of the study's cells that fraction refers to, or of a curve the cell_id of the "
            "closed loop; absent where the rate was given."
        ),
    ] = None
    connections: Annotated[
        Positive,
        doc("Connections kept open, 1 or more. For a batch: most requests under way at once."),
    ]
    clients: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        doc(
            "Clients of the server that offer the load together, 2 or more; rate and "
            "connections are totals over all clients. Absent where there is one client."
        ),
    ] = None
    lanes: Annotated[
        LaneTurns | None,
        doc(
            "How the load alternates between stacks that are up together. rate and connections are "
            "of each; in its turn a stack gets the rate of all. Absent where a load is of one."
        ),
    ] = None
    requests: Annotated[
        Annotated[int, Meta(ge=1, le=1000000)] | None,
        doc("Requests of a batch, 1 to 1,000,000; absent for other modes."),
    ] = None
    open_files: Annotated[
        Positive | None,
        doc("Requested soft limit of open files for a batch's client; absent for other modes."),
    ] = None
    reuse: Annotated[
        bool | None,
        doc("Whether a batch's client keeps and reuses connections; absent for other modes."),
    ] = None
    duration_s: Annotated[
        Above0 | None,
        doc(
            "Requested length of the measurement, seconds, above 0; null for a batch, which "
            "ends with its last request."
        ),
    ]
    keepalive: Annotated[
        bool | None,
        doc(
            "Whether the generator keeps its connections; if not, each request opens a new "
            "one. Absent for a batch, which has reuse."
        ),
    ] = None
    burst_every_s: Annotated[
        Above0 | None,
        doc(
            "Seconds between the bursts of a closed loop: its connections send their next request "
            "together, when the client's clock is at a multiple of this. Absent where each sends "
            "when it has its answer."
        ),
    ] = None
    stall: Annotated[Stall | None, doc("The application is stopped during the load.")] = None
    injection: Annotated[
        Injection | None, doc("Known faults that the lab injects; absent where there are none.")
    ] = None
    background_endpoint: Annotated[
        str | None,
        doc("Endpoint that one more client requests during the load, one request after another."),
    ] = None
    warmup_s: Annotated[
        NotNegative, doc("Length of the warm-up, seconds, 0 or more: the same load, not measured.")
    ]
    timeout_s: Annotated[
        Above0 | None,
        doc(
            "Request timeout, seconds, above 0; absent where it is timeout_s of files/validity.yml."
        ),
    ] = None
    tls: Annotated[
        bool | None,
        doc(
            "HTTPS with a certificate that the server signed itself. Absent where it is plain HTTP."
        ),
    ] = None
    http2: Annotated[
        bool | None,
        doc("HTTP/2, with one stream at a time on each connection. Absent where it is HTTP/1.1."),
    ] = None
    headers: Annotated[
        dict[str, str] | None,
        doc(
            "Headers of each request in addition to the generator's own, by name. Absent "
            "where there are none."
        ),
    ] = None

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

    framework: Annotated[str, doc("Name of the application's folder in apps/.")]
    app: Annotated[
        str | None,
        doc("Folder that was deployed in place of apps/<framework>; absent where none was."),
    ] = None
    server: Annotated[str, doc("Application server, a folder in files/servers/.")]
    transport: Annotated[str, doc("Socket of the application server: unix or tcp.")]
    protocol: Annotated[str, doc("Protocol on that socket: http, uwsgi or fastcgi.")]
    worker_class: Annotated[
        str | None, doc("Gunicorn's worker class; absent for other servers.")
    ] = None
    event_loop: Annotated[
        str | None, doc("Event loop: asyncio or uvloop; absent where it cannot be chosen.")
    ] = None
    upstream_keepalive: Annotated[
        bool | None, doc("Whether the reverse proxy kept its connections to it.")
    ] = None
    workers: Annotated[
        Positive | None,
        doc(
            "Processes of the application server; absent: one for each of the server's cpus "
            "in manifest.json."
        ),
    ] = None
    threads: Annotated[Positive | None, doc("Threads of each process.")] = None
    server_keepalive_s: Annotated[
        Positive | None,
        doc(
            "Seconds until the application server closes an idle connection; absent: "
            "the lab's 75, more than nginx's 60."
        ),
    ] = None
    backlog: Annotated[
        Positive | None,
        doc(
            "Accept queue that the reverse proxy and the application server request of the kernel, "
            "connections."
        ),
    ] = None
    driver: Annotated[
        str | None,
        doc(
            "Database driver: psycopg2, psycopg (3) or asyncpg; absent where it is the "
            "application's default, the first of `drivers` in its app.yml."
        ),
    ] = None
    python: Annotated[
        str | None,
        doc(
            "Python that the application runs on: a version, with a t where it is free-threaded, "
            "or pypy3; absent: the server's own."
        ),
    ] = None
    reverse_proxy: Annotated[
        Name,
        doc(
            "Reverse proxy that the clients connect to; absent: nginx. none: they connect to the "
            "application server directly. transport and protocol are then those of the clients, "
            "and upstream_keepalive says whether the server kept their connections."
        ),
    ] = NGINX
    endpoint: Annotated[
        str,
        doc(
            "Name of the requested endpoint; of a mix its endpoints with their weights, such as "
            "index:70,agents:25; of a replay those that its log names, with their requests."
        ),
    ]
    tuning: Annotated[str, doc("Tuning profile.")]
    network: Annotated[str, doc("Network profile.")]
    variant: Annotated[
        str | None,
        doc("base or head, where the run compares variants; they may differ in nothing else."),
    ] = None
    expected_void: Annotated[
        list[str] | None,
        doc("Void reasons that are the subject of the cell and therefore do not void it."),
    ] = None
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

    application: Annotated[Sha256, doc("The application's files, its manifest and its lock file.")]
    endpoint: Annotated[Sha256, doc("The contracts of the requested endpoints.")]
    tuning: Annotated[Sha256, doc("The tuning profile.")]
    network: Annotated[Sha256, doc("The network profile.")]
    lab: Annotated[
        str | None,
        doc(
            "Revision of the lab, with a + where it had uncommitted changes; absent outside a "
            "git repository."
        ),
    ] = None


class Item(Record, kw_only=True, frozen=True):
    """A cell to measure: one entry of a run's plan."""

    cell_id: Annotated[Name, doc("Name of the cell and of its directory.")]
    purpose: Annotated[Purpose, doc("Purpose of the measurement.")]
    base: Annotated[
        str | None,
        doc(
            "cell_id of the cell that this one repeats or probes, whose limit it measures, or to "
            "whose curve it belongs; absent for `measure`."
        ),
    ] = None
    cell: Annotated[Cell, doc("What is measured.")]
    stack: Annotated[str, doc("Id of the stack, a key of the plan's stacks.")]
    expected_s: Annotated[
        NotNegative, doc("Expected length of the load, seconds, warm-up included.")
    ]
    input_hashes: Annotated[
        InputHashes | None, doc("Hashes of the cell's inputs; absent until they are computed.")
    ] = None
    slo: Annotated[
        dict[str, float] | None,
        doc(
            "Objective of a search or a curve: p50_ms and so on in ms, errors as a fraction; "
            "absent without one."
        ),
    ] = None
    sent_min: Annotated[
        float | None,
        doc(
            "Fraction of the schedule that must be sent to meet the objective; absent without one."
        ),
    ] = None
