"""The commands of the servers, and which interfaces they run."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from loadlab.model import Options
from loadlab.plan import check_options
from loadlab.run.catalog import names
from loadlab.run.errors import PlanError
from loadlab.stacks import application, servers, stacks
from loadlab.stacks.servers import Places
from tests.unit import builders

ROOT = Path(__file__).parents[3]
PLACES = Places(
    listen="unix:/run/app.sock",
    router="/run/uwsgi.sock",
    deps="/deps",
    workers=2,
    threads=3,
    keepalive=75,
    backlog=4096,
    module="app:application",
)
GUNICORN = (
    "/deps/venv/bin/gunicorn --bind unix:/run/app.sock --backlog 4096 --worker-class {} --workers "
    "2 --threads 3 --keep-alive 75 --worker-tmp-dir /dev/shm --no-control-socket --log-level "
    "warning {}app:application"
)
UWSGI = (
    "/usr/bin/uwsgi-core --plugins python3 --strict --master --need-app --single-interpreter "
    "--lazy-apps --vacuum --die-on-term --disable-logging --enable-threads --chmod-socket=666 "
    "--listen 4096 --processes 2 {} --virtualenv /deps/venv --module app:application"
)


def asked(framework: str, **given: Any) -> stacks.Stack:
    values: Options = check_options.options(builders.SPECS, {"framework": framework, **given})
    return stacks.stack(ROOT, values, None)


GRANIAN = (
    "/deps/venv/bin/granian --interface {} --uds /run/app.sock --uds-permissions 0666 --backlog "
    "4096 --backpressure 65536 --workers 2 --http 1 --no-ws --http1-header-read-timeout 60000 "
    "--log-level warning app:application"
)


COMMANDS = {
    "flask": GUNICORN.format("gthread", ""),
    "flask worker_class=gevent": GUNICORN.format("gevent", ""),
    "fastapi": GUNICORN.format("uvicorn_worker.UvicornWorker", ""),
    "quart worker_class=asgi": GUNICORN.format("asgi", "--asgi-loop uvloop "),
    "bottle server=granian": GRANIAN.format("wsgi --blocking-threads 3"),
    "plain_rsgi": GRANIAN.format("rsgi --loop uvloop"),
    "django server=waitress": "/deps/venv/bin/waitress-serve --unix-socket /run/app.sock "
    "--unix-socket-perms 666 --backlog 4096 --threads 3 --channel-timeout 75 --connection-limit "
    "65536 --asyncore-use-poll app:application",
    "litestar server=hypercorn": "/deps/venv/bin/hypercorn --bind unix:/run/app.sock --umask 0 "
    "--backlog 4096 --workers 2 --worker-class uvloop --keep-alive 75 --log-level warning "
    "app:application",
    "starlette server=uvicorn": "/deps/venv/bin/uvicorn --uds /run/app.sock --backlog 4096 "
    "--workers 2 --loop uvloop --http httptools --timeout-keep-alive 75 --log-level warning "
    "--no-access-log app:application",
    "flask server=uwsgi protocol=fastcgi": UWSGI.format(
        "--fastcgi-socket /run/app.sock --threads 3"
    ),
    "flask server=uwsgi protocol=http": UWSGI.format(
        "--plugin http --http /run/app.sock --http-to /run/uwsgi.sock --http-keepalive=75 "
        "--http-auto-chunked --http-processes 2 --uwsgi-socket /run/uwsgi.sock --threads 3"
    ),
    "flask server=uwsgi protocol=http upstream_keepalive=no": UWSGI.format(
        '--http-socket /run/app.sock --add-header "Connection: close" --threads 3'
    ),
    "sanic": "/deps/venv/bin/python app.py",
    "golang": "/deps/app",
    "nodejs": "/usr/bin/node app.js",
}


@pytest.mark.parametrize("stack", COMMANDS)
def test_a_server_is_started_by_its_own_command(stack: str) -> None:
    framework, *choices = stack.split()
    chosen = asked(framework, **dict(choice.split("=") for choice in choices))
    assert servers.command(chosen, PLACES) == COMMANDS[stack]


@pytest.mark.parametrize(
    ("framework", "server", "words"),
    [
        ("flask", "granian", "--host 10.0.0.1 --port 8000"),
        ("flask", "waitress", "--listen 10.0.0.1:8000"),
        ("flask", "gunicorn", "--bind 10.0.0.1:8000"),
        ("fastapi", "hypercorn", "--bind 10.0.0.1:8000"),
        ("fastapi", "uvicorn", "--host 10.0.0.1 --port 8000"),
    ],
)
def test_a_server_alone_listens_for_clients(framework: str, server: str, words: str) -> None:
    stack = asked(framework, server=server, reverse_proxy="none")
    assert words in servers.command(stack, replace(PLACES, listen="10.0.0.1:8000"))


def test_every_application_runs_on_every_server_of_its_interface() -> None:
    """With each of its commands complete."""
    for framework in names(ROOT / "apps", "*/app.yml"):
        app = application.manifest(ROOT, f"apps/{framework}")
        for one in servers.offered(ROOT, app.interface):
            assert "{" not in servers.command(one, PLACES)
    wsgi = {one.server for one in servers.offered(ROOT, "wsgi")}
    asgi = {one.server for one in servers.offered(ROOT, "asgi")}
    assert wsgi == {"gunicorn", "granian", "uwsgi", "waitress"}
    assert asgi == {"gunicorn", "granian", "hypercorn", "uvicorn"}
    assert {one.server for one in servers.offered(ROOT, "sanic")} == asgi | {"native"}


def test_what_an_application_does_not_run_on_is_refused_with_the_reason() -> None:
    with pytest.raises(PlanError, match=r"worker_class=asgi: Sanic gives its headers as a gener"):
        asked("sanic", server="gunicorn", worker_class="asgi")
    with pytest.raises(PlanError, match=r"transport=unix: CherryPy reads SERVER_PORT as a number"):
        asked("cherrypy", server="waitress", transport="unix")
    # Left open, another of the server's takes its place.
    assert asked("cherrypy", server="waitress").transport == "tcp"


def test_a_stack_has_the_accept_queue_that_its_server_always_has() -> None:
    assert asked("fastapi", worker_class="asgi").own_backlog == 100
    assert asked("fastapi", worker_class="asgi", backlog=100).own_backlog == 100
    assert asked("fastapi", backlog=64).own_backlog is None


def test_a_server_of_one_process_has_one_worker() -> None:
    assert asked("flask", server="waitress").workers == 1


def test_a_new_server_is_one_folder(tmp_path: Path) -> None:
    folder = tmp_path / "files/servers/new"
    folder.mkdir(parents=True)
    (tmp_path / "files/interfaces.yml").symlink_to(ROOT / "files/interfaces.yml")
    row = {"transport": "tcp", "protocol": "http", "upstream_keepalive": False}
    server = {"command": "{venv}/bin/new --to {address} {port}", "stacks": {"asgi": [row]}}
    (folder / "server.yml").write_text(yaml.safe_dump(server))
    (folder / "requirements.txt").touch()
    (one,) = servers.offered(tmp_path, "asgi")
    assert one.started.lock == "files/servers/new/requirements.txt"
    places = replace(PLACES, listen="127.0.0.1:8000")
    assert servers.command(one, places) == "/deps/venv/bin/new --to 127.0.0.1 8000"
    assert servers.refusal(tmp_path, "wsgi", "new") == "new runs no WSGI applications"

    server["command"] = "{venv}/bin/new {colour}"
    (folder / "server.yml").write_text(yaml.safe_dump(server))
    (one,) = servers.offered(tmp_path, "asgi")
    with pytest.raises(PlanError, match=r"files/servers/new/server.yml: \{colour\} is not known\."):
        servers.command(one, places)


def test_packages_that_the_application_names_are_left_out_of_the_servers() -> None:
    lock = """\
# of the server
h11==0.16.0 \\
    --hash=sha256:aa
    # via uvicorn
typing-extensions==4.16.0 \\
    --hash=sha256:bb
Uvicorn[standard]==0.54.0 \\
    --hash=sha256:cc
zope.event==6.2 \\
    --hash=sha256:dd
"""
    own = """\
./wheels/uvicorn-0.54.0-py3-none-any.whl \\
    --hash=sha256:ee
typing_extensions==4.1 ; python_version < '3.13' \\
    --hash=sha256:ff
zope-event==6.1 \\
    --hash=sha256:gg
"""
    left = servers.without(lock, own)
    assert re.findall(r"^[\w.-]+(?==)", left, re.MULTILINE) == ["h11", "typing-extensions"]
    assert "sha256:aa" in left
    assert "sha256:dd" not in left
    for name in ("gunicorn", "granian"):
        text = (ROOT / servers.FOLDER / name / "requirements.txt").read_text()
        assert servers.without(text, "") == text
        assert "==" not in servers.without(text, re.sub(r" ;[^\\]*", "", text))
