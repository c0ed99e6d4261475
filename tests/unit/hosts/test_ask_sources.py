"""A host asks its package sources itself, by the settings of its tools."""

import contextlib
import http.server
import importlib.util
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from loadlab.report.words import failures
from tests.unit import stand_ins

SCRIPT = Path(__file__).parents[3] / "roles" / "host_check" / "files" / "ask-sources.py"
HERE = "127.0.0.1"


class Answers(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        # A proxy that does not get through is asked for a whole address.
        self.send_response(503 if self.path.startswith("http") else 404)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Print nothing."""


@contextlib.contextmanager
def serving(trust: ssl.SSLContext | None = None) -> Iterator[int]:
    with http.server.ThreadingHTTPServer((HERE, 0), Answers) as server:
        if trust:
            server.socket = trust.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and its own certificate, which nobody knows."""
    path = tmp_path_factory.mktemp("tls") / "own.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=index",
         "-addext", f"subjectAltName=IP:{HERE}", "-keyout", path, "-out", path.with_suffix(".crt")],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + path.with_suffix(".crt").read_text())
    return path


@pytest.fixture(scope="module")
def untrusted(certificate: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(context) as port:
        yield port


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script on a host without settings."""
    spec = importlib.util.spec_from_file_location("ask_sources", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [*os.environ]:
        if re.match("pip_|xdg_|npm_|.*ca_bundle|.*proxy", name, re.IGNORECASE):
            monkeypatch.delenv(name)
    return module


Asked = Callable[[str], str]


@pytest.fixture
def asked(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Asked:
    """What the script says of a tool."""

    def ask(tool: str) -> str:
        monkeypatch.setattr(sys, "argv", ["ask-sources.py", tool])
        script.main()
        return capsys.readouterr().out

    return ask


def test_a_certificate_that_is_not_trusted_is_refused_with_the_remedy(
    asked: Asked, untrusted: int, certificate: Path, tmp_path: Path
) -> None:
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    settings = tmp_path / ".config" / "pip" / "pip.conf"
    index = f"https://user:secret@{HERE}:{untrusted}/simple"
    settings.write_text(f"[global]\nindex_url = {index}\n")
    told = asked("python")
    assert "secret" not in told
    refused = failures.sources_refusal(told)
    assert refused.startswith(f"it does not trust the certificate of {HERE}:{untrusted} (https://")
    assert "certificate verify failed" in refused
    assert "Install your CA there (update-ca-certificates), or, on machines" in refused

    # Settings of pip by which it trusts it.
    settings.write_text(f"[install]\nindex-url = {index}\ncert = {certificate}\n")
    assert asked("python") == ""
    settings.write_text(f"[install]\nindex-url = {index}\ntrusted-host = {HERE}\n")
    assert asked("python") == ""


def test_why_a_source_does_not_answer(
    asked: Asked, script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "LIMIT_S", 0.2)
    with (
        socket.create_server((HERE, 0)) as silent,
        socket.create_server((HERE, 0)) as closed,
        socket.create_server((HERE, 0), backlog=0) as dropping,
        # Fills its queue: the kernel drops what comes then, as a firewall does.
        socket.create_connection(dropping.getsockname()),
    ):
        port, dropped = closed.getsockname()[1], dropping.getsockname()[1]
        closed.close()
        for index, words in {
            f"http://{HERE}:{port}": f"{HERE}:{port} refuses its connection (http://",
            f"https://{HERE}:{port}": f"{HERE}:{port} refuses its connection (https://",
            "http://index.invalid": "it cannot resolve the name index.invalid (http://",
            f"http://{HERE}:{silent.getsockname()[1]}": "it does not reach 127.0.0.1:",
            f"https://{HERE}:{silent.getsockname()[1]}": "it does not reach 127.0.0.1:",
            f"https://{HERE}:{dropped}": f"it does not reach {HERE}:{dropped} (https://",
        }.items():
            monkeypatch.setenv("PIP_INDEX_URL", index)
            refused = failures.sources_refusal(asked("python"))
            assert refused.startswith(words), index
            assert "on machines of your own, let this machine fetch the packages" in refused
        monkeypatch.setattr(script, "CRATES", f"https://{HERE}:{dropped}/config.json")
        refused = failures.sources_refusal(asked("rust"))
        assert refused.startswith(f"it does not reach {HERE}:{dropped} (https://")


def test_the_proxy_of_apt_is_asked(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as port:
        mirrors = tmp_path / "mirrors"
        mirrors.write_text(f"http://{HERE}:{port}/debian\n")
        release = "dists/trixie/InRelease' a_file 0 \\n"
        targets = f"'mirror+file:{mirrors}/{release}'http://index.invalid/debian/{release}"
        proxies = f'Acquire::http::Proxy \\"http://{HERE}:{port}\\";\\n'
        direct = f'Acquire::http::Proxy::{HERE} \\"DIRECT\\";\\n'
        said = {"apt-get": targets, "apt-config": proxies + direct}
        stand_ins.put(tmp_path, {name: f'printf "{text}"' for name, text in said.items()})
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        told = asked("apt")
    # The mirror answers, with 404; the other is the proxy's to reach.
    address = "http://index.invalid/debian/dists/trixie/InRelease"
    assert told == f"{address}\tHTTP Error 503: Service Unavailable\n"
    assert failures.sources_refusal(told).startswith("index.invalid does not serve it (http://")


def test_a_tool_whose_packages_are_installed_is_not_asked(
    asked: Asked, script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://index.invalid/")
    assert "index.invalid" in asked("node")
    (tmp_path / "installed").touch()
    installed = (tmp_path / "installed").relative_to("/")
    monkeypatch.setitem(script.INSTALLED, "node", str(installed))
    assert asked("node") == ""
