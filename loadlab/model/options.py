"""The main variables of a run, checked."""

from typing import Annotated

from loadlab.model.base import Record, doc
from loadlab.model.study import SaturationRate


class Options(Record, kw_only=True, frozen=True, omit_defaults=False):
    """The main variables (roles/run/meta/argument_specs.yml), checked and with defaults."""

    framework: Annotated[
        str | None,
        doc("Folder in apps/, or name of the folder app; null where none is measured."),
    ]
    server: Annotated[str | None, doc("Application server; null: the first that fits.")]
    transport: Annotated[str | None, doc("unix or tcp; null: the first that fits.")]
    protocol: Annotated[str | None, doc("http, uwsgi or fastcgi; null: the first that fits.")]
    reverse_proxy: Annotated[str, doc("A folder in files/reverse_proxies/, or none.")]
    worker_class: Annotated[str | None, doc("Gunicorn's worker class; null: the first that fits.")]
    event_loop: Annotated[str | None, doc("asyncio or uvloop; null: the first that fits.")]
    upstream_keepalive: Annotated[
        bool | None,
        doc("Whether the reverse proxy keeps its connections; null: the first that fits."),
    ]
    workers: Annotated[int | None, doc("Processes; null: one for each core.")]
    threads: Annotated[int, doc("Threads of each process.")]
    server_keepalive: Annotated[
        int | None,
        doc("Seconds until the application server closes an idle connection; null: the lab's."),
    ]
    backlog: Annotated[int | None, doc("Accept queue, connections; null: the tuning profile's.")]
    driver: Annotated[str | None, doc("Database driver; null: the app's first.")]
    python: Annotated[str | None, doc("Python of the application; null: the server's own.")]
    endpoint: Annotated[list[str] | None, doc("Endpoints; null: those the app is measured by.")]
    mix: Annotated[
        str | None,
        doc("Endpoints of one load with their weights, such as index:70,agents:25; else null."),
    ]
    load: Annotated[str | None, doc("File of options of the load; null: none.")]
    replay: Annotated[str | None, doc("Access log whose requests are sent; null: none.")]
    speed: Annotated[float, doc("Seconds of that log that pass in a second.")]
    replay_query: Annotated[bool, doc("Whether queries are sent as in that log.")]
    rate: Annotated[list[float], doc("Requests/s, ascending; empty where saturation_rate applies.")]
    arrivals: Annotated[
        str, doc("How requests come: constant, poisson, gamma:<smoothness> or bursts:<requests>.")
    ]
    ramp: Annotated[
        str | None,
        doc("Rates at equal distances in time, such as 100..2000, whose mean is rate; else null."),
    ]
    duration: Annotated[float, doc("Seconds measured.")]
    warmup: Annotated[float, doc("Seconds of warm-up.")]
    request_timeout: Annotated[
        int | None, doc("Request timeout, seconds; null: timeout_s of files/validity.yml.")
    ]
    connections: Annotated[list[int], doc("Connections, ascending.")]
    slo: Annotated[
        dict[str, float] | None,
        doc("Objective of a search: p50_ms and so on in ms, errors as a fraction; else null."),
    ]
    curve: Annotated[bool, doc("Whether a run at one rate has a curve.")]
    repetitions: Annotated[int, doc("Repetitions of each cell.")]
    generator: Annotated[str, doc("Load generator or Python client.")]
    requests: Annotated[int, doc("Requests of a Python client.")]
    open_files: Annotated[int, doc("Limit of open files of a Python client.")]
    python_keepalive: Annotated[bool, doc("Whether a Python client keeps its connections.")]
    keepalive: Annotated[bool, doc("Whether a load generator keeps its connections.")]
    tls: Annotated[bool, doc("HTTPS.")]
    http2: Annotated[bool, doc("HTTP/2.")]
    headers: Annotated[dict[str, str], doc("Name -> value, added to each request.")]
    profile: Annotated[bool, doc("Whether each cell is measured once more with py-spy.")]
    trace: Annotated[bool, doc("Whether each cell is measured once more with bpftrace.")]
    tuning: Annotated[list[str], doc("Tuning profiles.")]
    network: Annotated[str, doc("Network profile.")]
    study: Annotated[str | None, doc("Study to measure.")]
    lesson: Annotated[str | None, doc("Lesson to measure.")]
    scale: Annotated[str | None, doc("Size of the study.")]
    seed: Annotated[int, doc("Seed of the order of measuring, of arrivals and of a mix.")]
    keep_requests: Annotated[
        bool, doc("Whether the generator's record of each request is kept, if it writes one.")
    ]
    cross_check: Annotated[
        bool,
        doc(
            "Whether each ceiling is measured once more with twice the connections, and each "
            "constant rate with wrk2, where every client has it."
        ),
    ]
    recalibrate: Annotated[bool, doc("Whether a calibration of the last hour is not used again.")]
    run_id: Annotated[str | None, doc("Name of the run's folder; null: by time.")]
    untune: Annotated[bool, doc("Whether the hosts' settings are restored at the end.")]
    clients: Annotated[int, doc("Clients of each server, from the inventory.")]
    saturation_rate: Annotated[
        SaturationRate | None, doc("A study's rate that is not known yet; else null.")
    ] = None
    like: Annotated[str | None, doc("Bundle or run that the run repeats; null: none.")]
    app: Annotated[
        str | None, doc("Folder that is deployed in place of apps/<framework>; null: none.")
    ]
    module: Annotated[
        str | None, doc("module:callable of the application; null: as its manifest says, or found.")
    ]
    base: Annotated[str | None, doc("Variant that is compared with; null: none.")]
    head: Annotated[str | None, doc("Variants that are compared, semicolons between; null: none.")]
    baseline: Annotated[
        str | None, doc("verdict.json that has the base, of another sitting; null: none.")
    ]
    budget: Annotated[str | None, doc("Time to compare variants or candidates in, such as 20m.")]
    matrix: Annotated[
        int | None,
        doc("Cores that a matrix has candidates for; 0: not known yet; null: it is no matrix."),
    ]
