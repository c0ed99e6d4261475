"""Every stack answers the same contract through nginx, alone on the server."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadlab.run.catalog import load_yaml, names
from loadlab.stacks import application, servers
from loadlab.stacks.stacks import CHOICES, of_application

from .conftest import ROOT, SERVER, finish, playbook, run, ssh, stages

pytestmark = pytest.mark.lab

APPS = {
    name: load_yaml(ROOT / "apps" / name / "app.yml") for name in names(ROOT / "apps", "*/app.yml")
}
# The program of each server that is not the application itself, as ps shows it.
PROGRAMS = {
    name: f"{server.command.split()[0].removeprefix('{venv}')} "
    for name, server in servers.servers(ROOT).items()
    if name != "native"
}
RUN = "test-stacks"
# Of each interface one, of each server, transport and language too; both of psycopg2 and psycopg.
CORE = {
    "django-uwsgi-unix-fastcgi-False-psycopg",
    "flask-gunicorn-unix-http-gthread-True",
    "fastapi-uvicorn-tcp-http-False",
    "nodejs-native-unix-http-True",
}


def every() -> Iterator[dict[str, Any]]:
    """Every stack of every application that runs on the hosts' Python.

    Further drivers are asked for over one socket of each server, worker class and protocol only.
    """
    for framework, app in APPS.items():
        seen = set()
        for stack in of_application(ROOT, application.manifest(ROOT, f"apps/{framework}")):
            if stack.python_below is None:
                one: dict[str, Any] = {"framework": framework}
                one |= {key: getattr(stack, key) for key in CHOICES}
                yield one
                key = (stack.server, stack.worker_class, stack.protocol)
                if key not in seen:
                    yield from ({**one, "driver": name} for name in app.get("drivers", [])[1:])
                seen.add(key)


def covering(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of them few that have every application with each of its drivers, and on each server of each
    interface every choice there is. CORE is among them."""

    def covered(stack: dict[str, Any]) -> set[tuple[Any, ...]]:
        framework, server = stack["framework"], stack["server"]
        interface = APPS[framework]["interface"]
        return (
            {
                (interface, server, key, stack[key])
                for key in ("worker_class", "event_loop", "upstream_keepalive")
            }
            | {(framework, "driver", stack.get("driver"))}
            | {(stack["worker_class"], "driver", stack.get("driver"))}
            | {(interface, server, stack["transport"], stack["protocol"])}
        )

    chosen = [stack for stack in found if name(stack) in CORE]
    left = set().union(*map(covered, found)).difference(*map(covered, chosen))
    while left:
        best = max(found, key=lambda stack: len(covered(stack) & left))
        chosen.append(best)
        left -= covered(best)
    return sorted(chosen, key=lambda stack: stack["framework"])


def asked(stack: dict[str, Any]) -> dict[str, Any]:
    words = {key: value for key, value in stack.items() if value is not None}
    # nginx alone has no transport that one could ask for.
    return {key: value for key, value in words.items() if value != "none"}


def name(stack: dict[str, Any]) -> str:
    return "-".join(str(value) for value in stack.values() if value is not None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "stack" in metafunc.fixturenames:
        found = list(every())
        if not metafunc.config.getoption("--all-stacks", default=False):
            found = covering(found)
        few = [pytest.param(one, marks=pytest.mark.core) for one in found if name(one) in CORE]
        assert len(few) == len(CORE)
        rest = [one for one in found if name(one) not in CORE]
        metafunc.parametrize("stack", [*few, *rest], ids=name)


@pytest.fixture(scope="module")
def deployed(request: pytest.FixtureRequest) -> Path:
    """Where stacks.yml left what came of every stack that a test asks for."""
    wanted = []
    for item in request.session.items:
        if not isinstance(item, pytest.Function) or "stack" not in item.fixturenames:
            continue
        stack: Any = item.callspec.params["stack"]
        endpoints = APPS[stack["framework"]]["endpoints"]
        words = {**asked(stack), "endpoint": ",".join(endpoints), "run_id": RUN}
        wanted.append({"name": name(stack), "words": words})
    shutil.rmtree(ROOT / "results" / RUN, ignore_errors=True)
    playbooks = [*stages("hosts", "tune"), "tests/lab/stacks.yml"]
    finish(
        playbook(*playbooks, framework="nginx", run_id=RUN, stacks=wanted), 60 * len(wanted) + 300
    )
    return ROOT / "results" / RUN / "stacks"


def test_answers_as_the_contract_has_it(deployed: Path, stack: dict[str, Any]) -> None:
    found = json.loads((deployed / f"{name(stack)}.json").read_text())
    assert found["errors"] == []
    answers = json.loads((deployed / f"{name(stack)}-answers.json").read_text())
    # nginx's own constant beside them.
    assert set(answers) == {*APPS[stack["framework"]]["endpoints"], "static"}

    # What runs is what was asked for, and nothing of the stack before it.
    running, sockets, nginx, units, drivers = found["seen"].split("==\n")
    assert ("loadlab-app.service" in units) == (stack["transport"] != "none")
    if stack["transport"] == "none":
        assert not running.strip()
        return
    for server, program in PROGRAMS.items():
        assert (program in running) == (stack["server"] == server), running
    if stack["worker_class"]:
        assert f"--worker-class {stack['worker_class']} " in running
    assert ("127.0.0.1:8000" in sockets) == (stack["transport"] == "tcp")
    assert ("app.sock" in sockets) == (stack["transport"] == "unix")
    known = APPS[stack["framework"]].get("drivers", [])
    assert drivers.split() == [stack.get("driver", known[0])] if known else not drivers.strip()
    assert (" keepalive 64;" in nginx) == stack["upstream_keepalive"]


def test_refuses_to_share_the_server(deployed: Path) -> None:
    """A process of another stack that was left over is named, and nothing is measured beside it."""
    ssh(
        SERVER,
        "systemd-run --quiet --unit=leftover --uid=loadlab "
        "python3 -m http.server --bind 127.0.0.1 8123",
    )
    try:
        process = playbook("playbooks/deploy.yml", framework="bottle", run_id=RUN)
        output, _ = process.communicate(timeout=300)
    finally:
        ssh(SERVER, "systemctl stop leftover")
    told = " ".join(output.split())
    assert process.returncode != 0
    assert "bottle is not the only stack" in told
    assert "(python3) of leftover.service" in told
    assert "listens on 127.0.0.1:8123" in told

    # What was cut off so may have left a process of other files than are there: it begins anew.
    asking = "systemctl show --value -p MainPID loadlab-app"
    before = ssh(SERVER, asking)
    run("playbooks/deploy.yml", framework="bottle", run_id=RUN)
    assert int(before) > 0
    assert int(ssh(SERVER, asking)) not in {0, int(before)}
