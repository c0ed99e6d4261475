"""Four clients of one server, and three pairs at once, for a few seconds each."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from loadlab.model import Result
from loadlab.run import documents

from .conftest import ROOT, SUBNET, results, run
from .figures import figures

pytestmark = pytest.mark.lab

SHORT = {"framework": "nginx", "repetitions": 1}
# Farthest apart that the clients of one load may begin it.
TOGETHER_S = 0.05


def inventory(folder: Path, pairs: int, clients: int) -> str:
    """Write an inventory of local hosts: ``pairs`` servers with as many ``clients`` each."""
    servers: dict[str, dict[str, str]] = {}
    others: dict[str, dict[str, str]] = {}
    for number in range(1, pairs + 1):
        for place in range(clients + 1):
            name = f"client{number}{'abcdefgh'[place - 1]}" if place else f"server{number}"
            host = {
                "ansible_host": f"{SUBNET}.0.{10 * number + 1 + place}",
                "test_address": f"{SUBNET}.{number}.{11 + place}",
            }
            if place > 1:
                host["serves"] = f"server{number}"
            (others if place else servers)[name] = host
    groups = {"servers": {"hosts": servers}, "clients": {"hosts": others}}
    folder.mkdir()
    (folder / "hosts.yml").write_text(json.dumps({"lab": {"children": groups}}))
    (folder / "group_vars").symlink_to(ROOT / "inventory" / "local" / "group_vars")
    return str(folder)


def test_four_clients_begin_together_and_offer_one_load(run_id: str, tmp_path: Path) -> None:
    four = inventory(tmp_path / "four", pairs=1, clients=4)
    load = {"endpoint": "hello", "rate": 402, "connections": 8, "duration": 4, "warmup": 1}
    try:
        run("lab.yml", inventory=four, **SHORT, **load, run_id=run_id)
    finally:
        run("playbooks/teardown.yml", inventory=four)
    found = results(run_id)
    assert set(found) == {"metronome hello", "wrk hello"}
    names = [f"client1{letter}" for letter in "abcd"]
    for result in found.values():
        documents.decode(result, Result, "result.json")
        assert result["error"] is None
        clients: list[dict[str, Any]] = result["clients"]
        assert [(one["name"], one["connections"]) for one in clients] == [(n, 2) for n in names]
        for count in ("requests", "responses"):
            assert result[count] == sum(one[count] for one in clients)
            assert min(one[count] for one in clients) > 0
        begun = [one["started"] - one["clock_offset_s"] for one in clients]
        with figures():
            assert max(begun) - min(begun) < TOGETHER_S
    constant = found["metronome hello"]
    assert [one["rate"] for one in constant["clients"]] == [101, 101, 100, 100]
    assert constant["scheduled"] == 402 * 4
    # What the server counted is what the clients counted together, to the request.
    assert constant["reverse_proxy_requests"] == constant["requests"]


def test_three_pairs_measure_at_the_same_time(run_id: str, tmp_path: Path) -> None:
    three = inventory(tmp_path / "three", pairs=3, clients=1)
    load = {"generator": "wrk", "endpoint": "index,hello,render_name", "duration": 3, "warmup": 0}
    try:
        run("lab.yml", inventory=three, **SHORT, **load, run_id=run_id)
    finally:
        run("playbooks/teardown.yml", inventory=three)
    found = results(run_id)
    assert {result["error"] for result in found.values()} == {None}
    assert {result["server"] for result in found.values()} == {"server1", "server2", "server3"}
    assert len(found) == 3
    for result in found.values():
        documents.decode(result, Result, "result.json")
        # A pair has one client, whose result is the pair's.
        assert "clients" not in result
        assert result["responses"] > 0
    spans = [(result["started"], result["finished"]) for result in found.values()]
    assert all(
        one[0] < other[1] and other[0] < one[1] for one, other in itertools.combinations(spans, 2)
    )
    folder = ROOT / "results" / run_id
    for suffix in ("", "-server2", "-server3"):
        assert (folder / f"calibration{suffix}.json").exists()
