"""The plan of a run, and plan.json, which keeps it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import field
from msgspec.structs import replace

from loadlab.model import SCHEMA, Item, PlannedGate, PlannedMatrix, Reason, Record
from loadlab.model.base import Count, Json, Name, NotNegative, Positive
from loadlab.model.options import Options
from loadlab.model.study import GivenOptions, PlannedStudy, Scalar
from loadlab.plan.modes.doubled import Doubled
from loadlab.plan.modes.levels import Fixed, Scaled, Sweep
from loadlab.plan.modes.matrix_order import Matrix
from loadlab.plan.modes.mode import Experiment
from loadlab.plan.modes.search import Search
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from loadlab.stacks.contract import Contracts
from loadlab.stacks.stacks import Stack

PlannedExperiment = Fixed | Sweep | Search | Scaled | Matrix | Doubled


class Setup(Record, kw_only=True, frozen=True):
    """What a cell needs on its hosts."""

    stack: str  #: Id of the stack; empty: none, whatever was deployed.
    tuning: str  #: Tuning profile.
    network: str  #: Network profile.


class PlannedComparison(Record, kw_only=True, frozen=True):
    """Two cells that differ in one thing."""

    by: str  #: What they differ in: tuning.
    base: Name  #: cell_id of what is compared with.
    head: Name  #: cell_id of what is compared.


class CalibrationLoad(Record, kw_only=True, frozen=True):
    """The load of the calibration: the highest of all that are asked for."""

    rate: float  #: Requests/s.
    connections: Positive  #: Connections.


class HostNeeds(Record, kw_only=True, frozen=True, omit_defaults=False):
    """What a run needs on one host, at the least."""

    disk_bytes: Count  #: Disk, bytes.
    memory_bytes: Count  #: Memory, bytes.


class Needs(Record, kw_only=True, frozen=True, omit_defaults=False):
    """What a run needs on its machines, at the least; rates that are not known yet do not count."""

    client: HostNeeds  #: Each client.
    server: HostNeeds  #: Each server.
    controller: HostNeeds  #: The controller, in results/.
    temporary_bytes: Count  #: The controller's temporary files, bytes.


class Plan(Record, kw_only=True, frozen=True, omit_defaults=False):
    """What a run measures, on what, and how far it is."""

    run_id: Name  #: Name of the run's folder.
    run_dir: str  #: Path of the run's folder.
    is_new: bool  #: Whether the stage may begin a run; false: it resumes one.
    host_kind: str  #: What the hosts are, in words.
    inventory_args: str  #: Command-line options that select the hosts; empty where none are needed.
    resume_args: str  #: Command-line options that resume the run in any playbook.
    given_options: GivenOptions  #: Main variable -> the value given; null: not given.
    options: Options  #: The checked values; of a study those of its first cell.
    experiments: list[PlannedExperiment]  #: What is measured, each on its host pair.
    #: Id -> stack, as loadlab/stacks/stacks.py describes it, with backlog and measured.
    stacks: dict[str, Stack]
    stack: Stack | None  #: The first stack; null where there is none.
    endpoints: Contracts  #: Name -> contract (files/endpoints.yml).
    tunings: dict[str, dict[str, Any]]  #: Name -> tuning profile (files/tuning).
    networks: dict[str, dict[str, Json]]  #: Name -> network profile (files/network).
    generators: list[str]  #: Load generators and Python clients, sorted.
    #: Why the generator cannot measure the curve of the run; null otherwise.
    no_curve: Reason | None = None
    study: PlannedStudy | None  #: The study or lesson; null where there is none.
    comparisons: list[PlannedComparison]  #: Cells that are compared.
    aa_controls: list[tuple[str, str]]  #: cell_id of a cell, and of the cell that repeats it (A/A).
    #: cell_ids that one load measures side by side; the first has the load's raw files.
    lanes: list[list[str]] = field(default_factory=list)
    together: Positive = 1  #: How many stacks are up at once on a server, at most.
    gate: PlannedGate | None = None  #: The comparison of variants; null where the run has none.
    matrix: PlannedMatrix | None = None  #: The candidates of a matrix; null where the run has none.
    py_spy: bool  #: Whether any cell is measured with py-spy.
    trace: bool  #: Whether any cell is measured with bpftrace.
    tls: bool  #: Whether any load uses TLS.
    connections: Count  #: Highest number of connections of a load; 0 without one.
    calibrate: CalibrationLoad  #: The load of the calibration.
    calibration_repetition: Positive  #: Number of the next calibration.
    #: What the stages before the load set up; null where it is not known.
    current_setup: Setup | None
    measurements: Count  #: Likely number of measurements, finished ones included.
    remaining: Count  #: Likely number of measurements that are left.
    load_seconds: NotNegative  #: Seconds of load that are left, of the pair that has the most.
    needs: Needs | None = None  #: Disk and memory for what is left; null where nothing is left.


class Resumption(Record, kw_only=True, frozen=True):
    """A later call that resumed the run."""

    started: str  #: When it was called, UTC.
    argv: list[str]  #: Its command line, without secrets.


class Run(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """plan.json: how a run was called, its plan, and the hosts it measures on."""

    started: str  #: When the run was begun, UTC.
    argv: list[str]  #: The command line that began it, without secrets.
    plan: Plan  #: The latest plan.
    inventory_args: str  #: Command-line options that select its hosts.
    place: str  #: Location of its hosts; two runs in one place exclude each other.
    #: Those of validity when the run was begun, so that a later lab does not change them.
    thresholds: Thresholds
    hosts: dict[str, dict[str, Json]] | None = (
        None  #: Identity of each host by name; absent before.
    )
    #: Variables of the role that makes its hosts, which decide what the hosts are, name -> value;
    #: absent where no role makes them.
    made_with: dict[str, Scalar] = field(default_factory=dict)
    resumed: list[Resumption] | None = None  #: Later calls; absent where none was.


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
