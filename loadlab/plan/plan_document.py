"""The plan of a run, and plan.json, which keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from msgspec import field
from msgspec.structs import replace

from loadlab.model import SCHEMA, Item, PlannedGate, PlannedMatrix, Reason, Record, Thresholds
from loadlab.model.base import Count, Name, NotNegative, Positive, doc
from loadlab.model.options import Options
from loadlab.model.study import GivenOptions, PlannedStudy, Scalar
from loadlab.plan.modes.doubled import Doubled
from loadlab.plan.modes.levels import Fixed, Scaled, Sweep
from loadlab.plan.modes.matrix_order import Matrix
from loadlab.plan.modes.mode import Experiment
from loadlab.plan.modes.search import Search
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from loadlab.stacks.contract import Contracts
from loadlab.stacks.stacks import Stack

PlannedExperiment = Fixed | Sweep | Search | Scaled | Matrix | Doubled


class Setup(Record, kw_only=True, frozen=True):
    """What a cell needs on its hosts."""

    stack: Annotated[str, doc("Id of the stack; empty: none, whatever was deployed.")]
    tuning: Annotated[str, doc("Tuning profile.")]
    network: Annotated[str, doc("Network profile.")]


class PlannedComparison(Record, kw_only=True, frozen=True):
    """Two cells that differ in one thing."""

    by: Annotated[str, doc("What they differ in: tuning.")]
    base: Annotated[Name, doc("cell_id of what is compared with.")]
    head: Annotated[Name, doc("cell_id of what is compared.")]


class CalibrationLoad(Record, kw_only=True, frozen=True):
    """The load of the calibration: the highest of all that are asked for."""

    rate: Annotated[float, doc("Requests/s.")]
    connections: Annotated[Positive, doc("Connections.")]


class HostNeeds(Record, kw_only=True, frozen=True, omit_defaults=False):
    """What a run needs on one host, at the least."""

    disk_bytes: Annotated[Count, doc("Disk, bytes.")]
    memory_bytes: Annotated[Count, doc("Memory, bytes.")]


class Needs(Record, kw_only=True, frozen=True, omit_defaults=False):
    """What a run needs on its machines, at the least; rates that are not known yet do not count."""

    client: Annotated[HostNeeds, doc("Each client.")]
    server: Annotated[HostNeeds, doc("Each server.")]
    controller: Annotated[HostNeeds, doc("The controller, in results/.")]
    temporary_bytes: Annotated[Count, doc("The controller's temporary files, bytes.")]


class Plan(Record, kw_only=True, frozen=True, omit_defaults=False):
    """What a run measures, on what, and how far it is."""

    run_id: Annotated[Name, doc("Name of the run's folder.")]
    run_dir: Annotated[str, doc("Path of the run's folder.")]
    is_new: Annotated[bool, doc("Whether the stage may begin a run; false: it resumes one.")]
    host_kind: Annotated[str, doc("What the hosts are, in words.")]
    inventory_args: Annotated[
        str, doc("Command-line options that select the hosts; empty where none are needed.")
    ]
    resume_args: Annotated[str, doc("Command-line options that resume the run in any playbook.")]
    given_options: Annotated[
        GivenOptions, doc("Main variable -> the value given; null: not given.")
    ]
    options: Annotated[Options, doc("The checked values; of a study those of its first cell.")]
    experiments: Annotated[list[PlannedExperiment], doc("What is measured, each on its host pair.")]
    stacks: Annotated[
        dict[str, Stack],
        doc("Id -> stack, as loadlab/stacks/stacks.py describes it, with backlog and measured."),
    ]
    stack: Annotated[Stack | None, doc("The first stack; null where there is none.")]
    endpoints: Annotated[Contracts, doc("Name -> contract (files/endpoints.yml).")]
    tunings: Annotated[dict[str, dict[str, Any]], doc("Name -> tuning profile (files/tuning).")]
    networks: Annotated[dict[str, dict[str, Any]], doc("Name -> network profile (files/network).")]
    generators: Annotated[
        list[str],
        doc("Load generators and Python clients, sorted."),
    ]
    no_curve: Annotated[
        Reason | None,
        doc("Why the generator cannot measure the curve of the run; null otherwise."),
    ] = None
    study: Annotated[PlannedStudy | None, doc("The study or lesson; null where there is none.")]
    comparisons: Annotated[list[PlannedComparison], doc("Cells that are compared.")]
    aa_controls: Annotated[
        list[tuple[str, str]], doc("cell_id of a cell, and of the cell that repeats it (A/A).")
    ]
    lanes: Annotated[
        list[list[str]],
        doc("cell_ids that one load measures side by side; the first has the load's raw files."),
    ] = field(default_factory=list)
    together: Annotated[Positive, doc("How many stacks are up at once on a server, at most.")] = 1
    gate: Annotated[
        PlannedGate | None, doc("The comparison of variants; null where the run has none.")
    ] = None
    matrix: Annotated[
        PlannedMatrix | None, doc("The candidates of a matrix; null where the run has none.")
    ] = None
    py_spy: Annotated[bool, doc("Whether any cell is measured with py-spy.")]
    trace: Annotated[bool, doc("Whether any cell is measured with bpftrace.")]
    tls: Annotated[bool, doc("Whether any load uses TLS.")]
    connections: Annotated[Count, doc("Highest number of connections of a load; 0 without one.")]
    calibrate: Annotated[CalibrationLoad, doc("The load of the calibration.")]
    calibration_repetition: Annotated[Positive, doc("Number of the next calibration.")]
    current_setup: Annotated[
        Setup | None,
        doc("What the stages before the load set up; null where it is not known."),
    ]
    measurements: Annotated[Count, doc("Likely number of measurements, finished ones included.")]
    remaining: Annotated[Count, doc("Likely number of measurements that are left.")]
    load_seconds: Annotated[
        NotNegative, doc("Seconds of load that are left, of the pair that has the most.")
    ]
    needs: Annotated[
        Needs | None, doc("Disk and memory for what is left; null where nothing is left.")
    ] = None


class Resumption(Record, kw_only=True, frozen=True):
    """A later call that resumed the run."""

    started: Annotated[str, doc("When it was called, UTC.")]
    argv: Annotated[list[str], doc("Its command line, without secrets.")]


class Run(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """plan.json: how a run was called, its plan, and the hosts it measures on."""

    started: Annotated[str, doc("When the run was begun, UTC.")]
    argv: Annotated[list[str], doc("The command line that began it, without secrets.")]
    plan: Annotated[Plan, doc("The latest plan.")]
    inventory_args: Annotated[str, doc("Command-line options that select its hosts.")]
    place: Annotated[str, doc("Location of its hosts; two runs in one place exclude each other.")]
    thresholds: Annotated[
        Thresholds,
        doc("Those of validity when the run was begun, so that a later lab does not change them."),
    ]
    hosts: Annotated[
        dict[str, dict[str, Any]] | None, doc("Identity of each host by name; absent before.")
    ] = None
    made_with: Annotated[
        dict[str, Scalar],
        doc(
            "Variables of the role that makes its hosts, which decide what the hosts are, name -> "
            "value; absent where no role makes them."
        ),
    ] = field(default_factory=dict)
    resumed: Annotated[list[Resumption] | None, doc("Later calls; absent where none was.")] = None


def read(run_dir: Path) -> Run:
    """Return the content of a run's plan.json. Raises ResultError where it is malformed."""
    return documents.read(RunDir(run_dir).plan, Run)


