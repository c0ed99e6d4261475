"""Ablations: the tunings that need no measurement, as their missing key changes nothing, and the
repetitions from which one key alone is found.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from loadlab.model import (
    AblationPower,
    Comparison,
    LedgerRow,
    PlannedStudy,
    Reason,
    SkippedTuning,
    TuningLedger,
)
from loadlab.model.metric_rows import SPEEDS
from loadlab.plan.plan_document import Plan
from loadlab.run.methods import comparison_rule
from loadlab.stats import paired
from loadlab.stats.paired import deviation
from loadlab.tuning.profiles import word

# States of the ledger in which a host did not take the key: leaving it out changes nothing.
_NOT_TAKEN = ("absent", "kept", "not_namespaced", "read_only", "rejected")


def idle(study: PlannedStudy | None, ledgers: Iterable[TuningLedger]) -> dict[str, Reason]:
    """Return tuning -> why, for each tuning of an ablation that leaves all hosts as the whole
    profile does.

    ``ledgers``: the run's tuning.json documents. A key that already has its value counts only where
    the ledger has the value found before the lab's first change (`original`). Empty where the study
    is not an ablation.
    """
    if study is None or study.ablate is None:
        return {}
    states: dict[str, set[str | None]] = {}
    for ledger in ledgers:
        for rows in ledger.hosts.values() if ledger.profile == study.ablate else ():
            for row in rows:
                states.setdefault(word(row.key), set()).add(_idle_state(row))
    return {
        tuning: Reason(code="key_changes_nothing", facts={"states": sorted(map(str, states[key]))})
        for tuning, key in study.left_out_keys.items()
        if key in states and None not in states[key]
    }


def _idle_state(row: LedgerRow) -> str | None:
    """Return the state of a key whose absence changes nothing; None where it changes something."""
    was_so = row.state == "already" and row.original == row.after
    return row.state if was_so or row.state in _NOT_TAKEN else None


def without_idle(plan: Plan, idle_tunings: Mapping[str, Reason]) -> Plan:
    """Return the plan without the experiments of these tunings, which idle() returned."""
    left = [
        experiment
        for experiment in plan.experiments
        if experiment.items[0].cell.tuning not in idle_tunings
    ]
    return replace(plan, experiments=left)


def skipped(plan: Plan, idle_tunings: Mapping[str, Reason]) -> list[SkippedTuning]:
    """Return the plan's tunings that are not measured, in the plan's order."""
    keys = plan.study.left_out_keys if plan.study else {}
    planned = dict.fromkeys(experiment.items[0].cell.tuning for experiment in plan.experiments)
    return [
        SkippedTuning(tuning=tuning, key=keys[tuning], reason=idle_tunings[tuning])
        for tuning in planned
        if tuning in idle_tunings
    ]


def planned_power(keys: int) -> AblationPower:
    """Return from how many repetitions one of so many keys is found, by the noise of the plan."""
    return _power(keys * len(SPEEDS), comparison_rule().planned_noise, measured=False)


def measured_power(
    study: PlannedStudy | None, comparisons: Sequence[Comparison]
) -> AblationPower | None:
    """Return from how many repetitions one key is found, by the noise of goodput in the run.

    By the plan's noise where no comparison has an interval; None where the study is no ablation or
    nothing is compared.
    """
    if study is None or study.ablate is None or not comparisons:
        return None
    rows = [row for comparison in comparisons for row in comparison.rows if row.metric in SPEEDS]
    deviations = [
        deviation(row.difference.low, row.difference.high, row.n)
        for row in rows
        if row.metric == "goodput"
        and row.method == "blocks"
        and row.difference.low is not None
        and row.difference.high is not None
    ]
    # Both cells of a ratio have the noise. The logarithm of equal values has none.
    noise = float(np.sqrt(np.mean(np.square(deviations)) / 2)) if any(deviations) else None
    return _power(len(rows), noise or comparison_rule().planned_noise, measured=noise is not None)


def _power(rows: int, noise: float, measured: bool) -> AblationPower:
    rule = comparison_rule()
    return AblationPower(
        rows=rows,
        effect=rule.margin,
        noise=noise,
        measured=measured,
        power=rule.power,
        repetitions=paired.blocks_needed(rows, rule.margin, noise, rule.power),
    )
