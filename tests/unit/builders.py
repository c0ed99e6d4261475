"""Records for tests: recorded documents of a real run, with the fields that a test changes."""

import datetime
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from loadlab.hosts.probe import HostProbe
from loadlab.kinds import plan_run as planning
from loadlab.model import (
    Calibration,
    Cell,
    CellCost,
    CellSummary,
    ClientCpu,
    Difference,
    Exercise,
    HostDescription,
    HostTelemetry,
    Item,
    Load,
    Manifest,
    NoiseFloor,
    PlannedStudy,
    Processes,
    Progress,
    PythonClient,
    Reason,
    Repetition,
    RepetitionSetup,
    Result,
    Sample,
    ServiceProcesses,
    StudyPublication,
    Summary,
    TuningLedger,
    Validity,
)
from loadlab.plan import check_options
from loadlab.plan.plan_document import Plan, PlannedComparison, Run
from loadlab.plan.user_options import Request
from loadlab.reasons.validity_reasons import THRESHOLDS, Thresholds
from loadlab.results import metrics
from loadlab.run import documents
from loadlab.run.catalog import load_yaml
from loadlab.run.run_dir import RunDir
from loadlab.stacks import stacks
from loadlab.stacks.stacks import Stack

T = TypeVar("T")
Measured = TypeVar("Measured", Repetition, Result)
ROOT = Path(__file__).parents[2]
RUN = Path(__file__).parents[1] / "fixtures" / "documents"
# The options of a run.
SPECS = check_options.specs_of(
    load_yaml(ROOT / "roles/run/meta/argument_specs.yml")["argument_specs"]["main"]["options"]
)
NAME = "aiohttp-gunicorn-unix-http-index-production-lan-oha-1000rps-c64-6s"


@cache
def _result() -> Result:
    return documents.read(RUN / "cells" / NAME / "rep-1" / "result.json", Result)


def load(**changes: Any) -> Load:
    """Return a load of 1,000 requests/s for 6 s over 64 connections, with these changes."""
    return replace(_result().cell.load, **changes)


def batch(**changes: Any) -> Load:
    """Return the load of a Python client, 1,000 requests, with these changes."""
    client = {"generator": "python-async", "mode": "batch", "rate": None, "duration_s": None}
    return load(**{**client, "requests": 1000, "open_files": 1024, "reuse": True, **changes})


def cell(**changes: Any) -> Cell:
    """Return a cell, aiohttp behind nginx at /index, with these changes."""
    return replace(_result().cell, **changes)


def result(**changes: Any) -> Result:
    """Return the valid result of one repetition of cell(), with these changes."""
    return replace(_result(), **changes)


def result_of(item: Item, **changes: Any) -> Result:
    """Return the first valid result of a planned measurement, with these changes."""
    own = ("cell_id", "cell", "purpose", "base", "input_hashes")
    return result(**{"repetition": 1, **{name: getattr(item, name) for name in own}, **changes})


def item(**changes: Any) -> Item:
    """Return a plan's entry for cell(), with these changes."""
    built = Item(
        cell_id=NAME,
        purpose="measure",
        cell=cell(),
        stack="aiohttp-gunicorn-unix-http",
        expected_s=8.0,
    )
    return replace(built, **changes)


def summary() -> Summary:
    """Return the summary of a run with four cells."""
    return documents.read(RUN / "summary.json", Summary)


def calibration() -> Calibration:
    """Return the calibration of that run."""
    return documents.read(RUN / "calibration.json", Calibration)


def repetition(**changes: Any) -> Repetition:
    """Return a valid repetition of cell() as summary.json has it, with these changes."""
    fields = {name: getattr(_result(), name) for name in Repetition.__struct_fields__}
    return Repetition(**{**fields, **changes})


def client(**failures: int) -> PythonClient:
    """Return what a Python client used, with these failures by their kind."""
    return PythonClient(
        seconds=1.0,
        cpu_s=ClientCpu(user=0.5, system=0.1),
        max_rss_bytes=50_000_000,
        open_files=1024,
        local_ports=[32768, 60999],
        versions={"python": "3.13"},
        failures=failures,
    )


def valid() -> Validity:
    """Return a validity without reasons and findings."""
    return Validity(valid=True, reasons=[], findings=[])


def void(*codes: str) -> Validity:
    """Return a validity with these void reasons, without their values."""
    return Validity(valid=False, reasons=[Reason(code=code) for code in codes], findings=[])


def cell_summary(
    cell_id: str,
    repetitions: Sequence[Repetition],
    made: Cell | None = None,
    *,
    failed: int = 0,
    **changes: Any,
) -> CellSummary:
    """Return a cell of summary.json with the statistics that comparisons and rankings read.

    ``failed``: requests of all repetitions that timed out.
    """
    known = [rep for rep in repetitions if rep.validity.valid]
    (recorded,) = (one for one in summary().cells if one.cell_id == NAME)
    errors = recorded.statistics.errors
    assert errors is not None
    counted = replace(
        recorded.statistics,
        n=len(known),
        n_void=len(repetitions) - len(known),
        requests=sum(rep.responses or 0 for rep in known) if known else None,
        errors=replace(errors, timeout=failed) if known else None,
        latency_basis=("scheduled" if (made or cell()).load.rate else "sent") if known else None,
    )
    built = CellSummary(
        cell_id=cell_id,
        cell=made or cell(),
        purpose="measure",
        repetitions=list(repetitions),
        statistics=counted,
        cost=CellCost(),
    )
    built = replace(built, **changes)
    return replace(built, cost=metrics.cost(built))


