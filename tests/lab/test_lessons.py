"""The exercises of the lessons: red while broken, red after a plausible wrong cure, green after the
lab's own."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from .conftest import CLIENT, ROOT, SERVER, finish, playbook, run, ssh
from .figures import figures

pytestmark = pytest.mark.lab

UNIT, CONF = "/etc/systemd/system/loadlab-app.service", "/etc/nginx/nginx.conf"
APP = "/opt/loadlab/app/app.py"
RESTART = "systemctl daemon-reload && systemctl restart loadlab-app"
# A lesson with an exercise -> where and how somebody repairs it wrongly.
WRONG = {
    # The kernel still cuts the queue to net.core.somaxconn.
    "listen_backlog": (SERVER, f"sed -i 's/--backlog 128/--backlog 4096/' {UNIT} && {RESTART}"),
    # The SYN queue is as long as the accept queue.
    "syn_queue": (SERVER, "sysctl -w net.ipv4.tcp_max_syn_backlog=8192"),
    # More processes pass requests on, and still eight requests are answered at a time.
    "knee": (
        SERVER,
        f"sed -i 's/worker_processes .*;/worker_processes 8;/' {CONF} && nginx -t && "
        "systemctl reload nginx",
    ),
    # These are the connections between the clients and nginx.
    "keepalive_timeouts": (
        SERVER,
        f"sed -i 's/keepalive_timeout .*;/keepalive_timeout 300s;/' {CONF} && nginx -t && "
        "systemctl reload nginx",
    ),
    # nginx still speaks HTTP/1.0 and asks to close.
    "keepalive": (
        SERVER,
        f"sed -i '/server 127.0.0.1:8000;/a keepalive 64;' {CONF} && nginx -t && "
        "systemctl reload nginx",
    ),
    # nginx still asks for the TCP socket.
    "unix_or_tcp": (
        SERVER,
        f"sed -i 's|-socket 127.0.0.1:8000|-socket /run/loadlab/app.sock|' {UNIT} && {RESTART}",
    ),
    # The bytes wait in the application's socket, not in nginx's.
    "nagle": (
        SERVER,
        f"sed -i 's/tcp_nodelay on;/tcp_nopush on; tcp_nodelay on;/' {CONF} && nginx -t && "
        "systemctl reload nginx",
    ),
    # The client sends requests alone; the window of the page is the server's.
    "slow_start_after_idle": (
        CLIENT,
        "ip route change $(ip route show dev loadlab-delay) dev loadlab-delay initcwnd 400",
    ),
    # The client's queue has requests and acknowledgements alone.
    "bufferbloat": (
        CLIENT,
        "tc qdisc change dev test0 root handle 1ab: tbf rate 20mbit burst 5000 latency 20ms",
    ),
    # FIN-WAIT-2 is another state than TIME-WAIT.
    "ephemeral_ports": (CLIENT, "sysctl -w net.ipv4.tcp_fin_timeout=5"),
    "connection_pool": (
        SERVER,
        "sudo -u postgres psql -c 'ALTER SYSTEM SET max_connections = 400' && "
        "systemctl restart postgresql && systemctl restart loadlab-app",
    ),
    # The loop goes on once, and then waits as before.
    "event_loop_blocked": (
        SERVER,
        f"sed -i 's/^    work.cpu_work()$/    await asyncio.sleep(0); work.cpu_work()/' {APP} && "
        "systemctl restart loadlab-app",
    ),
    # Nothing waits for memory, and the log is flushed as often.
    "synchronous_commit": (
        SERVER,
        "sudo -u postgres psql -c \"ALTER SYSTEM SET shared_buffers = '512MB'\" && "
        "systemctl restart postgresql && systemctl restart loadlab-app",
    ),
    # More workers are more threads that wait for the same core.
    "noisy_neighbour": (SERVER, f"sed -i 's/--workers 1/--workers 4/' {UNIT} && {RESTART}"),
}
# A wrong cure that the lab does not take back itself -> how to.
UNDO = {
    "connection_pool": "sudo -u postgres psql -c 'ALTER SYSTEM RESET max_connections'",
    "synchronous_commit": "sudo -u postgres psql -c 'ALTER SYSTEM RESET shared_buffers'",
}
# Seconds are enough: the effects are large.
BRIEF = {"duration": 4, "warmup": 1}
# Batches, bursts of which a few seconds hold one, and connections that pause for seconds.
WHOLE = ("ephemeral_ports", "keepalive_timeouts", "slow_start_after_idle")


def stage(run_id: str, name: str) -> str:
    return run("playbooks/lesson.yml", run_id=run_id, stage=name)


def check(run_id: str) -> tuple[int, dict[str, Any]]:
    """Measure the hosts as they are; return the status and the last check of lesson.json."""
    process = playbook("playbooks/lesson.yml", run_id=run_id, stage="check")
    output, _ = process.communicate(timeout=600)
    lesson = json.loads((ROOT / "results" / run_id / "lesson.json").read_text())
    checks = lesson["exercise"]["checks"]
    assert checks, output[-6000:]
    return process.returncode, checks[-1]


@pytest.mark.core
@pytest.mark.parametrize("lesson", ["listen_backlog"])
def test_the_labs_own_cure_turns_an_exercise_green(lesson: str, run_id: str) -> None:
    """In brief; the test below has every stage of every lesson."""
    run("playbooks/lesson.yml", lesson=lesson, run_id=run_id, predict="none", **BRIEF)
    stage(run_id, "exercise")
    with figures():
        status, found = check(run_id)
        assert (status, found["verdict"]) == (2, "not_yet")
    stage(run_id, "solve")
    with figures():
        status, found = check(run_id)
        assert (status, found["verdict"]) == (0, "cured")


@pytest.mark.parametrize("lesson", WRONG)
def test_an_exercise_is_red_until_it_is_cured(lesson: str, run_id: str) -> None:
    asked = {} if lesson in WHOLE else BRIEF
    run("playbooks/lesson.yml", lesson=lesson, run_id=run_id, predict="none", **asked)
    told = stage(run_id, "exercise")
    assert "Exercise: " in told
    assert f"root@{SERVER}" in told
    with figures():
        status, found = check(run_id)
        assert (status, found["verdict"]) == (2, "not_yet")
    assert "Hint 1 of 3" in stage(run_id, "hint")
    address, command = WRONG[lesson]
    ssh(address, command)
    with figures():
        status, found = check(run_id)
        assert status == 2
        assert found["verdict"] in ("not_yet", "not_measured")
    if lesson in UNDO:
        ssh(SERVER, UNDO[lesson])
    stage(run_id, "exercise")
    stage(run_id, "solve")
    with figures():
        status, found = check(run_id)
        assert (status, found["verdict"]) == (0, "cured")
    told = finish(playbook("playbooks/lesson.yml", run_id=run_id, stage="transfer", predict="none"))
    assert "## Transfer" in told
    lesson_json = json.loads((ROOT / "results" / run_id / "lesson.json").read_text())
    assert lesson_json["exercise"]["solved"]
    assert lesson_json["exercise"]["hints"] == 1
    assert None not in [one["truth"] for one in lesson_json["transfer"]]
    run("playbooks/bundle.yml", run_id=run_id)
    bundle = ROOT / "results" / f"{run_id}.tar.gz"
    verified = finish(playbook("playbooks/verify.yml", bundle=str(bundle)))
    assert "Files that differ: 0." in verified
    shutil.rmtree(bundle.with_name(f"{run_id}.derived"))
    bundle.unlink()
