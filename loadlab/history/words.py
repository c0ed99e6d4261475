"""Words for the runs in results/ and for what changed between two of them."""

import datetime
import re
from collections.abc import Sequence

from loadlab.history.past_runs import PastRun
from loadlab.history.series import NEWEST, Step
from loadlab.model import Deviation, ReproductionPart
from loadlab.report.words import reproduction_words
from loadlab.results.comparisons import effect
from loadlab.run import formatting
from loadlab.run.methods import comparison_rule
from loadlab.stats import inference

# More differences of a kind are counted, not named.
SHOWN = 3
# Twelve digits of a hash tell it from another.
_HASH = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28,}…?")
RULE = (
    "A run is compared with earlier runs only, and only with those of the same environment. The "
    f"newest {NEWEST} runs of a level are compared with the {inference.LEAST} or more before them, "
    "as python -m loadlab compare does: goodput, p50 and p99, a run's value being the median of "
    "its repetitions, by Welch's t on logarithms. A step is marked where p, corrected for all "
    f"cells of the run and all earlier comparisons of the level, is at most {inference.ALPHA:g}, "
    "the difference exceeds the noise floor of the runs' A/A controls, and its interval is not "
    f"within {formatting.percent(comparison_rule().margin)}. The coloured runs then begin a new "
    "level. A later run moves no mark; only the removal of a run, or more repetitions in it, can. "
    "Of a single run nothing tells a step from the difference between two sittings."
)


def state(run: PastRun) -> str:
    """Return a sentence on a run that is not finished; empty for one that is."""
    done = run.progress
    so_far = f"{done.done:,} of {done.total:,} measured" if done else "no load was offered yet"
    match run.state:
        case "running":
            return f"Running when this page was written: {so_far}."
        case "unfinished" if done and done.abandoned:
            cells = formatting.plural(len(done.abandoned), "cell")
            return f"Not finished: {so_far}; {cells} failed twice."
        case "unfinished":
            return f"Not finished: {so_far}."
        case "other version":
            return "Another version of the lab wrote it, which this version cannot read."
        case "broken":
            return f"Broken: {formatting.one_line(run.problem, 200)}."
    return ""


def ended(run: PastRun) -> str:
    """Return when a run ended or, where that is not known, began; UTC, to the minute."""
    time = run.ended or run.began
    if time is None:
        return formatting.NONE
    return datetime.datetime.fromtimestamp(time, datetime.UTC).strftime("%Y-%m-%d %H:%M")


def changes(parts: Sequence[ReproductionPart]) -> str:
    """Return what changed in the environment: server: nginx 1.26 to 1.27; 3 more packages."""
    return "; ".join(_changed(part) for part in parts)


def _changed(part: ReproductionPart) -> str:
    names = [_deviation(deviation) for deviation in part.deviations[:SHOWN]]
    more = len(part.deviations) - SHOWN
    names += [f"{more:,} more {reproduction_words.PLURALS[part.part]}"] if more > 0 else []
    # Its deviations have the same name.
    kind = "" if part.part == "kernel" else f"{part.part}: "
    return f"{kind}{', '.join(names)}"


def _deviation(deviation: Deviation) -> str:
    before, now = (
        _HASH.sub(r"\1", reproduction_words.value(value))
        for value in (deviation.original, deviation.here)
    )
    return f"{reproduction_words.name(deviation)} {before} to {now}"


def kind(step: Step) -> str:
    """Return whether the newer runs are slower or faster; slower where the metrics disagree."""
    return "faster" if all(effect.is_better(row) for row in step.rows) else "slower"


def sentence(step: Step) -> str:
    """Return a step in words: slower than the 5 runs before: p99 +12 % (8 to 16 %)."""
    differences = ", ".join(
        f"{row.metric} {formatting.difference(row.difference)}" for row in step.rows
    )
    return f"{kind(step)} than the {len(step.base)} runs before: {differences}"
