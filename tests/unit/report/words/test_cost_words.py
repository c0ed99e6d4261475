from msgspec.structs import replace

from loadlab.model import Confirmation, Reason, SearchStep, SearchSummary
from loadlab.report.words import cost_words
from tests.unit import builders

SERVER = "server"


def step(rate: float, met: bool | None) -> SearchStep:
    return SearchStep(
        cell_id=builders.NAME,
        repetition=1,
        purpose="probe",
        rate=rate,
        met=met,
        reasons=[Reason(code="few_blocks")],
        p99_us=None,
        goodput=None,
        errors=None,
        unsent=None,
    )


def search(highest_rate: float | None, trace: list[SearchStep]) -> SearchSummary:
    return SearchSummary(
        cell=builders.cell(),
        slo={"p99_ms": 100.0},
        trace=trace,
        highest_rate=highest_rate,
        cell_id=builders.NAME,
        confirmed=Confirmation(of=1, met=1) if highest_rate else None,
        reasons=[],
    )


def test_the_price_of_a_million_requests_lies_between_the_rates_met_and_missed() -> None:
    cell = builders.cell_summary(builders.NAME, [builders.repetition(server=SERVER)])
    trace = [step(1000, True), step(4000, False), step(2000, False), step(1500, None)]
    summary = replace(builders.summary(), searches=[search(1000, trace)], curves=[])
    assert cost_words.per_million(summary, cell, {SERVER: 0.36}) == (
        "0.100",
        "at 1,000 requests/s, the highest rate within the objective; above 0.0500, as 2,000 "
        "missed it",
    )
    unmissed = replace(summary, searches=[search(1000, [step(1000, True)])])
    found = cost_words.per_million(unmissed, cell, {SERVER: 0.36})
    assert found == ("0.100", "at 1,000 requests/s, the highest rate within the objective")


def test_no_price_without_a_rate_or_the_price_of_the_server() -> None:
    cell = builders.cell_summary(builders.NAME, [builders.repetition(server=SERVER)])
    summary = replace(builders.summary(), searches=[search(1000, [step(1000, True)])], curves=[])
    assert cost_words.per_million(summary, cell, {"client": 0.36}) is None
    nothing = replace(summary, searches=[search(None, [step(1000, False)])])
    assert cost_words.per_million(nothing, cell, {SERVER: 0.36}) is None
