"""A run goes on past whatever breaks in its middle, and is resumed where it was cut off."""

from __future__ import annotations

import itertools
import json
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import CLIENT, ROOT, SERVER, STATE, finish, playbook, run, ssh

pytestmark = pytest.mark.lab

SHORT = {"framework": "aiohttp", "endpoint": "agents", "generator": "wrk", "warmup": 0}
# Starts as it should, but with three workers.
BROKEN = "/etc/systemd/system/loadlab-app.service.d/broken.conf"


def records(run_id: str) -> list[dict[str, Any]]:
    """All results of a run by repetition, as far as they are there."""
    paths = (ROOT / "results" / run_id).glob("cells/*/rep-*/result.json")
    found = [json.loads(path.read_text()) for path in paths]
    return sorted(found, key=lambda record: (record["cell_id"], record["repetition"]))


def wait_until_measuring(process: subprocess.Popen[str], run_id: str, repetition: int) -> None:
    """Return when a repetition's load has begun, and went on for half a second."""
    runs = STATE / f"hosts/client/root/var/lib/loadlab-runs/{run_id}/cells"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        for path in runs.glob(f"*/rep-{repetition}/progress.txt"):
            if path.read_text().strip() == "measuring":
                time.sleep(0.5)
                return
        time.sleep(0.02)
    process.kill()
    pytest.fail(f"repetition {repetition} never began: {process.communicate()[0][-3000:]}")


def test_whatever_is_killed_costs_one_repetition(run_id: str) -> None:
    asked = {**SHORT, "duration": 3, "repetitions": 5, "run_id": run_id}
    for stage in ("hosts", "tune", "deploy"):
        run(f"playbooks/{stage}.yml", **asked)
    killed = playbook("playbooks/load.yml", run_id=run_id)
    wait_until_measuring(killed, run_id, 2)
    # Ansible's workers too, which have sessions of their own and would watch to the end.
    subprocess.run(["pkill", "-KILL", "-f", f"load.yml .*{run_id}"], check=True)
    killed.wait()

    # Named alone, the run knows its own words.
    loading = playbook("playbooks/load.yml", run_id=run_id)
    breaking = {
        3: (CLIENT, "pkill -KILL -x wrk"),
        4: (CLIENT, "sleep 0.5; pkill -KILL sshd; systemctl restart ssh"),
        5: (SERVER, "pkill -KILL -P $(systemctl show --value -p MainPID loadlab-app)"),
        6: (SERVER, "pkill -KILL -x postgres"),
    }
    for repetition, (host, command) in breaking.items():
        wait_until_measuring(loading, run_id, repetition)
        # By a service of its own, which outlives the connection.
        ssh(host, f"systemd-run --quiet --collect sh -c {shlex.quote(command)}")
    output = finish(loading)

    found = records(run_id)
    assert [record["repetition"] for record in found] == [*range(1, 8)]
    errors = {record["repetition"]: record["error"] for record in found if record["error"]}
    assert set(errors) == {2, 3}, errors
    # By when it was resumed the load was over, but nobody had watched it.
    words = ("cut off: the controller went away", "telemetry-", "none of 0 scrapes succeeded")
    assert errors[2].startswith(words)
    assert "wrk" in errors[3]
    assert "[2/5]" in output
    # What a worker was about to answer is lost and nothing else; without its database none is ok.
    assert found[4]["goodput"] > 0
    assert sum(found[5]["errors"].values()) > 0
    assert sum(found[6]["errors"].values()) == 0, "PostgreSQL is up again"
    progress = json.loads((ROOT / "results" / run_id / "progress.json").read_text())
    assert (progress["done"], progress["total"], progress["given_up"]) == (5, 5, {})

    # Nothing is left, and nothing is measured.
    run("playbooks/load.yml", run_id=run_id)
    assert records(run_id) == found
    begun = json.loads((ROOT / "results" / run_id / "plan.json").read_text())
    # The stage deploy, and three times the load.
    assert len(begun["resumed"]) == 4


@pytest.fixture
def study() -> Iterator[str]:
    """A study of two stacks."""
    name = "test-resume"
    cells = [{"name": f"{n} workers", "options": {"workers": n}} for n in (3, 2)]
    options = {**SHORT, "endpoint": "index", "duration": 2, "repetitions": 1}
    file = {"description": "two stacks", "options": options, "cells": cells, "twins": False}
    path = ROOT / "files" / "studies" / f"{name}.yml"
    path.write_text(yaml.safe_dump(file))
    yield name
    path.unlink()


def test_a_stack_that_cannot_run_is_given_up_and_the_other_is_measured(
    run_id: str, study: str
) -> None:
    asked = {"study": study, "run_id": run_id}
    for stage in ("hosts", "tune"):
        run(f"playbooks/{stage}.yml", **asked)
    refuse = "[Service]\nExecStartPre=/bin/sh -c 'test \"$LAB_WORKERS\" != 3'\n"
    ssh(SERVER, f"mkdir -p {Path(BROKEN).parent}; printf %s {shlex.quote(refuse)} >{BROKEN}")
    run("playbooks/deploy.yml", **asked)
    output = run("playbooks/load.yml", **asked)
    found = {(r["cell"]["workers"], r["repetition"]): r["error"] for r in records(run_id)}
    assert set(found) == {(2, 1), (3, 1), (3, 2)}
    assert found[2, 1] is None
    assert all("does not start on server" in found[3, n] for n in (1, 2)), found
    assert "Given up for now: aiohttp" in output

    # Mended, what was given up is measured, and only that.
    ssh(SERVER, f"rm {BROKEN}; systemctl daemon-reload; systemctl reset-failed")
    run("playbooks/load.yml", run_id=run_id)
    again = {(r["cell"]["workers"], r["repetition"]): r["error"] for r in records(run_id)}
    assert again == {**found, (3, 3): None}


def test_two_pairs_share_the_cells(run_id: str) -> None:
    pairs = {"inventory": "inventory/local_pairs"}
    asked = {**SHORT, "endpoint": "index,hello", "duration": 2, "tuning": "stock,production"}
    try:
        run("lab.yml", **pairs, **asked, run_id=run_id)
    finally:
        run("playbooks/teardown.yml", **pairs)
    found = records(run_id)
    assert all(record["error"] is None for record in found)
    pair_of = {record["cell_id"]: record["pair"] for record in found}
    begun = json.loads((ROOT / "results" / run_id / "plan.json").read_text())["plan"]
    for compared in begun["comparisons"]:
        assert pair_of[compared["base"]] == pair_of[compared["head"]]
    assert set(pair_of.values()) == {"server", "server2"}
    assert len(found) == len(begun["tracks"]) == 7
    # Of the twins one is on the other pair, and both pairs were calibrated.
    *own, across = begun["twins"]
    assert all(pair_of[one] == pair_of[other] for one, other in own)
    assert pair_of[across[0]] != pair_of[across[1]]
    assert (ROOT / "results" / run_id / "calibration-server2.json").exists()
    # They measured at the same time.
    spans = {
        pair: sorted((r["started"], r["finished"]) for r in found if r["pair"] == pair)
        for pair in ("server", "server2")
    }
    assert any(
        one[0] < other[1] and other[0] < one[1] for one, other in itertools.product(*spans.values())
    )
    report = (ROOT / "results" / run_id / "report.html").read_text()
    assert "on server2" in report
