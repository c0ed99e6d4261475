"""The candidates of a matrix: servers, workers and threads that make sense on so many cores."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from loadlab.kinds import plan_run as planning
from loadlab.kinds.matrix import words
from loadlab.kinds.matrix.candidates import candidates
from loadlab.model import Candidate
from loadlab.plan import check_options, schedule
from loadlab.plan.modes.matrix_order import Matrix
from loadlab.plan.plan_document import Plan, items
from loadlab.plan.schedule import Switch
from loadlab.run.errors import PlanError
from tests.unit import builders


def planned(root: Path, options: Mapping[str, object], user: Sequence[str] = ()) -> Plan:
    given = check_options.given_of(options)
    return planning.plan(builders.request({**given}, root=root, user=[*user]))


def made(
    framework: str, cores: int, python: str | None = "3.13", **given: object
) -> list[Candidate]:
    asked = check_options.given_of({"framework": framework, **given})
    chosen = check_options.options(builders.SPECS, asked)
    return candidates(builders.ROOT, chosen, python, cores)


def names(found: list[Candidate], server: str) -> set[str]:
    return {one.name.removeprefix(f"{server}-") for one in found if one.name.startswith(server)}


@pytest.mark.parametrize(
    ("framework", "cores", "number"),
    [("flask", 1, 24), ("flask", 2, 29), ("fastapi", 1, 15), ("fastapi", 2, 20)],
)
def test_applications_have_as_many_candidates_as_the_docs_say(
    framework: str, cores: int, number: int
) -> None:
    found = made(framework, cores)
    assert len(found) == len({one.name for one in found}) == number


def test_workers_follow_the_cores_and_threads_come_where_a_worker_has_them() -> None:
    found = made("flask", 4)
    assert names(found, "gunicorn-sync") == {"1x1", "4x1", "5x1", "9x1"}
    assert names(found, "gunicorn-gthread") == {"1x1", "4x1", "9x1", "4x4", "5x4", "4x16"}
    assert names(found, "waitress") == {"1x4", "1x16"}
    assert names(found, "uwsgi") == {"1x1", "4x1", "9x1", "4x4", "5x4", "4x16"}


def test_every_candidate_has_its_servers_own_default_and_the_rule_beside_it() -> None:
    found = made("flask", 2)
    there_are = {one.name for one in found}
    defaults = {str(one.options["server"]): one.own_default for one in found}
    assert defaults == {
        "granian": "granian-1x512",
        "gunicorn": "gunicorn-sync-1x1",
        "uwsgi": "uwsgi-1x1",
        "waitress": "waitress-1x4",
    }
    assert set(defaults.values()) <= there_are
    rules = {one.name: one.rule for one in found}
    assert rules["gunicorn-gevent-1x1"] == "gunicorn-gevent-5x1"
    # Waitress has one process.
    assert rules["waitress-1x16"] is None
    assert {rule for rule in rules.values() if rule} <= there_are


def test_default_that_may_be_chosen_has_its_rule_beside_it_too() -> None:
    plan = builders.plan(framework="flask", endpoint="hello", matrix=2)
    (one,) = plan.experiments
    assert isinstance(one, Matrix)
    cells = {each.name: each.cell_id for each in builders.present(plan.matrix).candidates}
    beside = {cells[f"gunicorn-{name}"] for name in ("sync-1x1", "gevent-5x1", "sync-5x1")}
    assert set(one.references[cells["gunicorn-gevent-1x1"]]) == beside


def test_load_sets_up_each_candidate_whatever_was_deployed() -> None:
    plan = builders.plan(framework="flask", endpoint="hello", matrix=1)
    first = builders.present(schedule.next_item(plan, {}, {}, plan.current_setup, 0))
    assert first.switch == Switch(stack=schedule.setup(first).stack, tuning=None, network=None)


@pytest.mark.parametrize("server", [None, "uwsgi"])
def test_candidates_without_nginx_are_planned(server: str | None) -> None:
    given = {"framework": "flask", "endpoint": "hello", "reverse_proxy": "none", "server": server}
    plan = builders.plan(**given, matrix=1)
    assert {stack.reverse_proxy for stack in plan.stacks.values()} == {"none"}


def test_options_that_leave_fewer_candidates_are_not_refused_as_unused() -> None:
    user = {"framework": "flask", "endpoint": "hello", "server": "gunicorn", "transport": "tcp"}
    plan = planned(builders.ROOT, {**user, "matrix": 1}, [*user])
    assert {(one.server, one.transport) for one in plan.stacks.values()} == {("gunicorn", "tcp")}


def test_candidates_with_more_database_connections_than_admitted_are_left_out() -> None:
    # Ten connections a worker; PostgreSQL's own 100 leave 96.
    assert names(made("flask", 4, tuning="stock"), "uwsgi") > {"9x1"}
    found = made("flask", 5, tuning="stock")
    assert names(found, "uwsgi") == {"1x1", "5x1", "5x4", "6x4", "5x16"}
    assert {one.rule for one in found} == {None}
    assert {one.own_default for one in found if one.options["server"] == "uwsgi"} == {"uwsgi-1x1"}
    assert "11x1" in names(made("flask", 5), "uwsgi")


def test_stack_with_an_upper_bound_of_python_counts_only_by_name_where_python_is_unknown() -> None:
    assert not names(made("tornado", 1, None), "uwsgi")
    assert names(made("tornado", 1, None), "native")
    assert names(made("tornado", 1, None, server="uwsgi"), "uwsgi")
    assert names(made("tornado", 1, None, protocol="uwsgi"), "uwsgi")


def test_candidates_have_the_default_transport_unless_another_is_given() -> None:
    assert {one.options["transport"] for one in made("flask", 1)} == {"unix"}
    assert {one.options["protocol"] for one in made("flask", 1, server="uwsgi")} == {"uwsgi"}
    assert {one.options["transport"] for one in made("flask", 1, transport="tcp")} == {"tcp"}
    direct = made("flask", 1, reverse_proxy="none")
    assert {(one.options["transport"], one.options["protocol"]) for one in direct} == {
        ("tcp", "http")
    }


def test_options_of_a_stack_leave_fewer_candidates_and_the_default_of_what_is_left() -> None:
    found = made("flask", 1, worker_class="gthread")
    assert {one.options["worker_class"] for one in found} == {"gthread"}
    assert {one.own_default for one in found} == {"gunicorn-gthread-1x1"}
    with pytest.raises(PlanError, match="hypercorn runs no WSGI applications"):
        made("flask", 1, server="hypercorn")


def test_server_that_this_python_is_too_new_for_is_left_out() -> None:
    assert names(made("tornado", 1, python="3.11"), "uwsgi")
    assert not names(made("tornado", 1, python="3.13"), "uwsgi")


def test_each_candidate_is_one_closed_loop_of_a_stack_of_its_own() -> None:
    plan = builders.plan(framework="fastapi", endpoint="hello", matrix=2)
    (one,) = plan.experiments
    assert len(plan.stacks) == len(one.items)
    assert {item.cell.load.mode for item in one.items} == {"closed"}
    for named, item in zip(builders.present(plan.matrix).candidates, one.items, strict=True):
        assert (named.cell_id, named.stack) == (item.cell_id, item.stack)
        assert (named.workers, named.threads) == (item.cell.workers, item.cell.threads)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=type(plan)) == plan


def test_candidates_may_have_a_mix() -> None:
    plan = builders.plan(framework="flask", mix="hello:3,index:1", matrix=1)
    assert plan.together > 1
    own = items(plan.experiments)
    assert {item.cell.load.generator for item in own} == {"metronome"}
    assert {item.cell.endpoint for item in own} == {"hello:3,index:1"}


@pytest.mark.parametrize(
    ("given", "lanes", "words_of_reason"),
    [
        ({"framework": "flask", "endpoint": "hello"}, 11, "A load has up to 11 of them side by"),
        ({"framework": "nodejs", "endpoint": "hello"}, 4, "A load has up to 4 of them side by"),
        ({"framework": "django", "endpoint": "agents"}, 1, "django keeps no database sessions"),
        (
            {"framework": "fastapi", "endpoint": "agents", "tuning": "stock"},
            1,
            "max_connections of stock admits the database connections of 3, and a block has 11",
        ),
    ],
)
def test_candidates_that_can_be_up_together_are_lanes_of_one_load(
    given: dict[str, str], lanes: int, words_of_reason: str
) -> None:
    plan = builders.plan(**given, matrix=1)
    assert plan.together == lanes
    assert {item.cell.load.generator for item in plan.experiments[0].items} == {
        "metronome" if lanes > 1 else "wrk"
    }
    assert words_of_reason in words.planned(plan)


def test_warm_up_without_room_for_each_lane_is_refused() -> None:
    with pytest.raises(PlanError, match=r"warmup: 0.5 s has no room for 11 candidates, which take"):
        builders.plan(framework="flask", endpoint="hello", matrix=1, warmup=0.5)


def test_matrix_whose_cores_are_not_known_yet_is_checked_and_measures_nothing() -> None:
    plan = builders.plan(framework="flask", endpoint="hello", matrix=0)
    assert (plan.experiments, plan.remaining, plan.matrix) == ([], 0, None)


def test_resumed_matrix_keeps_its_rounds_and_gets_blocks_by_the_new_budget(tmp_path: Path) -> None:
    for name in ("apps", "files", "roles"):
        (tmp_path / name).symlink_to(builders.ROOT / name)

    given = {"framework": "flask", "endpoint": "hello", "matrix": 1, "run_id": "a"}
    first = planned(tmp_path, given)
    builders.write_plan(tmp_path / "results" / "a", first)
    again = planned(tmp_path, {**given, "budget": "10m"})
    assert again.experiments == first.experiments
    # A block is a load of 16 s, after ten set-ups of 15 s.
    assert again.options.repetitions == 7 + (600 - 150) // 16
    with pytest.raises(PlanError, match="run_id: 'a' has other candidates than these"):
        planned(tmp_path, {**given, "matrix": 2})
