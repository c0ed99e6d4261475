from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from loadlab.analysis import comparison
from loadlab.core.errors import ResultError
from loadlab.scheduling import dispatch
from loadlab.stats import inference

LOAD = {"generator": "oha", "mode": "constant", "rate": 1000, "connections": 64}
CLOSED = {"generator": "wrk", "mode": "closed", "rate": None, "connections": 64}
SLOW, FAST = [100.0, 101, 102, 103, 104], [140.0, 141, 142, 143, 144]
VOID = {"valid": False, "reasons": ["steal: 0.5 on server, limit 0.01"], "findings": []}


def rep(goodput: float, p50: float, p99: float, **changed: Any) -> dict[str, Any]:
    return {
        "goodput": goodput,
        "latency_us": {"p50": p50, "p99": p99},
        "responses": 6000,
        "ok": 6000,
        "verdict": {"valid": True, "reasons": [], "findings": []},
        **changed,
    }


def cell(
    name: str,
    goodput: Sequence[float],
    *,
    void: int = 0,
    failed: int = 0,
    changed: dict[str, Any] | None = None,
    **definition: Any,
) -> dict[str, Any]:
    """A cell of summary.json; p50 goes as 1000 / goodput, p99 is always about the same."""
    reps = [
        rep(value, 1e6 / max(value, 1), 5000.0 + index % 3, **(changed or {}))
        for index, value in enumerate(goodput)
    ]
    reps += [rep(1.0, 1.0, 1.0, verdict=VOID)] * void
    load = definition.pop("load", LOAD)
    counted = {
        "n": len(goodput),
        "n_void": void,
        "requests": 6000 * len(goodput) if goodput else None,
        "errors": {"timeout": failed, "body": 0} if goodput else None,
        "latency_from": ("intended" if load is LOAD else "sent") if goodput else None,
    }
    definition = {"endpoint": "agents", "tuning": name, **definition, "load": load}
    return {"cell_id": name, "cell": definition, "repetitions": reps, "statistics": counted}


def compare(*cells: dict[str, Any], twins: Any = (), base: str = "stock") -> dict[str, Any]:
    heads = [c["cell_id"] for c in cells if not c["cell_id"].endswith("twin")][1:]
    asked = [{"by": "tuning", "base": base, "head": head} for head in heads]
    return comparison.build(cells, {"comparisons": asked, "twins": [list(t) for t in twins]})


def rows(found: dict[str, Any], which: int = 0) -> dict[str, Any]:
    return {row["metric"]: row for row in found["comparisons"][which]["rows"]}


def test_without_a_plan_nothing_is_compared() -> None:
    assert comparison.build([cell("stock", SLOW)], {}) == {"comparisons": [], "noise_floor": []}


def test_a_difference_and_none() -> None:
    found = rows(compare(cell("stock", SLOW), cell("production", FAST)))
    # Without a twin nothing is known to be alike.
    assert [found[name]["conclusion"] for name in found] == ["higher", "lower", "undecided"]
    goodput = found["goodput"]
    assert goodput["base"] == {"n": 5, "median": 102.0, "low": 100.0, "high": 104.0}
    assert goodput["head"]["median"] == 142.0
    assert goodput["difference"]["value"] == pytest.approx(142 / 102 - 1)
    assert goodput["difference"]["low"] > 0.34
    assert goodput["p"] == pytest.approx(2 / 252)
    # Of three rows two have that p.
    assert goodput["p_corrected"] == pytest.approx(3 / 2 * 2 / 252)
    assert (goodput["effect_size"], found["p50"]["effect_size"]) == (1.0, -1.0)
    assert goodput["why"] == "corrected p 0.012, no noise floor was measured"
    assert (goodput["noise_floor"], goodput["noise_floor_from"]) == (None, None)
    assert found["p99"]["why"] == "the interval includes 0, no noise floor was measured"


def test_no_difference_is_one_that_lies_in_the_noise_whole() -> None:
    """The same median; the head's interval once as wide as the twin's, and once wider."""
    wide = [80.0, 95, 102, 110, 125]
    twin = cell("stock-twin", [value * 1.05 for value in SLOW])
    found = compare(
        cell("stock", SLOW), cell("alike", SLOW[::-1]), cell("wide", wide), twin,
        twins=[("stock", "stock-twin")],
    )  # fmt: skip
    alike, other = (rows(found, which)["goodput"] for which in (0, 1))
    assert (alike["conclusion"], alike["why"][:32]) == (
        "no difference", "the whole interval is within the",
    )  # fmt: skip
    assert max(-alike["difference"]["low"], alike["difference"]["high"]) <= alike["noise_floor"]
    assert other["conclusion"] == "undecided"
    assert other["why"].startswith("the interval includes 0 and goes beyond the noise floor of")


