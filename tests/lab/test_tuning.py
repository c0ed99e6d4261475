"""Tuning is taken back: whatever was put on top of what, and also after a crash half-way."""

from __future__ import annotations

import json
import signal
import time

import pytest

from .conftest import CLIENT, ROOT, SERVER, playbook, run, ssh

pytestmark = pytest.mark.lab

# Everything that may be set in a host's namespaces, and every file of settings. The rest of
# sysctl -a is the whole machine's, counts something, or is random.
LOOK = """
    sysctl -a 2>/dev/null | grep -E '^(net|vm|fs.file-max|fs.nr_open|kernel.pid_max)' \
        | grep -v -E 'conntrack_count|nf_conntrack|vm.stat|drop_caches|compact_memory'
    find /etc/sysctl.d /etc/sysctl.conf /etc/security /etc/systemd /etc/postgresql \
        /var/lib/loadlab-tuning -type f 2>/dev/null | sort | xargs -r sha256sum
    runuser -u postgres -- psql -X -A -t -c 'SELECT name, setting FROM pg_settings' 2>/dev/null
    true
"""


def look() -> dict[str, str]:
    return {host: ssh(host, LOOK) for host in (SERVER, CLIENT)}


def sysctl(host: str, key: str) -> str:
    return " ".join(ssh(host, f"sysctl -n {key}").split())


def test_taken_back_whole(run_id: str) -> None:
    run("playbooks/hosts.yml", local_hosts_fresh="true", run_id=run_id)
    # The tune stage starts PostgreSQL, which a fresh host does not run; that is no tuning.
    run("playbooks/tune.yml", tuning="stock", run_id=run_id)
    run("playbooks/untune.yml")
    found = look()
    ports = sysctl(CLIENT, "net.ipv4.ip_local_port_range")

    run("playbooks/tune.yml", tuning="production", run_id=run_id)
    assert sysctl(CLIENT, "net.ipv4.ip_local_port_range") == "1024 65535" != ports
    # Another profile on top: what only the first one set is put back at once.
    run("playbooks/tune.yml", tuning="mcdonnell", run_id=run_id)
    assert sysctl(SERVER, "net.core.somaxconn") == "8191"
    assert sysctl(CLIENT, "net.ipv4.ip_local_port_range") == ports
    rows = json.loads((ROOT / "results" / run_id / "tuning.json").read_text())["hosts"]["client"]
    states = {row["key"]: row["state"] for row in rows}
    assert states["net.core.somaxconn"] == "applied"
    assert states["net.ipv4.ip_local_port_range"] == "restored"
    assert look() != found

    run("playbooks/untune.yml")
    assert look() == found
    assert "changed=0" in run("playbooks/untune.yml").rpartition("server  ")[2]


def test_taken_back_after_a_crash(run_id: str) -> None:
    run("playbooks/hosts.yml", run_id=run_id)
    run("playbooks/tune.yml", tuning="stock", run_id=run_id)
    run("playbooks/untune.yml")
    found = look()

    tuning = playbook("playbooks/tune.yml", tuning="production", run_id=run_id)
    deadline = time.monotonic() + 60
    while sysctl(SERVER, "net.core.somaxconn") != "16384" and time.monotonic() < deadline:
        time.sleep(0.05)
    tuning.send_signal(signal.SIGKILL)
    tuning.wait()
    assert sysctl(SERVER, "net.core.somaxconn") == "16384"

    run("playbooks/untune.yml")
    assert look() == found
