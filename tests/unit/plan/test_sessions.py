"""What each visitor sends: the forms of the option, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadlab.model import GivenOptions, SessionStep
from loadlab.plan import check_options
from loadlab.plan.load_options import load_files, sessions
from loadlab.plan.plan_document import items
from loadlab.run.errors import PlanError
from loadlab.stacks import requests
from loadlab.stacks.contract import Contract
from tests.unit import builders

LOGIN = {"request": "index", "take": {"token": "$.user[0].token", "place": "Location"}}
ROOT = Path(__file__).parents[3]


def parsed(*steps: Any) -> list[SessionStep]:
    return sessions.steps(sessions.parse(json.dumps(steps)))


def test_a_session_has_its_requests_thinking_and_values() -> None:
    steps = parsed(
        LOGIN, {"request": "/write", "think": 2}, {"request": "index", "think": {"mean": 0.5}}
    )
    assert steps == [
        SessionStep(request="index", take={"token": "$.user[0].token", "place": "Location"}),
        SessionStep(request="write", think_s=2),
        SessionStep(request="index", think_mean_s=0.5),
    ]
    assert sessions.endpoint(steps) == "index:2,write:1"
    assert sessions.endpoint(steps[:1]) == "index"
    # As a plan records it, it is the same again.
    text = sessions.parse(json.dumps([LOGIN, {"request": "index", "think": 1}]))
    assert sessions.steps(text)[1].think_s == 1


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ("login", "sessions: '\"login\"' is no list. Give a list such as"),
        ([], "sessions: it has 0 requests, and a session has 1 to 16. Give a list"),
        ([LOGIN] * 17, "sessions: it has 17 requests, and a session has 1 to 16"),
        (["login"], "sessions: request 1: Expected `object`, got `str`"),
        ([{"think": 1}], "sessions: request 1: Object missing required field `request`"),
        ([LOGIN, {"request": "a", "thinks": 1}], "2: Object contains unknown field `thinks`"),
        ([LOGIN, {"request": "a", "think": -1}], "sessions: a: think -1 is out of limits. Give 0"),
        ([LOGIN, {"request": "a", "think": {"mean": 0}}], "sessions: a: think 0 is out of limits"),
        ([LOGIN, {"request": "a", "think": 3601}], "think 3601 is out of limits. Give 0 to 3,600"),
        ([{"request": "a", "think": 1}], "sessions: a, its first request, has think, and it is"),
        ([{**LOGIN, "take": {"": "$.a"}}, LOGIN], "sessions: index: take has the name ''. Give"),
        ([{**LOGIN, "take": {"a-b": "$.a"}}, LOGIN], "sessions: index: take has the name 'a-b'"),
        ([{**LOGIN, "take": ["a"]}], "request 1: Expected `object`, got `array` - at `$.take`"),
        ([{**LOGIN, "take": {"a": "$"}}, LOGIN], "take: a: '$' is neither a JSON path such as"),
        ([{**LOGIN, "take": {"a": "$.b[x]"}}, LOGIN], "take: a: '$.b[x]' is neither a JSON path"),
        ([{**LOGIN, "take": {"a": "b c"}}, LOGIN], "'b c' is neither a JSON path such as $.items"),
        ([LOGIN], "sessions: index, its last request, has take, and no request comes after it"),
    ],
)  # fmt: skip
def test_a_session_that_cannot_be_is_refused(steps: Any, words: str) -> None:
    with pytest.raises(PlanError) as refusal:
        sessions.parse(json.dumps(steps))
    assert words in str(refusal.value)


def test_a_session_of_thousands_of_brackets_is_refused() -> None:
    with pytest.raises(PlanError, match=r"^sessions: '\[+…' is no list\. Give a list such as"):
        sessions.parse("[" * 100_000)


def test_a_value_is_taken_before_it_is_used() -> None:
    contracts = {
        "login": Contract(path="/login", body='{"user": {"a": 1}}'),
        "add": Contract(path="/a/{id}", headers={"A": "{token}"}, body="x={token}"),
    }
    steps = parsed({"request": "login", "take": {"token": "$.t"}}, {"request": "add"})
    for order, words in ((steps, "These are: token. Give t"), (steps[::-1], "None")):
        refusal = rf"add has \{{id\}}, which no request before it takes. {words}"
        with pytest.raises(PlanError, match=refusal):
            sessions.refuse_values(order, contracts)
    both = parsed(
        {"request": "login", "take": {"token": "$.t", "id": "Location"}}, {"request": "add"}
    )
    sessions.refuse_values(both, contracts)


def session(*steps: Any, **options: Any) -> GivenOptions:
    return {"sessions": json.dumps(steps or [LOGIN, {"request": "write", "think": 2}]), **options}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (session(endpoint="index"), "endpoint: 'index' has no place beside sessions: the session "),
        (session(mix="index:1,agents:1"), "mix: 'index:1,agents:1' has no place beside sessions: "),
        (session(replay="a.log"), "replay: 'a.log' has no place beside sessions: a log says what"),
        (session(slo="p99_ms=5"), "slo: 'p99_ms=5' has no place beside sessions: a search is of "),
        (session(generator="wrk2"), "sessions: generator=wrk2 sends requests that come alone. "),
        (session(keep_requests=False), "sessions: the visit of a request is in its record, and"),
        (session(rate=1e6, duration=60), "60,000,000 visits of 2 requests, and a client keeps the"),
        (session(duration=2), "sessions: a visitor thinks for 2 s, and the load lasts 2 s: no"),
        (session({"request": "nosuch"}), "sessions: 'nosuch' is not known. There are: agents"),
        (session(overload=True), "overload: it cannot be measured: it follows a closed loop"),
    ],
)
def test_what_a_session_leaves_no_room_for_is_refused(options: GivenOptions, words: str) -> None:
    with pytest.raises(PlanError) as refusal:
        builders.plan(framework="aiohttp", **options)
    assert words in str(refusal.value)


def test_a_cell_has_the_session_of_its_load_file(tmp_path: Path) -> None:
    file = tmp_path / "visits.yml"
    file.write_text(
        "sessions:\n- request: index\n- {request: write, think: {mean: 0.2}}\nrate: 50\n"
    )
    options = load_files.expanded(ROOT, {"load": str(file), "framework": "aiohttp"})
    plan = builders.plan(**options)
    (item,) = items(plan.experiments)
    load = item.cell.load
    steps = [SessionStep(request="index"), SessionStep(request="write", think_mean_s=0.2)]
    assert (load.rate, load.session) == (50, steps)
    assert item.cell.endpoint == "index:1,write:1"
    assert next(iter(plan.stacks.values())).session == load.session
    # Another time of thinking is another cell.
    other = builders.plan(**session({"request": "index"}, {"request": "write"}))
    assert {item.cell_id for item in items(other.experiments)} != {item.cell_id}


def test_a_list_of_the_call_is_read_as_that_of_a_file() -> None:
    given = check_options.given_of({"sessions": [LOGIN, {"request": "index"}], "rate": 5})
    steps = sessions.steps(sessions.parse(str(given["sessions"])))
    assert [step.request for step in steps] == ["index", "index"]


def test_the_ready_session_fits_the_requests_of_its_page(tmp_path: Path) -> None:
    options = load_files.expanded(ROOT, {"load": "shop"})
    steps = sessions.steps(sessions.parse(str(options["sessions"])))
    assert sessions.weights(steps) == {"login": 1, "product": 2, "add": 1, "cart": 1, "order": 1}
    page = (ROOT / "docs/your_application.md").read_text()
    _, _, example = page.partition("## A session with login and cart\n")
    (tmp_path / "requests.yml").write_text(example.partition("\nWith this")[0])
    sessions.refuse_values(steps, requests.read(tmp_path))
    # With a ramp, its rate is not that of the file.
    ramped = load_files.expanded(ROOT, {"load": "shop", "ramp": "0:9,5:9,5:0,9:0"})
    assert not {"rate", "duration"} & ramped.keys()
