"""Two pairs measure one run at once: each decides by what is on disk, whatever the other is at."""

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.lab.bench.plugins.action import next as deciding
from msgspec.structs import replace

from loadlab.model import Cell, Reason, RepetitionSetup, Result, Validity
from loadlab.plan.schedule import NextMeasurement
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from tests.simulation import matrices
from tests.unit import builders
from tests.unit.kinds.gate import test_verdict
from tests.unit.kinds.gate.test_verdict import Machine
from tests.unit.plan.test_schedule import CELLS, measured, plan_of, with_tries

PAIRS = ("server", "server2")


class Run:
    """A run of a cell for each of two pairs."""

    def __init__(self, run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run_dir = run_dir
        self.printed: list[str] = []
        monkeypatch.setattr(deciding, "tell", self.printed.append)
        self.action = deciding.ActionModule.__new__(deciding.ActionModule)
        items = [replace(item, cell=replace(item.cell, endpoint="agents")) for item in CELLS[:2]]
        plan = replace(plan_of(items, 1, pairs=2), run_id="run", endpoints={})
        builders.write_plan(run_dir, plan)

    def begin(self, item: dict[str, Any]) -> None:
        """Begin the load of an item."""
        folder = RunDir(self.run_dir).repetition(item["cell_id"], item["repetition"])
        folder.path.mkdir(parents=True)
        setup = RepetitionSetup(
            cell_id=item["cell_id"],
            repetition=item["repetition"],
            purpose=item["purpose"],
            server="server",
            cell=documents.decode(item["cell"], Cell, "cell"),
        )
        folder.cell.write_bytes(documents.encode(setup))

    def end(self, item: dict[str, Any], result: Result) -> None:
        """Record what came of an item's measurement."""
        folder = RunDir(self.run_dir).repetition(item["cell_id"], item["repetition"])
        folder.result.write_bytes(documents.encode(result))

    def fail(self, item: dict[str, Any], pair: int) -> None:
        numbered = {name: item[name] for name in ("cell_id", "repetition")}
        self.end(item, builders.result(**numbered, error="broken", server=PAIRS[pair]))

    def next(self, pair: int, last: dict[str, Any] | None) -> dict[str, Any]:
        return self.action.act({"run_dir": str(self.run_dir), "pair": pair, "last": last})


def test_what_the_other_pair_is_just_measuring_has_not_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, monkeypatch)
    now = [run.next(pair, None) for pair in (0, 1)]
    # Both fail once, and the first fails again while the other's second attempt is under way.
    for _ in range(2):
        run.begin(now[0]["item"])
        run.fail(now[0]["item"], 0)
        if now[1]["item"]["repetition"] == 1:
            run.begin(now[1]["item"])
            run.fail(now[1]["item"], 1)
            now[1] = run.next(1, now[1])
            run.begin(now[1]["item"])
        now[0] = run.next(0, now[0])
    assert now[0]["item"] is None
    broken = "aiohttp /agents, oha 1,000/s: failed (recorded): broken"
    assert [f"[1/1] {server}: {broken}" in run.printed for server in PAIRS] == [True, True]
    assert [words for words in run.printed if "Skipped" in words] == [
        "Skipped after 2 failed attempts: cell-0: broken"
    ]
    progress = documents.load(tmp_path / "progress.json")
    assert progress["abandoned"] == {"cell-0": "broken"}
    assert (progress["done"], progress["total"]) == (0, 1)
    # And when that has failed too, it is told of where it was measured.
    run.fail(now[1]["item"], 1)
    assert run.next(1, now[1])["item"] is None
    assert run.printed[-1] == "Skipped after 2 failed attempts: cell-1: broken"
    assert set(documents.load(tmp_path / "progress.json")["abandoned"]) == {"cell-0", "cell-1"}


