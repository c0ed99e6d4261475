"""Cells whose limit is known: the lab names it, or says that it does not know.

`pytest tests/lab/test_limits.py -k disk` measures one. A case takes about a minute, of which its
load is `seconds`; a stack that is not deployed yet takes half a minute more.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadlab.analysis import summary
from loadlab.analysis.limits import judgement
from loadlab.core import documents
from loadlab.core.model import CellLimit
from loadlab.core.run_dir import RunDir
from loadlab.report.words import limits as words

from .conftest import ROOT, SERVER, STATE, finish, playbook, ssh
from .figures import figures

pytestmark = pytest.mark.lab

CONF = "/etc/nginx/nginx.conf"
PSQL = "runuser -u postgres -- psql -q -d loadlab -c"
WRK = {"generator": "wrk", "duration": 8, "warmup": 1}
HEALTHY = 20


@dataclass(frozen=True)
class Case:
    """A cell and its limit.

    - cell: of the lesson ``lesson``, by its name there; otherwise a cell of a study with
      ``options``, and ``pool`` for the size of its application's pool
    - command: what is done to the server when the load begins; after: when it is over
    """

    code: str
    cell: str = "cell"
    lesson: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    pool: int | None = None
    command: str = ""
    after: str = "true"


CASES = {
    # The lessons' failures, and cures of which the limit is known.
    "knee": Case("too_few_threads", "n400", "knee"),
    "listen_backlog": Case("accept_queue", "short", "listen_backlog"),
    "listen_backlog_cured": Case("cores_busy", "long", "listen_backlog"),
    "syn_queue": Case("syn_queue", "no_cookies", "syn_queue"),
    "syn_queue_cured": Case("none", "cookies", "syn_queue"),
    "keepalive": Case("cores_busy", "unkept", "keepalive"),
    "keepalive_timeouts": Case("upstream_closed", "short", "keepalive_timeouts"),
    "unix_or_tcp": Case("cores_busy", "tcp", "unix_or_tcp"),
    "nagle": Case("delayed_ack", "held", "nagle"),
    "slow_start": Case("link", "restarted", "slow_start_after_idle"),
    "bufferbloat": Case("link", "deep", "bufferbloat"),
    "ephemeral_ports": Case("client", "few", "ephemeral_ports"),
    "file_descriptors": Case("client", "shell", "file_descriptors"),
    "connection_pool": Case("database_cpu", "each", "connection_pool"),
    "connection_pool_cured": Case("cores_busy", "pool", "connection_pool"),
    "disk": Case("disk", "waits", "synchronous_commit"),
    "event_loop": Case("worker_cpu", "blocked", "event_loop_blocked"),
    "event_loop_cured": Case("none", "executor", "event_loop_blocked"),
    "neighbour": Case("neighbour", "beside", "noisy_neighbour"),
    "neighbour_gone": Case("none", "alone", "noisy_neighbour"),
    # Others.
    "one_worker": Case(
        "worker_cpu",
        options={"framework": "aiohttp", "workers": 1, "endpoint": "cpu", "connections": 8, **WRK},
    ),
    "slow_upstream": Case(
        "too_few_threads",
        options={
            "framework": "flask",
            "server": "gunicorn",
            "worker_class": "gthread",
            "workers": 1,
            "threads": 4,
            "endpoint": "upstream",
            "connections": 32,
            **WRK,
        },
    ),
    "pool_of_one": Case(
        "pool_wait",
        options={
            "framework": "aiohttp",
            "workers": 1,
            "endpoint": "write",
            "tuning": "slow-flush",
            "connections": 32,
            **WRK,
        },
        pool=1,
    ),
    "database_connections": Case(
        "database_connections",
        options={
            "framework": "django",
            "server": "gunicorn",
            "worker_class": "gthread",
            "workers": 1,
            "threads": 32,
            "endpoint": "agents",
            "connections": 64,
            **WRK,
        },
        command=f"{PSQL} 'ALTER DATABASE loadlab CONNECTION LIMIT 2'",
        after=f"{PSQL} 'ALTER DATABASE loadlab CONNECTION LIMIT -1'",
    ),
    "database_lock": Case(
        "database_lock",
        options={
            "framework": "aiohttp",
            "workers": 1,
            "endpoint": "write",
            "connections": 32,
            **WRK,
        },
        command="systemd-run --quiet --collect --property=RuntimeMaxSec=20 "
        f"{PSQL} 'LOCK TABLE visits IN EXCLUSIVE MODE; SELECT pg_sleep(6)'",
    ),
    "nginx_connections": Case(
        "nginx_connections",
        options={"framework": "aiohttp", "endpoint": "hello", "connections": 64, **WRK},
        command=f"cp {CONF} /root/ && sed -i 's/worker_connections .*/worker_connections 24;/' "
        f"{CONF} && nginx -t && systemctl reload nginx",
        after=f"cat /root/nginx.conf >{CONF} && systemctl reload nginx",
    ),
    "nginx_alone": Case(
        "nginx_cpu",
        options={"framework": "nginx", "endpoint": "hello", "connections": 32, **WRK},
    ),
    "generator": Case(
        "client",
        options={
            "framework": "nginx",
            "endpoint": "hello",
            "generator": "oha",
            "rate": 200_000,
            "duration": 5,
            "warmup": 1,
        },
    ),
    "link_of_100_megabits": Case(
        "link",
        options={
            "framework": "nginx",
            "endpoint": "page",
            "network": "fast_ethernet",
            "connections": 16,
            **WRK,
        },
    ),
}


@contextmanager
def study(case: Case, tmp: Path) -> Iterator[str]:
    """The name of a study of the case's cell alone."""
    if case.lesson:
        lesson = yaml.safe_load((ROOT / f"files/lessons/{case.lesson}.yml").read_text())
        options = lesson["options"]
        (cell,) = (one for one in lesson["cells"] if one["name"] == case.cell)
    else:
        options, cell = case.options, {"name": case.cell, "options": {}}
    if case.pool is not None:
        app = tmp / "app"
        shutil.copytree(ROOT / "apps" / str(options["framework"]), app)
        manifest = yaml.safe_load((app / "app.yml").read_text())
        (app / "app.yml").write_text(yaml.safe_dump({**manifest, "pool_size": case.pool}))
        options = {**options, "app": str(app)}
    path = ROOT / "files" / "studies" / "of-a-test.yml"
    file = {"description": "a test's", "options": options, "cells": [cell], "aa_controls": False}
    path.write_text(yaml.safe_dump(file))
    try:
        yield path.stem
    finally:
        path.unlink()


