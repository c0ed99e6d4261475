"""The ranking in the page."""

from msgspec.structs import replace

from loadlab.model import Summary
from loadlab.report.sections import ranking_section
from loadlab.report.words import labels
from loadlab.results.comparisons import ranking as ranks
from tests.unit import builders
from tests.unit.results.comparisons.test_ranking import CLOSED, around, cell


def summary(**goodputs: list[float]) -> Summary:
    cells = [cell(name, values, load=CLOSED) for name, values in goodputs.items()]
    return replace(builders.summary(), cells=cells, ranking=ranks.build(cells, []))


def test_what_all_ranks_by_medians_have_in_common_is_told_once() -> None:
    found = summary(flask=[900], django=[800], quart=[700])
    remark = "?: 1 block with a value of both, at least 3 are needed."
    (table,) = ranking_section.tables(found, labels.entries(found.cells, {}), {})
    assert table.caption.endswith(f" {remark}")
    assert [row.cells[-1].text for row in table.rows] == ["", "goodput -11 %", "goodput -13 %"]


def test_reason_of_one_rank_alone_stays_beside_it() -> None:
    found = summary(flask=around(900), django=around(800), quart=[700])
    (table,) = ranking_section.tables(found, labels.entries(found.cells, {}), {})
    last = table.rows[-1].cells[-1].text
    assert last == "goodput -12 %: 1 block with a value of both, at least 3 are needed"