def thresholds(**changes: Any) -> Thresholds:
    """Return the lab's thresholds, with these changes."""
    return replace(THRESHOLDS, **changes)


def telemetry(**changes: Any) -> HostTelemetry:
    """Return the telemetry of a half-busy host in order, with these changes.

    A change of cpu, tcp, sockets or network is a dict of their fields.
    """
    measured = _result().telemetry
    assert measured is not None
    good: dict[str, Any] = {
        "cpu": {"steal": 0.0},
        "cpu_busy": 0.5,
        "swap_pages": 0,
        "tcp": {"listen_overflows": 0},
        "sockets": {"established_max": 66},
        "network": {"rx_bits_per_second": 5e8, "tx_bits_per_second": 1e8},
        "clock_step_s": 0.001,
        "samples": 31,
    }
    host = measured.server
    fields = {
        name: replace(getattr(host, name), **value) if isinstance(value, dict) else value
        for name, value in {**good, **changes}.items()
    }
    return replace(host, **fields)


def processes(**changes: Any) -> Processes:
    """Return a service's processes, which used 0.5 s of CPU time and 3 MiB, with these changes."""
    used = Processes(
        cpu_s=0.5,
        cpu=0.1,
        rss_max_bytes=3 << 20,
        threads_max=1,
        processes_max=1,
        voluntary_switches=0,
        involuntary_switches=0,
    )
    return replace(used, **changes)


def with_services(rep: Measured, **services: Processes | None) -> Measured:
    """Return the repetition with these services' processes, and without any of the others."""
    hosts = present(rep.telemetry)
    absent = dict.fromkeys(ServiceProcesses.__struct_fields__)
    processes = ServiceProcesses(**{**absent, **services})
    server = replace(hosts.server, processes=processes)
    return replace(rep, telemetry=replace(hosts, server=server))


def summary_of(*cells: CellSummary) -> Summary:
    """Return a summary.json of these cells alone."""
    return replace(summary(), cells=list(cells))


def calibration_at(bits_per_second: float) -> Calibration:
    """Return a calibration whose link carries as much in both directions."""
    found = calibration()
    direction = replace(found.iperf3.client_to_server, bits_per_second=bits_per_second)
    iperf3 = replace(found.iperf3, client_to_server=direction, server_to_client=direction)
    return replace(found, iperf3=iperf3)


def manifest() -> Manifest:
    """Return the manifest of that run."""
    return documents.read(RUN / "manifest.json", Manifest)


def ledger() -> TuningLedger:
    """Return the ledger of that run."""
    return documents.read(RUN / "tuning.json", TuningLedger)


def host_probe(**changes: Any) -> HostProbe:
    """Return what the probe finds on a Debian 13 host with four cores, with these changes."""
    found = HostProbe(
        user="root",
        machine_id="5e0c",
        booted=100,
        os="debian 13",
        machine="x86_64",
        cpus=[0, 1, 2, 3],
        interface="eth1",
        routes={},
        own_address="10.77.0.11",
        python="3.13.5",
        netem=True,
        untraced=[],
        programs={},
        sources=[],
        free_bytes=10**10,
        available_bytes=10**9,
        manifest=HostDescription(
            cpu_model="AMD EPYC 7B13",
            cores=4,
            cpus=[0, 1, 2, 3],
            memory_bytes=8 * 1024**3,
            kernel="6.18",
            os="Debian GNU/Linux 13 (trixie)",
            virtualisation="kvm",
            clock_source="tsc",
            governor=None,
            nofile=20_000,
            packages={},
        ),
    )
    return replace(found, **changes)


def present(value: T | None) -> T:
    """Return the value of a field that must not be absent."""
    assert value is not None
    return value


def store(run_dir: Path, *results: Result) -> Path:
    """Write these results into a run's folder and return it."""
    for one in results:
        path = RunDir(run_dir).repetition(one.cell_id, one.repetition).result
        path.parent.mkdir(parents=True)
        documents.write(path, documents.encode(one))
    return run_dir


def begin(run: RunDir, number: int) -> None:
    """Write what a run has on disk of a repetition of cell() that has begun."""
    repetition = run.repetition(NAME, number)
    repetition.path.mkdir(parents=True)
    setup = RepetitionSetup(
        cell_id=NAME, repetition=number, purpose="measure", cell=cell(), server="server"
    )
    documents.write(repetition.cell, documents.encode(setup))


