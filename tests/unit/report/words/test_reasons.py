import ast
from pathlib import Path
from typing import Any

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


def reason(
    code: str, value: float | None = None, limit: float | None = None, **facts: Any
) -> Reason:
    return Reason(code=code, value=value, limit=limit, facts=facts)


# A reason as the analysis returns it, and its words.
NOISE: Facts = {"noise_floor": 0.03}
TOLD: list[tuple[Reason, str]] = [
    (reason("few_repetitions", 2, 3, side="base"),
     "2 repetitions of the base to go by, at least 3 are needed"),
    (reason("few_repetitions", 0, 3, side="head"),
     "no repetitions of the head to go by, at least 3 are needed"),
    (reason("few_blocks", 1, 3),
     "1 block with a value of both, at least 3 are needed"),
    (reason("few_sittings", 1, 3),
     "two sittings: not told apart from the difference between sittings, which takes 3 "
     "runs a side (1 run of one side)"),
    (reason("value_0", 5, side="head", of=5),
     "not comparable: 5 of 5 values of the head are 0"),
    (reason("side_failed", 0.4, 0.001, side="head"),
     "40 % of the requests of the head failed, and the latencies are of the answers alone"),
    (reason("better_failed_more", 0.4, 0.001, side="head"),
     "the head is faster, but 40 % more of its requests failed"),
    (reason("few_answers_each", 6000, 10_000, percentile="p99"),
     "a repetition has 6,000 answers, an interval of a p99 takes 10,000"),
    (reason("few_answers", 1000, 100_000, percentile="p99_99"),
     "1,000 answers, a p99.99 takes 100,000: 10 must lie above it"),
    (reason("few_answers", 0, 20, percentile="p50"),
     "no answers, a p50 takes 20: 10 must lie above it"),
    (reason("side_not_valid", side="head", void=["steal", "link"]),
     "no valid repetition of the head: steal, link"),
    (reason("below_bound", None, 99_000.0, metric="latency_us.p99"),
     "all of it is below 99.0 ms"),
    (reason("above_bound", None, 9.0, metric="goodput"),
     "all of it is above 9"),
    (reason("near_bound", 1.01, 1.0, **NOISE),
     "no further from 1 than the noise floor of 3.0 %"),
    (reason("throughput_flat", 0.02, 0.1, by="connections", from_level=8, level_growth=1.0),
     "throughput changed by +2.0 % from 8 connections, which are 100 % more: a sweep goes "
     "on if it grows by 10 % of that or more"),
    (reason("slo_latency", 9000.0, 100_000.0, percentile="p99", requests=500, supported=False),
     "p99 9.00 ms (of 500 requests, too few to support it)"),
    (reason("slo_errors", 3, 0, requests=3000),
     "3 errors (0.10 % of requests)"),
    (reason("slo_unsent", 50, 10.0, scheduled=1000),
     "5.0 % of the requests were never sent"),
    (reason("slo_failed", 4500, 50, percentile="p99", requests=5000),
     "90 % of the 5,000 requests that were due got no right answer, too many for a p99 of "
     "those"),
    (reason("void_share", 0.012, 0.05, void=4, measured=9, rivals_void=1, rivals_measured=20),
     "more often void than its rivals: 4 of 9 against 1 of 20, p 0.012"),
    (reason("key_changes_nothing", states=["absent", "already"]),
     "absent, already so without the lab"),
    (reason("difference", -0.2, 0.05, **NOISE, p_corrected=0.012, metric="response_time",
            difference=-0.2),
     "response time -20 %: corrected p 0.012, above the noise floor"),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "text"), TOLD, ids=[one.code for one, _ in TOLD])
def test_a_reason_has_words_with_its_values(cause: Reason, text: str) -> None:
    assert words.reason(cause, claims.REASONS.rows) == text


def test_every_code_that_decisions_return_has_words_and_every_row_is_returned() -> None:
    """By their source: the keyword or variable `code`, or the first argument of a rule's helper."""
    yielding = ("over", "_taken", "_in_seconds", "_on_hosts", "_unknown")
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
    for cause in (reason("unheard_of"), reason("few_repetitions")):
        with pytest.raises(ResultError, match=cause.code):
            words.reason(cause)


def test_of_many_causes_the_most_frequent_are_named_and_the_others_counted() -> None:
    codes = ("swapping", "steal", "link_down", "link", "steal")
    causes = [reason(code, 0.2) for code in codes]
    assert words.together(causes[:3]) == (
        "a host swapped memory, and another machine took 20 % of the CPU, and the test link was "
        "down"
    )
    assert words.together(causes).startswith("another machine took 20 % of the CPU, and a host ")
    assert words.together(causes).endswith(", and 2 other reasons")
