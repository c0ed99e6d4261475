"""The rows of all reasons but those of a kind of run, in the parts of docs/troubleshooting.md."""

from loadlab.reasons import comparison_reasons, planning_reasons, rate_reasons, validity_reasons
from loadlab.reasons.row import ReasonPart, ReasonTable
from loadlab.reasons.validity_reasons import CAUSES

PARTS = [
    ReasonPart(
        "Void repetitions",
        "The instrument, not the stack, was the limit. No statistic contains a void repetition. It "
        "is measured again, unless the cell was void twice in a row for the same limit of its "
        "hosts: " + ", ".join(code for code, cause in CAUSES.items() if cause == "hosts") + ".",
        validity_reasons.VOID,
    ),
    ReasonPart("Findings", "Remarks that do not void a repetition.", validity_reasons.FINDINGS),
    ReasonPart(
        "Comparisons and rankings",
        "The conclusion on a difference, or why there is none.",
        comparison_reasons.COMPARISONS,
    ),
    ReasonPart(
        "Answers by blocks",
        "The answer about a variant or a candidate, after all blocks so far.",
        comparison_reasons.LOOKS,
    ),
    ReasonPart(
        "Sweeps and searches",
        "Where they end, and how a measurement compares with the objective.",
        {**rate_reasons.SWEEPS, **rate_reasons.SEARCHES},
    ),
    ReasonPart("Ramps", "Why the knee of a ramp is not known.", rate_reasons.KNEES),
    ReasonPart(
        "Curves", "Why the curve of a run at one rate was not measured.", planning_reasons.CURVES
    ),
    ReasonPart("Ablations", "Why a tuning was not measured.", planning_reasons.ABLATIONS),
    ReasonPart(
        "Lanes",
        "Why variants or candidates are measured one after the other instead of in one load.",
        planning_reasons.LANES,
    ),
    ReasonPart("Generators", "Why the lab cannot use a generator.", planning_reasons.GENERATORS),
    ReasonPart("Cells", "Remarks on the repetitions of a cell.", comparison_reasons.VOIDS),
]
TABLE: ReasonTable = {code: row for part in PARTS for code, row in part.rows.items()}
