"""Cells whose limit is injected: the lab names it, or says that it does not know. And healthy ones
with a stray event each: it does not name that.

`pytest tests/lab/test_limits.py -k queues` measures the cases of one run, `-k syn_queue` some
of them. A case takes about ten seconds, a stack that is not deployed yet half a minute more.
`python -m tests.limits_page` writes docs/limits.md from the runs.
"""

import itertools
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from loadlab.model import CellLimit, CellSummary, Repetition, Validity
from loadlab.report.words import limits_words as words
from loadlab.results.limits import judge_limits
from loadlab.results.summaries import summarize
from loadlab.run import documents
from loadlab.run.run_dir import RunDir

from .conftest import ROOT, STATE, finish, playbook
from .figures import Measured, figures
from .limit_cases import CASES, EVENTS, HEALTHY, NOT_OURS, Case

pytestmark = pytest.mark.lab

Undo = Callable[[], None]
# Limits that others' work on this machine can make as well.
OF_OTHERS = ("neighbour", "client")


def run_id(name: str) -> str:
    """The run of the cases with this run, of one case, or of the healthy cells."""
    return f"limits-{name.replace('_', '-')}"


def content(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """The content of a study's file with these cells."""
    return {"description": "a test's", "options": {}, "cells": cells, "aa_controls": False}


@contextmanager
def study(cells: list[dict[str, Any]]) -> Iterator[str]:
    """The name of a study of the test's own."""
    path = ROOT / "files" / "studies" / "of-a-test.yml"
    path.write_text(yaml.safe_dump(content(cells)))
    try:
        yield path.stem
    finally:
        path.unlink()


def measured_cells(name: str) -> dict[str, CellSummary]:
    """The cells of a run by the names that they have in its study."""
    folder = ROOT / "results" / run_id(name)
    cells = {cell.cell_id: cell for cell in summarize.summary(folder).cells}
    named = documents.load(RunDir(folder).plan)["plan"]["study"]["cells"]
    return {name: cells[ids[0]] for name, ids in named.items() if ids[0] in cells}


def measure(
    name: str, cells: list[dict[str, Any]], begun: Callable[[str], Undo], **options: Any
) -> str:
    """Measure cells in one run; return what the lab printed.

    ``begun``: called with the name of a cell when a load of it begins, while it goes on; returns
    what to do when that load is over.
    """
    folder = ROOT / "results" / run_id(name)
    shutil.rmtree(folder, ignore_errors=True)
    loads = STATE / f"hosts/client/root/var/lib/loadlab-runs/{run_id(name)}/cells"
    shutil.rmtree(loads, ignore_errors=True)
    with study(cells) as file, ThreadPoolExecutor() as beside:
        process = playbook(
            "lab.yml", study=file, run_id=run_id(name), **{"repetitions": 1, **options}
        )

        def disturb() -> list[Exception]:
            under_way: dict[Path, Undo] = {}
            names: dict[str, str] = {}
            failed: list[Exception] = []

            def attempt(act: Callable[[], Undo | None]) -> Undo | None:
                # The others are measured in any case.
                try:
                    return act()
                except Exception as problem:
                    failed.append(problem)
                    return None

            while process.poll() is None:
                measuring = set(_measuring(loads))
                for path in measuring - set(under_way):
                    if not names:
                        plan = documents.load(RunDir(folder).plan)["plan"]
                        named = plan["study"]["cells"].items()
                        names = {cell_id: cell for cell, ids in named for cell_id in ids}
                    undo = attempt(partial(begun, names[path.parts[-3]]))
                    under_way[path] = undo or (lambda: None)
                for path in set(under_way) - measuring:
                    attempt(under_way.pop(path))
                time.sleep(0.05)
            for undo in under_way.values():
                attempt(undo)
            return failed

        # Beside what reads the output, which would fill its pipe.
        disturbing = beside.submit(disturb)
        output = finish(process)
        if failed := disturbing.result():
            raise ExceptionGroup("commands failed", failed)
    return output


def _measuring(loads: Path) -> Iterator[Path]:
    for progress in loads.glob("*/rep-*/progress.txt"):
        try:
            if progress.read_text().strip() == "measuring":
                yield progress
        # A load that is over is fetched and removed.
        except FileNotFoundError:
            continue


def apart(rep: Repetition) -> Repetition:
    """A repetition without what others' work on this machine brought about."""
    reasons, findings = (
        [reason for reason in some if reason.code not in NOT_OURS]
        for some in (rep.validity.reasons, rep.validity.findings)
    )
    return replace(rep, validity=Validity(valid=not reasons, reasons=reasons, findings=findings))


def measure_cases(name: str, cases: Mapping[str, Case], tmp: Path) -> str:
    """Measure cases in one run; return what the lab printed."""

    def begun(cell: str) -> Undo:
        case = cases[cell]
        case.do(case.command)
        return lambda: case.do(case.after)

    cells = [case.of_study(cell, tmp) for cell, case in cases.items()]
    # Long enough for the burst that a shaped link lets through not to count.
    link = {"iperf3_seconds": 3} if any(case.run == "link" for case in cases.values()) else {}
    return measure(name, cells, begun, **link)


class Named(Measured[tuple[dict[str, CellSummary], str]]):
    """The cells of a case's run, and its output; measured again, the case alone."""

    def __init__(self, name: str, run: Measured[str], tmp: Path) -> None:
        def alone() -> tuple[dict[str, CellSummary], str]:
            output = measure_cases(name, {name: CASES[name]}, tmp)
            return measured_cells(name), output

        def together() -> tuple[dict[str, CellSummary], str]:
            output = run.found
            return measured_cells(CASES[name].run), output

        super().__init__(together)
        self.alone = alone

    def again(self) -> None:
        self._measure = self.alone
        super().again()


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Measured[str]]:
    """The runs by their names, each of its cases that this session tests."""
    calls = (getattr(item, "callspec", None) for item in request.session.items)
    tested = {call.params.get("name") for call in calls if call is not None}

    def run(name: str) -> Measured[str]:
        cases = {key: case for key, case in CASES.items() if case.run == name and key in tested}
        return Measured(lambda: measure_cases(name, cases, tmp_path_factory.mktemp(name)))

    return {name: run(name) for name in dict.fromkeys(case.run for case in CASES.values())}