def test_a_disturbed_run_is_told_once_and_its_repeats_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, monkeypatch)
    cells = [replace(item, cell=replace(item.cell, endpoint="agents")) for item in CELLS]
    planned = with_tries(replace(plan_of(cells, 2), run_id="run", endpoints={}), 3)
    builders.write_plan(tmp_path, planned)
    steal = Reason(code="steal", value=0.2, limit=0.01, facts={"host": "client"})
    void = Validity(valid=False, reasons=[steal], findings=[])
    last, count = run.next(0, None), 0
    while item := last["item"]:
        run.begin(item)
        now = documents.decode(item, NextMeasurement, "item")
        result = measured(now, now.repetition, block=now.block)
        run.end(item, replace(result, validity=void))
        count += 1
        last = run.next(0, last)
    assert count == 16 + 8
    notices = [line for line in run.printed if not line.startswith("[")]
    assert [line.split("; ")[-1].split(". ")[0].split(" (")[0] for line in notices] == [
        "6 of the first 6 measurements are void for that, and results will be few",
        "Repeats of void measurements took 80 s, the most that they may take",
    ]
    assert (last["left"], documents.load(tmp_path / "progress.json")["total"]) == (0, 24)


def test_blocks_of_variants_are_added_until_they_are_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, monkeypatch)
    machine = Machine(test_verdict.plan(), {"cpu": 1.5, "p99": 2}, noise=0.001)
    builders.write_plan(tmp_path, machine.plan)
    last = run.next(0, None)
    while item := last["item"]:
        planned = documents.decode(item, NextMeasurement, "item")
        machine.now += 5
        for lane, stack in zip(item["lanes"], planned.lanes, strict=True):
            run.begin(lane)
            result = machine.measure(stack, stack.repetition, planned.block)
            run.end(lane, replace(result, blocks=planned.blocks))
        last = run.next(0, last)
    assert last["left"] == 0
    assert "  base (A/A control): 20," in "\n".join(run.printed)
    blocks = [line for line in run.printed if line.startswith("After block ")]
    names = "CPU per request, goodput at saturation, p50, p99, memory, failed requests"
    assert blocks[0] == f"After block 1: open: {names}"
    assert "CPU per request more (+" in blocks[-1]
    assert "open" not in blocks[-1]
    assert len(list(tmp_path.glob("cells/*/rep-*"))) == 3 * len(blocks)


def test_candidates_of_a_matrix_are_halved_and_the_best_compared_until_they_are_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, monkeypatch)
    planned_matrix = matrices.plan(server="uwsgi", budget="30m")
    assert planned_matrix.matrix is not None
    names = [candidate.name for candidate in planned_matrix.matrix.candidates]
    truth = {name: 1000.0 * 1.2**at for at, name in enumerate(names)}
    machine = matrices.Machine(planned_matrix, truth, noise=0.005, failing=("uwsgi-1x1",))
    builders.write_plan(tmp_path, planned_matrix)
    last = run.next(0, None)
    while item := last["item"]:
        planned = documents.decode(item, NextMeasurement, "item")
        machine.begin(planned.measured, planned.block or 0)
        for lane, stack in zip(item["lanes"], planned.lanes, strict=True):
            run.begin(lane)
            machine.found.setdefault(stack.cell_id, [])
            result = machine.result(stack, stack.repetition, planned.block or 0)
            run.end(lane, replace(result, blocks=planned.blocks))
        last = run.next(0, last)
    assert last["left"] == 0
    blocks = [line for line in run.printed if line.startswith("After block ")]
    lanes = [line for line in run.printed if line.startswith("  flask on uWSGI (")]
    assert any("1 worker, 4 threads)" in line for line in lanes), run.printed[:8]
    best = "uWSGI, 3 workers"
    assert blocks[0] == "After block 1: 4 candidates in round 1; dropped: 1"
    assert blocks[3].startswith(f"After block 4: the best of the rounds are {best}; uWSGI, ")
    last_block = f"best {best}; 0 of 2 comparisons open; dropped: 1"
    assert blocks[-1] == f"After block {len(blocks)}: {last_block}"
