"""How the visits of a load of sessions went, in its documents, its table and on the terminal."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from loadlab.generators import metronome, metronome_records
from loadlab.generators.attribution import Schedule
from loadlab.model import Arrivals, CellLimit, Facts, Reason, SessionStep
from loadlab.report.sections import cells_section
from loadlab.report.terminal import cell_lines
from loadlab.report.words import limits_words
from loadlab.results.exports import cells_table
from loadlab.results.repetitions import visits
from loadlab.stats import histograms
from tests.unit import builders

FOLDER = Path(__file__).parents[3] / "fixtures/metronome/session"
LOAD = builders.load(
    generator="metronome",
    rate=200,
    duration_s=2,
    session=[
        SessionStep(request="login", take={"token": "$.token"}),
        SessionStep(request="cart", think_s=0.05),
        SessionStep(request="cart", think_mean_s=0.03),
    ],
)
ARRIVALS = Arrivals(smoothness=1, ramp=[(0, 1), (1.5, 1), (1.5, 0), (2, 0)])
SCHEDULE = Schedule(200, 2, 8, ARRIVALS, kinds={"login": 1, "cart": 2}, steps=3)
MEASUREMENT = metronome.measure(FOLDER, SCHEDULE)[0]


def test_the_rate_of_a_session_in_requests_is_that_of_those_due() -> None:
    cell = builders.cell(load=LOAD, endpoint="login:1,cart:2")
    assert visits.in_requests(cell, MEASUREMENT).load.rate == 1120 / 2
    alone = builders.cell()
    assert visits.in_requests(alone, MEASUREMENT) is alone


def test_visits_are_summed_and_their_times_are_those_of_all() -> None:
    one = builders.present(visits.of_load(MEASUREMENT, LOAD))
    assert (one.scheduled, one.started, one.completed, one.cut) == (400, 400, 340, 0)
    broken = [(step.request, step.wrong, step.missing) for step in one.broken]
    assert broken == [("login", 0, 20), ("cart", 40, 0), ("cart", 0, 0)]
    us = np.sort(np.repeat(*builders.present(MEASUREMENT.visits).time_us))
    assert one.p50_us == pytest.approx(us[len(us) // 2], rel=0.01)
    # 340 visits do not say where the 99th percentile is.
    assert one.p99_us is None
    both = builders.present(visits.merge([one, None, one, one]))
    assert (both.completed, both.broken_sum, both.histogram) == (1020, 180, None)
    assert both.p99_us == pytest.approx(us[int(len(us) * 0.99)], rel=0.01)
    assert visits.of_load(replace(MEASUREMENT, visits=None), LOAD) is None


def test_a_visit_of_more_than_an_hour_is_at_least_an_hour() -> None:
    days = metronome_records.Counted()
    days.add(np.full(100, 48 * 3600 * metronome_records.UNITS_S))
    counted = replace(builders.present(MEASUREMENT.visits), completed=100, time_us=days.exact)
    of_load = builders.present(visits.of_load(replace(MEASUREMENT, visits=counted), LOAD))
    assert of_load.p50_us == histograms.HIGHEST_US
    cell = builders.cell(load=LOAD, endpoint="login:1,cart:2")
    summary = builders.cell_summary("visits", [builders.repetition(visits=of_load)], cell)
    summary = structs.replace(
        summary, statistics=structs.replace(summary.statistics, visits=of_load)
    )
    assert "≥ 3,600,000" in cell_lines.table(builders.summary_of(summary), {})
    assert "p50 ≥ 3,600,000 ms" in str(cells_section._visits(summary))


def test_a_rate_of_visitors_that_was_kept_is_of_visits() -> None:
    facts: Facts = {"rate": 20, "failed": 1, "busy": 0.5, "visits": True}
    limit = CellLimit(
        limit=Reason(code="none", value=2_000, limit=100_000, facts=facts), agree=1, of=1,
        ruled_out=[], unrecorded=[], mean_us=None, account=[],
    )  # fmt: skip
    kept = "20 visits/s came back with p99 2.00 ms, within 100 ms, and 1 failed request"
    assert kept in limits_words.sentence(limit)
    assert "-e rate=40 has twice as many visitors" in limits_words.following(limit)


def test_visits_stand_in_the_table_the_report_and_on_the_terminal() -> None:
    of_load = visits.of_load(MEASUREMENT, LOAD)
    cell = builders.cell(load=LOAD, endpoint="login:1,cart:2")
    summary = builders.cell_summary("visits", [builders.repetition(visits=of_load)], cell)
    summary = structs.replace(
        summary, statistics=structs.replace(summary.statistics, visits=of_load)
    )
    (row,) = cells_table.rows(builders.summary_of(summary))
    assert (row.visits_started, row.visits_completed, row.visits_broken) == (400, 340, 60)
    text = cell_lines.table(builders.summary_of(summary), {})
    assert "60 (login 20, cart 40)" in text
    assert "200 visits/s" in text
    table = builders.present(cells_section._visits(summary))
    assert "400 were started and 340 completed; 60 broke" in str(table)
