"""Stacks that are up at once: their files and addresses at a place."""

import itertools
import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import msgspec
import pytest

from loadlab.run.catalog import load_yaml
from loadlab.stacks import places, stacks
from tests.unit import stand_ins
from tests.unit.stacks.test_servers import asked

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "roles/stack/files/place-stacks.py"
ADDRESS = "10.0.0.2"
UNIT = """[Service]
WorkingDirectory=/opt/loadlab/app
RuntimeDirectory=loadlab
Environment=LAB_LISTEN={listen}
Environment=LAB_DATABASE=postgresql:///loadlab?host=/var/run/postgresql
Environment=PYTHONPATH=/opt/loadlab/python:/opt/loadlab/app
ExecStart={command}
"""
CONFIGURATION = """pid /run/nginx.pid;
upstream application {{ server {listen}; }}
server {{ listen 10.0.0.2:80 backlog=4096; }}
"""
NGINX = "[Service]\nPIDFile=/run/nginx.pid\n"


def test_a_place_has_addresses_units_and_logs_of_its_own() -> None:
    served = places.served(ROOT, asked("aiohttp"), ADDRESS, 2)
    assert served.running == ["loadlab-app-2.service", "loadlab-nginx-2.service"]
    assert served.units == {
        "application-2": "loadlab-app-2.service",
        "nginx-2": "loadlab-nginx-2.service",
        "postgresql": "postgresql@*.service",
    }
    assert (served.url, served.tls_url) == ("http://10.0.0.2:8202", "https://10.0.0.2:8302")
    assert served.status == "http://10.0.0.2:8202/lab/status"
    assert served.requests_log == "/opt/loadlab/places/2/var/log/nginx/loadlab.log"
    assert all(fnmatch(f"/run/systemd/system/{unit}", places.UNITS) for unit in served.running)


def test_without_a_reverse_proxy_clients_reach_the_application() -> None:
    served = places.served(ROOT, asked("aiohttp", reverse_proxy="none"), ADDRESS, 1)
    assert served.running == ["loadlab-app-1.service"]
    assert (served.url, served.tls_url, served.status) == ("http://10.0.0.2:8101", "", "")
    assert (served.configuration, served.requests_log, served.errors_log) == ("", "", "")
    # Without an application the reverse proxy answers.
    served = places.served(ROOT, asked("nginx"), ADDRESS, 1)
    assert served.running == ["loadlab-nginx-1.service"]


def test_no_connection_takes_a_port_of_a_place() -> None:
    """Where a profile gives connections all ports, it reserves those of the places."""
    tuning = load_yaml(ROOT / "files/tuning/production.yml")["sysctl"]
    values = {entry["key"]: str(entry["value"]) for entry in tuning}
    ranges = [part.split("-") for part in values["net.ipv4.ip_local_reserved_ports"].split(",")]
    reserved = {port for ends in ranges for port in range(int(ends[0]), int(ends[-1]) + 1)}
    stacks_of_place = [asked("aiohttp", transport="tcp"), asked("aiohttp", reverse_proxy="none")]
    for place, stack in itertools.product((1, 99), stacks_of_place):
        entry: places.Placed = {"place": place, "stack_name": "a", "definition": stack}
        (made,) = places.arrangements(ROOT, [entry], ADDRESS, "", False).places
        assert made.ports
        assert reserved >= set(made.ports)


