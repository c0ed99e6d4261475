import pytest
from msgspec.structs import replace

from loadlab.model import Confirmation, Reason, SearchStep, SearchSummary
from loadlab.report.words import cost_words
from tests.unit import builders

SERVER = "server"


def step(rate: float, met: bool | None) -> SearchStep:
    return SearchStep(
        cell_id=builders.NAME, repetition=1, purpose="probe", rate=rate, met=met,
        reasons=[Reason(code="few_blocks")], p99_us=None, goodput=None, errors=None, unsent=None,
    )  # fmt: skip


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


MET, MISSED = step(1000, True), step(4000, False)
HIGHEST = "at 1,000 requests/s, the highest rate within the objective"


@pytest.mark.parametrize(
    ("highest_rate", "trace", "priced", "price"),
    [
        (1000, [MET, MISSED, step(2000, False), step(1500, None)], SERVER,
         ("0.100", f"{HIGHEST}; above 0.0500, as 2,000 missed it")),
        (1000, [MET], SERVER, ("0.100", HIGHEST)),
        (1000, [MET], "client", None),
        (None, [MISSED], SERVER, None),
    ],
)  # fmt: skip
def test_a_million_requests_cost_what_the_rates_met_and_missed_say(
    highest_rate: float | None, trace: list[SearchStep], priced: str, price: tuple[str, str] | None
) -> None:
    cell = builders.cell_summary(builders.NAME, [builders.repetition(server=SERVER)])
    searches = [search(highest_rate, trace)]
    summary = replace(builders.summary(), searches=searches, curves=[])
    assert cost_words.per_million(summary, cell, {priced: 0.36}) == price
