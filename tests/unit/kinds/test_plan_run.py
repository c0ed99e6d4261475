import itertools
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from loadlab.generators import registry
from loadlab.kinds import plan_run as plans
from loadlab.kinds.study import study_files
from loadlab.model import Item, Load, Options
from loadlab.plan import cells
from loadlab.plan import check_options as options
from loadlab.plan import plan_document as plan_json
from loadlab.plan.check_options import BOUNDS
from loadlab.plan.plan_document import Plan, PlannedComparison
from loadlab.run import catalog, documents
from loadlab.run.errors import PlanError, ResultError
from loadlab.run.run_dir import RunDir
from loadlab.stacks import servers, stacks
from loadlab.stacks.application import manifest
from loadlab.stacks.contract import Contract
from loadlab.tuning import profiles
from tests.unit import builders

ROOT = builders.ROOT
NGINX = "files/reverse_proxies/nginx/reverse_proxy.yml"
SPECS = builders.SPECS
BACKLOGS = {"production": 4096}
CELL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
NUMBERS = st.sampled_from(sorted(BOUNDS))
APPS = {name: manifest(ROOT, f"apps/{name}") for name in catalog.names(ROOT / "apps", "*/app.yml")}
# All that the lab's own files have.
STACKS: list[dict[str, Any]] = [
    {"framework": name, **asdict(offered)}
    for name, app in APPS.items()
    for offered in stacks.of_application(ROOT, app)
]
# Fields of them that a stack of a plan has not.
OF_OFFER = {"threaded", "closes_idle", "only_workers", "unasked"}
INDEX = Contract(path="/index")


def chosen_by(plan: Plan) -> dict[str, Any]:
    """The first stack of a plan that has one."""
    return asdict(builders.present(plan.stack))


def items(plan: Plan) -> list[Item]:
    return plan_json.items(plan.experiments)


# A lab with three frameworks, of which gamma is nginx alone: path -> content.
FILES: dict[str, Any] = yaml.safe_load(
    """
    apps/alpha/app.yml: &app
      {description: x, language: python, pool_size: 0, interface: sync,
       endpoints: [index, agents, sleep, book]}
    apps/beta/app.yml: &loop {<<: *app, interface: loop, endpoints: [index]}
    apps/gamma/app.yml: {<<: *loop, language: none, endpoints: [sleep]}
    files/interfaces.yml:
      sync: {default: gunicorn, plural: plain applications, refused: {native: it is no server}}
      loop: {default: native, plural: loops}
    files/servers/gunicorn/server.yml:
      command: gunicorn {arguments} {module}
      notifies: true
      stop: SIGQUIT
      stacks:
        sync:
          - {transport: [unix, tcp], protocol: http, worker_class: gthread,
             upstream_keepalive: [true, false], threads: true, server_keepalive: true}
          - {transport: unix, protocol: http, worker_class: sync, upstream_keepalive: false}
    files/servers/native/server.yml:
      command: "{arguments}"
      stacks:
        loop:
          - {transport: unix, protocol: http, event_loop: [uvloop, asyncio],
             upstream_keepalive: true}
    files/servers/uwsgi/server.yml:
      command: uwsgi {arguments} {module}
      workers: 1
      stacks:
        sync:
          - {transport: unix, protocol: [uwsgi, fastcgi], upstream_keepalive: false,
             python_below: "3.12", python_reason: it crashes there}
    files/endpoints.yml:
      index: &right {status: 200, content_type: application/json, path: /index, measured: true}
      agents: {<<: *right, path: /agents, needs: [database]}
      sleep: {<<: *right, measured: false, path: /sleep, json: {slept_ms: 50}, minimum_ms: 50}
      book: {<<: *right, measured: false, path: /book, maximum_ms: 4000, needs: [book]}
    files/python/work.py: {}
    files/tuning/production.yml: {description: x, backlog: {value: 4096, reason: x}}
    files/tuning/stock.yml: {description: x, backlog: {value: 511, reason: x}}
    files/network/lan.yml: {}
    files/methods.yml: {void_tries: 3}
    """
)
# A tuning profile with a key of each kind.
PROFILE = """
    description: x
    backlog: {value: 4096, reason: x}
    sysctl:
      - {key: a.b, value: 1, reason: x, hosts: [servers]}
      - {key: a.c, value: 2, reason: x, hosts: [servers]}
    machine: [{key: /sys/cpu*/governor, value: performance, reason: x, hosts: [servers]}]
    reverse_proxies: {nginx: [{name: keepalive_timeout, value: 75s, reason: x}]}
    postgresql: [{name: jit, value: "off", reason: x}]
    """
# What a refusal tells of the first of them.
SYNC_RUNS = (
    "It runs with: server=gunicorn transport=unix|tcp protocol=http worker_class=gthread "
    "upstream_keepalive=true|false threads=<n> server_keepalive=<seconds>; server=gunicorn "
    "transport=unix protocol=http worker_class=sync upstream_keepalive=false; server=uwsgi "
    "transport=unix protocol=uwsgi|fastcgi upstream_keepalive=false workers=1."
)


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The lab of FILES, without runs."""
    for name, document in {**FILES, NGINX: catalog.load_yaml(ROOT / NGINX)}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(document))
    (tmp_path / "results").mkdir()
    return tmp_path


def make(
    lab: Path,
    begin: bool = True,
    needs: bool = True,
    python: str | None = None,
    request: Mapping[str, Any] = MappingProxyType({}),
    **given: Any,
) -> Plan:
    alone = {"curve": False, "cross_check": False, **given}
    own = {"root": lab, "begin": begin, "needs_framework": needs, "python": python, **request}
    return plans.plan(builders.request(alone, **own))


def convert(name: str, value: Any) -> Any:
    """One value; of an option that takes several, the list of that one."""
    found = options.convert(name, value, SPECS[name])
    if SPECS[name].type == "list":
        assert isinstance(found, list)
        (found,) = found
    return found


def first(name: str) -> Any:
    """The option's default; of several the first."""
    found = SPECS[name].default or BOUNDS[name][0]
    return found[0] if isinstance(found, list) else found