def progress(run: RunDir, **changes: Any) -> None:
    """Write progress.json of a run: 3 of 12 measured, a minute left, with these changes."""
    now = time.time()
    written = Progress(
        run_id=run.run_id,
        updated=now,
        done=3,
        total=12,
        seconds_left=60.0,
        ends=now + 60,
        abandoned={},
    )
    documents.write(run.progress, documents.encode(replace(written, **changes)))


def request(options: dict[str, Any], /, **fields: Any) -> Request:
    """Return the request of a new run of the lab with these options, with these changes."""
    own = {"root": ROOT, "specs": SPECS, "now": datetime.datetime(2026, 11, 20, 17, 16, 47)}
    return Request(**{**own, "given_options": options, **fields})


def plan(root: Path = ROOT, /, **options: Any) -> Plan:
    """Return the plan of a new run of the lab with these options: aiohttp unless another framework,
    a study or a lesson is given, and without a curve and cross-checks unless these are."""
    framework = {} if {"study", "lesson"} & options.keys() else {"framework": "aiohttp"}
    alone = {**framework, "curve": False, "cross_check": False, **options}
    return planning.plan(request(alone, root=root))


@cache
def _stack() -> Stack:
    options = check_options.options(SPECS, {"framework": "aiohttp"})
    return stacks.stack(ROOT, options, None)


def stack(**changes: Any) -> Stack:
    """Return the first stack of aiohttp with these changes."""
    return replace(_stack(), **changes)


def write_plan(run_dir: Path, made: Plan) -> None:
    """Write a plan.json with this plan into a run's folder."""
    run_dir.mkdir(parents=True, exist_ok=True)
    run = Run(started="", argv=[], plan=made, inventory_args="", place="", thresholds=thresholds())
    documents.write(RunDir(run_dir).plan, documents.encode(run))


def planned_study(**changes: Any) -> PlannedStudy:
    """Return a plan's study with these changes: else without cells, claims and a publication."""
    study = PlannedStudy(
        kind="study",
        name="one",
        scale=None,
        description="one",
        claims=[],
        cells={},
        left_out_keys={},
        publication=StudyPublication(settings=[], rates=[], figures=[], errata=[], differs=[]),
    )
    return replace(study, **changes)


def exercise() -> Exercise:
    """Return a lesson's exercise with two hints, look and change."""
    goal = {"metric": "goodput", "cell": "check", "at_least": 1}
    fields = {"cured": [{"statement": "s", "all": [goal]}], "solution": {"cell": "two"}}
    hints = ["look", "change"]
    return msgspec.convert({"cell": "one", "task": "t", "hints": hints, **fields}, Exercise)


def lesson(*cells: str, **changes: Any) -> dict[str, Any]:
    """Return the key `lesson` of a lesson's file with these cells, with these changes."""
    first = cells[0]
    return {
        "predictions": [
            {
                "question": "More than one?",
                "options": {
                    "a": {"text": "yes", "holds": f"{first}.goodput > 1"},
                    "b": {"text": "no", "holds": f"{first}.goodput <= 1", "correction": "Count."},
                },
            },
            {
                "question": "How many?",
                "truth": f"{first}.goodput",
                "unit": "answers/s",
                "factor": 2,
            },
        ],
        "columns": [{"cell": name, "heading": name} for name in cells],
        "table": [{"label": "answers", "metric": "goodput"}],
        "by_hand": [{"host": "server", "command": "nstat", "shows": "counters"}],
        "explanation": f"There were {{{first}.goodput | count}}.",
        "cure": "None.",
        "issue": {"title": "t", "url": "https://example.org/1"},
        **changes,
    }


def noise_floor(
    metric: str, cell_id: str, control_id: str, bound: float | None = None, **changes: Any
) -> NoiseFloor:
    """Return a row of summary.json on an A/A control, whose difference has this bound."""
    value = Sample(n=5, median=None, low=None, high=None)
    row = NoiseFloor(
        metric=metric,
        cell_id=cell_id,
        control_id=control_id,
        base=value,
        head=value,
        difference=Difference(value=None, low=None, high=None),
        p=None,
        noise_floor=bound,
    )
    return replace(row, **changes)


def compared_run(run_dir: Path) -> Path:
    """Write a run with a plan: cell stock, its A/A control, and production at half the goodput.

    Each has five repetitions.
    """
    results = []
    for name, factor in (("stock", 1.0), ("stock-twin", 1.0), ("production", 0.5)):
        control = name == "stock-twin"
        for number in range(1, 6):
            goodput = (_result().goodput or 0.0) * (factor + number / 1000)
            results.append(
                result(
                    cell_id=name,
                    repetition=number,
                    purpose="aa_control" if control else "measure",
                    base="stock" if control else None,
                    cell=cell(tuning="stock" if control else name),
                    goodput=goodput,
                )
            )
    compared = PlannedComparison(by="tuning", base="stock", head="production")
    pairs = [("stock", "stock-twin")]
    write_plan(run_dir, replace(plan(), comparisons=[compared], aa_controls=pairs))
    return store(run_dir, *results)
