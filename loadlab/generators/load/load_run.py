"""Work out one measurement: what each client, the server and the controller do, and for how long.

The role load_run carries it out.
"""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from loadlab.generators import metronome, registry
from loadlab.generators.generator import Generator, Kind, Lanes, Replayed, Request
from loadlab.generators.load import host_commands, split
from loadlab.generators.load.faults import Fault, faults
from loadlab.model import (
    Cell,
    ClientShare,
    HostCpus,
    HostInterfaces,
    InputHashes,
    Lane,
    Load,
    Purpose,
    RepetitionSetup,
)
from loadlab.reasons.validity_reasons import THRESHOLDS
from loadlab.run.errors import LabError
from loadlab.run.formatting import plain
from loadlab.run.run_dir import GENERATOR, OF_CLIENT, RepetitionDir, lane_folder
from loadlab.stacks.contract import ANSWER_BYTES_MAX

# Lead time in seconds before several clients start, for starting the service and verifying the
# answer, and time between warm-up and measurement, for outstanding answers.
READY_S = 3
SETTLE_S = 2
# Seconds before the closed loop after a load of several lanes: the recordings read the counters of
# the load in between.
PAUSE_S = 0.5
# Seconds that a generator gets beyond its load and one request timeout, in case the server stops
# answering.
LATE_S = 30
# A batch has no warm-up, and telemetry needs one scrape before the load.
SCRAPE_S = 1.5
# A batch may take a day at most.
BATCH_MAX_S = 86_400
# Purpose -> script of the server that runs during the load.
OBSERVERS: dict[Purpose, str] = {"py_spy": "profile-server.sh", "trace": "trace-server.sh"}
# Samples of py-spy per second.
PROFILE_HZ = 100
# At most this part of the samples, and so many seconds of them, look who holds the GIL.
LOCK_SHARE, LOCK_MAX_S = 0.25, 5
# Commands that tell several clients the moment of their start may take this many times as long as
# the slowest took when all were run at once just before.
COMMANDS = 2
_TOOLS = "/usr/local/lib/loadlab"
# Where the role measure copies the schedule of a replay.
SCHEDULE = f"{_TOOLS}/replay"
# Where run-load.sh leaves the body of the answer that it verified.
ANSWER_BODY = "answer.body"


class Host(Struct):
    """A host, as far as a measurement depends on it."""

    cpus: list[int]
    interface: str
    exporter: str  #: URL of its telemetry.
    emulated: bool = False  #: Whether its processors are.
    snaps: list[str] = []  #: Generators that it runs from a snap.


class Answer(Struct):
    """The verified answer: its status, lengths in bytes, without and with headers, and the body's
    SHA-256; None for what differs from answer to answer."""

    status: int
    body_bytes: int | None
    wire_bytes: int | None
    sha256: str | None


class EndpointRequest(Struct, frozen=True):
    """What an endpoint's contract says of its requests; ``body`` is "" for none. The rest of the
    contract is not read."""

    method: str = "GET"
    headers: dict[str, str] = {}
    body: str = ""


class MixKind(Struct):
    """A kind of request of a mix; ``weight``: of its requests in each block."""

    name: str
    weight: int
    url: str
    request: EndpointRequest
    answer: Answer


class Measured(Struct, kw_only=True):
    """What is measured, as the record of its repetition has it."""

    cell_id: str
    repetition: int
    purpose: Purpose
    cell: Cell
    base: str | None = None
    input_hashes: InputHashes | None = None


class Item(Measured, kw_only=True):
    """The measurement to make. seed: of random arrivals and of a mix; each further client has the
    next."""

    block: int | None = None
    blocks: int | None = None
    seed: int = 0


class LaneInput(Measured, kw_only=True):
    """One of the stacks that the load measures side by side."""

    place: int  #: Its number on the server, from 1.
    dir: str  #: Folder of its repetition.
    #: url, status: where it is reached there.
    url: str
    status: str
    units: dict[str, str]  #: Those of its place, as those of the whole load.