def test_the_same_cells_give_the_same_figures_whatever_their_order() -> None:
    cells = [cell("stock", SLOW), cell("production", FAST), cell("stock-twin", SLOW[::-1])]
    asked = {
        "comparisons": [{"by": "tuning", "base": "stock", "head": "production"}],
        "twins": [["stock", "stock-twin"]],
    }
    before = copy.deepcopy(cells)
    found = comparison.build(cells, asked)
    assert comparison.build(cells[::-1], asked) == found
    assert cells == before


def test_p_is_corrected_over_all_rows_that_can_show_a_difference() -> None:
    several = compare(cell("stock", SLOW), cell("production", FAST), cell("other", SLOW))
    assert rows(several)["goodput"]["p_corrected"] == pytest.approx(6 / 2 * 2 / 252)
    assert {row["conclusion"] for row in rows(several, 1).values()} == {"undecided"}


def test_three_against_three_are_undecided_however_far_apart() -> None:
    found = compare(cell("stock", SLOW[:3]), cell("production", FAST[:3]), cell("more", FAST))
    few = rows(found)["goodput"]
    assert few["conclusion"] == "undecided"
    assert few["why"].startswith("3 repetitions against 3 cannot tell")
    assert few["difference"]["low"] > 0.3
    assert few["p"] == pytest.approx(0.1)
    assert few["p_corrected"] is None
    # Nor do such rows make it harder for others.
    more = rows(found, 1)["goodput"]
    assert more["p_corrected"] == pytest.approx(3 / 2 * 2 / 56)


def test_too_many_comparisons_for_so_few_repetitions_are_said_to_be() -> None:
    heads = [cell(f"head-{index}", SLOW) for index in range(4)]
    found = compare(cell("stock", SLOW[:4]), cell("production", FAST[:4]), *heads)
    goodput = rows(found)["goodput"]
    assert goodput["p"] == pytest.approx(2 / 70)
    assert goodput["conclusion"] == "undecided"
    assert "at best with so many comparisons" in goodput["why"]
    # What the values could have told apart, and did not, is another thing.
    assert "includes 0" in rows(found, 1)["goodput"]["why"]


