"""Asks this host's package sources for headers, all at once: ask-sources.py TOOL...

TOOL: apt, python, node, go or rust. Mirrors, proxies and certificates are those of the tool's own
settings. A tool whose packages an earlier deployment installed is left out. Prints
"address<tab>reason" for each source that does not answer or is not trusted.
"""

import configparser
import os
import re
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

LIMIT_S = 5.0
# The defaults of pip, npm, Go and cargo, which count where the host's settings name nothing else.
INDEX = "https://pypi.org/simple"
# A project of every index that can serve the lab.
PROJECT = "gunicorn"
REGISTRY = "https://registry.npmjs.org/"
MODULES = "https://proxy.golang.org"
CRATES = "https://index.crates.io/config.json"
# What a deployment leaves below / once it has the packages of a tool.
INSTALLED = {
    "apt": "var/lib/loadlab-deployed/tools/fingerprint",
    **{tool: f"opt/loadlab/deps/{tool}-*/installed" for tool in ("python", "node", "go")},
}
Proxies = dict[str, str] | None


class Source:
    """An address to ask. ``proxies``: by scheme, None for those of the environment; ``cert``: file
    of CA certificates, "" for the system's; ``verify``: whether its own must be trusted."""

    def __init__(
        self, url: str, proxies: Proxies = None, cert: str = "", verify: bool = True
    ) -> None:
        # Without a user and a password, which no message may show.
        self.url = re.sub(r"//[^/]*@", "//", url)
        self.proxies, self.cert, self.verify = proxies, cert, verify

    def reason(self) -> str:
        """Return why it cannot be used; "" where it answers."""
        try:
            trust = ssl.create_default_context(cafile=self.cert or None)
            if not self.verify:
                trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
            opener = urllib.request.build_opener(
                urllib.request.ProxyHandler(self.proxies),
                urllib.request.HTTPSHandler(context=trust),
            )
            opener.open(urllib.request.Request(self.url, method="HEAD"), timeout=LIMIT_S).close()
        except urllib.error.HTTPError as answer:
            # Any other status is an answer: not every mirror has the page or admits HEAD.
            return str(answer) if answer.code == 407 or answer.code >= 500 else ""
        except (OSError, ValueError) as problem:
            return str(getattr(problem, "reason", problem))
        return ""


