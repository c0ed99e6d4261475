"""Cells whose endpoint answers otherwise at the next repetition."""

import pytest
from msgspec.structs import replace

from loadlab.model import LaneTurns, Repetition
from loadlab.report import words
from loadlab.report.sections import cell_outcome, cells_section
from loadlab.results.summaries import answer_lengths
from tests.unit import builders
from tests.unit.builders import present


def answering(number: int, sent: float, answers: int = 5000, ok: int | None = None) -> Repetition:
    """A repetition whose server sent that many bytes for each of its answers."""
    rep = builders.repetition(
        repetition=number, responses=answers, ok=answers if ok is None else ok
    )
    both = present(rep.telemetry)
    network = replace(both.server.network, tx_bytes=round(sent * answers))
    return replace(rep, telemetry=replace(both, server=replace(both.server, network=network)))


def test_an_endpoint_that_answers_otherwise_at_the_next_repetition_is_told() -> None:
    reps = [answering(1, 8100), answering(2, 8120), answering(3, 310)]
    found = present(answer_lengths.changed(builders.load(), reps))
    assert words.reason(found) == (
        "its answers changed: 8,120 bytes each in repetition 2, and 310 bytes in repetition 3, "
        "with headers and packets"
    )
    cell = builders.cell_summary("a", reps, answers=found)
    assert cells_section.remarks(cell)[0].code == "answers_changed"
    assert cell_outcome.skipped([cell]).startswith(" Its answers changed: 8,120 bytes")


def test_what_a_server_sends_in_several_lanes_is_of_no_cell() -> None:
    closed = builders.load(lanes=LaneTurns())
    assert answer_lengths.changed(closed, [answering(1, 1198), answering(2, 1382)]) is None


@pytest.mark.parametrize(
    "last",
    [
        # The packets of the same answers: the most that a cell of 18 recorded ones changed.
        answering(2, 241.9),
        # The same answers, some so late that an acknowledgement went ahead.
        answering(2, 289.0),
        # What is known to be wrong is an error, not another answer.
        answering(2, 500, ok=4000),
        answering(2, 500, answers=20),
        replace(answering(2, 500), telemetry=None),
    ],
)
def test_the_same_answers_are_not(last: Repetition) -> None:
    assert answer_lengths.changed(builders.load(), [answering(1, 236.0), last]) is None
