import ast
from pathlib import Path

import pytest

import loadlab
from loadlab.kinds import all_kinds
from loadlab.kinds.study import words as claims
from loadlab.model import Facts, Reason
from loadlab.reasons import validity_reasons
from loadlab.reasons.all_reasons import TABLE
from loadlab.report import words
from loadlab.run.errors import ResultError

PACKAGE = Path(loadlab.__file__).parent
# Code -> a reason as the analysis returns it, and its words.
NOISE: Facts = {"noise_floor": 0.03}
TOLD: list[tuple[Reason, str]] = [
    (
        Reason(code="few_repetitions", value=2, limit=3, facts={"side": "base"}),
        "2 repetitions of the base to go by, at least 3 are needed",
    ),
    (
        Reason(code="few_repetitions", value=0, limit=3, facts={"side": "head"}),
        "no repetitions of the head to go by, at least 3 are needed",
    ),
    (
        Reason(code="few_blocks", value=1, limit=3),
        "1 block with a value of both, at least 3 are needed",
    ),
    (
        Reason(code="few_sittings", value=1, limit=3),
        "two sittings: not told apart from the difference between sittings, which takes 3 runs a "
        "side (1 run of one side)",
    ),
    (
        Reason(code="value_0", value=5, facts={"side": "head", "of": 5}),
        "not comparable: 5 of 5 values of the head are 0",
    ),
    (
        Reason(code="side_failed", value=0.4, limit=0.001, facts={"side": "head"}),
        "40 % of the requests of the head failed, and the latencies are of the answers alone",
    ),
    (
        Reason(code="better_failed_more", value=0.4, limit=0.001, facts={"side": "head"}),
        "the head is faster, but 40 % more of its requests failed",
    ),
    (
        Reason(code="few_answers_each", value=6000, limit=10_000, facts={"percentile": "p99"}),
        "a repetition has 6,000 answers, an interval of a p99 takes 10,000",
    ),
    (
        Reason(code="few_answers", value=1000, limit=100_000, facts={"percentile": "p99_99"}),
        "1,000 answers, a p99.99 takes 100,000: 10 must lie above it",
    ),
    (
        Reason(code="few_answers", value=0, limit=20, facts={"percentile": "p50"}),
        "no answers, a p50 takes 20: 10 must lie above it",
    ),
    (
        Reason(code="side_not_valid", facts={"side": "head", "void": ["steal", "link"]}),
        "no valid repetition of the head: steal, link",
    ),
    (
        Reason(code="below_bound", limit=99_000.0, facts={"metric": "latency_us.p99"}),
        "all of it is below 99.0 ms",
    ),
    (Reason(code="above_bound", limit=9.0, facts={"metric": "goodput"}), "all of it is above 9"),
    (
        Reason(code="near_bound", value=1.01, limit=1.0, facts=NOISE),
        "no further from 1 than the noise floor of 3.0 %",
    ),
    (
        Reason(
            code="throughput_flat",
            value=0.02,
            limit=0.1,
            facts={"by": "connections", "from_level": 8, "level_growth": 1.0},
        ),
        "throughput changed by +2.0 % from 8 connections, which are 100 % more: growth is at least "
        "10 % of that",
    ),
    (
        Reason(
            code="slo_latency",
            value=9000.0,
            limit=100_000.0,
            facts={"percentile": "p99", "requests": 500, "supported": False},
        ),
        "p99 9.00 ms (of 500 requests, too few to support it)",
    ),
    (
        Reason(code="slo_errors", value=3, limit=0, facts={"requests": 3000}),
        "3 errors (0.10 % of requests)",
    ),
    (
        Reason(code="slo_unsent", value=50, limit=10.0, facts={"scheduled": 1000}),
        "5.0 % of the requests were never sent",
    ),
    (
        Reason(
            code="slo_failed", value=4500, limit=50, facts={"percentile": "p99", "requests": 5000}
        ),
        "90 % of the 5,000 requests that were due got no right answer, too many for a p99 of those",
    ),
    (
        Reason(
            code="void_share",
            value=0.012,
            limit=0.05,
            facts={"void": 4, "measured": 9, "rivals_void": 1, "rivals_measured": 20},
        ),
        "more often void than its rivals: 4 of 9 against 1 of 20, p 0.012",
    ),
    (
        Reason(code="key_changes_nothing", facts={"states": ["absent", "already"]}),
        "absent, already so without the lab",
    ),
    (
        Reason(
            code="difference",
            value=-0.2,
            limit=0.05,
            facts={**NOISE, "p_corrected": 0.012, "metric": "response_time", "difference": -0.2},
        ),
        "response time -20 %: corrected p 0.012, above the noise floor",
    ),
]


@pytest.mark.parametrize(("reason", "text"), TOLD, ids=[one.code for one, _ in TOLD])
def test_a_reason_has_words_with_its_values(reason: Reason, text: str) -> None:
    assert words.reason(reason, claims.REASONS.rows) == text


def test_every_code_that_decisions_return_has_words_and_every_row_is_returned() -> None:
    """By their source: the keyword or variable `code`, or the first argument of a rule's helper."""
    yielding = ("over", "_taken", "_in_seconds", "_on_hosts")
    codes: list[ast.expr] = []
    for package in ("stats", "plan", "tuning", "generators", "results", "kinds"):
        for path in (PACKAGE / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    codes += [word.value for word in node.keywords if word.arg == "code"]
                    codes += node.args[: getattr(node.func, "id", "") in yielding]
                elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "code":
                    codes.append(node.value)
    parts = [part for code in codes for part in ast.walk(code) if isinstance(part, ast.Constant)]
    own = {code for kind in all_kinds.KINDS if kind.reasons for code in kind.reasons.rows}
    assert {part.value for part in parts if isinstance(part.value, str)} == {*TABLE, *own}


def test_every_reason_that_voids_has_words_for_a_headline() -> None:
    # Of a failed repetition the error says more.
    assert [code for code, row in validity_reasons.VOID.items() if not row.brief] == ["failed"]


def test_a_reason_without_words_or_values_is_an_error() -> None:
    for reason in (Reason(code="unheard_of"), Reason(code="few_repetitions", facts={})):
        with pytest.raises(ResultError, match=reason.code):
            words.reason(reason)
