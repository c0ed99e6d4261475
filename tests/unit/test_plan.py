from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.lab.bench.plugins.module_utils import plan as plans
from ansible_collections.lab.bench.plugins.module_utils.plan import LIMITS, PlanError
from hypothesis import assume, given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
SPECS: dict[str, Any] = yaml.safe_load(
    (ROOT / "roles" / "run" / "meta" / "argument_specs.yml").read_text()
)["argument_specs"]["main"]["options"]
CELL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
NOW = datetime.datetime(2026, 11, 20, 17, 16, 47)
NUMBERS = st.sampled_from(sorted(LIMITS))
STACKS = [
    {"server": "gunicorn", "transport": "unix", "protocol": "http"},
    {"server": "gunicorn", "transport": "tcp", "protocol": "http"},
    {"server": "uwsgi", "transport": "unix", "protocol": "uwsgi"},
]


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab with two frameworks, of which only alpha is slow."""
    contracts = {
        "index": {"path": "/index", "measured": True},
        "agents": {"path": "/agents", "measured": True},
        "sleep": {"path": "/sleep"},
    }
    documents = {
        "apps/alpha/app.yml": {"stacks": STACKS, "endpoints": ["index", "agents", "sleep"]},
        "apps/beta/app.yml": {"stacks": STACKS[:1], "endpoints": ["index"]},
        "apps/gamma/app.yml": {"stacks": STACKS[:1], "endpoints": ["sleep"]},
        "files/endpoints.yml": contracts,
        "files/tuning/production.yml": {},
        "files/tuning/stock.yml": {},
        "files/network/lan.yml": {},
    }
    for name, document in documents.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(document))
    (tmp_path / "results").mkdir()
    return tmp_path


def make(lab: Path, begin: bool = True, needs: bool = True, **given: Any) -> dict[str, Any]:
    return plans.plan(lab, SPECS, given, begin, needs, NOW)


def convert(name: str, value: Any) -> Any:
    return plans.options({name: SPECS[name]}, {name: value})[name]


def number(name: str, low: float, high: float) -> st.SearchStrategy[float]:
    if SPECS[name]["type"] == "int":
        return st.integers(int(low), int(high))
    return st.floats(low, high)


@given(st.data(), NUMBERS)
def test_any_number_within_the_limits_is_taken(data: st.DataObject, name: str) -> None:
    low, high, _ = LIMITS[name]
    value = data.draw(number(name, low, high))
    # As YAML has it, and as the word of -e that Ansible passes on.
    assert convert(name, value) == value
    assert convert(name, str(value)) == value


@given(st.data(), NUMBERS)
def test_any_number_outside_is_refused_with_the_limits(data: st.DataObject, name: str) -> None:
    low, high, unit = LIMITS[name]
    value = data.draw(st.floats(allow_infinity=True) | st.integers(-(10**30), 10**30))
    assume(not low <= value <= high)
    for form in (value, str(value)):
        with pytest.raises(PlanError) as refusal:
            convert(name, form)
        words = str(refusal.value)
        assert words.startswith(f"{name}: {value} is out of range. Give a number from ")
        limits = [float(word) for word in re.findall(r"from (\S+) to ([0-9.]+)", words)[0]]
        # Not nearly the limits: 2.14748e+09 would be another number than the seed may be.
        assert (limits[0], limits[1]) == (low, high)
        assert "e+" not in words.partition("Give")[2]
        assert words.rstrip(".").endswith(unit)


@given(st.sampled_from(["connections", "repetitions", "seed"]), st.integers(1, 900))
def test_a_broken_count_is_refused(name: str, whole: int) -> None:
    with pytest.raises(PlanError, match=rf"^{name}: '{whole}.5' is not a whole number. Give a"):
        convert(name, f"{whole}.5")
    assert convert(name, f"{whole}.0") == whole


@pytest.mark.parametrize("name", sorted(LIMITS))
@pytest.mark.parametrize("value", ["many", "1,000", [1], {"a": 1}, True, "true"])
def test_what_is_no_number_is_refused_with_an_example(name: str, value: Any) -> None:
    with pytest.raises(PlanError) as refusal:
        convert(name, value)
    assert str(refusal.value).startswith(f"{name}: '{value}' is not a number. Give a number from ")
    assert str(refusal.value).endswith(f"for example -e {name}={SPECS[name]['default']}.")


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_not_a_number_and_integers_beyond_any_float_are_refused(name: str) -> None:
    for value in ("nan", 10**400):
        with pytest.raises(PlanError, match=f"^{name}: .*Give a number from"):
            convert(name, value)


@pytest.mark.parametrize(
    ("value", "meant"),
    [("true", True), (True, True), ("Yes", True), (False, False), ("no", False)],
)
def test_truths(value: Any, meant: bool) -> None:
    assert convert("keep_requests", value) is meant


def test_half_a_truth_is_refused() -> None:
    with pytest.raises(PlanError) as refusal:
        convert("keep_requests", "maybe")
    assert str(refusal.value) == (
        "keep_requests: 'maybe' is neither true nor false. Give -e keep_requests=true."
    )


@pytest.mark.parametrize("name", ["server", "transport", "protocol", "generator"])
def test_a_word_that_is_no_choice_is_refused_with_the_list(name: str) -> None:
    with pytest.raises(PlanError) as refusal:
        convert(name, "wrk3")
    listed = ", ".join(SPECS[name]["choices"])
    assert str(refusal.value) == f"{name}: 'wrk3' is not known. There are: {listed}."
    for choice in SPECS[name]["choices"]:
        assert convert(name, choice) == choice


def test_what_is_not_given_has_its_default() -> None:
    for empty in ({}, dict.fromkeys(SPECS), dict.fromkeys(SPECS, "")):
        assert plans.options(SPECS, empty) == {k: v.get("default") for k, v in SPECS.items()}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"framework": "delta"},
            "framework: 'delta' is not known. There are: alpha, beta, gamma. A new one is a "
            "folder in apps/.",
        ),
        (
            {"framework": "../files"},
            "framework: '../files' is not known. There are: alpha, beta, gamma. A new one is a "
            "folder in apps/.",
        ),
        (
            {},
            "framework: none was given. Give one with -e framework=<name>. "
            "There are: alpha, beta, gamma.",
        ),
        ({"tuning": "fast"}, "tuning: 'fast' is not known. There are: production, stock."),
        ({"network": "wan"}, "network: 'wan' is not known. There are: lan."),
        (
            {"framework": "alpha", "endpoint": "index,nosuch"},
            "endpoint: 'nosuch' is not known. There are: agents, index, sleep.",
        ),
        (
            {"framework": "beta", "endpoint": "agents"},
            "endpoint of beta: 'agents' is not known. There are: index.",
        ),
        (
            {"framework": "alpha", "endpoint": ","},
            "endpoint: there is none to measure. Give one or several of alpha's with "
            "-e endpoint=<name>,<name>. There are: index, agents, sleep.",
        ),
        (
            # The one endpoint it has is not measured unasked: a run of nothing is no success.
            {"framework": "gamma"},
            "endpoint: there is none to measure. Give one or several of gamma's with "
            "-e endpoint=<name>,<name>. There are: sleep.",
        ),
        (
            {"framework": "alpha", "server": "uwsgi", "transport": "tcp"},
            "alpha does not run with server=uwsgi transport=tcp. It runs with: "
            "server=gunicorn transport=unix protocol=http; "
            "server=gunicorn transport=tcp protocol=http; "
            "server=uwsgi transport=unix protocol=uwsgi.",
        ),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_those_that_are(
    lab: Path, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(PlanError) as refusal:
        make(lab, **given)
    assert str(refusal.value) == words


@pytest.mark.parametrize(
    "run_id",
    ["../x", "..", ".", "a/b", "/etc", "latest", "-rf", ".hidden", "a b", "a\n", "x" * 65, "é"],
)
def test_a_run_id_that_is_no_folder_of_its_own_in_results_is_refused(
    lab: Path, run_id: str
) -> None:
    with pytest.raises(PlanError) as refusal:
        make(lab, framework="alpha", run_id=run_id)
    assert str(refusal.value).startswith(f"run_id: '{run_id}' cannot name a folder in results/. ")
    assert "Give 1 to 64 letters, digits, dots" in str(refusal.value)


@given(st.text(min_size=1))
def test_a_run_id_that_is_taken_stays_in_results(run_id: str) -> None:
    try:
        taken = convert("run_id", run_id)
    except PlanError:
        return
    results = Path("/srv/results")
    assert (results / taken).parent == results
    assert Path(taken).name == taken != "latest"


def test_the_run_to_go_on_with(lab: Path) -> None:
    results = lab / "results"
    new = "20261120-171647-alpha"
    assert make(lab, framework="alpha")["run_id"] == new
    # An empty run_id is none: it does not name results/ itself.
    assert make(lab, framework="alpha", run_id="")["run_dir"] == str(results / new)
    assert make(lab, begin=False, framework="alpha")["run_id"] == new
    assert make(lab, needs=False)["run_id"] == "20261120-171647"
    (results / "before").mkdir()
    (results / "latest").symlink_to("before")
    assert make(lab, begin=False, framework="alpha")["run_id"] == "before"
    assert make(lab, begin=True, framework="alpha")["run_id"] == new
    assert make(lab, begin=False, framework="alpha", run_id="mine")["run_id"] == "mine"


def test_a_stage_that_needs_no_framework_plans_no_cells(lab: Path) -> None:
    found = make(lab, needs=False)
    assert (found["work"], found["stack"], found["endpoints"]) == ([], None, {})
    assert found["load_seconds"] == 0


def test_a_choice_left_open_takes_the_first_that_fits(lab: Path) -> None:
    keys = ("server", "transport", "protocol")
    choices: list[tuple[dict[str, Any], tuple[str, str, str]]] = [
        ({}, ("gunicorn", "unix", "http")),
        ({"transport": "tcp"}, ("gunicorn", "tcp", "http")),
        ({"server": "uwsgi"}, ("uwsgi", "unix", "uwsgi")),
        ({"protocol": "uwsgi", "transport": "unix"}, ("uwsgi", "unix", "uwsgi")),
    ]
    for asked, first in choices:
        found = make(lab, framework="alpha", **asked)
        assert tuple(found["stack"][key] for key in keys) == first
        assert tuple(found["work"][0]["cell"][key] for key in keys) == first


def test_endpoints_are_those_asked_once_each(lab: Path) -> None:
    assert list(make(lab, framework="alpha")["endpoints"]) == ["index", "agents"]
    asked = make(lab, framework="alpha", endpoint=" /sleep, index,index")
    assert list(asked["endpoints"]) == ["sleep", "index"]
    places = [(item["cell_id"], item["repetition"]) for item in asked["work"]]
    assert len(set(places)) == len(places) == 4


def test_a_constant_rate_has_a_short_closed_loop_beside_it(lab: Path) -> None:
    found = make(lab, framework="alpha", endpoint="index", rate=250.5, duration=60, warmup=1)
    by_purpose = {item["purpose"]: item["cell"]["load"] for item in found["work"]}
    assert by_purpose == {
        "measure": {
            "generator": "oha",
            "mode": "constant",
            "rate": 250.5,
            "connections": 64,
            "duration_s": 60,
            "warmup_s": 1,
        },
        "calibration": {
            "generator": "wrk",
            "mode": "closed",
            "rate": None,
            "connections": 64,
            "duration_s": plans.CLOSED_LOOP_DURATION_S,
            "warmup_s": 1,
        },
    }
    assert found["load_seconds"] == 61 + 6


def test_the_closed_loop_alone_is_what_is_measured(lab: Path) -> None:
    (only,) = make(lab, framework="alpha", endpoint="index", generator="wrk", duration=60)["work"]
    assert only["purpose"] == "measure"
    assert only["cell"]["load"]["rate"] is None
    assert (only["cell"]["load"]["duration_s"], only["cell"]["load"]["warmup_s"]) == (60, 10)


def test_the_seconds_left_are_those_of_what_is_to_come(lab: Path) -> None:
    found = make(lab, framework="alpha", repetitions=2, duration=30, warmup=10)
    seconds = [
        item["cell"]["load"]["duration_s"] + item["cell"]["load"]["warmup_s"]
        for item in found["work"]
    ]
    assert [item["seconds_left"] for item in found["work"]] == [
        sum(seconds[at:]) for at in range(len(seconds))
    ]
    assert found["load_seconds"] == sum(seconds) == 2 * 2 * (40 + 7)


LOADS: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    mode=st.sampled_from(["constant", "closed"]),
    rate=st.decimals("0.1", "1000000", places=3).map(float),
    connections=st.integers(1, 60_000),
    duration_s=st.decimals(1, 86_400, places=3).map(float),
    warmup_s=st.integers(0, 3_600),
)


def cell_of(load: dict[str, Any]) -> dict[str, Any]:
    closed = load["mode"] == "closed"
    names = ("framework", "server", "transport", "protocol", "endpoint", "tuning", "network")
    generator = "wrk" if closed else "oha"
    pace = {"generator": generator, "rate": None if closed else load["rate"]}
    return {**dict.fromkeys(names, "x"), "load": {**load, **pace}}


@given(LOADS, LOADS, st.data())
def test_one_id_one_cell(first: dict[str, Any], other: dict[str, Any], data: st.DataObject) -> None:
    # Mostly alike, so that a part left out of the id, or rounded in it, shows.
    same = data.draw(st.sets(st.sampled_from(sorted(first))))
    cells = cell_of(first), cell_of({**other, **{key: first[key] for key in same}})
    ids = [plans.slug(cell) for cell in cells]
    assert (ids[0] == ids[1]) == (cells[0] == cells[1])
    assert CELL_ID.fullmatch(ids[0])


@pytest.mark.parametrize(
    ("name", "values"),
    [("rate", (1_000_000, 999_999.5)), ("duration", (12345.25, 12345.5)), ("warmup", (3, 4))],
)
def test_cells_that_differ_little_have_two_ids(
    lab: Path, name: str, values: tuple[Any, Any]
) -> None:
    ids = {
        item["cell_id"]
        for value in values
        for item in make(lab, framework="beta", **{name: value})["work"]
        if item["purpose"] == "measure"
    }
    assert len(ids) == 2
    assert all(CELL_ID.fullmatch(cell_id) for cell_id in ids)


def test_an_id_reads_as_what_it_names(lab: Path) -> None:
    ids = {item["cell_id"] for item in make(lab, framework="beta", rate=99.5)["work"]}
    assert ids == {
        "beta-gunicorn-unix-http-index-production-lan-oha-99.5rps-c64-30s-w10s",
        "beta-gunicorn-unix-http-index-production-lan-wrk-closed-c64-5s-w2s-calibration",
    }


CELLS = [{"cell_id": f"cell-{n}"} for n in range(8)]


def test_every_block_has_each_cell_once_in_an_order_of_its_own(tmp_path: Path) -> None:
    work = plans.order(CELLS, 20, 1, tmp_path)
    blocks = [work[at : at + 8] for at in range(0, 160, 8)]
    for number, block in enumerate(blocks, start=1):
        assert {item["repetition"] for item in block} == {number}
        assert sorted(item["cell_id"] for item in block) == [c["cell_id"] for c in CELLS]
    assert len({tuple(item["cell_id"] for item in block) for block in blocks}) > 10


@given(st.integers(0, 2**31 - 1))
def test_the_seed_alone_decides_the_order(seed: int) -> None:
    nowhere = Path("/nonexistent")
    once = plans.order(CELLS, 3, seed, nowhere)
    assert plans.order(CELLS, 3, seed, nowhere) == once
    assert plans.order(CELLS, 3, seed + 1, nowhere) != once
    # A longer run begins like the shorter one.
    assert plans.order(CELLS, 5, seed, nowhere)[:24] == once


def test_repetitions_go_on_after_those_on_disk(tmp_path: Path) -> None:
    for name in ("cell-0/rep-2", "cell-0/rep-10", "cell-1/rep-1", "cell-1/rep-1.aside"):
        (tmp_path / name).mkdir(parents=True)
    assert plans.done(tmp_path / "cell-0") == 10
    assert plans.done(tmp_path / "cell-1") == 1
    numbers: dict[str, list[int]] = {}
    for item in plans.order(CELLS[:3], 2, 1, tmp_path):
        numbers.setdefault(item["cell_id"], []).append(item["repetition"])
    assert numbers == {"cell-0": [11, 12], "cell-1": [2, 3], "cell-2": [1, 2]}


def test_a_run_that_goes_on_overwrites_nothing(lab: Path) -> None:
    first = make(lab, framework="beta", run_id="mine")
    places = {f"cells/{w['cell_id']}/rep-{w['repetition']}" for w in first["work"]}
    for place in (*places, "calibration/ceiling/rep-1"):
        (lab / "results" / "mine" / place).mkdir(parents=True)
    again = make(lab, begin=False, framework="beta", run_id="mine")
    assert {w["repetition"] for w in first["work"]} == {1}
    assert {w["repetition"] for w in again["work"]} == {2}
    assert (first["calibration_repetition"], again["calibration_repetition"]) == (1, 2)
