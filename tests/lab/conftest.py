"""The lab run for real on the local hosts. Needs root; the hosts are removed at the end."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .figures import pytest_pyfunc_call as pytest_pyfunc_call

ROOT = Path(__file__).parents[2]
# Hosts of the tests' own: a user's may be up beside them.
SUBNET = "10.78"
STATE = Path(f"/var/lib/loadlab-{SUBNET}")
SERVER, CLIENT = f"{SUBNET}.0.11", f"{SUBNET}.0.12"
TESTED = {"server": f"{SUBNET}.1.11", "client": f"{SUBNET}.1.12"}
# Seconds in which the link is measured each way, no curve beside a rate, and no cross-check: no
# test looks at these, unless it gives the option itself.
BRIEF = {"iperf3_seconds": 1, "curve": False, "cross_check": False, "local_hosts_subnet": SUBNET}
# It begins with new hosts, and the others use what it has deployed there.
FIRST = "test_lab"
# They leave other hosts or none; those before them go on with the hosts that are there.
LAST = (
    "test_faults",
    "test_clients",
    "test_scale",
    "test_strangers",
    "test_aws",
    "test_tuning",
    "test_releases",
    "test_local_vms",
)


def playbook(*names: str, **variables: Any) -> subprocess.Popen[str]:
    """Start ansible-playbook with one playbook or several as a user would, on another
    ``inventory`` where one is given; its output is collected."""
    words = ["ansible-playbook", *names, "-i", variables.pop("inventory", "inventory/local")]
    for key, value in {**BRIEF, **variables}.items():
        words += ["-e", json.dumps({key: value}, default=str)]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    return subprocess.Popen(
        words,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A group of its own, so that a test can end all of it.
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], seconds: float = 900) -> str:
    """Wait for a playbook and return what it printed; it must have succeeded.

    A run whose measurements are all void has: others' load on this machine does that, and tests of
    figures look at the validity. One that does not end in time is killed, and fails the test.
    """
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 0 or "No measurement is valid: " in output, output[-6000:]
    return output


def run(*names: str, **variables: Any) -> str:
    return finish(playbook(*names, **variables))


def loadlab(*words: str) -> str:
    """Run a command of the lab that touches no host, and return what it printed."""
    command = [sys.executable, "-m", "loadlab", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def stages(*names: str) -> list[str]:
    """The playbooks of stages, for one command that runs them one after another."""
    return [f"playbooks/{name}.yml" for name in names]


def ssh_words(address: str, command: str) -> list[str]:
    """The words that run a command on a local host, over a connection of its own."""
    return [
        "ssh",
        *("-i", str(STATE / "id_ed25519")),
        *("-o", f"UserKnownHostsFile={STATE}/known_hosts", "-o", "BatchMode=yes"),
        f"root@{address}",
        command,
    ]


def ssh(address: str, command: str, seconds: float = 60) -> str:
    """Run a command on a local host, over a connection of its own."""
    words = ssh_words(address, command)
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=seconds)
    return done.stdout


def results(run_id: str) -> dict[str, dict[str, Any]]:
    """The last result.json of each cell of a run, by "<generator> <endpoint>"."""
    found = {}
    for path in sorted((ROOT / "results" / run_id).glob("cells/*/rep-*/result.json")):
        result = json.loads(path.read_text())
        cell = result["cell"]
        found[f"{cell['load']['generator']} {cell['endpoint']}"] = result
    return found


@pytest.fixture
def run_id(request: pytest.FixtureRequest) -> str:
    """A run of the test's own, beginning from nothing."""
    name = "-".join(re.findall("[a-z0-9]+", request.node.name.lower()))[:64].rstrip("-")
    shutil.rmtree(ROOT / "results" / name, ignore_errors=True)
    return name


@contextlib.contextmanager
def study_file(cells: dict[str, Any], **options: Any) -> Iterator[str]:
    """The name of a study of the test's own, its cells' options by their names."""
    path = ROOT / "files" / "studies" / "of-a-test.yml"
    entries = [{"name": name, "options": words} for name, words in cells.items()]
    file = {"description": "a test's", "options": options, "cells": entries, "aa_controls": False}
    path.write_text(yaml.safe_dump(file))
    try:
        yield path.stem
    finally:
        path.unlink()


@pytest.fixture(scope="session", autouse=True)
def hosts() -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.fail("the local hosts are system containers, which only root can make")
    # Of a session that was killed, in whatever state.
    if STATE.exists():
        run("playbooks/teardown.yml")
    yield
    run("playbooks/teardown.yml")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        name = item.path.stem if item.path.parent == Path(__file__).parent else ""
        return LAST.index(name) + 1 if name in LAST else -(name == FIRST)

    items.sort(key=place)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-stacks",
        action="store_true",
        help="Deploy every stack there is and not only as many as cover every choice.",
    )