def number(name: str, low: float, high: float) -> st.SearchStrategy[float]:
    # Connections may also be a word.
    if (SPECS[name].elements or SPECS[name].type) == "int" or name == "connections":
        return st.integers(int(low), int(high))
    return st.floats(low, high)


@given(st.data(), NUMBERS)
def test_any_number_within_the_limits_is_taken(data: st.DataObject, name: str) -> None:
    low, high, _ = BOUNDS[name]
    value = data.draw(number(name, low, high))
    # As YAML has it, and as the word of -e that Ansible passes on.
    assert convert(name, value) == value
    assert convert(name, str(value)) == value


@given(st.data(), NUMBERS)
def test_any_number_outside_is_refused_with_the_limits(data: st.DataObject, name: str) -> None:
    low, high, unit = BOUNDS[name]
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


@pytest.mark.parametrize("name", sorted(BOUNDS))
@pytest.mark.parametrize("value", ["many", "1;000", [[1]], {"a": 1}, True, "true"])
def test_what_is_no_number_is_refused_with_an_example(name: str, value: Any) -> None:
    with pytest.raises(PlanError) as refusal:
        convert(name, value)
    shown = value[0] if SPECS[name].type == "list" and isinstance(value, list) else value
    assert str(refusal.value).startswith(f"{name}: '{shown}' is not a number. Give a number from ")
    assert str(refusal.value).endswith(f"for example -e {name}={first(name)}.")
    for beyond in ("nan", 10**400):
        with pytest.raises(PlanError, match=f"^{name}: .*Give a number from"):
            convert(name, beyond)


@pytest.mark.parametrize(
    ("value", "meant"), [("true", True), (True, True), ("Yes", True), (False, False), ("no", False)]
)
def test_bool_option_accepts_true_false_yes_and_no(value: Any, meant: bool) -> None:
    for name in ("keep_requests", "python_keepalive", "upstream_keepalive"):
        assert convert(name, value) is meant


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.choices])
def test_a_word_that_is_no_choice_is_refused_with_the_list(name: str) -> None:
    with pytest.raises(PlanError) as refusal:
        convert(name, "wrk3")
    listed = ", ".join(SPECS[name].choices)
    assert str(refusal.value) == f"{name}: 'wrk3' is not known. There are: {listed}."
    for choice in SPECS[name].choices:
        assert convert(name, choice) == choice


def test_what_is_not_given_has_its_default() -> None:
    empties: list[dict[str, Any]] = [{}, dict.fromkeys(SPECS), dict.fromkeys(SPECS, "")]
    for empty in empties:
        found = options.options(SPECS, empty)
        assert {name: getattr(found, name) for name in SPECS} == {
            name: spec.default for name, spec in SPECS.items()
        }


def test_options_have_a_field_for_each_main_variable() -> None:
    assert {*SPECS} == {*Options.__struct_fields__} - {"clients", "saturation_rate", "on_demand"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"server": "native", "transport": "tcp"}, "server=native transport=tcp: it is no server"),
        (
            {"worker_class": "sync", "upstream_keepalive": "yes"},
            "worker_class=sync upstream_keepalive=true",
        ),
        ({"event_loop": "uvloop"}, "event_loop=uvloop"),
        ({"worker_class": "sync", "threads": 2}, "worker_class=sync threads=2"),
        ({"worker_class": "sync", "server_keepalive": 2}, "worker_class=sync server_keepalive=2"),
        ({"server": "uwsgi", "workers": 2}, "server=uwsgi workers=2"),
    ],
)
def test_a_stack_that_is_not_there_is_refused_with_those_that_are(
    lab: Path, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(PlanError) as refusal:
        make(lab, framework="alpha", **given)
    assert str(refusal.value) == f"alpha does not run with {words}. {SYNC_RUNS}"


def test_a_stack_of_another_interface_is_refused_with_its_own(lab: Path) -> None:
    with pytest.raises(PlanError) as refusal:
        make(lab, framework="beta", server="gunicorn")
    assert str(refusal.value) == (
        "beta does not run with server=gunicorn: gunicorn runs no loops. It runs with: "
        "server=native transport=unix protocol=http event_loop=uvloop|asyncio "
        "upstream_keepalive=true."
    )


@pytest.mark.parametrize("python", ["3.12", "3.12.0rc1", "3.13.5", "3.100.1", "4.0"])
def test_a_python_that_is_too_new_is_refused_before_anything_is_done(
    lab: Path, python: str
) -> None:
    with pytest.raises(PlanError) as refusal:
        make(lab, framework="alpha", server="uwsgi", python=python)
    assert str(refusal.value) == (
        f"alpha does not run with server=uwsgi on Python {python}: it crashes there. Use Debian 12 "
        "on the server (local hosts: -e local_hosts_release=bookworm), or leave server and "
        "protocol out: then its own server stands in."
    )
    assert chosen_by(make(lab, framework="alpha", python=python))["server"] == "gunicorn"


@pytest.mark.parametrize("python", ["3.11.2", "3.9", "2.7.18", None])
def test_a_python_that_is_old_enough_or_not_known_yet_is_taken(
    lab: Path, python: str | None
) -> None:
    found = chosen_by(make(lab, framework="alpha", server="uwsgi", python=python))
    # For the look at the host, which knows it.
    kept = (found["python_below"], found["python_reason"])
    assert kept == ("3.12", "it crashes there")


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
    assert make(lab, framework="alpha").run_id == new
    # An empty run_id is none: it does not name results/ itself.
    assert make(lab, framework="alpha", run_id="").run_dir == str(results / new)
    assert make(lab, begin=False, framework="alpha").run_id == new
    assert make(lab, needs=False).run_id == "20261120-171647"
    (results / "before").mkdir()
    (results / "latest").symlink_to("before")
    assert make(lab, begin=False, framework="alpha").run_id == "before"
    assert make(lab, begin=True, framework="alpha").run_id == new
    assert make(lab, begin=False, framework="alpha", run_id="mine").run_id == "mine"


def test_a_stage_that_needs_no_framework_plans_no_cells(lab: Path) -> None:
    found = make(lab, needs=False)
    assert (found.experiments, found.stack, found.endpoints) == ([], None, {})
    assert found.load_seconds == 0


def test_a_row_stands_for_each_of_its_choices_in_their_order(lab: Path) -> None:
    found = servers.offered(lab, "sync")
    assert [tuple(getattr(one, key) for key in stacks.CHOICES) for one in found] == [
        ("gunicorn", "unix", "http", "gthread", None, True),
        ("gunicorn", "unix", "http", "gthread", None, False),
        ("gunicorn", "tcp", "http", "gthread", None, True),
        ("gunicorn", "tcp", "http", "gthread", None, False),
        ("gunicorn", "unix", "http", "sync", None, False),
        ("uwsgi", "unix", "uwsgi", None, None, False),
        ("uwsgi", "unix", "fastcgi", None, None, False),
    ]
    assert [one.threaded for one in found] == [True] * 4 + [False] * 3
    assert [one.python_below for one in found] == [None] * 5 + ["3.12"] * 2


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ({}, ("gunicorn", "unix", "http", "gthread", None, True)),
        ({"transport": "tcp"}, ("gunicorn", "tcp", "http", "gthread", None, True)),
        # False is asked for, not left open.
        ({"upstream_keepalive": False}, ("gunicorn", "unix", "http", "gthread", None, False)),
        ({"worker_class": "sync"}, ("gunicorn", "unix", "http", "sync", None, False)),
        ({"protocol": "fastcgi"}, ("uwsgi", "unix", "fastcgi", None, None, False)),
        ({"framework": "beta"}, ("native", "unix", "http", None, "uvloop", True)),
        (
            {"framework": "beta", "event_loop": "asyncio"},
            ("native", "unix", "http", None, "asyncio", True),
        ),
    ],
)
def test_a_choice_left_open_takes_the_first_that_fits(
    lab: Path, asked: dict[str, Any], first: tuple[Any, ...]
) -> None:
    found = make(lab, **{"framework": "alpha", **asked})
    for chosen in (chosen_by(found), asdict(items(found)[0].cell)):
        assert tuple(chosen[key] for key in stacks.CHOICES) == first


