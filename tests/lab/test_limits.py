"""Cells whose limit is known: the lab names it, or says that it does not know.

`pytest tests/lab/test_limits.py -k disk` measures one. A case takes about a minute, of which its
load is `seconds`; a stack that is not deployed yet takes half a minute more.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadlab.model import CellLimit
from loadlab.report.words import limits_words as words
from loadlab.results import summarize
from loadlab.results.limits import judge_limits
from loadlab.run import documents
from loadlab.run.run_dir import RunDir

from .conftest import ROOT, SERVER, STATE, finish, playbook, ssh
from .figures import figures

pytestmark = pytest.mark.lab

CONF = "/etc/nginx/nginx.conf"
PSQL = "runuser -u postgres -- psql -q -d loadlab -c"
WRK = {"generator": "wrk", "duration": 8, "warmup": 1}
HEALTHY = 20

# The control group of the application, in the version 2 tree of this machine.
APPLICATION = f"{STATE.name.replace('.', '-')}-server/payload/system.slice/loadlab-app.service"
# Without the controller in that tree, the limit is that of a group of version 1. It counts what is
# allocated from then on, so the workers are killed, and the master starts new ones.
SHORT_OF_MEMORY = f"""
cd /sys/fs/cgroup/{APPLICATION} 2>/dev/null || cd /sys/fs/cgroup/unified/{APPLICATION}
if [ -e memory.max ]; then echo 8M >memory.max; exit; fi
read -r -a pids -d '' <cgroup.procs || true
own=$(sed -n 's/^[0-9]*:memory://p' "/proc/${{pids[0]}}/cgroup")
group=/sys/fs/cgroup/memory${{own%/loadlab-limits}}/loadlab-limits
mkdir -p "$group"
echo 8M >"$group/memory.limit_in_bytes"
for pid in "${{pids[@]}}"; do echo "$pid" >"$group/cgroup.procs" || [ ! -e "/proc/$pid" ]; done
kill -KILL "${{pids[@]:1}}"
"""
ENOUGH_MEMORY = f"""
cd /sys/fs/cgroup/{APPLICATION} 2>/dev/null || cd /sys/fs/cgroup/unified/{APPLICATION}
if [ -e memory.max ]; then echo max >memory.max; exit; fi
cd "$(find /sys/fs/cgroup/memory -name loadlab-limits)"
while read -r pid <cgroup.procs; do echo "$pid" >../cgroup.procs || [ ! -e "/proc/$pid" ]; done
cd .. && rmdir loadlab-limits
"""


@dataclass(frozen=True)
class Case:
    """A cell and its limit.

    - cell: of the lesson ``lesson``, by its name there; otherwise a cell of a study with
      ``options``, and ``pool`` for the size of its application's pool
    - command: what is done to the server when the load begins; after: when it is over; empty for
      nothing. ``here``: done by this machine, by root, and not on the server
    """

    code: str
    cell: str = "cell"
    lesson: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    pool: int | None = None
    command: str = ""
    after: str = ""
    here: bool = False

    def do(self, command: str) -> None:
        """Run one of its commands."""
        if command and self.here:
            subprocess.run(["bash", "-euc", command], check=True, timeout=60)
        elif command:
            ssh(SERVER, command)


CASES = {
    # The lessons' failures, and cures of which the limit is known.
    "knee": Case("too_few_threads", "n400", "knee"),
    "listen_backlog": Case("accept_queue", "short", "listen_backlog"),
    "listen_backlog_cured": Case("cores_busy", "long", "listen_backlog"),
    "syn_queue": Case("syn_queue", "no_cookies", "syn_queue"),
    "syn_queue_cured": Case("none", "cookies", "syn_queue"),
    "keepalive": Case("cores_busy", "unkept", "keepalive"),
    "keepalive_timeouts": Case("upstream_closed", "short", "keepalive_timeouts"),
    "unix_or_tcp": Case("reverse_proxy_cpu", "tcp", "unix_or_tcp"),
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
    "reverse_proxy_connections": Case(
        "reverse_proxy_connections",
        options={"framework": "aiohttp", "endpoint": "hello", "connections": 64, **WRK},
        # Of a second load too, it is the first file that comes back.
        command=f"[ -e /root/nginx.conf ] || cp {CONF} /root/; "
        f"sed -i 's/worker_connections .*/worker_connections 24;/' {CONF} && "
        "nginx -t && systemctl reload nginx",
        after=f"cat /root/nginx.conf >{CONF} && rm /root/nginx.conf && systemctl reload nginx",
    ),
    "memory": Case(
        "memory",
        options={
            "framework": "flask",
            "server": "gunicorn",
            "worker_class": "sync",
            "workers": 2,
            "endpoint": "hello",
            "connections": 16,
            **WRK,
        },
        command=SHORT_OF_MEMORY,
        after=ENOUGH_MEMORY,
        here=True,
    ),
    "nginx_alone": Case(
        "reverse_proxy_cpu",
        options={"framework": "nginx", "endpoint": "hello", "connections": 32, **WRK},
    ),
    "generator": Case(
        "client",
        options={
            "framework": "nginx",
            "endpoint": "hello",
            "generator": "oha",
            # More than oha reaches, and less than wrk, above which the lab offers no load.
            "rate": 80_000,
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


def content(case: Case, tmp: Path) -> dict[str, Any]:
    """A study of the case's cell alone. An application with another pool is put into ``tmp``."""
    if case.lesson:
        lesson = yaml.safe_load((ROOT / f"files/lessons/{case.lesson}.yml").read_text())
        options = lesson["options"]
        (cell,) = (one for one in lesson["cells"] if one["name"] == case.cell)
    else:
        options, cell = case.options, {"name": case.cell, "options": {}}
    if case.pool is not None:
        app = tmp / "app"
        shutil.copytree(ROOT / "apps" / str(options["framework"]), app, dirs_exist_ok=True)
        manifest = yaml.safe_load((app / "app.yml").read_text())
        (app / "app.yml").write_text(yaml.safe_dump({**manifest, "pool_size": case.pool}))
        options = {**options, "app": str(app)}
    return {"description": "a test's", "options": options, "cells": [cell], "aa_controls": False}


