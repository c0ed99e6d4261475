import itertools
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from loadlab.hosts import ec2_price
from loadlab.hosts.ec2_price import Prices
from loadlab.kinds import all_kinds, plan_run
from loadlab.kinds.study import judge_claims, study_files
from loadlab.kinds.study.plan import check_claims
from loadlab.model import SaturationRate, Study, StudyRate, StudySetting
from loadlab.plan import schedule
from loadlab.plan.modes.levels import Scaled
from loadlab.plan.modes.search import Search
from loadlab.plan.modes.stopping import ONCE
from loadlab.plan.plan_document import Plan
from loadlab.run import catalog
from loadlab.run.errors import PlanError
from tests.unit import builders

ROOT = builders.ROOT
FILES = {
    name: catalog.load_yaml(ROOT / "files" / "studies" / f"{name}.yml")
    for name in catalog.names(ROOT / "files" / "studies", "*.yml")
}
# About what the hosts' setting up for another stack takes, and a measurement beside its load.
SWITCH_S, BESIDE_S = 12, 4
SIZES = [(name, scale) for name, file in FILES.items() for scale in file["scales"]]


def write(root: Path, **file: Any) -> Path:
    folder = root / "files" / "studies"
    folder.mkdir(parents=True)
    (folder / "one.yml").write_text(yaml.safe_dump({"description": "d", **file}, sort_keys=False))
    return root


def find(root: Path, **given: Any) -> Study:
    return study_files.find(root, {"study": "one", **given}, None)


def test_a_matrix_multiplies_a_cell(tmp_path: Path) -> None:
    cells = [
        {
            "name": "r4",
            "expected_void": ["listen_overflows"],
            "matrix": {
                "stack": {"one": {"framework": "a"}, "two": {"framework": "b", "workers": 2}},
                "endpoint": ["index", "agents"],
            },
            "options": {"rate": 10, "workers": 1},
            "per_scale": {"large": {"rate": 20}},
        },
        {"name": "huge", "scales": ["large"]},
    ]
    root = write(tmp_path, cells=cells, scales={"small": {}, "large": {}})
    found = find(root).cells
    assert [cell.name for cell in found] == [
        "r4-one-index", "r4-one-agents", "r4-two-index", "r4-two-agents",
    ]  # fmt: skip
    assert found[2].options == {"rate": 10, "workers": 2, "framework": "b", "endpoint": "index"}
    assert found[2].expected_void == ["listen_overflows"]
    large = find(root, scale="large").cells
    assert (len(large), large[0].options["rate"], large[-1].name) == (5, 20, "huge")


def test_a_rate_follows_its_rule_except_at_the_published_scale(tmp_path: Path) -> None:
    rule = {"fraction": 0.8, "of": ["one"]}
    root = write(
        tmp_path,
        cells=[{"name": "one", "options": {"rate": "much"}}, {"name": "two"}],
        rates={"much": {"statement": "as it was", "rule": rule, "published": 4000}},
        scales={"local": {}, "published": {}},
    )
    assert find(root).cells[0].options["rate"] == rule
    assert find(root, scale="published").cells[0].options["rate"] == 4000
    here = SaturationRate(fraction=0.8, of=["one"])
    assert find(root).publication.rates == [
        StudyRate(name="much", statement="as it was", published=4000, here=here)
    ]