def test_processes_threads_backlog_and_keepalive_are_part_of_the_cell(lab: Path) -> None:
    plain, sized, kept = (
        make(lab, framework="alpha", endpoint="index", **own)
        for own in ({}, {"workers": 3, "threads": "4", "backlog": 511}, {"server_keepalive": 2})
    )
    for found, sizes in ((plain, (None, 1, 4096)), (sized, (3, 4, 511))):
        for holder in (chosen_by(found), asdict(items(found)[0].cell)):
            assert tuple(holder[key] for key in ("workers", "threads", "backlog")) == sizes
    first, other = items(plain)[0], items(kept)[0]
    assert (first.cell.server_keepalive_s, other.cell.server_keepalive_s) == (None, 2)
    assert other.stack == first.stack.replace("-b4096", "-keep2s-b4096")
    assert chosen_by(kept)["server_keepalive"] == 2


def test_a_stack_tells_what_its_endpoints_need_and_nginx_what_it_answers(lab: Path) -> None:
    # Whatever of them is measured: the answers of all are there.
    found = chosen_by(make(lab, framework="alpha", endpoint="index"))
    assert (found["needs"], found["constants"]) == (["book", "database"], [])
    found = chosen_by(make(lab, framework="gamma", endpoint="sleep"))
    assert found["needs"] == []
    assert msgspec.to_builtins(found["constants"]) == [
        {"path": "/sleep", "content_type": "application/json", "body": '{"slept_ms":50}'}
    ]
    # A long text is a file on the server, not a part of the plan.
    found = chosen_by(builders.plan(framework="nginx", endpoint="page"))
    assert found["needs"] == ["book"]
    assert {"path", "content_type", "text_from"} == set(msgspec.to_builtins(found["constants"])[-1])


def test_a_driver_is_of_the_stack_and_named_where_it_is_not_the_default() -> None:
    found = {
        driver: builders.plan(framework="flask", endpoint="agents", driver=driver)
        for driver in (None, "psycopg2", "psycopg")
    }
    assert [chosen_by(one)["driver"] for one in found.values()] == [
        "psycopg2", "psycopg2", "psycopg",
    ]  # fmt: skip
    first, same, other = (items(one)[0] for one in found.values())
    assert (first.cell.driver, other.cell.driver) == (None, "psycopg")
    assert first.cell_id == same.cell_id
    assert other.cell_id == first.cell_id.replace("-gthread-", "-gthread-psycopg-")
    assert other.stack != first.stack


def test_python_is_of_the_stack_and_of_the_cell_where_it_was_given() -> None:
    own, free, pypy = (
        builders.plan(framework="flask", endpoint="agents", driver="psycopg", python=python)
        for python in (None, "3.14t", "pypy3")
    )
    assert [chosen_by(one)["python"] for one in (own, free, pypy)] == [None, "3.14t", "pypy3"]
    assert items(own)[0].cell.python is None
    assert items(free)[0].cell_id == items(own)[0].cell_id.replace("-b", "-python3.14t-b", 1)
    assert len({items(one)[0].stack for one in (own, free, pypy)}) == 3


