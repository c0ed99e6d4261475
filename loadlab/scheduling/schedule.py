"""Decide what a run measures next, only from its plan and the records on disk.

So an interrupted run resumes where it stopped, a failed measurement is repeated, and later
measurements may depend on earlier results. loadlab/scheduling/dispatch.py defines the terms.

Each saturation comes first, once, in the plan's order. Then come the blocks. A block consists of
visits, each with the tracks of one set-up of the hosts; twins have visits of their own. The seed
and the block's number decide the order of visits and tracks, so it stays the same when a run is
resumed. A lesson keeps the order of its file, where a remedy follows the failure.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from loadlab.scheduling import dispatch
from loadlab.scheduling.experiments import Records, Track
from loadlab.stacks.stacks import stack_slug

# How often a failing cell is tried before it is given up.
TRIES = 2


def setup(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the set-up that a cell needs on its hosts: {stack, tuning, network}."""
    cell = item["cell"]
    return {"stack": stack_slug(cell), "tuning": cell["tuning"], "network": cell["network"]}


def _saturates(track: Track) -> bool:
    return bool(track["cells"][0]["purpose"] == "saturation")


def _repetitions(plan: Mapping[str, Any], track: Track) -> int:
    return 1 if _saturates(track) else int(plan["options"]["repetitions"])


def _of(plan: Mapping[str, Any], pair: int | None) -> list[Track]:
    return [track for track in plan["tracks"] if pair in (None, track["pair"])]


def order(plan: Mapping[str, Any], pair: int | None) -> Iterator[tuple[int, Track]]:
    """Yield (block from 1, track) in the order of measuring, for one pair or for all (None)."""
    visits: dict[tuple[str, ...], list[Track]] = {}
    others = []
    for track in _of(plan, pair):
        first = track["cells"][0]
        if _saturates(track):
            yield 1, track
        else:
            others.append(track)
            key = (*setup(first).values(), str(first["purpose"] == "twin"))
            visits.setdefault(key, []).append(track)
    study = plan["study"]
    told = study is not None and study["kind"] == "lesson"
    for block in range(1, int(plan["options"]["repetitions"]) + 1):
        if told:
            yield from ((block, track) for track in others)
            continue
        rng = random.Random(f"{plan['options']['seed']} {block}")
        turns = list(visits.values())
        rng.shuffle(turns)
        for visit in turns:
            yield from ((block, track) for track in rng.sample(visit, len(visit)))


def failures(records: Records, since: Mapping[str, int]) -> dict[str, int]:
    """Return cell_id -> number of its latest consecutive failures, where there are any.

    ``since`` is cell_id -> the highest repetition when this invocation started; only later ones
    count. A repetition that is under way has not failed.
    """
    found = {}
    for cell_id, all_of_them in records.items():
        count = 0
        for record in reversed(all_of_them):
            if record.get("under_way"):
                continue
            if record["error"] is None or record["repetition"] <= since.get(cell_id, 0):
                break
            count += 1
        if count:
            found[cell_id] = count
    return found


def highest(records: Records) -> dict[str, int]:
    """Return cell_id -> its highest repetition."""
    return {name: found[-1]["repetition"] for name, found in records.items() if found}


def given_up(attempts: Mapping[str, int]) -> list[str]:
    """Return the sorted cell_ids that are not tried again in this invocation.

    ``attempts`` is what failures() returned.
    """
    return sorted(cell_id for cell_id, count in attempts.items() if count >= TRIES)


def next_item(
    plan: Mapping[str, Any],
    records: Records,
    attempts: Mapping[str, int],
    before: Mapping[str, str] | None,
    pair: int,
) -> dict[str, Any] | None:
    """Return the item that this pair measures next; None when nothing is left to measure.

    ``attempts``: failures() of this invocation. ``before``: the set-up of the pair's hosts, None
    where it is not known. The item also has:
    - repetition: the next number that no record has
    - switch: {stack, tuning, network} to set up first, None where it is already set up
    - position, total, most, seconds_left: progress() of the pair
    """
    for block, track in order(plan, pair):
        item = dispatch.following(track, block, records)
        if item is None or attempts.get(item["cell_id"], 0) >= TRIES:
            continue
        now = setup(item)
        return {
            **item,
            "repetition": highest(records).get(item["cell_id"], 0) + 1,
            "switch": {
                key: None if before and before[key] == now[key] else now[key] for key in now
            },
            **progress(plan, records, pair, attempts),
        }
    return None


def progress(
    plan: Mapping[str, Any],
    records: Records,
    pair: int | None,
    attempts: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return {position, total, most, seconds_left} of one pair, or of all in sequence (None).

    position is the number of the next measurement, total the likely number of all, most their upper
    bound, seconds_left the seconds of load to come. Cells given up, by ``attempts``, are not
    counted.
    """
    tracks = _of(plan, pair)
    lost = set(given_up(attempts))
    going = [track for track in tracks if lost.isdisjoint(dispatch.ids(track, records))]
    done = sum(dispatch.done(track, records) for track in tracks)
    left = sum(dispatch.left(track, _repetitions(plan, track), records) for track in going)
    likely = sum(dispatch.expected(track, _repetitions(plan, track), records) for track in going)
    seconds = sum(dispatch.waiting(track, _repetitions(plan, track), records) for track in going)
    return {
        "position": done + 1,
        "total": done + likely,
        "most": done + left,
        "seconds_left": seconds,
    }
