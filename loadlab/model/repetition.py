"""The raw documents of a repetition: cell.json and run.json."""

from typing import Annotated

from msgspec import Meta

from loadlab.model.base import Above0, Count, Name, NotNegative, Positive, Record, doc
from loadlab.model.cell import Cell, InputHashes, Purpose


class HostCpus(Record, kw_only=True, frozen=True):
    """Numbers of the cores that each host may use."""

    server: Annotated[list[Count], doc("Of the server.")]
    client: Annotated[list[Count], doc("Of the client, the first of several.")]


class HostInterfaces(Record, kw_only=True, frozen=True):
    """Name of each host's interface that carries the load."""

    server: Annotated[str, doc("Of the server.")]
    client: Annotated[str, doc("Of the client, the first of several.")]


class ClientShare(Record, kw_only=True, frozen=True):
    """What one of several clients of a server is to offer, and from where."""

    name: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*(?![\s\S])")],
        doc("Its name in the inventory, and that of the folder of its raw files, clients/<name>."),
    ]
    rate: Annotated[
        Above0 | None, doc("Its share of the rate, requests/s; null for a closed loop.")
    ]
    connections: Annotated[Positive, doc("Its share of the connections.")]
    cpus: Annotated[list[Count], doc("Numbers of the cores it may use.")]
    interface: Annotated[str, doc("Name of its interface that carries the load.")]


class Lane(Record, kw_only=True, frozen=True):
    """The place of a repetition's stack among the stacks that one load measured."""

    place: Annotated[Positive, doc("Number of its place on the server, from 1.")]
    first: Annotated[Name, doc("cell_id of the stack whose repetition gets the load's raw files.")]
    cells: Annotated[
        dict[str, Count], doc("cell_id of each stack of the load -> its place, the first included.")
    ]


class RepetitionSetup(Record, kw_only=True, frozen=True):
    """cells/<cell_id>/rep-<n>/cell.json: what is measured, written before the load.

    Where the set-up failed no load was offered, and all from `url` on is absent.
    """

    cell_id: Annotated[Name, doc("Name of the cell and of its folder.")]
    repetition: Annotated[Positive, doc("Number of the repetition, 1 or more.")]
    block: Annotated[
        Positive | None,
        doc("Number of the block of the schedule that it belongs to; absent outside the schedule."),
    ] = None
    purpose: Annotated[Purpose, doc("What the measurement is for.")]
    base: Annotated[
        str | None,
        doc("cell_id of the cell that this one repeats, probes or limits; absent for `measure`."),
    ] = None
    cell: Annotated[Cell, doc("What is measured.")]
    server: Annotated[str, doc("Inventory name of the server of the pair that measures it.")]
    input_hashes: Annotated[
        InputHashes | None,
        doc("What the cell is made of beside its own words; null of a calibration."),
    ] = None
    url: Annotated[str | None, doc("URL that is asked for.")] = None
    body_bytes: Annotated[Count | None, doc("Length of the verified answer's body, bytes.")] = None
    wire_bytes: Annotated[
        Count | None,
        doc("Length of the verified answer with its headers, bytes; null where not known."),
    ] = None
    cpus: Annotated[HostCpus | None, doc("Cores that the hosts may use.")] = None
    interface: Annotated[HostInterfaces | None, doc("Interfaces that carry the load.")] = None
    clients: Annotated[
        Annotated[list[ClientShare], Meta(min_length=1)] | None,
        doc("Each of several clients; absent where there is one."),
    ] = None
    emulated: Annotated[
        Annotated[list[Name], Meta(min_length=1)] | None,
        doc("Hosts whose processors QEMU emulates; absent where there is none."),
    ] = None
    lane: Annotated[
        Lane | None,
        doc("Its place in a load of several lanes; absent where the load is of one stack."),
    ] = None


class GeneratorRun(Record, kw_only=True, frozen=True):
    """run.json: one run of a generator, written by run-load.sh when it ended.

    Times are by the client's clock; 0 where the load did not begin.
    """

    started: Annotated[NotNegative, doc("When the measured load began, unix seconds.")]
    finished: Annotated[NotNegative, doc("When the generator ended, unix seconds.")]
    exit_code: Annotated[int, doc("The generator's exit code, or that of the failed step.")]