def test_a_load_has_the_request_timeout_that_is_asked_for() -> None:
    load = items(builders.plan(endpoint="index", request_timeout=60))[0].cell.load
    assert load.timeout_s == 60
    assert items(builders.plan(endpoint="index"))[0].cell.load.timeout_s is None


# One for each interface: what is asked is of the interface alone.
@pytest.mark.parametrize("framework", {app.interface: name for name, app in APPS.items()}.values())
def test_every_stack_can_be_had_by_its_own_words(framework: str) -> None:
    """With the lab's own files: none hides another, and no two share an id."""
    ids = set()
    own = [one for one in STACKS if one["framework"] == framework]
    for one in own:
        # nginx alone has no socket to ask for.
        given: dict[str, Any] = {"framework": framework}
        for key in stacks.CHOICES:
            given[key] = None if one[key] == "none" else one[key]
        values = options.options(SPECS, given)
        chosen = stacks.stack(ROOT, values, None)
        assert {key: getattr(chosen, key) for key in one.keys() - OF_OFFER} == {
            key: value for key, value in one.items() if key not in OF_OFFER
        }
        ids |= {item.cell_id for item in cells.items(values, chosen, BACKLOGS, {"index": INDEX})}
    # Each measured, and calibrated beside.
    assert len(ids) == 2 * len(own)


def test_endpoints_are_those_asked_once_each(lab: Path) -> None:
    assert list(make(lab, framework="alpha").endpoints) == ["index", "agents"]
    asked = make(lab, framework="alpha", endpoint=" /sleep, index,index")
    assert list(asked.endpoints) == ["sleep", "index"]
    ids = [item.cell_id for item in items(asked)]
    assert len(set(ids)) == len(ids) == asked.measurements == 4


def test_a_python_client_measures_its_own_endpoint_unless_asked(lab: Path) -> None:
    for generator in registry.names("batch"):
        given: dict[str, Any] = {"framework": "alpha", "generator": generator}
        assert list(make(lab, **given).endpoints) == ["book"]
        assert list(make(lab, **given, endpoint="index").endpoints) == ["index"]


def test_a_constant_rate_has_a_short_closed_loop_beside_it(lab: Path) -> None:
    found = make(lab, framework="alpha", endpoint="index", rate=250.5, duration=60, warmup=1)
    measured, closed = items(found)
    assert (measured.purpose, closed.purpose, closed.base) == (
        "measure", "closed_loop", measured.cell_id,
    )  # fmt: skip
    constant = Load(
        generator="metronome",
        mode="constant",
        rate=250.5,
        connections=64,
        duration_s=60,
        warmup_s=1,
        keepalive=True,
    )
    assert measured.cell.load == constant
    assert closed.cell.load == replace(
        constant, generator="wrk", mode="closed", rate=None, duration_s=cells.CLOSED_LOOP_DURATION_S
    )
    assert found.load_seconds == 61 + 6


def test_the_closed_loop_alone_is_what_is_measured(lab: Path) -> None:
    (only,) = items(make(lab, framework="alpha", endpoint="index", generator="wrk", duration=60))
    assert only.purpose == "measure"
    assert only.cell.load.rate is None
    assert (only.cell.load.duration_s, only.cell.load.warmup_s) == (60, 10)


@pytest.mark.parametrize(
    ("given", "connections"),
    [
        ({"generator": "python-sync", "requests": 20, "connections": 7}, 1),
        ({"generator": "python-async", "requests": 20, "connections": 7}, 20),
        ({"generator": "python-bounded", "requests": 20, "connections": 7}, 7),
        ({"generator": "python-bounded", "requests": 20}, 20),
        ({"generator": "python-bounded", "requests": 5000}, 1000),
        ({"generator": "python-bounded", "requests": 5000, "connections": ""}, 1000),
    ],
)
def test_a_python_client_is_a_batch_and_measured_alone(
    lab: Path, given: dict[str, Any], connections: int
) -> None:
    sizes: dict[str, Any] = {"open_files": 256, "python_keepalive": "no"}
    (only,) = items(make(lab, framework="alpha", rate=9, warmup=3, **sizes, **given))
    assert only.purpose == "measure"
    assert only.cell.load == Load(
        generator=given["generator"],
        mode="batch",
        rate=None,
        requests=given["requests"],
        connections=connections,
        open_files=256,
        reuse=False,
        duration_s=None,
        warmup_s=0,
    )


SLOW = Contract(path="/", minimum_ms=500)
BOOK = Contract(path="/book", maximum_ms=4000)  # 0 to 3 s by design


@pytest.mark.parametrize(
    ("given", "contract", "seconds"),
    [
        ({"generator": "wrk", "duration": 30.5, "warmup": 2}, BOOK, 32.5),
        ({"generator": "python-sync", "requests": 10}, BOOK, 10 * 1.5 + 1),
        # The one that is there may be the slowest.
        ({"generator": "python-sync", "requests": 1}, BOOK, 3 + 1),
        ({"generator": "python-async", "requests": 10}, BOOK, 3 + 1),
        ({"generator": "python-bounded", "requests": 100, "connections": 10}, BOOK, 16),
        ({"generator": "python-sync", "requests": 10}, SLOW, 10 * 0.5 + 1),
        ({"generator": "python-sync", "requests": 10}, INDEX, 1),
    ],
)
def test_the_seconds_a_load_is_expected_to_take(
    given: dict[str, Any], contract: Contract, seconds: float
) -> None:
    (load, *_) = cells.loads(options.options(SPECS, given))
    assert cells.expected_s(load, contract) == pytest.approx(seconds)


def test_the_seconds_of_load_are_those_of_every_repetition(lab: Path) -> None:
    found = make(lab, framework="alpha", repetitions=2, duration=30, warmup=10)
    assert (found.measurements, found.load_seconds) == (2 * 2 * 2, 2 * 2 * (40 + 7))


