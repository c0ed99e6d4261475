"""Find where this machine gets packages, for hosts without internet, from its tools' own settings.

apt and cargo are read from their files; pip, npm and Go are asked, so that a default of theirs
counts too. cargo's default is in the lock file of the lab's own crate.
"""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from loadlab.run.errors import LabError

# Prints what a command says; "" where this machine does not have the program.
Ask = Callable[[list[str]], str]
# Returns the address and the text of a page; the address differs after a redirect. The second
# argument is a file of CA certificates, or "" for the system's.
Read = Callable[[str, str], tuple[str, str]]

PORTS = {"http": 80, "https": 443}
PIP = [sys.executable, "-m", "pip"]
# A project of every index that can serve the lab: its page shows on which servers files are.
PROJECT = "gunicorn"


class Found(Struct, frozen=True, kw_only=True):
    """What this machine fetches from."""

    sources: list[str]  #: "name:port" of each server, as SSH's PermitRemoteOpen takes it.
    #: The variables that lead pip, npm, Go and the build of the lab's crate on a host to the same
    #: servers.
    environment: dict[str, str]
    #: Language, of applications or of the lab's crate -> why its packages cannot be fetched, and
    #: the remedy.
    missing: dict[str, str]


class _Tool(Struct, frozen=True):
    """Addresses of a tool's servers, and the variables that make another's tool use them, "" for
    one that is not needed."""

    urls: list[str]
    environment: dict[str, str]


def name_and_port(url: str) -> str:
    """Return name:port, as SSH's PermitRemoteOpen takes it.

    Raises ValueError for an invalid port and for a scheme that is neither http nor https.
    """
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise LabError(f"'{url}' is no address of http or https")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{name}:{parts.port or PORTS[parts.scheme]}"


def find(
    ask: Ask, read: Read, environ: Mapping[str, str], apt: Path, home: Path, lock: Path
) -> Found:
    """Return what this machine fetches from.

    ``environ``: its environment; ``apt``: the directory of apt's settings, which may be absent;
    ``home``: the user's own directory; ``lock``: Cargo.lock of the lab's crate. Raises ValueError
    for an invalid port in apt's settings.
    """
    sources = {name_and_port(url) for url in apt_urls(apt)}
    environment, missing = dict[str, str](), dict[str, str]()
    tools: dict[str, Callable[[], _Tool]] = {
        "python": lambda: _pip(ask, read),
        "node": lambda: _npm(ask, environ, home),
        "go": lambda: _go(ask, environ),
        "rust": lambda: _cargo(read, environ, home, lock),
    }
    for language, tool in tools.items():
        try:
            settings = tool()
            sources |= {name_and_port(url) for url in settings.urls}
            environment |= {name: word for name, word in settings.environment.items() if word}
        except ValueError as problem:
            missing[language] = str(problem)
    return Found(sources=sorted(sources), environment=environment, missing=missing)


def apt_urls(etc: Path) -> list[str]:
    """Return the addresses of apt's binary packages, from both forms of its files.

    A list of mirrors on a disk (mirror+file:) counts as the mirrors that it names. Disks, other
    methods and mirrors of a list on a server are left out.
    """
    uris: list[str] = []
    for path in [etc / "sources.list", *sorted(etc.glob("sources.list.d/*.list"))]:
        if path.exists():
            uris += _one_line(path.read_text(encoding="utf-8"))
    for path in sorted(etc.glob("sources.list.d/*.sources")):
        uris += _deb822(path.read_text(encoding="utf-8"))
    resolved = []
    for uri in uris:
        method, _, place = uri.partition(":")
        if method == "mirror+file":
            mirrors = Path("/" + place.lstrip("/")).read_text(encoding="utf-8").splitlines()
            resolved += [line.split()[0] for line in mirrors if line.strip() and line[0] != "#"]
        else:
            resolved.append(uri.removeprefix("mirror+"))
    return [uri for uri in resolved if urlsplit(uri).scheme in PORTS]