def test_settings_differ_from_those_of_the_published_scale(tmp_path: Path) -> None:
    scales = {"local": {"duration": 3}, "published": {"duration": 300, "workers": 16}}
    root = write(tmp_path, options={"workers": 16}, scales=scales)
    duration = StudySetting(name="duration", published=300, here=3)
    assert find(root).publication.settings == [duration]
    assert find(root, scale="published").publication.settings == []
    # The user's own option stands.
    workers = StudySetting(name="workers", published=16, here=2)
    assert find(root, workers=2).publication.settings == [duration, workers]


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ({"descripton": "d"}, "Object contains unknown field `descripton`"),
        ({"cells": [{"nam": "x"}]}, "at `$.cells[0]`"),
        ({"claims": [{"statement": "so"}]}, "missing required field `metric`"),
        ({"claims": [{"statement": "so", "metric": "m"}]}, "one of cell, ratio, order"),
        (
            {"figures": [{"title": "t", "where": "w", "cells": {"x": {"latency_us.p50": "1 h"}}}]},
            "latency_us.p50: '1 h' is not a number with one of the units us, ms",
        ),
        (
            {"claims": [{"statement": "so", "metric": "m", "cell": "x"}]},
            "a claim of cell has at_least or at_most wrongly - at `$.claims[0].all[0]`",
        ),
        ({"source": {"date": 2018}}, "Expected `str`, got `int` - at `$.source[...]`"),
    ],
)
def test_a_malformed_file_is_refused_with_its_place_and_reason(
    tmp_path: Path, file: dict[str, Any], words: str
) -> None:
    with pytest.raises(PlanError) as refusal:
        find(write(tmp_path, **file))
    assert str(refusal.value).startswith("files/studies/one.yml: ")
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("metric", "written", "number"),
    [
        ("goodput", 587.99, 587.99),
        ("latency_us.mean", "65.98 ms", 65980),
        ("latency_us.max", "295200 ms", 295_200_000),
        ("latency_us.max", "1.37 min", 82_200_000),
        ("client.seconds", "1.5 min", 90),
        ("client.max_rss_bytes", "53704 KiB", 54_992_896),
        ("failed_fraction", "85.28 %", 0.8528),
    ],
)
def test_figures_are_kept_as_printed_and_read_in_the_metrics_unit(
    metric: str, written: Any, number: float
) -> None:
    assert study_files.in_unit(metric, written) == number


@pytest.mark.parametrize("written", ["4 furlongs", "many", "", "1 ms of it"])
def test_a_figure_that_is_none_is_refused(written: str) -> None:
    with pytest.raises(PlanError, match="is not a number with one of the units us, ms"):
        study_files.in_unit("latency_us.mean", written)


@given(st.floats(0, 1e9), st.sampled_from(["us", "ms", "s"]))
def test_latencies_are_in_microseconds_whatever_the_unit(number: float, unit: str) -> None:
    size = {"us": 1, "ms": 1e3, "s": 1e6}[unit]
    found = study_files.in_unit("latency_us.p50", f"{number} {unit}")
    assert found == pytest.approx(number * size, rel=1e-9, abs=1e-8)


@pytest.mark.parametrize(("name", "scale"), SIZES)
def test_names_in_a_study_are_those_of_its_cells(name: str, scale: str) -> None:
    """Claims name cells that this scale has; figures and mistakes those that some scale has."""
    found = study_files.find(ROOT, {"study": name, "scale": scale}, "study")
    named = [cell.name for cell in found.cells]
    assert len(set(named)) == len(named)
    check_claims(found.claims, dict.fromkeys(named, 1))
    rules = [rate.here for rate in found.publication.rates]
    of = {one for rule in rules if isinstance(rule, SaturationRate) for one in rule.of}
    assert of <= set(named)
    # Of what is published, nothing is by rule.
    assert scale != "published" or not of


@pytest.mark.parametrize("name", FILES)
def test_what_was_published_is_whole(name: str) -> None:
    file = FILES[name]
    every = [
        study_files.find(ROOT, {"study": name, "scale": one}, "study") for one in file["scales"]
    ]
    cells = {cell.name for one in every for cell in one.cells}
    published = every[0].publication
    if published.source is None:
        assert not published.figures
        return
    assert published.question
    assert {"title", "date", "url"} <= set(published.source)
    assert study_files.PUBLISHED in file["scales"]
    assert published.differs
    for group in published.figures:
        assert group.reference is None or group.reference in group.cells
        if group.not_reproduced is None:
            assert {one.partition("@")[0] for one in group.cells} <= cells
    assert {one.cell for one in published.errata if one.cell} <= cells
    # Beside each claim of all scales stands what was published.
    (smallest,) = (one for one in every if one.scale == "smoke")
    for claim in smallest.claims:
        judged = judge_claims.judge(claim, {}, "study", published.figures)
        assert any(part.published for part in judged.parts), claim.statement


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name].get("claims")])
def test_published_figures_confirm_the_claims_of_their_own_study(name: str) -> None:
    study = study_files.find(ROOT, {"study": name, "scale": "published"}, "study")
    for claim in study.claims:
        for part in judge_claims.judge(claim, {}, "study", study.publication.figures).parts:
            value = part.published.value if part.published else None
            if value is not None:
                low = 1 if part.statement.order else part.statement.at_least
                high = part.statement.at_most
                assert low is None or value >= low, claim.statement
                assert high is None or value <= high, claim.statement


def test_no_connection_of_a_published_closed_loop_waits_longer_than_the_timeout() -> None:
    """One event loop that computes for 0.5 s answers 100 connections one after another."""
    for one in make("vangheem-2019", "published").experiments:
        for load in (item.cell.load for item in one.items):
            assert load.mode == "closed"
            assert builders.present(load.timeout_s) > 0.5 * load.connections