@contextmanager
def study(case: Case, tmp: Path) -> Iterator[str]:
    """The name of a study of the case's cell alone."""
    path = ROOT / "files" / "studies" / "of-a-test.yml"
    path.write_text(yaml.safe_dump(content(case, tmp)))
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

        def disturb() -> set[Path]:
            disturbed: set[Path] = set()
            while case.command and process.poll() is None:
                for progress in set(loads.glob("*/rep-*/progress.txt")) - disturbed:
                    if progress.read_text().strip() == "measuring":
                        disturbed.add(progress)
                        case.do(case.command)
                time.sleep(0.05)
            return disturbed

        # Beside what reads the output, which would fill its pipe.
        with ThreadPoolExecutor() as beside:
            disturbing = beside.submit(disturb)
            try:
                output = finish(process)
                assert bool(disturbing.result()) == bool(case.command)
            finally:
                if disturbing.exception() or disturbing.result():
                    case.do(case.after)
    return output


def limit(run_id: str) -> CellLimit:
    """The limit of the run's one cell, as summary.json has it."""
    found = summarize.summary(ROOT / "results" / run_id)
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
    assert case.code not in found.unrecorded
    with figures():
        assert found.limit.code == case.code, documents.encode(found).decode()


def test_no_limit_is_named_of_healthy_cells(run_id: str, tmp_path: Path) -> None:
    """A rate that the stack and the generator keep easily, over and over."""
    load = {"rate": 5000, "duration": 3, "warmup": 1}
    case = Case("none", options={"framework": "aiohttp", "endpoint": "hello", **load})
    measure(case, run_id, tmp_path, repetitions=HEALTHY)
    found = summarize.summary(ROOT / "results" / run_id)
    (cell,) = (one for one in found.cells if one.purpose == "measure")
    valid = [one for one in cell.repetitions if one.validity.valid]
    with figures():
        assert len(valid) >= HEALTHY // 2, [one.validity for one in cell.repetitions]
        judged = [judge_limits.judge(cell.cell, one) for one in valid]
        assert {one.limit.code for one in judged if one} == {"none"}
