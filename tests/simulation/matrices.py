"""Simulated matrices: a machine with true goodputs, noise, drift, voids and failures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from msgspec.structs import replace

from loadlab.kinds.budget import Pace
from loadlab.kinds.matrix import analyse, blocks_left
from loadlab.model import Item, MatrixVerdict, Reason, Result, ServiceProcesses, Telemetry, Validity
from loadlab.plan import plan_document
from loadlab.plan.modes.matrix_order import Matrix
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import CellRecords, cell_records
from tests.unit import builders

# Seconds of a load, with one candidate or several, and of the first set-up of a candidate, as
# files/methods.yml plans them.
ALONE_S, TOGETHER_S, SET_UP_S = 6.5, 16.0, 15.0
BEGAN = 1_795_000_000.0
_STEAL = Reason(
    code="steal", value=0.2, limit=0.05, facts={"host": "server", "seconds": 1, "seconds_max": 0.5}
)
VOID = Validity(valid=False, reasons=[_STEAL], findings=[])


def plan(**given: object) -> Plan:
    return builders.plan(**{"framework": "flask", "endpoint": "hello", "matrix": 1, **given})


@dataclass
class Machine:
    """Measures what the plan asks for.

    ``truth``: candidate -> goodput, requests/s. ``noise``: standard deviation of a measurement;
    ``drift``: of a load. ``void``: probability of a void load. ``failing``: candidates through
    which a load fails, or their A/A control with the suffix -aa, from the block ``from_block`` on.
    An application takes as much memory for each worker.
    """

    plan: Plan
    truth: Mapping[str, float]
    noise: float = 0.03
    drift: float = 0.02
    void: float = 0.05
    failing: tuple[str, ...] = ()
    from_block: int = 1
    seed: int = 1
    now: float = BEGAN
    found: dict[str, list[Result]] = field(default_factory=dict)
    kept: dict[str, CellRecords] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.plan.matrix is not None
        self.random = np.random.default_rng(self.seed)
        self.names = {one.cell_id: one.name for one in self.plan.matrix.candidates}
        self.memory = {one.name: 50e6 * one.workers for one in self.plan.matrix.candidates}
        self.level = 0.0
        self.is_void = self.fails = False

    def run(self) -> MatrixVerdict:
        """Measure block by block until the plan has no more; return the answer."""
        began, done = self.now, 0
        while True:
            made = plan_document.with_blocks(
                self.plan, blocks_left.blocks(self.plan, self.kept, Pace(began, self.now, 0))
            )
            if done >= made.options.repetitions:
                return analyse.build("run", self.plan, self.kept)
            done += 1
            while load := self.load(analyse.matrix_of(made), done):
                self.measure(load, done, made.options.repetitions)

    def load(self, matrix: Matrix, block: int) -> list[Item]:
        """Return the items of a block's next load."""
        item = matrix.next_item(block, self.kept)
        return matrix.together(block, self.kept) or ([item] if item else [])

    def measure(self, load: Sequence[Item], block: int, blocks: int) -> None:
        together = load[0].cell.load.lanes is not None
        numbered = [*self.found] if together else [load[0].cell_id]
        repetition = 1 + max(
            (self.found[name][-1].repetition for name in numbered if name in self.found), default=0
        )
        self.begin(load, block)
        for item in load:
            several = self.found.setdefault(item.cell_id, [])
            several.append(replace(self.result(item, repetition, block), blocks=blocks))
            self.kept[item.cell_id] = cell_records(several)

    def begin(self, load: Sequence[Item], block: int) -> None:
        """Draw what all candidates of a load share."""
        new = sum(item.cell_id not in self.found for item in load)
        self.now += (TOGETHER_S if load[0].cell.load.lanes else ALONE_S) + new * SET_UP_S
        self.level = self.random.normal(0, self.drift)
        self.is_void = self.random.random() < self.void
        self.fails = block >= self.from_block and any(
            self.name(item) in self.failing for item in load
        )

    def name(self, item: Item) -> str:
        control = item.purpose == "aa_control"
        name = self.names[(item.base if control else item.cell_id) or ""]
        return f"{name}-aa" if control else name

    def result(self, item: Item, repetition: int, block: int) -> Result:
        name = self.name(item).removesuffix("-aa")
        goodput = self.truth[name] * math.exp(self.level + self.random.normal(0, self.noise))
        fails, void = self.fails, self.is_void
        return replace(
            builders.result(),
            cell_id=item.cell_id,
            cell=item.cell,
            purpose=item.purpose,
            base=item.base,
            repetition=repetition,
            block=block,
            started=self.now - ALONE_S,
            finished=self.now,
            goodput=None if fails else goodput,
            error="server: Start it: it does not start" if fails else None,
            validity=VOID if void or fails else builders.valid(),
            telemetry=_telemetry(self.memory[name]),
        )


@cache
def _telemetry(memory: float) -> Telemetry:
    used = builders.processes(rss_max_bytes=int(memory))
    services = ServiceProcesses(reverse_proxy=None, postgresql=None, application=used)
    recorded = builders.present(builders.result().telemetry)
    return replace(recorded, server=builders.telemetry(processes=services))


def spread(made: Plan, seed: int) -> dict[str, float]:
    """Return a true goodput of each candidate: many near the best, as servers often are."""
    assert made.matrix is not None
    random = np.random.default_rng(seed)
    return {
        one.name: 1000 * float(part)
        for one, part in zip(
            made.matrix.candidates,
            random.uniform(0.4, 1.0, len(made.matrix.candidates)),
            strict=True,
        )
    }


def nearly(machine: Machine, found: MatrixVerdict, name: str | None) -> bool:
    """Return whether a candidate truly has at most the margin less than the best."""
    assert name is not None
    return machine.truth[name] >= (1 - found.margin) * max(machine.truth.values())
