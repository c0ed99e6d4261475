"""Where this machine gets packages: settings as tools write and print them, and pip itself."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.lab.bench.plugins.lookup import package_sources as lookup

from loadlab.hosts import package_sources as ps

INDEX = "https://index.example.org/simple"
PAGE = (
    '<a href="https://files.example.org/a/gunicorn-1-py3-none-any.whl#sha256=aa">one</a>\n'
    "<a href='https://files.example.org/b/gunicorn-2-py3-none-any.whl'>two</a>\n"
    '<a href="../../files/gunicorn-3.tar.gz">three</a>\n'
)
# What each command prints.
SAID = {
    "list": ":env:.disable-pip-version-check='1'\nglobal.cert='/etc/ssl/own.pem'\n",
    "--help": "  -i, --index-url <url>       Base URL of the Python Package Index (default\n"
    f"                              {INDEX}). This should point to a\n",
    "registry": "https://npm.example.org/\n",
    "GOSUMDB": "https://goproxy.example.org,direct\nsum.example.org\n",
}


# cargo's default index is then that of pip.
LOCK = 'source = "registry+https://git.example.org/up/example.org-index"\n'


def apt(folder: Path, **files: str) -> Path:
    (folder / "sources.list.d").mkdir()
    for name, text in files.items():
        stem, _, kind = name.rpartition("_")
        place = f"sources.list.d/{stem}.{kind}" if stem else f"sources.{kind}"
        (folder / place).write_text(text)
    return folder


def find(home: Path, *, said: dict[str, str] = SAID, lock: str = LOCK, **environ: str) -> ps.Found:
    """What is found on a machine without apt whose tools print this."""

    (home / "Cargo.lock").write_text(lock)

    def read(url: str, certificates: str) -> tuple[str, str]:
        if url.endswith("/config.json"):
            return url, '{"dl": "https://files.example.org/crates", "api": null}'
        assert certificates == ps.pip_settings(said["list"]).get("cert", "")
        return url, PAGE

    return ps.find(
        lambda command: said[command[-1]], read, environ, home / "none", home, home / "Cargo.lock"
    )


ONE_LINE = """# deb http://off.example.org/debian trixie main
deb http://one.example.org/debian trixie main
  deb [arch=amd64 signed-by=/usr/share/keyrings/a b.gpg] https://two.example.org:8443/x trixie main
deb-src http://source.example.org/debian trixie main
deb cdrom:[Debian GNU/Linux 13]/ trixie main
"""
DEB822 = """Types: deb deb-src
# http://comment.example.org
URIs: http://one.example.org/debian
 http://two.example.org/debian
Suites: trixie trixie-updates
Components: main

Types: deb-src
URIs: http://source.example.org/debian
Suites: trixie

