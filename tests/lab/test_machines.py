"""Machines that fail under load: the run names the accident, and measures the rest.

Their clock is that of the machine under them: test_local_vms sets clocks.
"""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from .conftest import CLIENT, ROOT, SERVER, STATE, finish, playbook, run, ssh, ssh_words, stages
from .limit_cases import ENOUGH_MEMORY, SHORT_OF_MEMORY
from .test_faults import records, wait_until_measuring

pytestmark = pytest.mark.lab

RUN_ID = "test-machines"
# Long enough for a link that is down for 5 s.
LOAD = {
    "framework": "aiohttp",
    "endpoint": "agents",
    "generator": "wrk",
    "duration": 8,
    "warmup": 0,
}
RUNS = "/var/lib/loadlab-runs"
REPORT = stages("load", "collect", "report")


def host(name: str) -> str:
    """The name of a local host on this machine."""
    return f"{STATE.name.replace('.', '-')}-{name}"


def lose_link() -> None:
    """Take the carrier from both ends, as a cable or a switch would."""
    for state, seconds in (("down", 5), ("up", 0)):
        command = ["ip", "-n", host("server"), "link", "set", "test0", state]
        subprocess.run(command, check=True)
        time.sleep(seconds)


def run_out_of_memory() -> None:
    for script, seconds in ((SHORT_OF_MEMORY, 2), (ENOUGH_MEMORY, 0)):
        subprocess.run(["bash", "-c", script], check=True)
        time.sleep(seconds)


def boot(name: str) -> None:
    """Boot a host as its owner would, in the middle of whatever it does."""
    kept = STATE / f"hosts/{name}/pid"
    ended = Path("/proc", kept.read_text().strip())
    words = ended.joinpath("cmdline").read_text().rstrip("\0").split("\0")
    # The connection ends with the host.
    address = {"client": CLIENT, "server": SERVER}[name]
    subprocess.run(ssh_words(address, "systemctl reboot"), check=False, capture_output=True)
    deadline = time.monotonic() + 60
    while ended.exists():
        assert time.monotonic() < deadline, "it does not go down"
        time.sleep(0.05)
    # A supervisor that keeps its unit leaves it to that to start it again.
    groups = [path for path in Path("/sys/fs/cgroup").glob(f"**/{host(name)}") if path.is_dir()]
    for group in groups:
        left = ["find", str(group), "-mindepth", "1", "-depth", "-type", "d", "-delete"]
        subprocess.run(left, check=True)
    join = "".join(f"echo $$ >{group}/cgroup.procs; " for group in groups)
    again = subprocess.Popen(
        ["bash", "-c", f'{join} exec "$@"', "bash", *words],
        env={**os.environ, "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    kept.write_text(f"{again.pid}\n")


# The repetition -> what happens to a machine in it, the reason, and its words.
ACCIDENTS: dict[int, tuple[Callable[[], None], str, str]] = {
    1: (lose_link, "link_down", "the test link was down 1 time on server and client"),
    2: (partial(boot, "server"), "failed", "server: was booted during the load"),
    3: (run_out_of_memory, "killed", "because memory was used up"),
    4: (partial(boot, "client"), "failed", "client: was booted during the load"),
}


def codes(record: dict[str, Any]) -> list[str]:
    validity = record["validity"]
    return [reason["code"] for reason in (*validity["reasons"], *validity["findings"])]


@pytest.fixture(scope="module", autouse=True)
def deployed() -> None:
    """The hosts of a run that has measured nothing yet."""
    shutil.rmtree(ROOT / "results" / RUN_ID, ignore_errors=True)
    run(*stages("hosts", "tune", "deploy"), **LOAD, repetitions=len(ACCIDENTS), run_id=RUN_ID)


def test_accidents_cost_their_repetition_and_are_the_last_lines() -> None:
    loading = playbook(*REPORT, run_id=RUN_ID)
    for repetition, (bring_about, _, _) in ACCIDENTS.items():
        wait_until_measuring(loading, RUN_ID, repetition)
        bring_about()
    _, last_lines = finish(loading).split("Report: ")
    told = " ".join(last_lines.split())
    measured = records(RUN_ID)
    report = (ROOT / "results" / RUN_ID / "report.html").read_text()
    for repetition, (_, code, words) in ACCIDENTS.items():
        assert code in codes(measured[repetition - 1]), measured[repetition - 1]["validity"]
        assert words in told
        assert words in report
    others = measured[len(ACCIDENTS) :]
    assert len(others) >= 2
    assert {record["error"] for record in others} == {None}


def test_a_full_disk_of_the_client_is_named_until_it_has_room() -> None:
    before = records(RUN_ID)
    fill = (
        f"until grep -qx measuring {RUNS}/{RUN_ID}/cells/*/rep-{len(before) + 1}/progress.txt; "
        f"do sleep 0.1; done; sleep 1; dd if=/dev/zero of={RUNS}/fill bs=4k"
    )
    ssh(
        CLIENT,
        f"mkdir -p {RUNS} && mount -t tmpfs -o size=16m tmpfs {RUNS} && "
        f"systemd-run --quiet --collect sh -c {shlex.quote(fill)}",
    )
    try:
        loading = playbook(*REPORT, run_id=RUN_ID, repetitions=len(ACCIDENTS) + 1)
        told = " ".join(loading.communicate(timeout=300)[0].split())
    finally:
        ssh(CLIENT, f"umount {RUNS}")
    first, second = records(RUN_ID)[len(before) :]
    for failed in (first, second):
        assert "client: the disk with" in failed["error"]
    assert "Skipped after 2 failed attempts" in told
    run("playbooks/load.yml", run_id=RUN_ID)
    assert records(RUN_ID)[-1]["error"] is None