# All that a cell is made of, as the plan has it; STACKS hold the lab's own.
CELLS_OF: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "stack": st.sampled_from(STACKS),
        "workers": st.none() | st.integers(1, 1024),
        "threads": st.integers(1, 1024),
        "server_keepalive": st.none() | st.integers(1, 3600),
        "reverse_proxy": st.sampled_from(["nginx", "none"]),
        "driver": st.sampled_from(["psycopg2", "psycopg"]),
        "python": st.none() | st.sampled_from(["3.1", "3.14", "3.14t", "pypy3"]),
        "request_timeout": st.none() | st.integers(1, 300),
        "backlog": st.integers(1, 65_535),
        "endpoint": st.sampled_from(["index", "book", "agents", "agents_with_pool"]),
        "tuning": st.sampled_from(catalog.names(ROOT / "files" / "tuning", "*.yml")).map(
            lambda name: [name]
        ),
        "network": st.sampled_from(catalog.names(ROOT / "files" / "network", "*.yml")),
        "generator": st.sampled_from(registry.choices("generator")),
        "rate": st.decimals("0.1", "1000000", places=3).map(lambda rate: [float(rate)]),
        "duration": st.decimals(1, 86_400, places=3).map(float),
        "warmup": st.integers(0, 3_600),
        "connections": st.integers(1, 60_000).map(lambda connections: [connections]),
        "requests": st.integers(1, 1_000_000),
        "open_files": st.integers(64, 1_048_576),
        "python_keepalive": st.booleans(),
        "keepalive": st.booleans(),
        "secure": st.sampled_from(
            [{"tls": a, "http2": b} for a, b in ((False, False), (True, False), (True, True))]
        ),
        "headers": st.dictionaries(st.sampled_from(["X-One", "Accept"]), st.sampled_from("ab")),
    }
)


def items_of(parts: dict[str, Any]) -> list[Item]:
    own = ("workers", "threads", "server_keepalive", "driver", "python")
    sizes = {key: parts[key] for key in own}
    rest = ("stack", "secure", "backlog", "reverse_proxy", "endpoint", *sizes)
    given = {key: value for key, value in parts.items() if key not in rest}
    chosen = replace(options.options(SPECS, {}), **given, **parts["secure"])
    return cells.items(
        chosen,
        builders.stack(
            **{key: value for key, value in parts["stack"].items() if key not in OF_OFFER},
            **sizes,
            reverse_proxy=parts["reverse_proxy"],
            app=replace(builders.stack().app, drivers=["psycopg2", "psycopg"]),
        ),
        dict.fromkeys(parts["tuning"], parts["backlog"]),
        {parts["endpoint"]: INDEX},
    )


@given(CELLS_OF, CELLS_OF, st.data())
def test_two_items_share_an_id_only_where_cell_and_purpose_are_equal(
    first: dict[str, Any], other: dict[str, Any], data: st.DataObject
) -> None:
    # Mostly alike, so that a part left out of the id, or rounded in it, shows.
    changed = data.draw(st.sets(st.sampled_from(sorted(first)), max_size=2))
    items = items_of(first) + items_of({**first, **{key: other[key] for key in changed}})
    for one, two in itertools.combinations(items, 2):
        same = (one.cell, one.purpose) == (two.cell, two.purpose)
        assert (one.cell_id == two.cell_id) == same
    assert all(CELL_ID.fullmatch(item.cell_id) for item in items)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rate", (1_000_000, 999_999.5)),
        ("duration", (12345.25, 12345.5)),
        ("warmup", (3, 4)),
        ("workers", (1, None)),
        ("event_loop", ("uvloop", "asyncio")),
    ],
)
def test_cells_that_differ_little_have_two_ids(
    lab: Path, name: str, values: tuple[Any, Any]
) -> None:
    ids = {
        item.cell_id
        for value in values
        for item in items(make(lab, framework="beta", **{name: value}))
        if item.purpose == "measure"
    }
    assert len(ids) == 2
    assert all(CELL_ID.fullmatch(cell_id) for cell_id in ids)


def test_an_id_reads_as_what_it_names(lab: Path) -> None:
    def ids(**given: Any) -> set[str]:
        return {item.cell_id for item in items(make(lab, **given))}

    beta = "beta-native-unix-http-uvloop-b4096-index-production-lan"
    assert ids(framework="beta", rate=99.5) == {
        f"{beta}-metronome-99.5rps-c64-30s-w10s",
        f"{beta}-wrk-closed-c64-5s-w2s-closed_loop",
    }
    assert ids(framework="beta", arrivals="poisson", ramp="0..300..100") == {
        f"{beta}-metronome-175rps-c64-30s-w10s-poisson-ramp0to300to100",
        f"{beta}-wrk-closed-c64-5s-w2s-closed_loop",
    }
    # The closed loop has no arrivals.
    assert ids(framework="beta", rate=99.5, arrivals="gamma:0.5") == {
        f"{beta}-metronome-99.5rps-c64-30s-w10s-gamma0.5",
        f"{beta}-wrk-closed-c64-5s-w2s-closed_loop",
    }
    # Of a mix there is one cell, which has no closed loop.
    mix: dict[str, Any] = {"framework": "alpha", "rate": 99.5, "mix": "/index:70, agents:25"}
    (mixed,) = ids(**mix)
    assert mixed.endswith("-mix2-18d37c83-production-lan-metronome-99.5rps-c64-30s-w10s")
    assert ids(**mix, profile=True) == {mixed, f"{mixed}-py_spy"}
    sizes = {"workers": 2, "threads": 8, "backlog": 64, "upstream_keepalive": False}
    assert ids(framework="alpha", generator="python-bounded", python_keepalive=False, **sizes) == {
        "alpha-gunicorn-unix-http-gthread-2workers-8threads-unkept-b64-book-production-lan-python-bounded-1000requests-c1000-nofile1024-unreused"
    }


