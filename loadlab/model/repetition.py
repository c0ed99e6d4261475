"""The raw documents of a repetition: cell.json and run.json."""

from typing import Annotated

from msgspec import Meta

from loadlab.model.base import Above0, Count, Name, NotNegative, Positive, Record
from loadlab.model.cell import Cell, InputHashes, Purpose


class HostCpus(Record, kw_only=True, frozen=True):
    """Numbers of the cores that each host may use."""

    server: list[Count]  #: Of the server.
    client: list[Count]  #: Of the client, the first of several.


class HostInterfaces(Record, kw_only=True, frozen=True):
    """Name of each host's interface that carries the load."""

    server: str  #: Of the server.
    client: str  #: Of the client, the first of several.


class ClientShare(Record, kw_only=True, frozen=True):
    """What one of several clients of a server is to offer, and from where."""

    #: Its name in the inventory, and that of the folder of its raw files, clients/<name>.
    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*(?![\s\S])")]
    rate: Above0 | None  #: Its share of the rate, requests/s; null for a closed loop.
    connections: Positive  #: Its share of the connections.
    cpus: list[Count]  #: Numbers of the cores it may use.
    interface: str  #: Name of its interface that carries the load.


class Lane(Record, kw_only=True, frozen=True):
    """The place of a repetition's stack among the stacks that one load measured."""

    place: Positive  #: Number of its place on the server, from 1.
    first: Name  #: cell_id of the stack whose repetition gets the load's raw files.
    cells: dict[str, Count]  #: cell_id of each stack of the load -> its place, the first included.


class RepetitionSetup(Record, kw_only=True, frozen=True):
    """cells/<cell_id>/rep-<n>/cell.json: what is measured, written before the load.

    Where the set-up failed no load was offered, and all from `url` on is absent.
    """

    cell_id: Name  #: Name of the cell and of its folder.
    repetition: Positive  #: Number of the repetition, 1 or more.
    #: Number of the block of the schedule that it belongs to; absent outside the schedule.
    block: Positive | None = None
    #: How many blocks the schedule had when it was measured; absent outside the schedule.
    blocks: Positive | None = None
    purpose: Purpose  #: What the measurement is for.
    #: cell_id of the cell that this one repeats, probes or limits; absent for `measure`.
    base: str | None = None
    cell: Cell  #: What is measured.
    server: str  #: Inventory name of the server of the pair that measures it.
    #: What the cell is made of beside its own words; null of a calibration.
    input_hashes: InputHashes | None = None
    url: str | None = None  #: URL that is asked for.
    body_bytes: Count | None = None  #: Length of the verified answer's body, bytes.
    #: Length of the verified answer with its headers, bytes; null where not known.
    wire_bytes: Count | None = None
    cpus: HostCpus | None = None  #: Cores that the hosts may use.
    interface: HostInterfaces | None = None  #: Interfaces that carry the load.
    #: Each of several clients; absent where there is one.
    clients: Annotated[list[ClientShare], Meta(min_length=1)] | None = None
    #: Hosts whose processors QEMU emulates; absent where there is none.
    emulated: Annotated[list[Name], Meta(min_length=1)] | None = None
    #: Its place in a load of several lanes; absent where the load is of one stack.
    lane: Lane | None = None


class GeneratorRun(Record, kw_only=True, frozen=True):
    """run.json: one run of a generator, written by run-load.sh when it ended.

    Times are by the client's clock; 0 where the load did not begin.
    """

    started: NotNegative  #: When the measured load began, unix seconds.
    finished: NotNegative  #: When the generator ended, unix seconds.
    exit_code: int  #: The generator's exit code, or that of the failed step.