types: deb
uris: http://off.example.org/debian
suites: trixie
enabled: no
"""
# Of a cloud image.
MIRRORS = "# near\nhttps://one.example.org/debian\tpriority:1\n\nhttps://two.example.org/\n"


@pytest.mark.parametrize(
    ("files", "urls"),
    [
        ({"_list": ONE_LINE, "more_list": "deb http://three.example.org/ ./"},
         ["http://one.example.org/debian", "https://two.example.org:8443/x",
          "http://three.example.org/"]),
        ({"debian_sources": DEB822, "old_save": DEB822},
         ["http://one.example.org/debian", "http://two.example.org/debian"]),
        ({"debian_sources": "Types: deb\nURIs: mirror+file://{mirrors}\nSuites: trixie\n"},
         ["https://one.example.org/debian", "https://two.example.org/"]),
    ],
)  # fmt: skip
def test_apts_sources_are_read(tmp_path: Path, files: dict[str, str], urls: list[str]) -> None:
    mirrors = tmp_path / "debian.list"
    mirrors.write_text(MIRRORS)
    texts = {name: text.replace("{mirrors}", str(mirrors)) for name, text in files.items()}
    assert ps.apt_urls(apt(tmp_path, **texts)) == urls


def test_apt_is_not_on_every_machine(tmp_path: Path) -> None:
    assert ps.apt_urls(tmp_path / "none") == []


def test_defaults_of_the_tools_need_no_setting(tmp_path: Path) -> None:
    found = find(tmp_path)
    assert found.sources == [
        "files.example.org:443",
        "goproxy.example.org:443",
        "index.example.org:443",
        "npm.example.org:443",
        "sum.example.org:443",
    ]
    # pip on a host has the same default.
    assert found.environment == {
        "npm_config_registry": "https://npm.example.org/",
        "GOPROXY": "https://goproxy.example.org,direct",
        "GOSUMDB": "sum.example.org",
    }
    assert found.missing == {}


def test_a_mirror_of_pip_is_the_hosts_too(tmp_path: Path) -> None:
    listed = (
        "global.index-url='https://old.example.org/simple'\n"
        "install.trusted-host='mirror.example.org'\n"
        "install.index-url='http://mirror.example.org:3141/root/pypi/+simple/'\n"
        "global.extra-index-url='\\nhttps://one.example.org/simple\\nhttps://two.example.org/simple'\n"
    )
    near = LOCK.replace("example.org-", "near.example.org-")
    found = find(tmp_path, said={**SAID, "list": listed}, lock=near)
    assert {"mirror.example.org:3141", "one.example.org:443", "two.example.org:443"} <= set(
        found.sources
    )
    assert "index.example.org:443" not in found.sources
    assert "index.near.example.org:443" in found.sources
    assert found.environment["PIP_INDEX_URL"] == "http://mirror.example.org:3141/root/pypi/+simple/"
    assert found.environment["PIP_TRUSTED_HOST"] == "mirror.example.org"
    extra = "https://one.example.org/simple https://two.example.org/simple"
    assert found.environment["PIP_EXTRA_INDEX_URL"] == extra


def test_a_password_in_an_address_stays_here(tmp_path: Path) -> None:
    secret = "https://me:secret@mirror.example.org/x"
    said = {
        **SAID,
        "list": f"global.index-url='{secret}'\n",
        "registry": secret,
        "GOSUMDB": f"https://goproxy.example.org,{secret}\noff\n",
    }
    found = find(tmp_path, said=said)
    assert "secret" not in repr(found)
    assert found.environment == {}
    settings = {"python": "PIP_INDEX_URL", "node": "npm_config_registry", "go": "GOPROXY"}
    for language, setting in settings.items():
        assert f"Set {setting} to an address without" in found.missing[language]


def test_an_index_on_a_disk_serves_no_other_host(tmp_path: Path) -> None:
    listed = "global.index-url='file:///srv/simple'\n"
    found = find(tmp_path, said={**SAID, "list": listed})
    assert found.missing["python"] == (
        "'file:///srv/simple/gunicorn/' is no address of http or https"
    )
    assert "PIP_INDEX_URL" not in found.environment


def test_an_index_without_the_project_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"has no files at {INDEX}/gunicorn/"):
        ps.files_of(f"{INDEX}/gunicorn/", "<html></html>")
    with pytest.raises(ValueError, match="Set PIP_INDEX_URL"):
        ps.pip_default("Usage: pip install")


def test_tools_that_are_absent_leave_their_settings(tmp_path: Path) -> None:
    absent = {**SAID, "registry": "", "GOSUMDB": ""}
    found = find(tmp_path, said=absent)
    assert sorted(found.missing) == ["go", "node"]
    assert "npm_config_registry" in found.missing["node"]
    assert str(tmp_path / ".npmrc") in found.missing["node"]
    assert found.missing["go"].startswith("GOPROXY: '' names no module proxy. Set it")

    (tmp_path / ".npmrc").write_text(
        "fund=false\n@own:registry=https://own.example.org/\nregistry = https://npm.example.org:4873\n"
    )
    found = find(tmp_path, said=absent, GOPROXY="https://a.example.org|http://b.example.org/x,off")
    assert found.missing == {}
    wanted = {"npm.example.org:4873", "a.example.org:443", "b.example.org:80"}
    assert wanted <= set(found.sources)
    own = {"NPM_CONFIG_REGISTRY": "http://c.example.org", "GOPROXY": "direct"}
    found = find(tmp_path, said=absent, **own)
    assert "c.example.org:80" in found.sources
    assert "npm.example.org:4873" not in found.sources
    assert sorted(found.missing) == ["go"]


def test_a_registry_in_place_of_cargos_own_is_the_hosts_too(tmp_path: Path) -> None:
    (tmp_path / ".cargo").mkdir()
    settings = tmp_path / ".cargo" / "config.toml"
    settings.write_text(
        '[source.crates-io]\nreplace-with = "near"\n'
        '[source.near]\nregistry = "sparse+https://crates.example.org:8443/index/"\n'
    )
    found = find(tmp_path)
    assert "crates.example.org:8443" in found.sources
    own = "sparse+https://crates.example.org:8443/index/"
    assert found.environment["LAB_CARGO_INDEX"] == own
    settings.write_text('[source.crates-io]\nreplace-with = "crates-io"\n')
    assert "LAB_CARGO_INDEX" not in find(tmp_path).environment
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "config").write_text(
        '[source.crates-io]\nreplace-with = "near"\n'
        '[registries.near]\nindex = "https://me:secret@git.example.org/index"\n'
    )
    found = find(tmp_path, CARGO_HOME=str(tmp_path / "elsewhere"))
    assert "secret" not in repr(found)
    assert "Set registry in cargo's config.toml to an address without" in found.missing["rust"]
    settings.write_text(
        settings.read_text().replace('"crates-io"\n', '"near"\n') + "[source.near]\n"
        'directory = "/srv/crates"\n'
    )
    assert find(tmp_path).missing == {}


def test_crates_that_do_not_come_are_refused_until_some_have_come(tmp_path: Path) -> None:
    lock = tmp_path / "Cargo.lock"
    lock.write_text(LOCK)

    def read(url: str, certificates: str) -> tuple[str, str]:
        raise OSError(f"certificate verify failed, with {certificates or 'the system'}")

    environ = {"CARGO_HTTP_CAINFO": "/own.pem"}
    refused = ps.crates_refusal(read, environ, tmp_path, lock)
    assert refused == (
        "The registry of cargo does not answer: https://index.example.org/config.json: certificate "
        "verify failed, with /own.pem."
    )
    crate = tmp_path / ".cargo" / "registry" / "cache" / "index" / "libc-1.crate"
    crate.parent.mkdir(parents=True)
    crate.touch()
    assert ps.crates_refusal(read, environ, tmp_path, lock) == ""


@pytest.mark.parametrize(
    ("database", "source"),
    [
        ("off", None),
        ("", None),
        ("sums.example.org", "sums.example.org:443"),
        ("sums.example.org+033de0ae+Ac4", "sums.example.org:443"),
        ("sums.example.org+033de0ae+Ac4 http://near.example.org/sums", "near.example.org:80"),
    ],
)
def test_the_checksum_database_of_go(tmp_path: Path, database: str, source: str | None) -> None:
    said = {**SAID, "GOSUMDB": f"https://goproxy.example.org\n{database}\n"}
    others = {"index.example.org:443", "files.example.org:443", "npm.example.org:443"}
    found = set(find(tmp_path, said=said).sources) - others - {"goproxy.example.org:443"}
    assert found == ({source} if source else set())


def test_addresses_are_as_ssh_takes_them() -> None:
    assert ps.name_and_port("http://[2001:db8::1]:8080/x") == "[2001:db8::1]:8080"
    assert ps.name_and_port("https://me@one.example.org/x") == "one.example.org:443"
    with pytest.raises(ValueError, match="no address"):
        ps.name_and_port("file:///srv/packages")


@pytest.fixture
def index() -> Iterator[str]:
    """An index on this machine that sends pip's questions elsewhere; returns its address."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/simple/"):
                self.send_response(302)
                self.send_header("Location", f"/own{self.path}")
                self.end_headers()
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGE.encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    server.server_close()


