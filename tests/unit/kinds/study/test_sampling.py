from msgspec.structs import replace

from loadlab.kinds.study import judge_claims, sampling
from loadlab.kinds.study.sampling import Level
from loadlab.model import ClaimPart, ClaimStatement, SearchSummary, StudyClaim
from loadlab.plan import cell_ids
from tests.simulation import samples
from tests.unit import builders
from tests.unit.kinds.study.claimed import cell, part, statement


def test_the_best_level_represents_a_sweep() -> None:
    sweep = [
        Level(cell(*goodputs, connections=connections, duration_s=seconds))
        for connections, seconds, goodputs in (
            (1, 5.0, (10, 11, 12)), (8, 6.0, (90, 91, 92)), (64, 7.0, (80,)),
        )
    ]  # fmt: skip

    def judged(one: ClaimStatement) -> ClaimPart:
        claim = StudyClaim(statement="so", all=[one])
        return part(judge_claims.judge(claim, {"sweep": sweep}, "study"))

    best = judged(statement(cell="sweep", at_least=90, at_most=92))
    assert (best.outcome, best.value) == ("confirmed", 91)
    # Its other metrics are read there too.
    assert judged(statement(metric="duration_s", cell="sweep", at_least=1)).value == 6.0
    assert sampling.representative([Level(cell(1, valid=False))]) is None


def test_the_level_of_a_sweep_is_chosen_in_other_blocks_than_it_is_tested_in() -> None:
    """Each of two levels has one lucky block, which does not count for it there."""
    low, high = Level(cell(200, 100, 100, 100)), Level(cell(99, 98, 300, 99))
    found = sampling.sample([low, high], "goodput").by_block
    # Of the other three blocks low is the better one, always; of all blocks too.
    assert found == {1: 200, 2: 100, 3: 100, 4: 100}
    luck = [Level(cell(200, 100)), Level(cell(101, 300))]
    assert sampling.sample(luck, "goodput").by_block == {1: 101, 2: 100}
    # With one block alone there is no other to choose in.
    once = [Level(cell(200)), Level(cell(101))]
    assert sampling.sample(once, "goodput").by_block == {1: 200}


def test_the_best_of_many_equal_levels_is_not_too_fast() -> None:
    """tests/simulation has the bias of more runs."""
    before, after = samples.sweep_bias(levels=8, noise=0.05, repetitions=5, runs=60)
    assert before > 0.02
    assert abs(after) < 0.015


def test_a_search_stands_for_the_cell_at_the_rate_found_and_explains_itself_where_none_is() -> None:
    planned = builders.cell(load=builders.load(rate=500.0))
    study = builders.planned_study(cells={"highest": [cell_ids.cell_id(planned, "measure")]})
    search = SearchSummary(
        cell=planned, slo={"p99_ms": 100}, trace=[], highest_rate=800.0, cell_id="best",
        confirmed=None, reasons=[],
    )  # fmt: skip
    best = builders.cell_summary("best", [builders.repetition()])
    summary = replace(builders.summary_of(best), searches=[search])
    assert [level.cell for level in sampling.of_study(summary, study)["highest"]] == [best]
    nothing = replace(search, highest_rate=None, cell_id=None)
    summary = replace(builders.summary_of(), searches=[nothing])
    assert sampling.unmeasured(summary, study) == []
    assert sampling.unmeasured(builders.summary_of(), study) != []
