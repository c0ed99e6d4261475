"""A cell: what is measured."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.core.model.base import Above0, Name, NotNegative, Positive, Record, Sha256, doc

# What a measurement of a cell is for. Only `measure` is ranked and compared.
Purpose = Literal[
    "measure", "closed_loop", "aa_control", "probe", "saturation", "py_spy", "calibration"
]


class Stall(Record, kw_only=True, frozen=True):
    """The application is stopped during the load."""

    after_s: Annotated[NotNegative, doc("Seconds after the beginning of the measured load.")]
    duration_s: Annotated[Above0, doc("How long it is stopped.")]


class Load(Record, kw_only=True, frozen=True):
    """The load offered."""

    generator: Annotated[
        str,
        doc(
            "Program that offers it. oha and wrk2 keep a constant rate, wrk is a closed "
            "loop. The Python clients are measured themselves: one request after another, "
            "all at once, or a bounded number at once."
        ),
    ]
    mode: Annotated[
        Literal["constant", "closed", "batch"],
        doc(
            "constant: requests at a schedule, whatever the server does. closed: each "
            "connection sends when it has its answer. batch: so many requests, as the "
            "client's own design has it."
        ),
    ]
    rate: Annotated[
        Above0 | None,
        doc(
            "Requests per second asked for, above 0; null for a closed loop or a batch, "
            "and in a plan for a share that is not known yet."
        ),
    ]
    fraction: Annotated[
        Above0 | None,
        doc(
            "A study's rule: rate is this share of the least goodput that the cells of "
            "`of` came to in a short closed loop. Absent where the rate was given."
        ),
    ] = None
    of_saturation: Annotated[
        list[str] | None,
        doc("Names of the study's cells that rate is a share of; absent where it was given."),
    ] = None
    connections: Annotated[
        Positive,
        doc("Connections kept open, 1 or more. In a batch the requests under way at once at most."),
    ]
    clients: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        doc(
            "Clients of the server that offer the load together; rate and connections are "
            "of all of them. Absent where there is one."
        ),
    ] = None
    requests: Annotated[
        Annotated[int, Meta(ge=1, le=1000000)] | None,
        doc("Requests of a batch, 1 to 1,000,000; absent otherwise."),
    ] = None
    open_files: Annotated[
        Positive | None,
        doc("Soft limit of open files asked for a batch's client; absent otherwise."),
    ] = None
    reuse: Annotated[
        bool | None,
        doc("Whether a batch's client keeps connections and uses them again; absent otherwise."),
    ] = None
    duration_s: Annotated[
        Above0 | None,
        doc(
            "Measured seconds asked for, above 0; null for a batch, which ends when its "
            "requests have."
        ),
    ]
    keepalive: Annotated[
        bool | None,
        doc(
            "Whether the generator keeps its connections; if not, each request makes one. "
            "Absent of a batch, which has reuse."
        ),
    ] = None
    stall: Annotated[Stall | None, doc("The application is stopped during the load.")] = None
    background_endpoint: Annotated[
        str | None,
        doc("Endpoint that one more client asks for all the while, one request after another."),
    ] = None
    warmup_s: Annotated[
        NotNegative, doc("Seconds of the same load before it, not measured, 0 or more.")
    ]
    tls: Annotated[
        bool | None,
        doc(
            "HTTPS, by a certificate that the server signed itself. Absent where it is plain HTTP."
        ),
    ] = None
    http2: Annotated[
        bool | None,
        doc("HTTP/2, with one stream at a time on each connection. Absent where it is HTTP/1.1."),
    ] = None
    headers: Annotated[
        dict[str, str] | None,
        doc(
            "Headers of each request beside the generator's own, by name. Absent where "
            "there are none."
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
    """What is measured: one stack, endpoint, tuning, network and load."""

    framework: Annotated[str, doc("Name of the application's folder in apps/.")]
    server: Annotated[str, doc("Application server: gunicorn, uwsgi or native.")]
    transport: Annotated[str, doc("Socket between nginx and the application server: unix or tcp.")]
    protocol: Annotated[str, doc("Protocol on it: http, uwsgi or fastcgi.")]
    worker_class: Annotated[
        str | None, doc("Gunicorn's worker class; null for another server.")
    ] = None
    event_loop: Annotated[
        str | None, doc("Event loop, where it can be chosen: asyncio or uvloop; else null.")
    ] = None
    upstream_keepalive: Annotated[
        bool | None, doc("Whether nginx kept its connections to the application server.")
    ] = None
    workers: Annotated[
        Positive | None,
        doc(
            "Processes of the application server; null: one for each of the server's cpus "
            "in manifest.json."
        ),
    ] = None
    threads: Annotated[Positive | None, doc("Threads of each process.")] = None
    backlog: Annotated[
        Positive | None,
        doc("Accept queue asked of the kernel by nginx and the application server, connections."),
    ] = None
    front: Annotated[
        Literal["none"] | None,
        doc(
            "The clients asked the application server itself: transport and protocol are "
            "theirs, and upstream_keepalive says whether it kept their connections. "
            "Absent where nginx was in front."
        ),
    ] = None
    endpoint: Annotated[str, doc("Name of the endpoint asked for.")]
    tuning: Annotated[str, doc("Tuning profile.")]
    network: Annotated[str, doc("Network profile.")]
    expected_void: Annotated[
        list[str] | None,
        doc("Void reasons that are what the cell is about, and so do not void it."),
    ] = None
    load: Annotated[Load, doc("The load offered.")]


class InputHashes(Record, kw_only=True, frozen=True):
    """SHA-256 of what the cell was made of, and the revision of the lab."""

    application: Annotated[Sha256, doc("The application's files, its manifest and its lock file.")]
    endpoint: Annotated[Sha256, doc("The contracts of what is asked for.")]
    tuning: Annotated[Sha256, doc("The tuning profile.")]
    network: Annotated[Sha256, doc("The network profile.")]
    lab: Annotated[
        str | None,
        doc(
            "Revision of the lab, with a + where it had changes of its own; null outside "
            "of a git repository."
        ),
    ] = None


class Item(Record, kw_only=True, frozen=True):
    """A cell to measure: one entry of a run's plan."""

    cell_id: Annotated[Name, doc("Name of the cell and of its folder.")]
    purpose: Annotated[Purpose, doc("What the measurement is for.")]
    base: Annotated[
        str | None,
        doc("cell_id of the cell that this one repeats, probes or limits; absent for `measure`."),
    ] = None
    cell: Annotated[Cell, doc("What is measured.")]
    stack: Annotated[str, doc("Id of the stack, a key of the plan's stacks.")]
    expected_s: Annotated[NotNegative, doc("Seconds of load that are expected, warm-up included.")]
    input_hashes: Annotated[
        InputHashes | None, doc("Hashes of the cell's inputs; absent until they are computed.")
    ] = None
    slo: Annotated[
        dict[str, float] | None,
        doc("Objective of a search: p50_ms and so on in ms, errors as a fraction; else absent."),
    ] = None
    sent_min: Annotated[
        float | None,
        doc(
            "Fraction of a search's schedule that must be sent for a valid judgement; else absent."
        ),
    ] = None