def said(*command: str) -> str:
    """Return what a command prints; "" where it is absent or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def apt() -> Iterator[Source]:
    listed = re.findall(r'^(\S+) "(.*)";$', said("apt-config", "dump"), re.MULTILINE)
    settings = {name.lower(): value for name, value in listed}
    # Fetches nothing; indextargets leaves out what was never fetched.
    for url in re.findall(
        "^'([^']+InRelease)'", said("apt-get", "--print-uris", "update"), re.MULTILINE
    ):
        place, _, release = url.partition("/dists/")
        places = [place.removeprefix("mirror+")]
        if place.startswith("mirror+file:"):
            mirrors = Path("/" + place.removeprefix("mirror+file:").strip("/"))
            places = [line.split()[0] for line in mirrors.read_text().splitlines() if line.strip()]
        for mirror in places:
            if not mirror.startswith("http"):
                continue
            parts = urllib.parse.urlsplit(mirror)
            option = f"acquire::{parts.scheme}::proxy"
            proxy = (
                settings.get(f"{option}::{(parts.hostname or '').lower()}")
                or settings.get(option)
                or settings.get("acquire::http::proxy")
            )
            yield Source(
                f"{mirror.rstrip('/')}/dists/{release}" if release else mirror,
                {} if proxy == "DIRECT" else {parts.scheme: proxy} if proxy else None,
                settings.get("acquire::https::cainfo", ""),
                settings.get("acquire::https::verify-peer") != "false",
            )


def pip_settings() -> dict[str, str]:
    home, config = Path.home(), os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    paths = [
        "/etc/xdg/pip/pip.conf", "/etc/pip.conf", home / ".pip/pip.conf",
        Path(config).expanduser() / "pip/pip.conf", os.environ.get("PIP_CONFIG_FILE", ""),
    ]  # fmt: skip
    files = configparser.ConfigParser(strict=False, interpolation=None)
    files.read([path for path in paths if str(path)])
    variables = {
        name.removeprefix("PIP_"): value
        for name, value in os.environ.items()
        if name.startswith("PIP_")
    }
    sections = [files[name] for name in ("global", "install") if name in files]
    return {
        name.lower().replace("_", "-"): value
        for settings in (*sections, variables)
        for name, value in settings.items()
    }


def python() -> Iterator[Source]:
    settings = pip_settings()
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return
    proxy, trusted = settings.get("proxy"), settings.get("trusted-host", "").split()
    # The variables of its library come before its own setting.
    bundles = [os.environ.get(f"{name}_CA_BUNDLE") for name in ("REQUESTS", "CURL")]
    cert = next(filter(None, bundles), settings.get("cert", ""))
    indexes = settings.get("index-url", INDEX), *settings.get("extra-index-url", "").split()
    for index in indexes:
        parts = urllib.parse.urlsplit(index)
        verify = not {parts.hostname, parts.netloc.rpartition("@")[2]} & set(trusted)
        proxies = {parts.scheme: proxy} if proxy else None
        yield Source(f"{index.rstrip('/')}/{PROJECT}/", proxies, cert, verify)


def node() -> Iterator[Source]:
    settings = dict[str, str]()
    for path in (Path("/etc/npmrc"), Path.home() / ".npmrc"):
        text = path.read_text() if path.exists() else ""
        settings |= dict(re.findall(r"^\s*([\w-]+)\s*=\s*[\"']?([^\s\"']+)", text, re.MULTILINE))
    for name, value in os.environ.items():
        if name.lower().startswith("npm_config_"):
            settings[name.lower().removeprefix("npm_config_").replace("_", "-")] = value
    proxy = settings.get("https-proxy") or settings.get("proxy")
    yield Source(
        settings.get("registry", REGISTRY),
        {"https": proxy, "http": proxy} if proxy else None,
        settings.get("cafile") or os.environ.get("NODE_EXTRA_CA_CERTS", ""),
        settings.get("strict-ssl") != "false",
    )


def go() -> Iterator[Source]:
    named = os.environ.get("GOPROXY") or said("go", "env", "GOPROXY").strip() or MODULES
    for url in re.split("[,|]", named):
        if url.startswith("http"):
            yield Source(url)


def rust() -> Iterator[Source]:
    # The build of a generator reads no settings of a user's own.
    proxy = os.environ.get("CARGO_HTTP_PROXY")
    proxies = {"https": proxy} if proxy else None
    yield Source(CRATES, proxies, os.environ.get("CARGO_HTTP_CAINFO", ""))


TOOLS = {"apt": apt, "python": python, "node": node, "go": go, "rust": rust}


def main() -> None:
    tools = [
        tool
        for tool in sys.argv[1:]
        if tool not in INSTALLED or not any(Path("/").glob(INSTALLED[tool]))
    ]
    # Of each server one address.
    servers = {
        urllib.parse.urlsplit(source.url)[:2]: source for tool in tools for source in TOOLS[tool]()
    }
    sources = {source.url: source for source in servers.values()}
    reasons = dict.fromkeys(sources, f"timed out, no answer in {LIMIT_S:g} s")

    def ask(source: Source) -> None:
        reasons[source.url] = source.reason()

    # A name that does not resolve may take longer than a connection is given.
    end = time.monotonic() + LIMIT_S + 1
    threads = [
        threading.Thread(target=ask, args=[source], daemon=True) for source in sources.values()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0.0))
    for url, reason in reasons.items():
        if reason:
            print(url, " ".join(reason.split()), sep="\t")


if __name__ == "__main__":
    main()