def test_several_tunings_are_compared_with_the_first_which_is_measured_twice(lab: Path) -> None:
    found = make(
        lab, framework="alpha", endpoint="index,agents", generator="wrk", tuning="stock,production"
    )
    ids = {(w.cell.endpoint, w.cell.tuning, w.purpose): w for w in items(found)}
    assert len(ids) == len(items(found)) == 6
    assert found.comparisons == [
        PlannedComparison(
            by="tuning",
            base=ids[endpoint, "stock", "measure"].cell_id,
            head=ids[endpoint, "production", "measure"].cell_id,
        )
        for endpoint in ("index", "agents")
    ]
    controls = [ids[endpoint, "stock", "aa_control"] for endpoint in ("index", "agents")]
    assert found.aa_controls == [(item.base, item.cell_id) for item in controls]
    assert [item.base for item in controls] == [one.base for one in found.comparisons]
    assert set(found.tunings) == {"stock", "production"}
    assert make(lab, framework="alpha", tuning="stock,stock").comparisons == []
    # Each with its own backlog, or both with the one that is asked for.
    stacks_of = {item.cell.tuning: item.stack for item in items(found)}
    assert [found.stacks[stacks_of[name]].backlog for name in stacks_of] == [511, 4096]
    asked = make(lab, framework="alpha", generator="wrk", tuning="stock,production", backlog=64)
    assert [one.backlog for one in asked.stacks.values()] == [64]
    assert len(asked.comparisons) == 2


def test_cells_of_other_backlogs_are_not_compared_by_their_tuning(lab: Path) -> None:
    entries = [("stock", None), ("production", None), ("production", 64), ("stock", 64)]
    write_study(
        lab,
        cells=[
            {"name": f"{name}{n or ''}", "options": {"tuning": name, "backlog": n or ""}}
            for name, n in entries
        ],
        claims=[],
    )
    found = make(lab, study="one")
    named = {ids[0]: name for name, ids in builders.present(found.study).cells.items()}
    pairs = [(named[one.base], named[one.head]) for one in found.comparisons]
    assert pairs == [("stock", "production"), ("production64", "stock64")]


def test_a_cell_that_a_sweep_has_too_is_not_compared_with_itself(lab: Path) -> None:
    once = items(make(lab, framework="alpha", endpoint="index", generator="wrk"))
    backlogs = {item.cell.tuning: item.cell.backlog or 0 for item in once}
    assert cells.comparisons([*once, *once], backlogs) == []


def test_a_profile_less_one_key(lab: Path) -> None:
    (lab / "files/tuning/production.yml").write_text(PROFILE)
    whole = profiles.tuning_profile(lab, "production")

    def less(key: str) -> profiles.TuningProfile:
        return profiles.tuning_profile(lab, f"production-without-{key}")

    assert less("sys.cpu.governor") == replace(whole, machine=[])
    assert less("nginx.keepalive_timeout") == replace(whole, reverse_proxies={"nginx": []})
    assert less("a.b") == replace(whole, sysctl=whole.sysctl[1:])
    assert less("postgresql.jit") == replace(whole, postgresql=[])
    assert less("backlog") == replace(whole, backlog=replace(whole.backlog, value=511))


def test_the_generator_of_cells_that_name_none_follows_their_http_version(lab: Path) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({}, "metronome"),
        ({"generator": ""}, "metronome"),
        ({"generator": "wrk2"}, "wrk2"),
        ({"tls": True}, "metronome"),
        ({"tls": True, "http2": True}, "oha"),
    ]
    for changes, name in rows:
        found = make(lab, framework="alpha", endpoint="index", **changes)
        assert found.generators == sorted(["wrk", name])
        # Each keeps a rate beside a short closed loop.
        loads = [(item.cell.load.generator, item.cell.load.mode) for item in items(found)]
        assert loads == [(name, "constant"), ("wrk", "closed")]
        assert f"-{name}-1000rps-" in items(found)[0].cell_id
    with pytest.raises(PlanError, match=r"http2: generator=metronome .* Give -e generator=oha"):
        make(lab, framework="alpha", tls=True, http2=True, generator="metronome")
    cells = [{"name": "old"}, {"name": "new", "options": {"tls": True, "http2": True}}]
    options = {"duration": 5, "framework": "alpha", "endpoint": "index"}
    write_study(lab, "lesson", cells=cells, options=options, claims=[], scales={})
    assert make(lab, lesson="one").generators == ["metronome", "oha"]


STUDY = {
    "description": "one",
    "options": {"generator": "wrk", "duration": 5, "framework": "alpha", "endpoint": "index"},
    "cells": [
        {"name": "tuned"},
        {"name": "bare", "options": {"tuning": "stock"}, "expected_void": ["listen_overflows"]},
        {
            "name": "beta",
            "options": {"framework": "beta", "generator": "oha"},
            "background_endpoint": "index",
        },
    ],
    "claims": [{"statement": "so", "metric": "goodput", "ratio": ["tuned", "bare"], "at_least": 1}],
    "scales": {"smoke": {"duration": 2}, "local": {"repetitions": 3}},
}


def write_study(lab: Path, kind: str = "study", **changed: Any) -> None:
    folder = lab / "files" / study_files.FOLDERS[kind]
    folder.mkdir(parents=True)
    file = {**STUDY, **changed}
    if kind == "lesson":
        names = [cell["name"] for cell in file["cells"]]
        file = {**file, "question": "q", "lesson": builders.lesson(*names)}
        (folder / "one.svg").touch()
    (folder / "one.yml").write_text(yaml.safe_dump(file, sort_keys=False))