@pytest.fixture
def named(request: pytest.FixtureRequest, runs: dict[str, Measured[str]], tmp_path: Path) -> Named:
    name = request.param
    return Named(name, runs[CASES[name].run], tmp_path)


@pytest.mark.parametrize(
    ("named", "name"),
    [pytest.param(name, name, id=f"{case.run}-{name}") for name, case in CASES.items()],
    indirect=["named"],
)
def test_limit_is_named_or_not_known(named: Named, name: str) -> None:
    cells, output = named.found
    cell, limits = cells[name], [other.limit for other in cells.values() if other.limit]
    limit = cell.limit
    assert limit is not None
    print(f"{name}: {words.whole(limit)}")
    # The terminal has a sentence for each code.
    alike = [words.sentence(other) for other in limits if other.limit.code == limit.limit.code]
    assert any(sentence in " ".join(output.split()) for sentence in alike)
    if CASES[name].code not in OF_OTHERS:
        limit = judge_limits.of_cell(cell.cell, list(map(apart, cell.repetitions)))
        assert limit is not None
    with figures():
        assert limit.limit.code == CASES[name].code, documents.encode(limit).decode()


def strays(name: str) -> dict[str, CellLimit]:
    """Stray event -> what limited the healthy cell in the repetition with it."""
    cell = measured_cells("healthy")[name]
    limits = {
        event: judge_limits.of_cell(cell.cell, [apart(rep)])
        for event, rep in zip(EVENTS, cell.repetitions, strict=False)
    }
    return {event: limit for event, limit in limits.items() if limit is not None}


def test_a_stray_event_is_no_limit() -> None:
    """The same two healthy loads, over and over, each time with another event."""
    events = {name: itertools.cycle(EVENTS.values()) for name in HEALTHY}

    def begun(cell: str) -> Undo:
        where, command = next(events[cell])
        Case("", "", "", where=where).do(command)
        return lambda: None

    cells = [
        {
            "name": name,
            "options": {**options, "duration": 4, "warmup": 1},
            "expected_void": list(NOT_OURS),
        }
        for name, (options, _) in HEALTHY.items()
    ]
    measure("healthy", cells, begun, repetitions=len(EVENTS))
    for name, (_, limits) in HEALTHY.items():
        seen = strays(name)
        assert seen.keys() == EVENTS.keys()
        with figures():
            assert {event for event, one in seen.items() if one.limit.code not in limits} == set()