def test_pip_itself_says_which_index_it_uses(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))

    def ask(command: list[str]) -> str:
        return lookup.ask(command) if command[0] == ps.PIP[0] else ""

    (tmp_path / "lock").write_text("")
    found = ps.find(ask, lookup.read, {}, tmp_path / "none", tmp_path, tmp_path / "lock")
    port = index.split(":")[2].partition("/")[0]
    assert found.sources == [f"127.0.0.1:{port}", "files.example.org:443"]
    assert found.environment == {"PIP_INDEX_URL": index}

    # Its default, which needs no network to be named.
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    default = ps.pip_default(lookup.ask([*ps.PIP, "install", "--help"]))
    assert ps.name_and_port(default).endswith(":443")


def test_an_index_that_does_not_answer_is_named(tmp_path: Path) -> None:
    listed = "global.index-url='http://127.0.0.1:9/simple'\n"
    said = {**SAID, "list": listed}
    (tmp_path / "lock").write_text(LOCK.replace("example.org-index", "invalid-index"))
    found = ps.find(
        lambda command: said[command[-1]], lookup.read, {}, tmp_path, tmp_path, tmp_path / "lock"
    )
    assert "does not answer: https://index.invalid/config.json" in found.missing["rust"]
    assert "http://127.0.0.1:9/simple/gunicorn/" in found.missing["python"]
    assert "npm.example.org:443" in found.sources


def test_a_tool_that_fails_is_quoted() -> None:
    with pytest.raises(ValueError, match="`sh -c echo broken >&2; exit 3` failed: broken"):
        lookup.ask(["sh", "-c", "echo broken >&2; exit 3"])
    assert lookup.ask(["no-such-program-here"]) == ""
