"""What needs Debian 12: uWSGI's event loops, on hosts of that release, from deploy to result."""

import json
import shutil
from collections.abc import Iterator

import pytest

from .conftest import ROOT, SERVER, SUBNET, playbook, results, run, ssh, stages
from .test_stacks import APPS

pytestmark = pytest.mark.lab

RUN_ID = "test-releases"
RELEASE = {"local_hosts_release": "bookworm", "run_id": RUN_ID}


@pytest.fixture(scope="module")
def bookworm() -> Iterator[None]:
    shutil.rmtree(ROOT / "results" / RUN_ID, ignore_errors=True)
    run(*stages("hosts"), local_hosts_release=RELEASE["local_hosts_release"])
    run(*stages("tune"), tuning="production", **RELEASE)
    assert "VERSION_CODENAME=bookworm" in ssh(SERVER, "cat /etc/os-release")
    yield
    # The other tests find the release that is the default.
    run("playbooks/teardown.yml")


def deploy(framework: str, protocol: str, transport: str) -> None:
    """Every endpoint of it in uWSGI, verified."""
    endpoints = APPS[framework]["endpoints"]
    run(
        "playbooks/deploy.yml",
        framework=framework,
        server="uwsgi",
        protocol=protocol,
        transport=transport,
        endpoint=",".join(endpoints),
        **RELEASE,
    )
    answers = json.loads((ROOT / "results" / RUN_ID / "answers.json").read_text())
    assert set(answers) == {*endpoints, "static"}
    assert "/usr/bin/uwsgi-core" in ssh(SERVER, "ps -u loadlab -o args=")


@pytest.mark.parametrize(
    ("framework", "protocol", "transport"),
    [("tornado_coroutine", "http", "tcp"), ("twisted", "fastcgi", "unix")],
)
def test_event_loops_in_uwsgi(
    bookworm: None, framework: str, protocol: str, transport: str
) -> None:
    deploy(framework, protocol, transport)


def test_a_load_is_carried_by_the_loop(bookworm: None) -> None:
    """100 requests/s that wait 50 ms each: one process that held each would do 20."""
    deploy("tornado", "uwsgi", "unix")
    asked = {"framework": "tornado", "server": "uwsgi", "endpoint": "sleep", "rate": 100}
    run(*stages("load", "collect"), **asked, duration=5, warmup=1, **RELEASE)
    result = results(RUN_ID)["metronome sleep"]
    assert result["reverse_proxy_requests"] == result["requests"]
    assert result["goodput"] > 95
    assert sum(result["errors"].values()) == 0
    # Without its word it would go on with the release that is the default.
    elsewhere = playbook("lab.yml", run_id=RUN_ID)
    told = " ".join(elsewhere.communicate(timeout=60)[0].split())
    assert elsewhere.returncode != 0
    assert "was begun on containers of this machine with Debian bookworm, and would go on" in told
    given = f"-e local_hosts_release=bookworm -e local_hosts_subnet={SUBNET}"
    assert f"give {given}, or another -e run_id=<name>." in told
    assert "Nothing was changed." in told


def test_refused_on_newer_pythons() -> None:
    process = playbook("lab.yml", framework="tornado", server="uwsgi")
    output, _ = process.communicate(timeout=60)
    told = " ".join(output.split())
    assert process.returncode != 0
    assert "tornado does not run with server=uwsgi on Python 3.13" in told
    assert "crash on Python 3.12 and newer" in told
    assert "-e local_hosts_release=bookworm" in told
    assert "Nothing was changed" in told