def make(name: str, scale: str, pairs: int = 1) -> Plan:
    options = {"study": name, "scale": scale}
    return plan_run.plan(builders.request(options, python="3.13", kind="study", pairs=pairs))


def minutes(name: str, scale: str) -> float:
    """What a study takes at most, about."""
    found = make(name, scale)
    keeps_order = all_kinds.of_plan(found).keeps_order
    turns = [
        (block, experiment)
        for block, experiment in schedule.order(found, None, keeps_order=keeps_order)
        if block == 1 or experiment.items[0].purpose not in ONCE
    ]
    setups = [schedule.setup(experiment.items[0]) for _, experiment in turns]
    switches = 1 + sum(one != other for one, other in itertools.pairwise(setups))
    items = {(item.cell_id, n): item for n, experiment in turns for item in experiment.items}
    # A search also measures rates that the plan does not name.
    repetitions = found.options.repetitions
    probes = [
        each.items[0]
        for each in found.experiments
        if isinstance(each, Search)
        for _ in range(each.expected(repetitions, {}) - repetitions)
    ]
    load = sum(item.expected_s + BESIDE_S for item in [*items.values(), *probes])
    return (load + switches * SWITCH_S) / 60


@pytest.mark.parametrize("name", [name for name in FILES if name != "ablation"])
def test_at_scale_local_a_study_is_over_in_twenty_minutes(name: str) -> None:
    assert 5 < minutes(name, "local") <= 20
    if "smoke" in FILES[name]["scales"]:
        assert minutes(name, "smoke") <= 5


def test_a_study_is_of_scale_local_unless_another_is_named() -> None:
    assert {next(iter(file["scales"])) for file in FILES.values()} == {"local"}
    assert builders.present(make("quick", "").study).scale == "local"


@pytest.mark.parametrize(
    "name", [name for name in FILES if name not in ("ablation", "certificate")]
)
def test_the_page_of_studies_has_time_and_price_of_each_scale(name: str) -> None:
    """Times were measured or are estimated as here; prices are of the default instances."""
    prices = msgspec.convert(catalog.load_yaml(ROOT / "files" / "aws_prices.yml"), Prices)
    types = 2 * ["c7i.2xlarge"]
    hour = ec2_price.estimate(prices, "us-east-1", types, disk_gb=20, dedicated=False)
    rows = (ROOT / "docs" / "studies.md").read_text().splitlines()
    (row,) = (one for one in rows if one.startswith(f"| {name} |"))
    sizes = dict(zip(("smoke", "local", "published"), row.split(" | ")[2:], strict=True))
    for scale, size in sizes.items():
        told = re.match(r"(\d+) (min|h), ([\d.]+) USD", size)
        assert bool(told) == (scale in FILES[name]["scales"]), size
        if told:
            lasts = int(told[1]) * (60 if told[2] == "h" else 1)
            assert minutes(name, scale) / 3 < lasts < 3 * minutes(name, scale)
            beside = ec2_price.BESIDE_LOAD_S / 60
            assert told[3] == f"{builders.present(hour) * (lasts + beside) / 60:.1f}"


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name].get("claims")])
@pytest.mark.parametrize("scale", ["local", "published"])
def test_on_two_pairs_a_ratio_is_of_one_and_every_pair_has_work(name: str, scale: str) -> None:
    made = make(name, scale, pairs=2)
    study = builders.present(made.study)
    pair_of = {item.cell_id: one.pair for one in made.experiments for item in one.items}
    named = {one: pair_of[ids[0]] for one, ids in study.cells.items()}
    for statement in [one for claim in study.claims for one in claim.all]:
        if statement.ratio or len(statement.order or ()) == 2:
            assert len({named[each] for each in statement.cells}) <= 1, statement
    # A fraction of a saturation is on the pair of that.
    for one in made.experiments:
        if isinstance(one, Scaled):
            assert {pair_of[cell_id] for cell_id in one.saturations.values()} <= {one.pair}
    base, across = made.aa_controls[-1]
    assert pair_of[base] != pair_of[across]
    work = {one.pair for one in made.experiments if one.items[0].cell_id != across}
    # Two studies have all rates as fractions of one cell, and the other all cells of one stack.
    whole = name == "arrivals" or (name, scale) in {
        ("avito-2018", "local"),
        ("pawelmhm-2016", "published"),
    }
    assert work == ({0} if whole else {0, 1})