def _one_line(text: str) -> list[str]:
    return re.findall(r"^[ \t]*deb[ \t]+(?:\[[^\]]*\][ \t]*)?(\S+)", text, re.MULTILINE)


def _deb822(text: str) -> list[str]:
    uris = []
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        # A line that begins with a space continues the field above.
        pairs = re.findall(r"^([\w-]+):((?:.*)(?:\n[ \t].*)*)", stanza, re.MULTILINE)
        fields = {name.lower(): value.split() for name, value in pairs}
        if "deb" in fields.get("types", []) and fields.get("enabled") != ["no"]:
            uris += fields.get("uris", [])
    return uris


def _pip(ask: Ask, read: Read) -> _Tool:
    """Ask pip for its indexes, and each index for the servers that have its files."""
    settings = pip_settings(ask([*PIP, "config", "list"]))
    own = settings.get("index-url", "")
    indexes = [own or pip_default(ask([*PIP, "install", "--help"]))]
    indexes += settings.get("extra-index-url", "").split()
    urls = []
    for index in indexes:
        _refuse_password(index, "PIP_INDEX_URL")
        page = f"{index.rstrip('/')}/{PROJECT}/"
        try:
            place, text = read(page, settings.get("cert", ""))
        except OSError as problem:
            raise LabError(
                f"The package index of pip does not answer: {page}: {problem}. Set PIP_INDEX_URL "
                "to one that this machine reaches."
            ) from problem
        urls += [page, place, *files_of(place, text)]
    variables = {
        "PIP_INDEX_URL": own,
        "PIP_EXTRA_INDEX_URL": " ".join(indexes[1:]),
        "PIP_TRUSTED_HOST": settings.get("trusted-host", ""),
    }
    return _Tool(urls, variables)


def _refuse_password(url: str, setting: str) -> None:
    if urlsplit(url).username:
        raise LabError(
            f"The address of {urlsplit(url).hostname} has a user or password, which others on a "
            f"host could read. Set {setting} to an address without."
        )


def pip_settings(listed: str) -> dict[str, str]:
    """Return the settings of `pip install` from what `pip config list` prints."""
    settings: dict[str, str] = {}
    # Each overrides the ones before it.
    for section in ("global", "install", ":env:"):
        for line in listed.splitlines():
            name, _, value = line.partition("=")
            if name.startswith(f"{section}."):
                settings[name.removeprefix(f"{section}.")] = str(ast.literal_eval(value))
    return settings


def pip_default(text: str) -> str:
    """Return the index that `pip install --help` names. Raises ValueError where it names none."""
    named = re.search(r"--index-url <url>.*?\(default\s+(\S+?)\)", text, re.DOTALL)
    if not named:
        raise LabError("pip does not say which package index it uses. Set PIP_INDEX_URL.")
    return named[1]


def files_of(place: str, text: str) -> list[str]:
    """Return the addresses of the files on a project's page, one for each server.

    ``place``: the page's own address. Raises ValueError where there is no file.
    """
    links = [urljoin(place, link) for link in re.findall(r"""href=["']([^"'#]+)""", text)]
    servers = {urlsplit(link)[:2]: link for link in links}
    if not servers:
        raise LabError(
            f"The package index of pip has no files at {place}. Set PIP_INDEX_URL to another."
        )
    return list(servers.values())


def _npm(ask: Ask, environ: Mapping[str, str], home: Path) -> _Tool:
    answer = ask(["npm", "config", "get", "registry"]).strip()
    own = {name.lower(): value for name, value in environ.items()}.get("npm_config_registry")
    file = home / ".npmrc"
    registry = answer or own or npmrc(file.read_text(encoding="utf-8") if file.exists() else "")
    if not registry:
        raise LabError(
            "The registry of npm is not known. Set npm_config_registry in the environment, or "
            f"registry in {file}, or install npm on this machine, which knows its own."
        )
    _refuse_password(registry, "npm_config_registry")
    return _Tool([registry], {"npm_config_registry": registry})


