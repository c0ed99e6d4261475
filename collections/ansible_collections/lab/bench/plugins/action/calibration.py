"""Action plugin lab.bench.calibration: writes calibration.json, as measured now or lately.

Its result: ``found``: whether there is a calibration, ``calibration``: its document, ``text``: the
same in one or two lines, and ``reused``: which run measured it and how long ago.
loadlab/results/calibrations/judge_calibration.py and calibration_reuse.py do the work.
"""

import time
from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.model import TuningLedger
from loadlab.model.base import Json
from loadlab.report.words import calibration_words as words
from loadlab.results.calibrations import calibration_reuse, judge_calibration
from loadlab.run import documents
from loadlab.run.run_dir import CalibrationDir


class Arguments(Struct, kw_only=True, frozen=True):
    """A calibration of the link and of the generator."""

    dir: Path  #: Folder of the raw files in the run; the document is beside it.
    repetition: int  #: Number of this calibration in the run.
    #: Output of what measured the link, client_to_server and server_to_client of iperf3, the same
    #: with several_ before where several streams were measured, and ping; without it an earlier
    #: calibration is looked for.
    link: dict[str, str] | None = None
    hosts: list[str]  #: The server and the client, whose tuning.json is a condition too.
    conditions: dict[str, Json]  #: Everything else that a calibration depends on.
    generator: str  #: Of the measurements that follow.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        folder, now = CalibrationDir(args.dir), time.time()
        ledger = documents.read_or_none(folder.run_dir.ledger(), TuningLedger)
        conditions = calibration_reuse.conditions(args.conditions, ledger, args.hosts)
        generator, number, reused = args.generator, args.repetition, ""
        if args.link is not None:
            document = judge_calibration.keep(folder, number, args.link, conditions, generator, now)
        else:
            reusable = calibration_reuse.reuse(folder, number, conditions, generator, now)
            if reusable is None:
                return {"found": False}
            number, document = reusable.number, reusable.document
            reused = words.reused(reusable.origin, now)
        return {
            "changed": number == args.repetition,
            "found": True,
            "reused": reused,
            "calibration": document,
            "number": number,
            "disturbed": "\n".join(words.disturbed(document)),
            "text": words.summary(document),
        }
