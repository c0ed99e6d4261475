"""The entry of a load generator: everything that the lab needs to know about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from loadlab.generators.measurement import Measurement
from loadlab.model import Arrivals, LaneTurns, Load, SessionStep
from loadlab.reasons.validity_reasons import Thresholds

Mode: TypeAlias = Literal["constant", "closed", "batch"]


@dataclass(frozen=True)
class Lanes:
    """How one load is shared by several servers, each with its own connections."""

    urls: Mapping[str, str]  #: Name, of letters, digits, _ and - -> scheme, host and port.
    turns: LaneTurns  #: Which requests are whose.


@dataclass(frozen=True)
class Kind:
    """A kind of request of a mix.

    - name: of its endpoint; weight: its requests in each block of the mix, or in a visit
    - the other fields as of Request
    """

    name: str
    weight: int
    url: str
    method: str
    body: str
    headers: Mapping[str, str]
    status: int
    body_bytes: int | None
    body_file: str | None


@dataclass(frozen=True)
class Replayed:
    """A log whose requests are sent: the file of its schedule on the client, and the headers of the
    requests that are none of the load's kinds."""

    file: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Request:
    """What one client is to offer, for the command line of its generator.

    - url, method, body ("" for none); headers: in addition to the generator's own, name -> value
    - rate: requests/s, None of a closed loop or batch
    - arrivals: how requests come at that rate, None where evenly; seed: of random ones and of a
      mix, 0 or more
    - connections: those kept open or under way at once; at most, where on_demand
    - on_demand: whether a connection is opened when a request is due and none is free; only
      metronome can
    - threads: of the generator, at most one for each processor and connection
    - timeout_s: of a request
    - burst_every_s: seconds between the bursts of a closed loop, 0 for none
    - keepalive: whether connections are kept; http2: whether the load uses HTTP/2
    - status, body_bytes: of a right answer; body_bytes None where its length is not known
    - body_file: file on the client, in the working directory, with the body of a right answer; None
      where answers differ
    - keep_requests: whether a record of each request is kept
    - requests, open_files, reuse: of a batch; None otherwise
    - mix: the kinds of request in place of the one of this record, in an order by the seed; empty
      where there is one. Only metronome knows them
    - lanes: the servers in place of the one that url names, each with so many connections, which
      share the rate or have closed loops in turn; only metronome knows them
    - replay: the log that says what is sent when, in place of rate and arrivals; None without one
    - session: what each visitor sends, one request after another, of the kinds of mix; rate is then
      of visitors; empty where requests come alone. Only metronome knows it
    """

    url: str
    connections: int
    threads: int
    timeout_s: float
    body_bytes: int | None
    rate: float | None = None
    arrivals: Arrivals | None = None
    seed: int = 0
    method: str = "GET"
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    burst_every_s: float = 0
    on_demand: bool = False
    keepalive: bool = True
    http2: bool = False
    status: int = 200
    body_file: str | None = None
    keep_requests: bool = True
    requests: int | None = None
    open_files: int | None = None
    reuse: bool | None = None
    mix: Sequence[Kind] = ()
    lanes: Lanes | None = None
    replay: Replayed | None = None
    session: Sequence[SessionStep] = ()

    @property
    def header_options(self) -> list[str]:
        """The headers as options of curl's form: -H "Name: text"."""
        return [part for name, text in self.headers.items() for part in ("-H", f"{name}: {text}")]


@dataclass(frozen=True)
class Answer:
    """Expected length in bytes of an answer's body, and of the whole answer with its headers; None
    where it is not known, and then not checked. kinds: weight of each endpoint by name."""

    body_bytes: int | None
    wire_bytes: int | None
    kinds: Mapping[str, int] = field(default_factory=dict)


# Returns the arguments of a generator that offers a request's load for so many seconds (a batch: at
# most) and names its files by the given name.
Command: TypeAlias = Callable[[Request, float, str], list[str]]
# Returns the measurement of the raw files in a folder, by the thresholds in force, and the names of
# the files beside the output that it is from. Raises GeneratorError.
Measure: TypeAlias = Callable[[Path, Load, Answer, Thresholds], tuple[Measurement, set[str]]]
# Writes what is kept of the file of requests in a folder beside it or, where the last is true, the
# whole of it, compressed. Raises GeneratorError.
Keep: TypeAlias = Callable[[Path, Load, Thresholds, bool], None]
# Removes the file of requests in a folder.
Discard: TypeAlias = Callable[[Path], None]


@dataclass(frozen=True)
class Generator:
    """A load generator, or a Python client that is itself measured."""

    name: str  #: As in -e generator=.
    #: constant (keeps a rate), closed (each connection sends when it has its answer) or batch (a
    #: number of requests; the client is the subject).
    mode: Mode
    role: str  #: Installs it on a client.
    output: str  #: Its file in a repetition's folder, the generator's name with an ending.
    #: command, measure: see Command and Measure.
    command: Command
    measure: Measure
    options: tuple[str, ...]  #: Main variables that it reads and that another generator does not.
    program: str = ""  #: Its executable in the PATH of a client; empty where it has none.
    #: Entry points of that role that run on the controller before: check (fail if there is no way
    #: to it), begin and finish (obtain it).
    on_controller: tuple[str, ...] = ()
    #: Whether the lab obtains the executable for the controller's own architecture.
    built: bool = False
    #: The snap that has it, where no package does; empty otherwise. The lab installs none, as
    #: anybody may publish a snap. A client that runs it from there gives it all rights: a snap
    #: needs more to start than the sandbox has.
    snap: str = ""
    prints: bool = False  #: Whether it prints that file instead of writing it.
    #: keep, discard: where it leaves a file of requests.
    keep: Keep | None = None
    discard: Discard | None = None
    http2: bool = False  #: Whether it can use HTTP/2.
    on_demand: bool = False  #: Whether it can open connections when requests need them.
    whole: bool = False  #: Whether it takes only whole rates and seconds.
    duration_min_s: int = 0  #: Shortest duration it can measure.
    duration_min_why: str = ""  #: Why, in words.
    #: row_bytes, row_memory_bytes: of a file with a row for each request, bytes of disk for a row,
    #: and of the generator's memory; 0 where it writes none.
    row_bytes: int = 0
    row_memory_bytes: int = 0
    memory_rows_max: int = 0  #: Rows in its memory at most.
    #: Of more requests, and with keep_requests=false, it writes histograms by second; 0: none of
    #: both.
    rows_max: int = 0
    row_kept_bytes: int = 0  #: Of disk for a row on the controller, compressed.
    #: row_reading_bytes, row_temporary_bytes: of the controller's memory and temporary files while
    #: it reads the file.
    row_reading_bytes: int = 0
    row_temporary_bytes: int = 0
    #: Of a batch, (requests, connections asked) -> requests under way at once.
    at_once: Callable[[int, int], int] | None = None
    manner: str = ""  #: The same in words.
    connections: int | None = None  #: Default of the option connections, None for the common one.

    @property
    def binary(self) -> str:
        """The main variable that names an executable of the user's; empty where there is none."""
        return next((name for name in self.options if name.endswith("_binary")), "")