def npmrc(text: str) -> str:
    """Return the registry that an npmrc names, or ""."""
    named = re.findall(r"^\s*registry\s*=\s*[\"']?([^\s\"']+)", text, re.MULTILINE)
    return str(named[-1]) if named else ""


def _go(ask: Ask, environ: Mapping[str, str]) -> _Tool:
    said = ask(["go", "env", "GOPROXY", "GOSUMDB"]).splitlines()
    proxy, sums = said or (environ.get("GOPROXY", ""), environ.get("GOSUMDB", ""))
    urls = go_urls(proxy)
    if not urls:
        raise LabError(
            f"GOPROXY: '{proxy}' names no module proxy. Set it in the environment, or install Go "
            "on this machine, which knows its own."
        )
    for url in urls:
        _refuse_password(url, "GOPROXY")
    return _Tool([*urls, *_go_sums(sums)], {"GOPROXY": proxy, "GOSUMDB": sums})


def go_urls(proxy: str) -> list[str]:
    """Return the module proxies of a GOPROXY. With `direct`, Go asks the servers of the modules'
    own repositories too, which are not known before."""
    return [url for url in re.split("[,|]", proxy) if urlsplit(url).scheme in PORTS]


def _go_sums(database: str) -> Iterable[str]:
    """Return the address of a GOSUMDB: "name", "name+key" or "name+key address"; or "off"."""
    name, _, place = database.partition(" ")
    return [] if name in ("", "off") else [place or f"https://{name.partition('+')[0]}"]


def _cargo(read: Read, environ: Mapping[str, str], home: Path, lock: Path) -> _Tool:
    """Read cargo's settings for the registry in place of its own, and ask it for its files."""
    own = cargo_registry(Path(environ.get("CARGO_HOME") or home / ".cargo"))
    index = (own or cargo_default(lock)).removeprefix("sparse+")
    if urlsplit(index).scheme not in PORTS:
        raise LabError(
            f"cargo reads its index from {index}, which is no sparse one. Set a registry "
            "sparse+https://... in its config.toml."
        )
    _refuse_password(index, "registry in cargo's config.toml")
    page = f"{index.rstrip('/')}/config.json"
    try:
        place, text = read(page, environ.get("CARGO_HTTP_CAINFO", ""))
        files = str(json.loads(text)["dl"])
    except (OSError, ValueError, KeyError) as problem:
        raise LabError(f"The registry of cargo does not answer: {page}: {problem}.") from problem
    return _Tool([index, place, files], {"LAB_CARGO_INDEX": own})


def crates_refusal(read: Read, environ: Mapping[str, str], home: Path, lock: Path) -> str:
    """Return why this machine's cargo cannot fetch crates; "" where it can, where it has fetched
    some before, and where its own settings may lead it elsewhere."""
    folder = Path(environ.get("CARGO_HOME") or home / ".cargo")
    if any(folder.glob("registry/cache/*/*.crate")) or any(folder.glob("config*")):
        return ""
    try:
        _cargo(read, environ, home, lock)
    except ValueError as problem:
        return str(problem)
    return ""


def cargo_registry(folder: Path) -> str:
    """Return the registry that cargo's settings put in place of the default, or ""."""
    paths = [path for name in ("config", "config.toml") if (path := folder / name).exists()]
    settings = tomllib.loads(paths[0].read_text(encoding="utf-8")) if paths else {}
    sources, name = settings.get("source", {}), "crates-io"
    while "replace-with" in sources.get(name, {}):
        name = sources.pop(name)["replace-with"]
    own = sources.get(name, {}).get("registry")
    return str(own or settings.get("registries", {}).get(name, {}).get("index", ""))


def cargo_default(lock: Path) -> str:
    """Return the sparse form of the registry that a lock file names by its git index."""
    named = re.search(
        r'"registry\+https://[^"]*/([a-z.]+)-index"', lock.read_text(encoding="utf-8")
    )
    if not named:
        raise LabError(f"{lock.name} names no registry.")
    return f"https://index.{named[1]}/"
