"""The main variables of a run, checked."""

from loadlab.model.base import Record
from loadlab.model.study import SaturationRate


class Options(Record, kw_only=True, frozen=True, omit_defaults=False):
    """The main variables (roles/run/meta/argument_specs.yml), checked and with defaults."""

    #: Folder in apps/, or name of the folder app; null where none is measured.
    framework: str | None
    server: str | None  #: Application server; null: the first that fits.
    transport: str | None  #: unix or tcp; null: the first that fits.
    protocol: str | None  #: http, uwsgi or fastcgi; null: the first that fits.
    reverse_proxy: str  #: A folder in files/reverse_proxies/, or none.
    worker_class: str | None  #: Gunicorn's worker class; null: the first that fits.
    event_loop: str | None  #: asyncio or uvloop; null: the first that fits.
    #: Whether the reverse proxy keeps its connections; null: the first that fits.
    upstream_keepalive: bool | None
    workers: int | None  #: Processes; null: one for each core.
    threads: int  #: Threads of each process.
    #: Seconds until the application server closes an idle connection; null: the lab's.
    server_keepalive: int | None
    backlog: int | None  #: Accept queue, connections; null: the tuning profile's.
    driver: str | None  #: Database driver; null: the app's first.
    python: str | None  #: Python of the application; null: the server's own.
    endpoint: list[str] | None  #: Endpoints; null: those the app is measured by.
    #: Endpoints of one load with their weights, such as index:70,agents:25; else null.
    mix: str | None
    #: What each visitor sends, as JSON; null: requests come alone.
    sessions: str | None
    load: str | None  #: File of options of the load; null: none.
    replay: str | None  #: Access log whose requests are sent; null: none.
    speed: float  #: Seconds of that log that pass in a second.
    replay_query: bool  #: Whether queries are sent as in that log.
    rate: list[float]  #: Requests/s, ascending; empty where saturation_rate applies.
    #: How requests come: constant, poisson, gamma:<smoothness>, bursts:<requests> or
    #: mmpp:<ratio>:<calm>:<busy>.
    arrivals: str
    #: Rates at equal distances in time, such as 100..2000, or seconds with rates, such as
    #: 0:100,60:2000, whose mean is rate; else null.
    ramp: str | None
    duration: float  #: Seconds measured.
    warmup: float  #: Seconds of warm-up.
    request_timeout: int | None  #: Request timeout, seconds; null: the threshold timeout_s.
    connections: list[int]  #: Connections, ascending; on_demand: the most at once.
    #: Objective of a search: p50_ms and so on in ms, errors as a fraction; else null.
    slo: dict[str, float] | None
    curve: bool  #: Whether a run at one rate has a curve.
    overload: bool  #: Whether a run at one rate has a load beyond the saturation and back.
    repetitions: int  #: Repetitions of each cell.
    generator: str  #: Load generator or Python client.
    requests: int  #: Requests of a Python client.
    open_files: int  #: Limit of open files of a Python client.
    python_keepalive: bool  #: Whether a Python client keeps its connections.
    keepalive: bool  #: Whether a load generator keeps its connections.
    tls: bool  #: HTTPS.
    http2: bool  #: HTTP/2.
    headers: dict[str, str]  #: Name -> value, added to each request.
    profile: bool  #: Whether each cell is measured once more with py-spy.
    trace: bool  #: Whether each cell is measured once more with bpftrace.
    tuning: list[str]  #: Tuning profiles.
    network: str  #: Network profile.
    study: str | None  #: Study to measure.
    lesson: str | None  #: Lesson to measure.
    scale: str | None  #: Size of the study.
    seed: int  #: Seed of the order of measuring, of arrivals and of a mix.
    #: Whether the generator's record of each request is kept, if it writes one.
    keep_requests: bool
    #: Whether each ceiling is measured once more with twice the connections, and each constant rate
    #: with wrk2, where every client has it.
    cross_check: bool
    recalibrate: bool  #: Whether a calibration of the last hour is not used again.
    run_id: str | None  #: Name of the run's folder; null: by time.
    untune: bool  #: Whether the hosts' settings are restored at the end.
    clients: int  #: Clients of each server, from the inventory.
    on_demand: bool = False  #: Whether connections are opened when requests need them.
    #: A study's rate that is not known yet; else null.
    saturation_rate: SaturationRate | None = None
    like: str | None  #: Bundle or run that the run repeats; null: none.
    app: str | None  #: Folder that is deployed in place of apps/<framework>; null: none.
    module: str | None  #: module:callable of the application; null: as its manifest says, or found.
    base: str | None  #: Variant that is compared with; null: none.
    head: str | None  #: Variants that are compared, semicolons between; null: none.
    baseline: str | None  #: verdict.json that has the base, of another sitting; null: none.
    budget: str | None  #: Time to compare variants or candidates in, such as 20m.
    #: Cores that a matrix has candidates for; 0: not known yet; null: it is no matrix.
    matrix: int | None
