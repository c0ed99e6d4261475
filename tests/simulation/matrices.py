"""Simulated matrices: a machine with true goodputs, noise, drift, voids and failures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from msgspec.structs import replace

from loadlab.kinds.budget import Pace
from loadlab.kinds.matrix import analyse, blocks_left
from loadlab.model import Item, MatrixVerdict, Reason, Result, ServiceProcesses, Telemetry, Validity
from loadlab.plan import plan_document
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import CellRecords, cell_records
from tests.unit import builders

# Seconds of a measurement, and of the first set-up of a candidate, as files/methods.yml plans them.
EACH_S, SET_UP_S = 6.5, 15.0
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
    ``drift``: of a block. ``void``: probability of a void. ``failing``: candidates that fail, or
    their A/A control with the suffix -aa, from the block ``from_block`` on. An application takes as
    much memory for each worker.
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
        self.block = 0

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
            while item := analyse.matrix_of(made).next_item(done, self.kept):
                self.measure(item, done)

    def measure(self, item: Item, block: int) -> None:
        several = self.found.setdefault(item.cell_id, [])
        several.append(self.result(item, len(several) + 1, block))
        self.kept[item.cell_id] = cell_records(several)

    def result(self, item: Item, repetition: int, block: int) -> Result:
        of = item.base if item.purpose == "aa_control" else item.cell_id
        name = self.names[of or ""]
        self.now += EACH_S + (SET_UP_S if repetition == 1 else 0)
        if block != self.block:
            self.block, self.level = block, self.random.normal(0, self.drift)
        goodput = self.truth[name] * math.exp(self.level + self.random.normal(0, self.noise))
        void = self.random.random() < self.void
        named = f"{name}-aa" if item.purpose == "aa_control" else name
        fails = named in self.failing and block >= self.from_block
        return replace(
            builders.result(),
            cell_id=item.cell_id,
            cell=item.cell,
            purpose=item.purpose,
            base=item.base,
            repetition=repetition,
            block=block,
            started=self.now - EACH_S,
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