def measure(case: Case, run_id: str, tmp: Path, **options: Any) -> str:
    """What the lab printed that measured a case; its command runs in each load of the cell."""
    loads = STATE / f"hosts/client/root/var/lib/loadlab-runs/{run_id}/cells"
    shutil.rmtree(loads, ignore_errors=True)
    with study(case, tmp) as name:
        # Long enough for the burst that a shaped link lets through not to count.
        iperf3 = {"iperf3_seconds": 3} if case.code == "link" else {}
        process = playbook("lab.yml", study=name, run_id=run_id, **iperf3, **options)
        disturbed: set[Path] = set()
        try:
            while case.command and process.poll() is None:
                for progress in set(loads.glob("*/rep-*/progress.txt")) - disturbed:
                    if progress.read_text().strip() == "measuring":
                        ssh(SERVER, case.command)
                        disturbed.add(progress)
                time.sleep(0.05)
            output = finish(process)
        finally:
            ssh(SERVER, case.after)
    assert bool(disturbed) == bool(case.command)
    return output


def limit(run_id: str) -> CellLimit:
    """The limit of the run's one cell, as summary.json has it."""
    found = summary.summary(ROOT / "results" / run_id)
    (cell,) = (one for one in found.cells if one.purpose == "measure")
    written = json.loads(RunDir(ROOT / "results" / run_id).summary.read_text())
    (same,) = (one for one in written["cells"] if one["purpose"] == "measure")
    assert cell.limit is not None
    assert same["limit"]["limit"]["code"] == cell.limit.limit.code
    return cell.limit


@pytest.mark.parametrize("name", CASES)
def test_limit_that_is_known_is_named(name: str, run_id: str, tmp_path: Path) -> None:
    case = CASES[name]
    output = measure(case, run_id, tmp_path)
    found = limit(run_id)
    print(f"{name}: {words.whole(found)}")
    assert words.whole(found) in " ".join(output.split())
    assert found.unrecorded == []
    with figures():
        assert found.limit.code == case.code, documents.encode(found).decode()


def test_no_limit_is_named_of_healthy_cells(run_id: str, tmp_path: Path) -> None:
    """A rate that the stack and the generator keep easily, over and over."""
    load = {"generator": "oha", "rate": 5000, "duration": 3, "warmup": 1}
    case = Case("none", options={"framework": "aiohttp", "endpoint": "hello", **load})
    measure(case, run_id, tmp_path, repetitions=HEALTHY)
    found = summary.summary(ROOT / "results" / run_id)
    (cell,) = (one for one in found.cells if one.purpose == "measure")
    valid = [one for one in cell.repetitions if one.validity.valid]
    with figures():
        assert len(valid) >= HEALTHY // 2, [one.validity for one in cell.repetitions]
    judged = [judgement.judge(cell.cell, one) for one in valid]
    assert {one.limit.code for one in judged if one} == {"none"}