def resume_args(run_dir: Path) -> str:
    """Return the options of the command that resumes the run on its own hosts."""
    inventory_args = read(run_dir).inventory_args if RunDir(run_dir).plan.exists() else ""
    return f"-e run_id={RunDir(run_dir).run_id} {inventory_args}".rstrip()


def with_blocks(plan: Plan, blocks: int) -> Plan:
    """Return the plan with this number of blocks: each cell is measured once in a block."""
    return replace(plan, options=replace(plan.options, repetitions=blocks))


def with_rate_ceiling(plan: Plan, ceiling: float | None) -> Plan:
    """Return the plan with the calibrated ceiling (requests/s or None) as each search's limit."""
    experiments = [experiment.with_rate_ceiling(ceiling) for experiment in plan.experiments]
    return replace(plan, experiments=experiments)


def items(experiments: Iterable[Experiment]) -> list[Item]:
    """Return the items of all experiments, in order."""
    return [item for experiment in experiments for item in experiment.items]


def resumed(earlier: Run, now: Run) -> Run:
    """Return plan.json of a resumed run: the new plan, with the original start and hosts.

    ``earlier``: its present content. ``now``: what plan.json would be for a new run. Earlier
    comparisons and A/A controls are kept.
    """
    before, plan = earlier.plan, now.plan
    plan = replace(
        plan,
        comparisons=[*dict.fromkeys([*before.comparisons, *plan.comparisons])],
        aa_controls=[*dict.fromkeys([*before.aa_controls, *plan.aa_controls])],
    )
    call = Resumption(started=now.started, argv=now.argv)
    return replace(earlier, plan=plan, resumed=[*(earlier.resumed or ()), call])
