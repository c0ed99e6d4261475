"""Releases beside the default: Debian 12, which uWSGI's event loops need, from deploy to result;
and Ubuntu 24.04, from new hosts to the report and back."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT, SERVER, SUBNET, playbook, results, run, ssh, stages
from .test_stacks import APPS
from .test_tuning import look

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


UBUNTU = {"local_hosts_release": "noble", "run_id": "test-releases-ubuntu"}


@pytest.fixture(scope="module")
def ubuntu() -> dict[str, list[str]]:
    """What new hosts have, with a PostgreSQL that runs."""
    shutil.rmtree(ROOT / "results" / UBUNTU["run_id"], ignore_errors=True)
    run(*stages("hosts"), local_hosts_release="noble", local_hosts_fresh=True)
    assert "VERSION_CODENAME=noble" in ssh(SERVER, "cat /etc/os-release")
    ssh(SERVER, "systemctl --quiet enable --now postgresql")
    return look()


def test_tuning_of_ubuntu_is_taken_back_whole(ubuntu: dict[str, list[str]]) -> None:
    run(*stages("tune"), tuning="production", **UBUNTU)
    assert look() != ubuntu
    run("playbooks/untune.yml", local_hosts_release="noble")
    assert look() == ubuntu


@pytest.mark.usefixtures("ubuntu")
@pytest.mark.parametrize(("framework", "server"), [("flask", "uwsgi"), ("django", "gunicorn")])
def test_ubuntu_up_to_the_report(framework: str, server: str) -> None:
    asked = {"framework": framework, "server": server, "endpoint": "agents", "rate": 50}
    words = {**UBUNTU, "run_id": f"{UBUNTU['run_id']}-{server}"}
    shutil.rmtree(ROOT / "results" / words["run_id"], ignore_errors=True)
    run("lab.yml", **asked, duration=5, warmup=1, **words)
    result = results(words["run_id"])["metronome agents"]
    assert result["reverse_proxy_requests"] == result["requests"] == 250
    assert sum(result["errors"].values()) == 0
    assert "Ubuntu 24.04" in (ROOT / "results" / words["run_id"] / "report.html").read_text()
    again = run("lab.yml", "-v", **words)
    assert f"server: {framework} already deployed, nothing to do" in again
    assert "changed=0 " in again.rpartition("server  ")[2]


def test_an_archive_that_does_not_answer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that this machine's apt does not have.
    debian = "ID=debian" in Path("/etc/os-release").read_text().splitlines()
    release, archive = (
        ("noble", "archive.ubuntu.com/ubuntu") if debian else ("trixie", "deb.debian.org/debian")
    )
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    options = {"local_hosts_release": release, "local_hosts_cache": str(tmp_path)}
    process = playbook("playbooks/hosts.yml", generator="wrk", local_hosts_fresh=True, **options)
    output = " ".join(process.communicate(timeout=120)[0].split())
    assert process.returncode != 0
    assert f"{release} comes from http://{archive}, which this machine cannot use: " in output
    assert "Set a proxy (http_proxy)" in output
    assert "No host was made." in output