def test_a_study_measures_its_cells_and_one_of_them_twice(lab: Path) -> None:
    write_study(lab)
    found = make(lab, study="one", warmup=3)
    by_id = {item.cell_id: item for item in items(found)}
    names = builders.present(found.study).cells
    assert [len(names[name]) for name in names] == [1, 1, 1]
    tuned, bare, beta = (by_id[names[name][0]] for name in ("tuned", "bare", "beta"))
    # The study's own, its scale's, the user's.
    load = tuned.cell.load
    assert (load.duration_s, load.warmup_s, load.mode) == (2, 3, "closed")
    assert bare.cell.tuning == "stock"
    assert bare.cell.expected_void == ["listen_overflows"]
    assert beta.cell.load.background_endpoint == "index"
    # One stack for each tuning's backlog.
    backlogs = [found.stacks[item.stack].backlog for item in (tuned, bare, beta)]
    assert backlogs == [4096, 511, 4096]
    assert found.generators == ["oha", "wrk"]
    assert found.aa_controls == [(names["tuned"][0], names["tuned"][0] + "-aa_control")]
    assert len(by_id) == 4
    assert found.run_id.endswith("-one")
    assert make(lab, study="one", scale="local").measurements == 12


def test_a_closed_loop_of_a_study_has_its_bursts_and_another_load_has_none(lab: Path) -> None:
    write_study(lab, cells=[{"name": "tuned", "burst_every_s": 1.5}], claims=[])
    (item, *_) = items(make(lab, study="one"))
    assert item.cell.load.burst_every_s == 1.5
    assert "-burst1.5s" in item.cell_id
    shutil.rmtree(lab / "files" / "studies")
    oha = {"name": "tuned", "burst_every_s": 1.5, "options": {"generator": "oha"}}
    write_study(lab, cells=[oha], claims=[])
    with pytest.raises(
        PlanError, match=r"burst_every_s: the cell tuned has one, and generator=oha is no"
    ):
        make(lab, study="one")


def test_a_lesson_measures_once_and_from_all_clients(lab: Path) -> None:
    write_study(lab, "lesson")
    found = make(lab, request={"clients": 2}, lesson="one")
    assert (found.aa_controls, found.measurements) == ([], 3)
    assert {item.cell.load.clients for item in items(found)} == {2}


def test_an_ablation_leaves_out_each_key(lab: Path) -> None:
    (lab / "files/tuning/production.yml").write_text(PROFILE)
    folder = lab / "files/studies"
    folder.mkdir()
    file = {**STUDY, "ablate": "production", "claims": []}
    del file["cells"]
    (folder / "ablation.yml").write_text(yaml.safe_dump(file, sort_keys=False))
    found = make(lab, study="ablation")
    without = "production-without-"
    keys = ["a.b", "a.c", "sys.cpu.governor", "nginx.keepalive_timeout", "postgresql.jit"]
    keys += ["backlog"]
    assert list(found.tunings) == ["production", *(f"{without}{key}" for key in keys)]
    assert (len(found.comparisons), found.measurements) == (6, 8)
    # A key that no host takes is not measured once the ledger says so.
    lacking = builders.present(found.study).left_out_keys
    assert lacking == {f"{without}{key}": key for key in keys}
    ledger = builders.ledger()
    row = replace(next(iter(ledger.hosts.values()))[0], key="a.b", state="absent")
    ledger = replace(ledger, profile="production", hosts={"server": [row], "client": [row]})
    run_dir = Path(found.run_dir)
    run_dir.mkdir(parents=True)
    (run_dir / "tuning.json").write_bytes(documents.encode(ledger))
    assert make(lab, study="ablation", run_id=found.run_id).measurements == 7


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind, folder in study_files.FOLDERS.items()
        for name in catalog.names(ROOT / "files" / folder, "*.yml")
    ],
)
def test_every_study_and_lesson_of_the_lab_can_be_planned(kind: str, name: str) -> None:
    file = catalog.load_yaml(ROOT / "files" / study_files.FOLDERS[kind] / f"{name}.yml")
    for scale in file.get("scales", [None]):
        found = make(ROOT, python="3.13", request={"kind": kind}, **{kind: name, "scale": scale})
        assert found.experiments


def record(lab: Path, plan: Plan, item: Item, **changed: Any) -> None:
    """Write the result of a measurement of the item."""
    run = RunDir(lab / "results" / plan.run_id)
    number = len(list(run.repetition(item.cell_id, 1).path.parent.glob("rep-*"))) + 1
    builders.store(run.path, builders.result_of(item, repetition=number, **changed))


def begun(lab: Path, **given: Any) -> Plan:
    """A run that has only a plan.json."""
    plan = make(lab, **given)
    builders.write_plan(lab / "results" / plan.run_id, plan)
    return plan


def test_a_run_goes_on_with_its_own_words(lab: Path) -> None:
    first = begun(lab, framework="alpha", endpoint="index", rate=7, repetitions=2, run_id="mine")
    again = make(lab, run_id="mine")
    for key in ("experiments", "options", "given_options", "measurements", "remaining"):
        assert getattr(again, key) == getattr(first, key), key
    more = make(lab, run_id="mine", repetitions=5)
    assert (more.remaining, items(more)) == (10, items(first))
    ramp = make(lab, run_id="mine", ramp="1..9").options
    assert (ramp.rate, ramp.ramp) == ([5], "1..9")
    # Who says what to measure says all of it.
    assert make(lab, run_id="mine", framework="beta").options.rate == [1000]