@pytest.mark.parametrize(
    ("base", "head", "why"),
    [
        (cell("stock", SLOW), cell("production", [], void=2),
         "no valid repetition of the head: steal"),
        (cell("stock", SLOW[:2], void=3), cell("production", FAST),
         "2 repetitions of the base to go by, at least 3 are needed"),
        (cell("stock", [0.0] * 5), cell("production", FAST), "the base's median is 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_undecided(
    base: dict[str, Any], head: dict[str, Any], why: str
) -> None:
    found = rows(compare(base, head))["goodput"]
    assert (found["conclusion"], found["why"]) == ("undecided", why)


def test_a_cell_that_was_never_measured_is_undecided() -> None:
    base = cell("stock", SLOW)
    item = {"cell_id": "production", "cell": {**base["cell"], "tuning": "production"}}
    tracks = [dispatch.fixed(item)]
    asked = [{"by": "tuning", "base": "stock", "head": "production"}]
    (found,) = comparison.build([base], {"comparisons": asked, "tracks": tracks})["comparisons"]
    assert {row["why"] for row in found["rows"]} == {"the head was not measured"}
    assert {row["conclusion"] for row in found["rows"]} == {"undecided"}
    assert found["head"] == {
        "cell_id": "production", "name": "production", "n": 0, "n_void": 0, "failed_share": None,
    }  # fmt: skip
    with pytest.raises(ResultError, match="neither is a cell"):
        comparison.build([], {"comparisons": asked})


def test_failed_requests_are_beside_the_latency_they_may_have_won() -> None:
    (found,) = compare(cell("stock", SLOW), cell("production", FAST, failed=300))["comparisons"]
    assert found["base"]["failed_share"] == 0
    assert found["head"]["failed_share"] == pytest.approx(300 / 30_000)
    assert (found["by"], found["base"]["name"], found["head"]["name"]) == (
        "tuning", "stock", "production",
    )  # fmt: skip
    assert found["cell"]["endpoint"] == "agents"


def test_latencies_of_two_origins_are_not_compared() -> None:
    found = rows(compare(cell("stock", SLOW), cell("production", FAST, load=CLOSED)))
    assert found["goodput"]["conclusion"] == "higher"
    assert found["p50"]["why"] == "latencies from intended and sent are never compared"
    assert {found[name]["conclusion"] for name in ("p50", "p99")} == {"undecided"}


def test_a_p99_of_too_few_answers_is_not_compared() -> None:
    few = cell("production", FAST, changed={"responses": 999})
    found = rows(compare(cell("stock", SLOW), few))
    assert found["p50"]["conclusion"] == "lower"
    assert found["p99"]["conclusion"] == "undecided"
    assert found["p99"]["why"] == (
        "a repetition of the head has 999 answers, too few for a p99: 10 must lie above it"
    )


def test_a_clients_latencies_are_of_its_ok_answers() -> None:
    batch = {**LOAD, "mode": "batch"}
    base = cell("stock", SLOW, load=batch)
    few = cell("production", FAST, load=batch, changed={"ok": 12})
    found = rows(compare(base, few))
    assert "has 12 answers" in found["p50"]["why"]
    none = cell("production", FAST, load=batch)
    for one in none["repetitions"]:
        one["latency_us"] = {"p50": None, "p99": None}
    found = rows(compare(base, none))
    assert found["p99"]["why"] == "no repetitions of the head to go by, at least 3 are needed"
    assert found["p99"]["difference"] == {"value": None, "low": None, "high": None}


def test_twins_are_the_noise_floor() -> None:
    loud = [value * 1.2 for value in SLOW]
    found = compare(
        cell("stock", SLOW), cell("slightly", [value * 1.1 for value in SLOW]),
        cell("stock-twin", loud), twins=[("stock", "stock-twin")],
    )  # fmt: skip
    assert [row["metric"] for row in found["noise_floor"]] == ["goodput", "p50", "p99"]
    floor = found["noise_floor"][0]
    assert (floor["cell_id"], floor["twin_id"]) == ("stock", "stock-twin")
    assert floor["difference"]["value"] == pytest.approx(0.2)
    assert floor["noise_floor"] == floor["difference"]["high"] > 0.2
    goodput = rows(found)["goodput"]
    assert (goodput["noise_floor"], goodput["noise_floor_from"]) == (floor["noise_floor"], "same")
    assert goodput["difference"]["low"] > 0
    assert goodput["conclusion"] == "no difference"
    assert goodput["why"].startswith("the whole interval is within the noise floor of ")


def test_the_floor_is_of_the_same_endpoint_and_load_where_there_is_one() -> None:
    def noisy(name: str, factor: float, **definition: Any) -> list[dict[str, Any]]:
        twin = cell(f"{name}-twin", [factor * value for value in SLOW], **definition)
        return [cell(name, SLOW, **definition), twin]

    here = noisy("stock", 1.02) + noisy("also", 1.05)
    there = noisy("elsewhere", 2.0, endpoint="index") + noisy("loop", 3.0, load=CLOSED)
    pairs = [(c["cell_id"], f"{c['cell_id']}-twin") for c in (here + there)[::2]]
    asked = [{"by": "tuning", "base": "stock", "head": "production"}]
    cells = [*here, *there, cell("production", FAST)]

    def floor(twins: list[tuple[str, str]]) -> tuple[float | None, str | None]:
        plan = {"comparisons": asked, "twins": [list(pair) for pair in twins]}
        row = rows(comparison.build(cells, plan))["goodput"]
        return row["noise_floor"], row["noise_floor_from"]

    def largest(factor: float) -> float | None:
        return inference.difference(SLOW, [factor * value for value in SLOW]).high

    assert floor(pairs) == (largest(1.05), "same")
    assert floor(pairs[2:]) == (largest(3.0), "other")
    assert floor([]) == (None, None)
    # A twin that was not measured says nothing.
    assert floor([("stock", "nowhere")]) == (None, None)


def test_a_value_of_no_name_is_called_by_its_cell() -> None:
    cells = [cell("stock", SLOW), cell("production", FAST)]
    asked = [{"by": "rate", "base": "stock", "head": "production"},
             {"by": "colour", "base": "stock", "head": "production"}]  # fmt: skip
    by_rate, by_colour = comparison.build(cells, {"comparisons": asked})["comparisons"]
    assert by_rate["head"]["name"] == "1000"
    assert by_colour["head"]["name"] == "production"


def test_what_two_pairs_differ_by_is_noise_between_them_alone() -> None:
    def on(pair: str, made: dict[str, Any], name: str) -> dict[str, Any]:
        reps = [{**each, "pair": pair} for each in made["repetitions"]]
        return {**made, "cell_id": name, "repetitions": reps}

    base, same = (on("server", cell("stock", SLOW), name) for name in ("stock", "stock-twin"))
    other = on("server2", cell("stock", FAST), "stock-twin-2")
    here, there = (
        on(pair, cell("production", FAST), f"production-{pair}") for pair in ("server", "server2")
    )
    plan = {
        "comparisons": [
            {"by": "tuning", "base": "stock", "head": head["cell_id"]} for head in (here, there)
        ],
        "twins": [["stock", "stock-twin"], ["stock", "stock-twin-2"]],
    }
    found = comparison.build([base, same, other, here, there], plan)
    within, across = (rows({"comparisons": [c]})["goodput"] for c in found["comparisons"])
    assert within["noise_floor"] < 0.1 < across["noise_floor"]
    assert across["conclusion"] != "higher"
