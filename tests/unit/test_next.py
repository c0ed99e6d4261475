"""Two pairs measure one run at once: each decides by what is on disk, whatever the other is at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.lab.bench.plugins.action import next as deciding

from loadlab.core import documents

from .scheduling.test_schedule import CELLS, plan_of

ROOT = Path(__file__).parents[2]
PAIRS = ("server", "server2")


class Run:
    """A run of a cell for each of two pairs."""

    def __init__(self, run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run_dir = run_dir
        self.told: list[str] = []
        monkeypatch.setattr(deciding, "tell", self.told.append)
        self.action = deciding.ActionModule.__new__(deciding.ActionModule)
        load = {"generator": "oha", "mode": "constant", "rate": 1000}
        items = [
            {**one, "cell": {**one["cell"], "endpoint": "agents", "load": load}}
            for one in CELLS[:2]
        ]
        plan = {**plan_of(items, 1, pairs=2), "run_id": run_dir.name, "endpoints": {}}
        (run_dir / "plan.json").write_text(json.dumps({"plan": plan}))

    def begin(self, item: dict[str, Any]) -> None:
        """Its load is under way."""
        folder = self.run_dir / "cells" / item["cell_id"] / f"rep-{item['repetition']}"
        folder.mkdir(parents=True)
        (folder / "cell.json").write_text("{}")

    def end(self, item: dict[str, Any], pair: int) -> None:
        """It failed."""
        folder = self.run_dir / "cells" / item["cell_id"] / f"rep-{item['repetition']}"
        record = {"repetition": item["repetition"], "error": "broken", "pair": PAIRS[pair]}
        (folder / "result.json").write_text(json.dumps(record))

    def next(self, pair: int, last: dict[str, Any] | None) -> dict[str, Any]:
        args = {"root": str(ROOT), "keep_requests": False, "set_up": None}
        return self.action.work({**args, "run_dir": str(self.run_dir), "pair": pair, "last": last})


def test_what_the_other_pair_is_just_measuring_has_not_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, monkeypatch)
    now = [run.next(pair, None) for pair in (0, 1)]
    # Both fail once, and the first fails again while the other's second attempt is under way.
    for _ in range(2):
        run.begin(now[0]["item"])
        run.end(now[0]["item"], 0)
        if now[1]["item"]["repetition"] == 1:
            run.begin(now[1]["item"])
            run.end(now[1]["item"], 1)
            now[1] = run.next(1, now[1])
            run.begin(now[1]["item"])
        now[0] = run.next(0, now[0])
    assert now[0]["item"] is None
    broken = "x /agents, oha 1,000/s: failed, and kept as such: broken"
    assert [f"[1/1] {server}: {broken}" in run.told for server in PAIRS] == [True, True]
    assert [words for words in run.told if "Given up" in words] == [
        "Given up for now: cell-0: broken"
    ]
    progress = documents.load(tmp_path / "progress.json")
    assert progress["given_up"] == {"cell-0": "broken"}
    assert (progress["done"], progress["total"]) == (0, 1)
    # And when that has failed too, it is told of where it was measured.
    run.end(now[1]["item"], 1)
    assert run.next(1, now[1])["item"] is None
    assert run.told[-1] == "Given up for now: cell-1: broken"
    assert set(documents.load(tmp_path / "progress.json")["given_up"]) == {"cell-0", "cell-1"}
