"""Ansible's own connections to several hosts from one action; SSH is a script."""

import gzip
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.lab.bench.plugins.plugin_utils import elsewhere
from msgspec import to_builtins

from loadlab.run.errors import LabError
from tests.unit import builders

ROOT = Path(__file__).parents[2]
# Runs the command here. Of the server, the connection stays and forwards a port, of which the
# exporter beside it is the other end.
SSH = """#!/bin/sh
for word; do host=$command command=$word; done
echo "$host" >>{folder}/connected
[ ! -e {folder}/down ] || { echo "ssh: connect to host $host: timed out" >&2; exit 255; }
[ "$host" != at-server ] || {python} {folder}/exporter.py </dev/null >/dev/null 2>&1 &
sleep 0.2
exec sh -c "$command"
"""
EXPORTER = """
import http.server, os, pathlib, signal
# Not for ever, whatever becomes of the test.
signal.alarm(300)
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a 1\\n")
        pathlib.Path("{folder}/served").touch()
# Fails where another has the port.
server = http.server.ThreadingHTTPServer(("127.0.0.1", {port}), Page)
pathlib.Path("{folder}/pid").write_text(str(os.getpid()))
server.serve_forever()
"""


def playbook(folder: Path, task: dict[str, Any], *names: str) -> subprocess.Popen[str]:
    """Start a play of one task on the first of some hosts."""
    ssh = folder / "ssh"
    ssh.write_text(SSH.replace("{folder}", str(folder)).replace("{python}", sys.executable))
    ssh.chmod(0o755)
    hosts = {name: {"ansible_host": f"at-{name}"} for name in names}
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    play = {"hosts": names[0], "gather_facts": False, "tasks": [task]}
    (folder / "play.json").write_text(json.dumps([play]))
    words = ["ansible-playbook", "-i", f"{folder}/hosts.json", f"{folder}/play.json", "-v"]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    environment |= {"ANSIBLE_SSH_EXECUTABLE": str(ssh), "ANSIBLE_SSH_RETRIES": "0"}
    return subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_commands_run_at_once_and_their_failures_are_named(tmp_path: Path) -> None:
    commands = {"one": "exit 0", "two": "echo broken >&2; exit 3", "three": "exit 4"}
    then = {"one": f"touch {tmp_path}/then"}
    task = {"lab.bench.at_once": {"commands": commands, "then": then}}
    began = playbook(tmp_path, task, *commands)
    output = began.communicate(timeout=120)[0]
    assert began.returncode != 0
    assert "two: broken; three: exit status 4" in output
    assert not (tmp_path / "then").exists()
    connected = (tmp_path / "connected").read_text().split()
    assert sorted(connected[-3:]) == ["at-one", "at-three", "at-two"]


def test_a_host_out_of_reach_is_named(tmp_path: Path) -> None:
    (tmp_path / "down").touch()
    commands = {"one": "exit 0", "two": "exit 0"}
    began = playbook(tmp_path, {"lab.bench.at_once": {"commands": commands}}, *commands)
    output = began.communicate(timeout=120)[0]
    assert began.returncode == 4
    last = output.splitlines()[-1]
    assert last.startswith("one: unreachable over SSH (")
    assert "timed out) at the task " in last


def test_a_lost_host_may_fail_its_task_instead() -> None:
    problem = AnsibleConnectionFailure("Failed to connect to the host via ssh: timed out\n")
    words = r"^server: unreachable over SSH \(timed out\)$"
    with pytest.raises(LabError, match=words), elsewhere.failing_for_lost_hosts():
        raise elsewhere.HostLost("server", problem)


def test_the_watch_opens_a_port_forward_again_whose_ssh_ended(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = EXPORTER.format(port=port, folder=tmp_path)
    (tmp_path / "exporter.py").write_text(script)
    recording = tmp_path / "server.prom.gz"
    item = to_builtins(builders.item())
    task = {
        "lab.bench.watch": {
            "item": {**item, "position": 1, "total": 1, "seconds_left": 1},
            "dir": f"{tmp_path}/cells/a-cell/rep-1",
            "path": "/",
            "server": "",
            "seconds": 1,
            "most": 600,
            "until": f"test -e {tmp_path}/over",
            "scrape": {
                str(recording): {"name": "server", "exporter": f"http://127.0.0.1:{port}/metrics"}
            },
        }
    }
    watching = playbook(tmp_path, task, "client", "server")
    # Nothing forwards the port at first either.
    for last in (False, False, True):
        wait_for(tmp_path / "served")
        if last:
            (tmp_path / "over").touch()
            output = watching.communicate(timeout=120)[0]
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        (tmp_path / "served").unlink()
    assert watching.returncode == 0, output
    lines = gzip.decompress(recording.read_bytes()).decode().splitlines()
    scrapes = [line for line in lines if line.startswith("# scrape ")]
    assert {" failed: ConnectionRefusedError" in line for line in scrapes if "failed" in line} == {
        True
    }
    # Each time for as long as it takes to connect.
    missing = ["failed" in line for line in scrapes]
    assert [key for key, _ in itertools.groupby(missing)] == [True, False] * 3
    assert {*(tmp_path / "connected").read_text().split()} == {"at-server", "at-client"}


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path}"
        time.sleep(0.05)
