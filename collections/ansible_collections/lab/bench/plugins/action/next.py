"""Action plugin lab.bench.next: decides what a host pair measures next."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell

from loadlab.analysis import derive
from loadlab.core import documents, formatting, lock
from loadlab.report import labels, terminal
from loadlab.scheduling import dispatch, progress, records, schedule, search
from loadlab.tuning import ablation


class ActionModule(ControllerAction):
    """Derives the last measurement, prints its result, chooses the next and
    writes progress.json."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir, root, pair = Path(args["run_dir"]), Path(args["root"]), args["pair"]
        plan = documents.load(run_dir / "plan.json")["plan"]
        before = args["set_up"]
        if args["last"]:
            item = args["last"]["item"]
            rep_dir = run_dir / "cells" / item["cell_id"] / f"rep-{item['repetition']}"
            derive.repetition(rep_dir, root, args["keep_requests"])
            found = documents.load(rep_dir / "result.json")
            several = len({track["pair"] for track in plan["tracks"]}) > 1
            path = labels.path_of(item, plan["endpoints"])
            what = progress.measurement(item, path, found["pair"] if several else "")
            tell(f"{what}: {terminal.told(found)}{search.said(item, found)}")
            before = None if found["error"] else schedule.setup(item)
        with lock.alone(run_dir):
            kept = records.load(run_dir)
            # The generators were calibrated after the run was planned.
            plan["tracks"] = dispatch.below(plan["tracks"], records.ceiling(run_dir))
            idle = ablation.idle(plan, records.ledgers(run_dir))
            plan["tracks"] = ablation.less(plan["tracks"], idle)
            if args["last"]:
                began = args["last"]["began"]
            else:
                since = schedule.highest(kept)
                began = {"at": time.time(), "since": since, **schedule.progress(plan, kept, pair)}
            attempts = schedule.failures(kept, began["since"])
            ahead = schedule.progress(plan, kept, pair, attempts)
            document = progress.document(plan, kept, attempts, began, ahead, time.time())
            derive.write(document, "progress", run_dir / "progress.json", root)
        following = schedule.next_item(plan, kept, attempts, before, pair)
        if following is None:
            tracks = [track for track in plan["tracks"] if track["pair"] == pair]
            own = {cell_id for track in tracks for cell_id in dispatch.ids(track, kept)}
            for cell_id, why in document["given_up"].items():
                if cell_id in own:
                    tell(f"Given up for now: {cell_id}: {formatting.one_line(why)}")
            return {"item": None, "left": 0, "began": began}
        left = progress.seconds_left(began, ahead, time.time())
        return {
            "item": {**following, "seconds_left": left},
            "left": ahead["most"] - ahead["position"] + 1,
            "began": began,
        }
