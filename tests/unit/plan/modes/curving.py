"""Simulated curves: a server of known capacity, some of whose measurements miss by bad luck."""

import random

from msgspec.structs import replace

from loadlab.plan.modes.levels import Scaled
from loadlab.plan.modes.search import judged
from loadlab.plan.records import CellRecords
from loadlab.results.summaries.curves import bounds
from tests.unit import builders
from tests.unit.plan.modes.probing import add_result, of_item, record

SATURATION = 10_000.0
# The highest rate of the curve that this server holds is its truth.
CAPACITY = 8500.0
TRUTH = 7500.0


def one_curve(points: list[Scaled], asked: float, unlucky: float, rng: random.Random) -> float:
    """Measure a curve to its end; return up to which rate it met the objective, requests/s, or 0.

    ``asked``: the rate asked for, requests/s, measured once. ``unlucky``: fraction of the
    measurements that miss although the server holds the rate.
    """
    records: dict[str, CellRecords] = {}
    (loop_id,) = points[0].saturations
    add_result(records, replace(record(True), cell_id=loop_id, goodput=SATURATION))

    def meets(rate: float) -> bool:
        return rate <= CAPACITY and rng.random() >= unlucky

    verdicts = {asked: [meets(asked)]}
    for point in rng.sample(points, len(points)):
        while (item := point.next_item(1, records)) is not None:
            result = of_item(record(meets(builders.present(item.cell.load.rate))), item)
            add_result(records, replace(result, block=1))
        (item,) = point.known_items(records)
        rate = builders.present(item.cell.load.rate)
        verdicts[rate] = [bool(own.met) for own in judged(item, records)]
    return bounds(verdicts)[0] or 0.0


def ended_low(count: int, unlucky: float, share: float = 0.8) -> float:
    """Return the fraction of the curves that end below this share of the truth.

    The rate asked for lies anywhere from 0.1 to 0.9 of the saturation.
    """
    plan = builders.plan(endpoint="agents", curve=True)
    points = [one for one in plan.experiments if isinstance(one, Scaled)]
    rng = random.Random(1)
    ends = [
        one_curve(points, SATURATION * rng.uniform(0.1, 0.9), unlucky, rng) for _ in range(count)
    ]
    return sum(end < share * TRUTH for end in ends) / count
