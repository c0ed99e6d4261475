"""Action plugin lab.bench.next: decides what a host pair measures next."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import (
    ControllerAction,
    for_ansible,
    tell,
)
from msgspec.structs import replace

from loadlab.kinds import all_kinds, derive_run
from loadlab.kinds.budget import Pace
from loadlab.model import Progress, Result
from loadlab.plan import ablation, progress, records, repeats, schedule
from loadlab.plan import plan_document as plans
from loadlab.plan.modes import search
from loadlab.plan.plan_document import Plan, Setup
from loadlab.plan.progress import Began
from loadlab.plan.records import Records
from loadlab.plan.schedule import NextMeasurement
from loadlab.report.terminal import cell_lines
from loadlab.report.words import applications_words, disturbances, outcomes
from loadlab.run import documents, formatting, lock
from loadlab.run.run_dir import RunDir


class ActionModule(ControllerAction):
    """Derives the last measurement, prints its result, chooses the next and
    writes progress.json."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run, pair = RunDir(Path(args["run_dir"])), int(args["pair"])
        plan = plans.read(run.path).plan
        before = documents.decode(args["set_up"], Setup, "set_up") if args["set_up"] else None
        began, item = None, None
        if args["last"]:
            item = documents.decode(args["last"]["item"], NextMeasurement, "item")
            began = documents.decode(args["last"]["began"], Began, "began")
            failed = self._tell_result(run, plan, item, args)
            before = None if failed else schedule.setup(item)
        with lock.alone(run.path):
            kept: Records = records.load(run.path)
            # The generators were calibrated after the run was planned.
            plan = plans.with_rate_ceiling(plan, records.rate_ceiling(run.path))
            idle = ablation.idle(plan.study, records.ledgers(run.path))
            plan = ablation.without_idle(plan, idle)
            if began is None:
                began = Began(
                    at=time.time(),
                    since=schedule.highest_repetitions(kept),
                    outlook=schedule.outlook(plan, kept, pair),
                    blocks=schedule.blocks_done(plan, kept, {}),
                )
            kept = repeats.limited(plan, kept)
            failures = schedule.consecutive_failures(kept, began.since)
            kind = all_kinds.of_plan(plan)
            pace = Pace(began.at, time.time(), began.blocks)
            plan = plans.with_blocks(plan, kind.blocks(plan, kept, failures, pace))
            ahead = schedule.outlook(plan, kept, pair, failures)
            document = progress.document(plan, kept, failures, began, ahead, time.time())
            documents.write(run.progress, documents.encode(document))
        began = self._tell_disturbance(plan, kept, pair, began, ahead.total)
        following = schedule.next_item(
            plan, kept, failures, before, pair, keeps_order=kind.keeps_order
        )
        answer = {"item": None, "left": 0, "began": for_ansible(began)}
        self._tell_block(plan, kept, item, following)
        if following is None:
            own = schedule.experiments_of(plan, pair)
            self._tell_abandoned(document, {name for one in own for name in one.cell_ids(kept)})
            return answer
        left = progress.seconds_left(began, ahead, time.time())
        return {
            **answer,
            "item": for_ansible(replace(following, seconds_left=left)),
            "left": ahead.total - ahead.position + 1,
        }

    def _tell_result(
        self, run: RunDir, plan: Plan, item: NextMeasurement, args: dict[str, Any]
    ) -> bool:
        """Derive the last measurement and print its result; return whether it failed."""
        repetition = run.repetition(item.cell_id, item.repetition)
        derive_run.repetition(repetition.path)
        found = documents.read(repetition.result, Result)
        several = len({one.pair for one in plan.experiments}) > 1
        path = applications_words.paths(plan.endpoints).get(
            item.cell.endpoint, f"/{item.cell.endpoint}"
        )
        if len(plan.tunings) > 1:
            path += f", tuning {item.cell.tuning}"
        what = progress.measurement(item, path, (found.server or "") if several else "")
        met = ""
        if item.slo is not None and found.error is None:
            met = outcomes.objective_met(search.judge(item, found))
        tell(f"{what}: {cell_lines.result(found)}{met}")
        return found.error is not None

    def _tell_block(
        self,
        plan: Plan,
        kept: Records,
        last: NextMeasurement | None,
        following: NextMeasurement | None,
    ) -> None:
        """Print what a comparison of variants or candidates says after a block."""
        block = last.block if last is not None else None
        if not block or (following is not None and following.block == block):
            return
        if text := all_kinds.of_plan(plan).after_block(plan, kept, block):
            tell(text)

    def _tell_disturbance(
        self, plan: Plan, kept: Records, pair: int, began: Began, total: int
    ) -> Began:
        """Print once what makes results few, and that void ones are not repeated any more."""
        own = replace(plan, experiments=[one for one in plan.experiments if one.pair == pair])
        found = repeats.disturbance(own, kept)
        due = {
            "early": disturbances.early(found) if repeats.is_early(found, total) else "",
            "spent": disturbances.spent(found) if found.withheld else "",
        }
        now = {name: text for name, text in due.items() if text and name not in began.told}
        for text in now.values():
            tell(text)
        return replace(began, told=(*began.told, *now))

    def _tell_abandoned(self, document: Progress, own: set[str]) -> None:
        for cell_id, error in document.abandoned.items():
            if cell_id in own:
                tell(f"Skipped after 2 failed attempts: {cell_id}: {formatting.one_line(error)}")
