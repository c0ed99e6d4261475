"""Action plugin lab.bench.calibration; see calibration.py and calibration_reuse.py in
loadlab/results."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import (
    ControllerAction,
    for_ansible,
)

from loadlab.model import CalibrationConditions, TuningLedger
from loadlab.plan import plan_document as plans
from loadlab.report.words import calibration_words as words
from loadlab.results import calibration_reuse, judge_calibration
from loadlab.run import documents
from loadlab.run.errors import LabError
from loadlab.run.run_dir import IPERF3, IPERF3_SEVERAL, LINK, PING, CalibrationDir


class ActionModule(ControllerAction):
    """Derives the present calibration or, without ``link``, reuses the newest of the same
    conditions."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        folder = CalibrationDir(Path(args["dir"]))
        recorded = folder.run_dir.ledger()
        conditions = calibration_reuse.conditions(
            args["conditions"],
            documents.read_or_none(recorded, TuningLedger),
            args["hosts"],
        )
        if args["link"] is None:
            return self._earlier(args, folder, conditions)
        link = folder.part(LINK, args["repetition"]).path
        # The hosts' recordings may be there already.
        link.mkdir(parents=True, exist_ok=True)
        several = {f"several_{direction}": name for direction, name in IPERF3_SEVERAL.items()}
        names = {**IPERF3, **several, "ping": PING}
        for name in names.values():
            if (link / name).exists():
                raise LabError(f"{link / name} is there already: a measurement is kept.")
        for key, text in args["link"].items():
            documents.write(link / names[key], text.encode(errors="backslashreplace"))
        measured = CalibrationConditions(
            run_id=folder.run_dir.run_id, measured=time.time(), conditions=conditions
        )
        documents.write(folder.conditions(args["repetition"]), documents.encode(measured))
        try:
            derived = self._derived(args, folder, args["repetition"])
        except LabError as problem:
            raise LabError(f"{problem}. The raw files are kept in {folder.path}.") from None
        return {"changed": True, "found": True, **derived}

    def _earlier(
        self, args: dict[str, Any], folder: CalibrationDir, conditions: dict[str, Any]
    ) -> dict[str, Any]:
        now, number = time.time(), args["repetition"]
        usable = list(calibration_reuse.found(folder.path.parents[1], conditions, now))
        for own in usable:
            if own.folder == folder and own.number == folder.numbers()[-1]:
                # The run uses it already.
                derived = self._derived(args, folder, own.number)
                if derived["disturbed"]:
                    return {"found": False}
                return {"found": True, "reused": words.reused(own.origin, now), **derived}
        for earlier in usable:
            calibration_reuse.copy(earlier, folder, number)
            try:
                derived = self._derived(args, folder, number)
            except ValueError:
                # Its files were changed or damaged, so it is no longer a calibration.
                calibration_reuse.drop(folder, number)
                continue
            if derived["disturbed"]:
                calibration_reuse.drop(folder, number)
                folder.document.unlink()
                continue
            reused = words.reused(earlier.origin, now)
            return {"changed": True, "found": True, "reused": reused, **derived}
        return {"found": False}

    def _derived(self, args: dict[str, Any], folder: CalibrationDir, number: int) -> dict[str, Any]:
        limits = plans.read(folder.run_dir.path).thresholds
        document = judge_calibration.derive(folder, number, args["generator"], limits)
        documents.write(folder.document, documents.encode(document))
        return {
            "calibration": for_ansible(document),
            "number": number,
            "disturbed": "\n".join(words.disturbed(document)),
            "text": words.summary(document),
        }