class LoadRunInput(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The input, which is the variables of the role; see its meta/argument_specs.yml.

    ``client`` leads and is the first of ``clients``, which may be empty where it is the only one.
    ``hosts``: inventory name -> host, of the server and all clients. ``lanes``: the stacks that are
    up together, the item's first; empty where the load is of one. ``mix``: its kinds of request, of
    which the first is also in url, request and answer; empty where there is one kind.
    """

    item: Item
    dir: str
    url: str
    request: EndpointRequest
    answer: Answer
    server: str
    client: str
    hosts: dict[str, Host]
    keep_requests: bool
    status: str
    beside: str
    clients: list[str]
    started: list[str]
    restart: list[str]
    again: bool
    units: dict[str, str]
    requests_log: str
    errors_log: str
    database: str
    lanes: list[LaneInput] = []
    mix: list[MixKind] = []


class Scraped(Struct):
    """A host whose telemetry is recorded, and the URL of its exporter."""

    name: str
    exporter: str


class Offer(Scraped):
    """What one client does: shell commands of host_commands for it."""

    begin: str
    end: str
    stop: str


class LoadRun(Struct):
    """One measurement."""

    record: RepetitionSetup  #: Content of cell.json, the input of the result beside the raw files.
    #: Folder -> the same of each further stack that the load measures.
    beside: dict[str, RepetitionSetup]
    remote: str  #: Its folder on the hosts.
    offers: list[Offer]  #: One for each client.
    #: Seconds from the start of the load, of several clients from when the last has been told, to
    #: the start of the measurement.
    lead_s: float
    expected_s: float  #: Seconds until the load's end; 0 where it cannot be told, as of a batch.
    #: Upper limit, with the full timeout for the last requests and for the verifying one.
    most_s: float
    #: Shell command for the first client that prints its progress and succeeds when the load is
    #: over.
    until: str
    scrape: dict[str, Scraped]  #: Recording on the controller -> the host.
    prepare: str  #: Shell command for the server that restarts the stack and starts the recorder.
    end_recording: str  #: Shell command for the server at the end.
    #: Shell command for the server after that, for the next measurement; empty where nothing is to
    #: be restarted.
    restart_early: str
    observer: str  #: Name of the script that observes the server during the load; empty for none.
    observer_options: str  #: Options of systemd-run for it.
    observer_most_s: float  #: Seconds after which it is ended.
    faults: list[Fault]  #: Known faults that are injected during the load.


def load_run(inputs: LoadRunInput) -> LoadRun:
    """Return what to do for a measurement. Raises ValueError for an item without a proper load."""
    load = inputs.item.cell.load
    batch = registry.get(load.generator).mode == "batch"
    shared = load.clients is not None
    names = inputs.clients if shared else [inputs.client]
    repetition = RepetitionDir(Path(inputs.dir))
    remote = repetition.on_hosts
    lead_s = load.warmup_s + (READY_S + SETTLE_S if shared else 0)
    seconds = _seconds(load, lead_s, _timeout_s(inputs))
    most_s = seconds + 2 * _timeout_s(inputs) + 60
    shares = split.shares(load.rate, load.connections, names)
    folders = [repetition.client_on_hosts(name if shared else "") for name in names]
    recordings = repetition.recordings(names if shared else [])
    observed_s = max(int(load.duration_s or 0) - 2, 1)
    interface = inputs.hosts[inputs.server].interface
    record, *beside = _records(inputs, shares if shared else [])
    return LoadRun(
        record=record,
        beside={lane.dir: setup for lane, setup in zip(inputs.lanes[1:], beside, strict=True)},
        remote=remote,
        offers=[
            _offer(inputs, share, folder, _options(inputs, share, at, folder, seconds), most_s)
            for at, (share, folder) in enumerate(zip(shares, folders, strict=True))
        ],
        lead_s=lead_s,
        expected_s=0 if batch else seconds,
        most_s=most_s,
        until=host_commands.over(folders[0], batch),
        scrape={
            path: Scraped(name, inputs.hosts[name].exporter)
            for path, name in zip(recordings, [inputs.server, *names], strict=True)
        },
        prepare=host_commands.prepare(
            host_commands.restart(inputs.started, inputs.restart, inputs.again),
            host_commands.record(interface, _server_recorder(inputs, remote), most_s),
        ),
        end_recording=host_commands.end_recording(interface, remote),
        restart_early=host_commands.restart_early(inputs.restart),
        # It starts with the load, takes about a second to get ready, and ends before the load does.
        observer=OBSERVERS.get(inputs.item.purpose, ""),
        observer_options=_set(
            {
                "DIR": remote,
                "AFTER": plain(lead_s),
                "SECONDS_LONG": str(observed_s),
                "UNITS": _units(inputs),
                "LOCK_SECONDS": str(min(int(LOCK_SHARE * observed_s), LOCK_MAX_S)),
                "RATE": str(PROFILE_HZ),
            }
        ),
        observer_most_s=seconds + 60,
        faults=faults(
            load,
            inputs.url,
            inputs.server,
            inputs.client,
            {name: host.cpus[0] for name, host in inputs.hosts.items()},
            lead_s,
            most_s,
        ),
    )


def _timeout_s(inputs: LoadRunInput) -> float:
    """Return the request timeout, seconds: the load's own, or the lab's."""
    return inputs.item.cell.load.timeout_s or THRESHOLDS.timeout_s


def _seconds(load: Load, lead_s: float, timeout_s: float) -> float:
    """Return the seconds of the load, of a batch at most.

    A batch may wait for the ports of earlier connections, take the full timeout for every request
    of a connection, and CPU time.
    """
    if load.requests is not None:
        rounds = load.requests / load.connections
        return min(80 + timeout_s * rounds + 0.02 * load.requests, BATCH_MAX_S)
    if load.duration_s is None:
        raise LabError(f"the load of {load.generator} has neither requests nor duration_s")
    closed_s = load.lanes.closed_s + PAUSE_S if load.lanes and load.lanes.closed_s else 0
    return lead_s + load.duration_s + closed_s


def _records(inputs: LoadRunInput, shares: Sequence[split.Share]) -> list[RepetitionSetup]:
    """Return cell.json of the item, or of each stack that the load measures."""
    record = _record(inputs, shares)
    places = {lane.cell_id: lane.place for lane in inputs.lanes}
    return [
        replace(
            record,
            cell_id=lane.cell_id,
            purpose=lane.purpose,
            base=lane.base,
            cell=lane.cell,
            input_hashes=lane.input_hashes,
            url=lane.url,
            lane=Lane(place=lane.place, first=inputs.item.cell_id, cells=places),
        )
        for lane in inputs.lanes
    ] or [record]


def _record(inputs: LoadRunInput, shares: Sequence[split.Share]) -> RepetitionSetup:
    item, server, client = inputs.item, inputs.hosts[inputs.server], inputs.hosts[inputs.client]
    clients = [
        ClientShare(
            name=share.name,
            rate=share.rate,
            connections=share.connections,
            cpus=inputs.hosts[share.name].cpus,
            interface=inputs.hosts[share.name].interface,
        )
        for share in shares
    ]
    varied = inputs.mix or item.cell.load.replay or item.cell.load.session
    names = dict.fromkeys([inputs.server, inputs.client, *(share.name for share in shares)])
    return RepetitionSetup(
        cell_id=item.cell_id,
        repetition=item.repetition,
        block=item.block,
        blocks=item.blocks,
        purpose=item.purpose,
        base=item.base,
        cell=item.cell,
        server=inputs.server,
        input_hashes=item.input_hashes,
        url=inputs.url,
        body_bytes=None if varied else inputs.answer.body_bytes,
        wire_bytes=None if varied else inputs.answer.wire_bytes,
        cpus=HostCpus(server=server.cpus, client=client.cpus),
        interface=HostInterfaces(server=server.interface, client=client.interface),
        clients=clients or None,
        emulated=[name for name in names if inputs.hosts[name].emulated] or None,
    )


def _level(request: Request) -> Request:
    """Return the load of a warm-up, whose rate is that of the load's begin."""
    if request.arrivals is None or request.rate is None:
        return request
    rate = request.arrivals.first_rate(request.rate)
    return dataclasses.replace(request, rate=rate, arrivals=request.arrivals.level)


def _offer(
    inputs: LoadRunInput, share: split.Share, folder: str, options: str, most_s: float
) -> Offer:
    """Return what a client does. ``options``: of systemd-run for its load."""
    remote, host = RepetitionDir(Path(inputs.dir)).on_hosts, inputs.hosts[share.name]
    recording = host_commands.record(host.interface, _recorder(folder), most_s)
    return Offer(
        share.name,
        host.exporter,
        host_commands.begin(remote, folder, recording, options, most_s),
        host_commands.end(host.interface, folder, most_s),
        host_commands.stop(),
    )


def _options(inputs: LoadRunInput, share: split.Share, at: int, folder: str, seconds: float) -> str:
    """Return the options of systemd-run: the generator's rights and the variables of run-load.sh,
    except BEGIN_AT. ``at``: number of the client, from 0."""
    load = inputs.item.cell.load
    generator = registry.get(load.generator)
    request = Request(
        url=inputs.url,
        method=inputs.request.method,
        body=inputs.request.body,
        headers=_headers(inputs.request, load),
        rate=share.rate and share.rate * max(1, len(inputs.lanes)),
        arrivals=load.arrivals,
        seed=inputs.item.seed + at,
        connections=share.connections,
        on_demand=load.on_demand is True,
        threads=min(len(inputs.hosts[share.name].cpus), share.connections),
        timeout_s=_timeout_s(inputs),
        burst_every_s=load.burst_every_s or 0,
        keepalive=load.keepalive is not False,
        http2=load.http2 is True,
        body_bytes=inputs.answer.body_bytes,
        status=inputs.answer.status,
        # The script has compared it with the verified one.
        body_file=ANSWER_BODY if inputs.answer.sha256 and not load.session else None,
        keep_requests=inputs.keep_requests,
        requests=load.requests,
        open_files=load.open_files,
        reuse=load.reuse,
        mix=_mix(inputs, load),
        lanes=_lanes(inputs, load),
        replay=_replay(inputs, load),
        session=load.session or (),
    )
    batch = generator.mode == "batch"
    measured_s = seconds if load.duration_s is None else load.duration_s
    ports = load.connections if load.reuse else load.requests
    host = urlsplit(inputs.url).hostname
    variables = {
        "DIR": folder,
        "GENERATOR": generator.name,
        "WARM_UP": command(generator, _level(request), load.warmup_s, "warmup")
        if load.warmup_s
        else "",
        "MEASURE": command(generator, request, measured_s, generator.name),
        "SATURATE": _closed_loop(generator, request, load),
        "PRINTS": "yes" if generator.prints else "",
        **_verification(inputs, load),
        # Later requests of a session need values of its answers; its first stands for all.
        "MIX": "; ".join(
            f"{_assigned(_verification(kind, load))}; {shlex.join(['verify', _body_file(kind)])}"
            for kind in (() if load.session else _verified(inputs))
        ),
        "STATUS_URL": inputs.status,
        # URLs have no spaces.
        "LANES": "\n".join(
            f"{lane_folder(lane.place)} {lane.url} {lane.status}".rstrip() for lane in inputs.lanes
        ),
        "HTTP2": str(request.http2).lower(),
        # The role reverse_proxy puts it there.
        "CERTIFICATE": f"{_TOOLS}/{host}.pem" if load.tls else "",
        "REQUEST_TIMEOUT": plain(_timeout_s(inputs)),
        "WARMUP": plain(load.warmup_s),
        "SETTLE": str(SETTLE_S),
        "PAUSE_AFTER": plain(PAUSE_S),
        # Ports that an earlier client used would be missing here.
        "PORTS": str(ports) if batch else "",
        "PAUSE": plain(SCRAPE_S) if batch else "0",
        # Only one client sends the background requests.
        "BESIDE_URL": inputs.beside if share.name == inputs.client else "",
    }
    snap = generator.name in inputs.hosts[share.name].snaps
    if snap and request.method != "GET":
        raise LabError(
            f"{generator.name} from a snap cannot read the file with which it sends a "
            f"{request.method}. Give -e generator={registry.first(generator.mode)}."
        )
    return f"{rights(snap, RepetitionDir(Path(inputs.dir)).on_hosts)} {_set(variables)}"


def _lanes(inputs: LoadRunInput, load: Load) -> Lanes | None:
    """Return the servers of a load of several lanes; None of a load of one stack."""
    if load.lanes is None:
        return None
    parts = {lane_folder(lane.place): urlsplit(lane.url) for lane in inputs.lanes}
    return Lanes(
        urls={name: f"{url.scheme}://{url.netloc}" for name, url in parts.items()}, turns=load.lanes
    )


def _replay(inputs: LoadRunInput, load: Load) -> Replayed | None:
    """Return the log of a replay; None without one."""
    if load.replay is None:
        return None
    host = {name: text for name, text in inputs.request.headers.items() if name.lower() == "host"}
    return Replayed(SCHEDULE, _headers(EndpointRequest(headers=host), load))


def _mix(inputs: LoadRunInput, load: Load) -> list[Kind]:
    """Return the kinds of request of a mix; none where there is one kind."""
    return [
        Kind(
            name=kind.name,
            weight=kind.weight,
            url=kind.url,
            method=kind.request.method,
            body=kind.request.body,
            headers=_headers(kind.request, load),
            status=kind.answer.status,
            body_bytes=kind.answer.body_bytes,
            body_file=_body_file(kind) if kind.answer.sha256 and not load.session else None,
        )
        for kind in inputs.mix
    ]


def _verified(inputs: LoadRunInput) -> list[MixKind]:
    """Return the kinds of a mix whose answers are verified: of each stack that is up."""
    own = urlsplit(inputs.url).netloc
    servers = [urlsplit(lane.url).netloc for lane in inputs.lanes] or [own]
    return [
        replace(kind, url=urlsplit(kind.url)._replace(netloc=server).geturl())
        for server in servers
        for kind in inputs.mix
    ]


def _body_file(kind: MixKind) -> str:
    """Return where run-load.sh leaves the body of a kind's verified answer."""
    return f"answer-{kind.name}.body"


def _verification(kind: LoadRunInput | MixKind, load: Load) -> dict[str, str]:
    """Return the variables of run-load.sh with which it verifies an answer."""
    request, answer = kind.request, kind.answer
    headers = _headers(request, load).items()
    return {
        "URL": kind.url,
        "HEADERS": "\n".join(f"{name}: {text}" for name, text in headers),
        "METHOD": request.method,
        "BODY": request.body,
        "STATUS": str(answer.status),
        "BODY_SHA256": answer.sha256 or "",
        "BODY_BYTES": "" if answer.body_bytes is None else str(answer.body_bytes),
        "BODY_MOST": str(answer.body_bytes or ANSWER_BYTES_MAX),
    }


def _assigned(variables: Mapping[str, str]) -> str:
    """Return the assignments of variables in a shell."""
    return " ".join(f"{name}={shlex.quote(text)}" for name, text in variables.items())


def _closed_loop(generator: Generator, request: Request, load: Load) -> str:
    """Return the command of the closed loop after a load of several lanes; empty for none."""
    if load.lanes is None or not load.lanes.closed_s:
        return ""
    closed = dataclasses.replace(request, rate=None)
    return command(generator, closed, load.lanes.closed_s, metronome.SATURATION)


def _headers(request: EndpointRequest, load: Load) -> dict[str, str]:
    """Return the headers of each request by name: the endpoint's, and the user's in their place."""
    replaced = {name.lower() for name in load.headers or {}}
    own = {name: text for name, text in request.headers.items() if name.lower() not in replaced}
    both = {**own, **(load.headers or {})}
    return dict(sorted(both.items(), key=lambda header: header[0].lower()))


def _server_recorder(inputs: LoadRunInput, remote: str) -> str:
    """Return the options of systemd-run for the recorder of the server."""
    logs = {"REQUESTS": inputs.requests_log, "ERRORS": inputs.errors_log}
    variables = {"DIR": remote, "SUFFIX": "", "UNITS": _units(inputs), "DATABASE": inputs.database}
    return _set({**variables, **logs})


def _units(inputs: LoadRunInput) -> str:
    return " ".join(f"{name}={unit}" for name, unit in sorted(inputs.units.items()))


def _recorder(folder: str) -> str:
    """Return the options of systemd-run for the recorder of a client.

    It runs as the generator's user, because it writes to that user's folder.
    """
    units = f"{GENERATOR}=loadlab-load.service"
    variables = {"DIR": folder, "SUFFIX": OF_CLIENT, "UNITS": units, "DATABASE": ""}
    return f"--property=User=loadlab {_set(variables)}"


def command(generator: Generator, request: Request, seconds: float, name: str) -> str:
    """Return a generator's whole command, quoted for a shell."""
    limit = plain(seconds + request.timeout_s + LATE_S)
    return shlex.join(["timeout", limit, *generator.command(request, seconds, name)])


def rights(snap: bool, folder: str = "") -> str:
    """Return the properties of the service that runs a generator.

    It reads untrusted answers. In the sandbox it can write only to this folder and to a /tmp of its
    own, and its only capabilities are binding low ports and running before other programs. A snap
    has its own sandbox, which only root may set up. The OOM killer selects it first.
    """
    sandbox = [
        "User=loadlab",
        "NoNewPrivileges=true",
        "ProtectSystem=strict",
        "ProtectHome=true",
        "PrivateTmp=true",
        *([f"ReadWritePaths={folder}"] if folder else []),
        "CapabilityBoundingSet=CAP_NET_BIND_SERVICE CAP_SYS_NICE",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE CAP_SYS_NICE",
        "LimitMEMLOCK=infinity",
    ]
    properties = ["OOMScoreAdjust=1000", *([] if snap else sandbox)]
    return shlex.join(f"--property={rule}" for rule in properties)


def _set(variables: Mapping[str, str]) -> str:
    return shlex.join(f"--setenv={name}={value}" for name, value in variables.items())


def until_begin_s(lead_s: float, slowest_s: float) -> float:
    """Return the seconds from now to the start of the measurement of several clients.

    ``slowest_s``: seconds of the slowest of a command to each client, all run at once just now. It
    grows with the distance of the controller and, as its processors are shared by all commands,
    with the number of clients.
    """
    return lead_s + COMMANDS * slowest_s


def failure(result: Mapping[str, object]) -> str:
    """Return why a task failed, from its result; of a loop the reasons of all that failed."""
    results = result.get("results")
    tasks = results if isinstance(results, list) else []
    failed = [task for task in tasks if isinstance(task, Mapping) and task.get("failed")]
    return "; ".join(
        str(task.get("stderr") or task.get("msg") or "").strip() for task in failed or [result]
    )
