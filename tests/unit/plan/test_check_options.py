"""Front, TLS, HTTP/2 and headers of a load: what is refused, and what a cell has of them."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.model import Item
from loadlab.plan import cells, check_options
from loadlab.plan.plan_document import items
from loadlab.plan.records import cell_records
from loadlab.run import http_headers
from loadlab.run.errors import PlanError
from loadlab.stacks import stacks
from loadlab.stacks.contract import Contract
from tests.unit import builders
from tests.unit.plan.test_schedule import measure

ROOT = builders.ROOT
SPECS = builders.SPECS


def planned(clients: int = 1, **options: Any) -> tuple[stacks.Stack, list[Item]]:
    """The stack and the cells of the repository's own files."""
    values = check_options.options(SPECS, {"endpoint": "index", **options}, clients)
    chosen = stacks.stack(ROOT, values, "3.13")
    check_options.refuse_cells(values, chosen)
    return chosen, cells.items(
        values, chosen, {"production": 4096}, {"index": Contract(path="/index")}
    )


def test_the_bodies_of_a_mix_fit_a_command_line() -> None:
    values = check_options.options(SPECS, {"framework": "aiohttp", "mix": "index:1,hello:1"})
    app = stacks.stack(ROOT, values, "3.13").app
    long = Contract(path="/", method="POST", body="x" * 8192)
    contracts = {"index": long, "hello": long}
    assert cells.endpoints(contracts, values, app) == contracts
    with pytest.raises(PlanError, match=r"^mix: the bodies of its requests have 16,385 bytes "):
        cells.endpoints({**contracts, "hello": replace(long, body="x" * 8193)}, values, app)


@pytest.mark.parametrize("framework", ["flask", "aiohttp", "tornado", "plain_rsgi", "golang"])
def test_without_nginx_the_server_listens_on_tcp_for_clients(framework: str) -> None:
    chosen, cells = planned(framework=framework, reverse_proxy="none")
    assert (chosen.transport, chosen.protocol, chosen.port) == ("tcp", "http", 8000)
    assert all(item.cell.reverse_proxy == "none" for item in cells)
    assert all("-direct-b4096-" in item.cell_id for item in cells)


@pytest.mark.parametrize(
    ("generator", "rate"),
    [("oha", [0.5]), ("wrk2", [3.0]), ("wrk", [1000.0]), ("oha", {"fraction": 0.5, "of": ["a"]})],
)
def test_what_three_clients_can_split_is_not_refused(generator: str, rate: Any) -> None:
    load = {"framework": "aiohttp", "generator": generator, "rate": rate, "connections": [3]}
    assert planned(clients=3, **load)[1][0].cell.load.clients == 3


def test_uwsgi_keeps_the_clients_connections_or_not() -> None:
    uwsgi: dict[str, Any] = {"framework": "flask", "server": "uwsgi", "reverse_proxy": "none"}
    ids = {planned(**uwsgi, upstream_keepalive=kept)[1][0].cell_id for kept in (True, False)}
    assert len(ids) == 2


def test_nothing_asked_leaves_no_trace() -> None:
    chosen, cells = planned(framework="aiohttp")
    assert (chosen.reverse_proxy, chosen.port) == ("nginx", 80)
    for item in cells:
        load = item.cell.load
        assert (load.tls, load.http2, load.headers) == (None,) * 3
        assert item.cell.reverse_proxy == "nginx"


def test_the_calibrating_closed_loop_stays_http_1() -> None:
    _, cells = planned(framework="aiohttp", tls=True, http2=True, headers={"X-Lab": "yes"})
    oha, wrk = (item.cell.load for item in cells)
    assert oha.http2 is True
    assert wrk.http2 is None
    assert oha.tls is wrk.tls is True
    assert oha.headers == wrk.headers == {"X-Lab": "yes"}
    assert "-http2-headers" in cells[0].cell_id
    assert "-tls-headers" in cells[1].cell_id


@pytest.mark.parametrize(
    "value", [{"X-Lab": "a: b", "Accept": "*/*"}, ["X-Lab: a: b", "Accept:*/*"]]
)
def test_headers_are_a_mapping_or_lines(value: Any) -> None:
    assert check_options.headers(value) == {"X-Lab": "a: b", "Accept": "*/*"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"X-Lab": ""}, "is no header"),
        ({"X Lab": "yes"}, "'X Lab' with 'yes' is no header"),
        ({"X-Lab": "a\nHost: b"}, "is no header"),
        ({"X-Lab": "caf\xe9"}, "is no header"),
        ({"@/etc/passwd": "yes"}, "is no header"),
        ({"hOST": "elsewhere"}, "hOST is not to be set"),
        ("Connection: close", "Connection is not to be set"),
        ({"Content-Length": 3}, "Content-Length is not to be set"),
    ],
)
def test_what_is_no_header_to_set_is_refused(value: Any, words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        check_options.headers(value)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=12), max_size=3))
def test_a_header_that_is_taken_is_one_line_of_printable_ascii(value: dict[str, str]) -> None:
    try:
        taken = check_options.headers({**value})
    except PlanError:
        return
    for name, text in taken.items():
        line = f"{name}: {text}"
        assert line.isascii()
        assert line.isprintable()
        assert name.lower() not in http_headers.RESERVED


def test_a_measured_cell_is_profiled_once() -> None:
    plan = builders.plan(endpoint="index", profile=True, repetitions=3, tuning="stock,production")
    assert plan.py_spy is True
    purposes = [(item.purpose, item.cell.tuning) for item in measure(plan, {})]
    assert len(purposes) == plan.measurements
    assert purposes.count(("measure", "stock")) == purposes.count(("aa_control", "stock")) == 3
    assert purposes.count(("py_spy", "stock")) == purposes.count(("py_spy", "production")) == 1
    # The first block measures every experiment once.
    later = purposes[len(plan.experiments) :]
    assert "py_spy" not in {purpose for purpose, _ in later}
    # It is in no comparison, and has no A/A control.
    profiles = {item.cell_id for item in items(plan.experiments) if item.purpose == "py_spy"}
    compared = {name for pair in plan.comparisons for name in (pair.base, pair.head)}
    assert not profiles & compared
    assert not profiles & {name for pair in plan.aa_controls for name in pair}


def test_a_measured_cell_is_traced_once() -> None:
    plan = builders.plan(
        framework="golang", endpoint="index", trace=True, repetitions=3, curve=False
    )
    assert (plan.trace, plan.py_spy) == (True, False)
    traced = [item for item in items(plan.experiments) if item.purpose == "trace"]
    assert [item.cell_id for item in traced] == [f"{traced[0].base}-trace"]
    assert traced[0].cell_id not in {name for pair in plan.aa_controls for name in pair}


def test_a_profile_that_failed_is_tried_again_in_the_first_block_only() -> None:
    plan = builders.plan(endpoint="index", profile=True, generator="wrk")
    (experiment,) = [
        experiment for experiment in plan.experiments if experiment.items[0].purpose == "py_spy"
    ]
    (item,) = experiment.items
    failed = {item.cell_id: cell_records([builders.result(error="broken")])}
    assert experiment.next_item(1, failed) == item
    # Even a void one is enough.
    void = {item.cell_id: cell_records([builders.result(validity=builders.void("steal"))])}
    assert [experiment.next_item(block, void) for block in (1, 2, 9)] == [None] * 3
    assert (experiment.expected(9, {}), experiment.expected(9, void)) == (1, 0)