def test_what_a_run_has_is_not_asked_for_again(lab: Path) -> None:
    plan = begun(lab, framework="alpha", endpoint="index", repetitions=2, run_id="mine")
    first, other = items(plan)
    record(lab, plan, first)
    record(lab, plan, first)
    record(lab, plan, other)
    record(lab, plan, other, error="broken")
    again = make(lab, run_id="mine")
    assert (again.measurements, again.remaining) == (4, 1)
    assert again.load_seconds == other.expected_s
    (lab / "results" / "mine" / "calibration" / "ceiling" / "rep-1").mkdir(parents=True)
    assert plan.calibration_repetition == 1
    assert make(lab, run_id="mine").calibration_repetition == 2
    # Another pair's, which failed once, is further.
    (lab / "results" / "mine" / "calibration-other" / "ceiling" / "rep-2").mkdir(parents=True)
    assert make(lab, run_id="mine").calibration_repetition == 3


def test_results_of_another_version_are_not_added_to(lab: Path) -> None:
    plan = begun(lab, framework="alpha", endpoint="index", run_id="mine")
    record(lab, plan, items(plan)[0])
    (lab / "apps" / "alpha" / "app.py").write_text("print()")
    with pytest.raises(PlanError, match="with another application than now"):
        make(lab, run_id="mine")
    assert make(lab, framework="alpha", run_id="other").remaining == 4


def test_several_pairs_measure_the_same_and_each_has_a_twin_of_the_first(lab: Path) -> None:
    given: dict[str, Any] = {"framework": "alpha", "generator": "wrk", "tuning": "stock,production"}
    alone = make(lab, **given)
    found = make(lab, request={"pairs": 2}, **given)
    assert {item.cell_id for item in items(alone)} < {item.cell_id for item in items(found)}
    pair_of = {one.items[0].cell_id: one.pair for one in found.experiments}
    assert all(pair_of[each.base] == pair_of[each.head] for each in found.comparisons)
    assert set(pair_of.values()) == {0, 1}
    *own, (base, across) = found.aa_controls
    assert own == alone.aa_controls
    assert all(pair_of[cell_id] == pair_of[twin_id] for cell_id, twin_id in own)
    assert pair_of[base] != pair_of[across]
    # About half as long, for the twin too.
    assert found.load_seconds == alone.load_seconds / 2 + 40


def test_several_clients_are_part_of_the_cell(lab: Path) -> None:
    given: dict[str, Any] = {"framework": "alpha", "endpoint": "index", "connections": 8}
    one = make(lab, request={}, **given)
    two = make(lab, request={"clients": 2}, **given)
    assert len(items(one)) == len(items(two)) == 2
    for alone, shared in zip(items(one), items(two), strict=True):
        assert alone.cell.load.clients is None
        assert shared.cell.load == replace(alone.cell.load, clients=2)
        assert "-2clients" in shared.cell_id
        assert shared.cell_id != alone.cell_id
    assert one.options.clients == 1


def test_a_run_goes_on_with_as_many_clients_as_before(lab: Path) -> None:
    given: dict[str, Any] = {"framework": "alpha", "endpoint": "index", "run_id": "mine"}
    begun(lab, **given)
    with pytest.raises(PlanError, match="'mine' was begun with 1 client to a server, and the inv"):
        make(lab, request={"clients": 2}, **given)
    assert make(lab, request={"clients": 1}, **given).is_new


def test_a_run_goes_on_on_hosts_of_the_same_kind(lab: Path) -> None:
    given: dict[str, Any] = {"framework": "alpha", "endpoint": "index", "run_id": "mine"}
    made, reach = "containers with Debian bookworm", "-e local_hosts_release=bookworm"

    def planned(made: str, reach: str) -> Plan:
        return make(lab, request={"host_kind": made, "inventory_args": reach}, **given)

    first = planned(made, reach)
    assert first.resume_args == "-e run_id=mine -e local_hosts_release=bookworm"
    assert planned(made, "").resume_args == "-e run_id=mine"
    folder = lab / "results" / "mine"
    builders.write_plan(folder, first)
    run = replace(plan_json.read(folder), inventory_args=reach)
    (folder / "plan.json").write_bytes(documents.encode(run))
    # Nothing was measured yet.
    assert planned("EC2 instances", "-i inventory/aws").host_kind == "EC2 instances"
    (folder / "cells" / items(first)[0].cell_id / "rep-1").mkdir(parents=True)
    assert planned(made, reach).host_kind == made
    with pytest.raises(PlanError) as refusal:
        planned("EC2 instances", "-i inventory/aws")
    assert str(refusal.value) == (
        "run_id: 'mine' was begun on containers with Debian bookworm, and would go on with EC2 "
        "instances. Results of both are not mixed: give -e local_hosts_release=bookworm, or "
        "another -e run_id=<name>."
    )


@pytest.mark.parametrize("schema", [{}, {"schema": "lab/1"}])
def test_a_run_of_an_older_lab_is_refused_where_it_is_read(
    lab: Path, schema: dict[str, str]
) -> None:
    folder = lab / "results" / "old"
    folder.mkdir()
    old = {"started": "", "argv": [], "plan": {}, **schema}
    (folder / "plan.json").write_bytes(documents.dump(old))
    (folder / "calibration.json").write_bytes(documents.dump({"schema": "lab/1"}))
    (lab / "results" / "latest").symlink_to("old")
    stages: list[dict[str, Any]] = [
        {"framework": "alpha", "run_id": "old"},
        {"begin": False},
        {"begin": False, "needs": False, "request": {"needs_run": True}},
    ]
    for stage in stages:
        with pytest.raises(ResultError) as refusal:
            make(lab, **stage)
        its = "schema lab/1" if schema else "no schema"
        assert str(refusal.value).startswith(f"{folder}/plan.json has {its}, and this version of")
    (folder / "plan.json").write_text("{")
    torn = r"^run_id: the run 'old' cannot be read: plan\.json is truncated .* Give another"
    with pytest.raises(PlanError, match=torn):
        make(lab, begin=False)
    # A new run begins, and hosts can be untuned.
    assert make(lab, framework="alpha").run_id != "old"
    assert make(lab, begin=False, needs=False).experiments == []
