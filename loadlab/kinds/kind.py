"""What the kind of a run decides, from its plan to its last lines.

A kind is a folder beside this file with its kind.py, and a line in all_kinds.py. Kind's own methods
are those of a kind that adds nothing.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from loadlab.kinds import controls
from loadlab.kinds.budget import Pace
from loadlab.kinds.controls import Controls
from loadlab.model import GivenOptions, OptionValue, Record, Study, Summary
from loadlab.plan import plan_document
from loadlab.plan.check_options import BOUNDS
from loadlab.plan.experiments import PlannedCells
from loadlab.plan.plan_document import Plan, Run
from loadlab.plan.records import Records
from loadlab.plan.user_options import Request
from loadlab.reasons.row import ReasonPart
from loadlab.report.first_screen.key_facts import LabTests
from loadlab.report.html import Block, Headline, Section
from loadlab.report.terminal import cell_lines
from loadlab.report.words import labels
from loadlab.run.run_dir import RunDir
from loadlab.tuning.profiles import TuningProfile

# Repetitions in which most differences are found; docs/statistics.md has how many.
ENOUGH = 5


class ResolvedRun(Struct, kw_only=True, frozen=True):
    """The run to plan for, and what it has already.

    run_id is None for a new run without a name; recorded is None where it has no plan.json.
    options: those given, on top of the recorded ones.
    """

    run_id: str | None
    recorded: Run | None
    records: Records
    options: GivenOptions


class Draft(Struct, kw_only=True, frozen=True):
    """A run whose cells are planned, and not yet its experiments.

    study: the study, the lesson, or what variants or candidates become; None of a plain run.
    """

    request: Request
    run: ResolvedRun
    study: Study | None
    cells: PlannedCells


class Kind:
    """A kind of run."""

    name: ClassVar[str] = ""  #: What a playbook names it by (preflight_kind).
    #: The main variables that ask for it, whatever the playbook.
    options: ClassVar[tuple[str, ...]] = ()
    subject: ClassVar[str] = "framework"  #: The main variable that names what it measures.
    example: ClassVar[str] = "-e framework=<name>"  #: The options that begin one, for messages.
    playbook: ClassVar[str] = "lab.yml"  #: Begins one and resumes it.
    #: Whether the table of all cells is printed once the results are derived.
    tabulates: ClassVar[bool] = True
    #: Whether pages of its own tell the results, and what comes next.
    has_own_pages: ClassVar[bool] = False
    ranks: ClassVar[bool] = True  #: Whether its cells are ranked in the report.
    #: Whether its cells are measured in the order of the plan, not in a random one.
    keeps_order: ClassVar[bool] = False
    expects_void: ClassVar[bool] = False  #: Whether it judges its void measurements itself.
    cross_checks: ClassVar[bool] = False  #: Whether its cells may have a cross-check.
    reasons: ClassVar[ReasonPart | None] = None  #: The rows of the reasons that it alone returns.

    # The plan.

    def is_requested(self, request: Request, options: Mapping[str, OptionValue]) -> bool:
        """Return whether this kind is requested; ``options``: main variables with a value."""
        return (bool(self.name) and request.kind == self.name) or any(
            name in options for name in self.options
        )

    def is_planned(self, plan: Plan) -> bool:
        """Return whether a plan is of this kind."""
        raise NotImplementedError

    def refuse_request(self, request: Request) -> None:
        """Raise PlanError where no run of this kind could do what is requested."""

    def own_options(self, request: Request, run_id: str, recorded: Run | None) -> GivenOptions:
        """Return the options of the request, without the names of the run that it resumes.

        Raises PlanError where that run is none of this kind. ``recorded``: its plan.json.
        """
        return request.given_options

    def study(self, request: Request, run: ResolvedRun) -> Study | None:
        """Return the study that names the cells; None where the options alone do.

        Raises PlanError.
        """
        return None

    def schedule(self, draft: Draft) -> PlannedCells:
        """Return the cells with the experiments and blocks of this kind. Raises PlanError."""
        return draft.cells

    def controls(self, draft: Draft, tunings: Mapping[str, TuningProfile]) -> Controls:
        """Return the comparisons, and an A/A control of the base of each."""
        comparisons = controls.comparisons(draft.cells, tunings)
        return controls.of_bases(
            draft.cells, {comparison.base for comparison in comparisons}, comparisons
        )

    def complete(self, draft: Draft, plan: Plan) -> Plan:
        """Return the plan with what it keeps of this kind alone.

        Raises PlanError where the run was begun with something else.
        """
        return plan

    def refuse_planned(self, request: Request, plan: Plan) -> None:
        """Raise PlanError where the finished plan cannot be followed."""

    def announcement(self, plan: Plan) -> str:
        """Return what is told before the load; empty where there is nothing."""
        return ""

    # The load.

    def blocks(self, plan: Plan, records: Records, failures: Mapping[str, int], pace: Pace) -> int:
        """Return how many blocks the run is to have, from what it measured so far.

        ``failures``: schedule.consecutive_failures() of this invocation.
        """
        return plan.options.repetitions

    def most_s(self, plan: Plan, records: Records, pace: Pace) -> float:
        """Return the seconds after which the load is over at the latest, by its budget."""
        return math.inf

    def after_block(self, plan: Plan, records: Records, block: int) -> str:
        """Return what the blocks so far say, in one line; empty where they say nothing."""
        return ""

    # The documents.

    def documents(self, run: RunDir, plan: Plan, summary: Summary) -> dict[Path, Record]:
        """Return what the run has besides summary.json: path -> document."""
        return {}

    def pages(self, run: RunDir) -> dict[Path, bytes]:
        """Return the pages that are written with the report: path -> content."""
        return {}

    def exit_status(self, run: RunDir, *, undecided_fails: bool) -> int:
        """Return the exit status of the playbook at the end of a run without an error."""
        return 0

    def unmeasured(self, run: RunDir, failed: list[str], void: list[str]) -> list[str]:
        """Return the cells for whose lack the playbook fails, in words.

        ``failed``: the cells that failed each time; ``void``: those of a study without a valid
        repetition.
        """
        return failed

    # The report.

    def question(self, run: RunDir) -> str:
        """Return what the run asks; empty where it asks nothing."""
        return ""

    def lab_tests(self, run: RunDir) -> LabTests | None:
        """Return what was tested where the run measures the lab; None where it measures stacks."""
        return None

    def headlines(self, run: RunDir) -> list[Headline]:
        """Return the sentences on the whole run, the first ones of the report."""
        return []

    def sections(self, run: RunDir) -> list[Section]:
        """Return the sections of the report that this kind alone has."""
        return []

    def variants(self, run: RunDir) -> Mapping[str, str]:
        """Return name -> as the user gave it, of the variants of a comparison; in a study, cell_id
        -> its name there."""
        return {}

    def first_blocks(self, run: RunDir) -> list[Block]:
        """Return what the first screen has below the lines on trust and limit, before tiles."""
        return []

    def chosen(self, run: RunDir) -> set[str] | None:
        """Return the cell_ids that have tiles; None where all may have."""
        return None

    # The terminal.

    def table(self, run: RunDir, summary: Summary) -> str:
        """Return the lines on all cells."""
        endpoints = plan_document.read(run.path).plan.endpoints
        return cell_lines.table(summary, labels.paths(endpoints))

    def answer(self, run: RunDir, headlines: Sequence[str]) -> list[str]:
        """Return the results in lines; ``headlines``: of the report."""
        return [*headlines]

    def next_steps(self, run: RunDir, plan: Plan) -> list[str]:
        """Return the commands that are useful once everything is measured."""
        measured = plan.options.repetitions
        more = ENOUGH if measured < ENOUGH else _doubled(measured)
        return [
            f"Next: {self.resume_command(run.path)} -e repetitions={more}  # more repetitions",
            f"      python -m loadlab compare {run.run_id} <run_id>"
            "  # another run against this one",
        ]

    def resume_command(self, run_dir: Path) -> str:
        """Return the command that resumes a run with the playbook that began it."""
        return f"ansible-playbook {self.playbook} {plan_document.resume_args(run_dir)}"

    def more_repetitions(self, run_dir: Path) -> str:
        """Return the command that measures as many repetitions, or as long, once more."""
        plan = plan_document.read(run_dir).plan
        return f"{self.resume_command(run_dir)} -e {self.more(plan)}"

    def more(self, plan: Plan) -> str:
        """Return the option that measures as much once more."""
        return f"repetitions={_doubled(plan.options.repetitions)}"


def _doubled(repetitions: int) -> int:
    """Return twice as many repetitions, or the most that a run may have."""
    return min(2 * repetitions, int(BOUNDS["repetitions"][1]))
