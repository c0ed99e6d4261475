"""What the role load_run offers: the lanes of a load, and the requests of a mix."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from loadlab.model import kinds_of
from loadlab.plan.schedule import PlacedItem
from loadlab.run.run_dir import RunDir
from loadlab.stacks import places
from loadlab.stacks.contract import Answer, Contracts
from loadlab.stacks.stacks import Stack


def lanes(
    planned: Sequence[PlacedItem],
    stacks: Mapping[str, Stack],
    endpoints: Contracts,
    root: Path,
    run_dir: Path,
    address: str,
) -> list[dict[str, object]]:
    """Return each lane's stack, and its entries of stack_places and load_run_lanes of the roles
    stack and load_run.

    ``planned``: lanes of a measurement; ``stacks``, ``endpoints``: as in the plan; ``address``:
    the server's.
    """
    kept = ("place", "cell_id", "repetition", "purpose", "base", "cell", "input_hashes")
    return [
        {
            "stack": lane.stack,
            "placed": {
                "place": lane.place,
                "stack_name": f"{lane.stack}-{lane.cell.tuning}",
                "definition": stacks[lane.stack],
            },
            "offered": {
                **{key: getattr(lane, key) for key in kept},
                "dir": str(RunDir(run_dir).repetition(lane.cell_id, lane.repetition).path),
                "url": (served.tls_url if lane.cell.load.tls else served.url)
                + endpoints[next(iter(kinds_of(lane.cell.endpoint)))].path,
                "status": served.status,
                "units": served.units,
            },
        }
        for lane in planned
        for served in [places.served(root, stacks[lane.stack], address, lane.place)]
    ]


def mix(
    endpoint: str, endpoints: Contracts, answers: Mapping[str, Answer], url: str
) -> list[dict[str, object]]:
    """Return the entries of load_run_mix of the role load_run; none where ``endpoint``, a cell's,
    names one.

    ``endpoints``: contracts, as in the plan; ``answers``: verified ones; ``url``: the server's.
    """
    kinds = kinds_of(endpoint)
    return [
        {
            "name": name,
            "weight": weight,
            "url": f"{url}{endpoints[name].path}",
            "request": endpoints[name],
            "answer": answers[name],
        }
        for name, weight in kinds.items()
        if len(kinds) > 1
    ]