class Server:
    """A server below ``folder``, with the programs that the script calls."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, folder / "calls"
        self.units = folder / "units"
        for name in ("kept", "units"):
            (folder / name).mkdir()
        fragment = folder / "nginx.service"
        fragment.write_text(NGINX)
        systemctl = f'case $1 in show) echo {fragment} ;; *) echo "$@" >>{self.calls} ;; esac'
        self.bin = stand_ins.put(folder / "bin", {"systemctl": systemctl})
        self.listening("")

    def listening(self, line: str) -> None:
        stand_ins.put(self.bin, {"ss": f"echo '{line}'" if line else "true"})

    def keep(self, name: str, stack: stacks.Stack, answer: str = "hello", **changed: str) -> None:
        """Keep the files of a stack, ``changed``: the text of some by their names."""
        direct = stack.reverse_proxy == "none"
        at = f"{ADDRESS if direct else '127.0.0.1'}:8000"
        listen = "unix:/run/loadlab/app.sock" if stack.transport == "unix" else at
        words = stack.started.socket.format(
            address=at[:-5], port=8000, path="/run/loadlab/app.sock"
        )
        texts = {
            "etc/systemd/system/loadlab-app.service": UNIT.format(
                listen=listen, command=f"serve {words}"
            ),
            "etc/nginx/nginx.conf": CONFIGURATION.format(listen=listen),
            "etc/systemd/system/nginx.service.d/loadlab.conf": "[Service]\nNoNewPrivileges=true\n",
            "opt/loadlab/app/app.py": answer,
            **changed,
        }
        files = stand_ins.tree(self.folder / "files", texts)
        archive = self.folder / "kept" / f"{name}.tar"
        subprocess.run(["tar", "-C", str(files), "-cf", str(archive), "etc", "opt"], check=True)

    def kept(self) -> stacks.Stack:
        """Keep the files of a stack of aiohttp as "kept"; return it."""
        stack = asked("aiohttp")
        self.keep("kept", stack)
        return stack

    def put(
        self, *placed: tuple[int, str, stacks.Stack], one: bool = False
    ) -> subprocess.CompletedProcess[str]:
        asked: list[places.Placed] = [
            {"place": place, "stack_name": name, "definition": stack}
            for place, name, stack in placed
        ]
        made = places.arrangements(ROOT, asked, ADDRESS, str(self.folder / "kept"), one)
        text = msgspec.json.encode(made).decode()
        for path, there in ((places.FOLDER, "places"), (str(Path(places.UNITS).parent), "units")):
            text = text.replace(path, str(self.folder / there))
        return subprocess.run(
            [sys.executable, str(SCRIPT), text],
            env={**os.environ, "PATH": stand_ins.before(self.bin)},
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )

    def unit(self, name: str) -> str:
        return (self.units / name).read_text()

    def place(self, number: int, path: str) -> str:
        return (self.folder / "places" / str(number) / path).read_text()

    def called(self) -> list[str]:
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return calls


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def done(process: subprocess.CompletedProcess[str]) -> None:
    assert process.returncode == 0, process.stderr


def test_two_places_share_no_address_and_no_path(server: Server) -> None:
    unix, tcp = asked("aiohttp"), asked("aiohttp", transport="tcp")
    server.keep("unix", unix, "one")
    server.keep("tcp", tcp, "other")
    done(server.put((1, "unix", unix), (2, "tcp", tcp)))
    assert server.place(1, "opt/loadlab/app/app.py") == "one"
    assert server.place(2, "opt/loadlab/app/app.py") == "other"
    one, other = server.unit("loadlab-app-1.service"), server.unit("loadlab-app-2.service")
    folder = server.folder / "places"
    assert f"WorkingDirectory={folder}/1/opt/loadlab/app\n" in one
    assert f"PYTHONPATH=/opt/loadlab/python:{folder}/1/opt/loadlab/app\n" in one
    assert "LAB_LISTEN=unix:/run/loadlab-1/app.sock\n" in one
    assert "RuntimeDirectory=loadlab-1\n" in one
    assert "?host=/var/run/postgresql&application_name=loadlab-1\n" in one
    assert "LAB_LISTEN=127.0.0.1:8102\n" in other
    assert "server unix:/run/loadlab-1/app.sock;" in server.place(1, "nginx.conf")
    assert "server 127.0.0.1:8102;" in server.place(2, "nginx.conf")
    assert "listen 10.0.0.2:8202 backlog" in server.place(2, "nginx.conf")
    proxy = server.unit("loadlab-nginx-2.service")
    assert "PIDFile=/run/nginx.pid-2\n" in proxy
    assert "NoNewPrivileges=true\n" in proxy
    assert f"BindReadOnlyPaths={folder}/2/nginx.conf:/etc/nginx/nginx.conf\n" in proxy
    assert (folder / "2/var/log/nginx").is_dir()
    # The application of the lab's own place ends first, and nothing is started.
    assert server.called() == [
        "stop loadlab-*-[0-9]*.service loadlab-app*.service", "daemon-reload",
        "reset-failed loadlab-*-[0-9]*.service",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["gunicorn", "granian", "waitress", "uwsgi"])
@pytest.mark.parametrize("reverse_proxy", ["nginx", "none"])
def test_however_a_server_is_told_its_address_it_is_the_places(
    server: Server, name: str, reverse_proxy: str
) -> None:
    stack = asked(
        "flask", server=name, transport="tcp", protocol="http", reverse_proxy=reverse_proxy
    )
    server.keep("kept", stack)
    done(server.put((3, "kept", stack)))
    unit = server.unit("loadlab-app-3.service")
    assert "8103" in unit
    assert "8000" not in unit


def test_kept_files_are_unpacked_where_they_differ_alone(server: Server) -> None:
    stack = asked("aiohttp")
    server.keep("base", stack, "base")
    server.keep("head", stack, "head")
    done(server.put((1, "base", stack), (2, "head", stack)))
    for place in (1, 2):
        (server.folder / "places" / str(place) / "opt/loadlab/app/app.py").write_text("touched")
    done(server.put((1, "base", stack), (2, "base", stack)))
    assert server.place(1, "opt/loadlab/app/app.py") == "touched"
    assert server.place(2, "opt/loadlab/app/app.py") == "base"


def test_other_places_are_removed(server: Server) -> None:
    stack = server.kept()
    done(server.put((1, "kept", stack), (2, "kept", stack)))
    done(server.put((1, "kept", stack)))
    assert sorted(path.name for path in server.units.iterdir()) == [
        "loadlab-app-1.service", "loadlab-nginx-1.service",
    ]  # fmt: skip
    assert [path.name for path in (server.folder / "places").iterdir()] == ["1"]
    server.called()
    # The application of the lab's own place goes on.
    done(server.put())
    units = "loadlab-*-[0-9]*.service"
    assert server.called() == [f"stop {units}", "daemon-reload", f"reset-failed {units}"]
    assert not [*server.units.iterdir()]
    assert not (server.folder / "places").exists()
    done(server.put())
    assert server.called() == []


def test_an_application_that_all_have_stays_where_it_is(server: Server) -> None:
    stack = server.kept()
    done(server.put((1, "kept", stack), one=True))
    assert "WorkingDirectory=/opt/loadlab/app\n" in server.unit("loadlab-app-1.service")


NOWHERE = UNIT.format(listen="", command="")


@pytest.mark.parametrize(
    ("path", "text", "lacks"),
    [
        ("etc/systemd/system/loadlab-app.service", NOWHERE, "/run/loadlab"),
        ("etc/nginx/nginx.conf", CONFIGURATION.format(listen="other"), "/run/loadlab"),
        ("etc/nginx/nginx.conf", "unix:/run/loadlab/app.sock 10.0.0.2:8080", "10.0.0.2:80"),
    ],
)  # fmt: skip
def test_files_without_an_address_to_replace_are_refused(
    server: Server, path: str, text: str, lacks: str
) -> None:
    stack = asked("aiohttp")
    server.keep("kept", stack, **{path: text})
    refused = server.put((1, "kept", stack))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"place 1: /{path} of the stack does not have '{lacks}', so")


def test_a_port_that_is_taken_is_refused(server: Server) -> None:
    stack = server.kept()
    server.listening('LISTEN 0 5 0.0.0.0:8201 0.0.0.0:* users:(("python3",pid=7,fd=3))')
    refused = server.put((1, "kept", stack))
    assert refused.returncode == 1
    assert refused.stderr == (
        "place 1: another process listens on 0.0.0.0:8201, a port of this place: "
        'users:(("python3",pid=7,fd=3)). Stop it and run the same command again.\n'
    )
    # Its own neighbour is no obstacle.
    server.listening('LISTEN 0 5 127.0.0.1:8101 0.0.0.0:* users:(("python3",pid=7,fd=3))')
    done(server.put((1, "kept", stack)))
