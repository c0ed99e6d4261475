"""The first command of a new user, on a Debian or Ubuntu that has nothing for it. Needs root.

The machine is a file system of its own in namespaces of its own, so that nothing of it is left. It
may not change the network, which is this machine's: the lab ends where it would boot its hosts.
"""

import hashlib
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadlab.run.catalog import load_yaml

ROOT = Path(__file__).parents[2]
RELEASES = load_yaml(ROOT / "files/releases.yml")
HOSTS = load_yaml(ROOT / "roles/local_hosts/vars/main.yml")
# What a clone, and the command, cannot do without.
PACKAGES = "apt,ca-certificates,git,make,python3"
# By what this machine reaches package indexes, which that one is to reach as well.
FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/resolv.conf",
    "/etc/pip.conf",
    str(Path.home() / ".config/pip/pip.conf"),
    str(Path.home() / ".cargo/config.toml"),
)
VARIABLES = re.compile(r"(PIP|UV|CARGO|SSL|REQUESTS|CURL)_.*|(https?|no|all)_proxy", re.IGNORECASE)
LIMIT_S = 1500

MACHINE = """
set -eu
mount -t proc proc "$0/proc"
mount -o bind,ro /proc/sys "$0/proc/sys"
mount --rbind /sys "$0/sys"
mount --rbind /dev "$0/dev"
exec setpriv --bounding-set=-net_admin --inh-caps=-net_admin chroot "$0" sh -c "$1"
"""
# The build goes on when the hosts cannot be booted, and holds its lock.
COMMAND = """
cd /root/lab
make lab framework=aiohttp && exit 1
cd /var/cache/loadlab/metronome/*
flock lock true
dpkg --search "$(command -v cargo)"
tail -n 3 build.log
./metronome --version
"""


def sources(release: str) -> str:
    """A sources.list of this machine's own mirrors, else of the archive itself."""
    system, components = (RELEASES[release][key] for key in ("system", "components"))
    words = ["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)"]
    output = subprocess.run(
        [*words, "Created-By: Packages", f"Origin: {system}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    mirrors = dict(line.split() for line in output.splitlines())
    archive = HOSTS["__local_hosts_archives"][system]
    main, security = (
        mirrors.get(label, url)
        for label, url in zip(archive["labels"], archive["urls"], strict=True)
    )
    return (
        f"deb {main} {release} {components}\n"
        f"deb {main} {release}-updates {components}\n"
        f"deb {security} {release}-security {components}\n"
    )


def keys(folder: Path) -> Path:
    """Ubuntu's keys, from its package."""
    with urllib.request.urlopen(HOSTS["__local_hosts_keys_url"], timeout=60) as answer:
        content = answer.read()
    assert hashlib.sha256(content).hexdigest() == HOSTS["__local_hosts_keys_sha256"]
    package = folder / "keys.deb"
    package.write_bytes(content)
    subprocess.run(["dpkg-deb", "--extract", str(package), str(folder / "keys")], check=True)
    return folder / "keys/usr/share/keyrings/ubuntu-archive-keyring.gpg"


@pytest.fixture(params=RELEASES)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The file system of a machine that was just set up, and a clone of this tree in it."""
    if os.geteuid() != 0:
        pytest.fail("the machine is a file system of root's, which only root can make")
    root = tmp_path / "machine"
    words = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}"]
    if RELEASES[request.param]["system"] == "Ubuntu":
        words.append(f"--keyring={keys(tmp_path)}")
    subprocess.run(
        [*words, request.param, str(root), "-"], input=sources(request.param), text=True, check=True
    )
    for name in FILES:
        if Path(name).exists():
            copy = root / name.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, copy)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(root / "root/lab")], check=True)
    yield root
    shutil.rmtree(root)


def test_the_first_command_sets_all_up_on_a_bare_machine(machine: Path) -> None:
    # Whatever is begun there ends with the first process, and that one with this.
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", MACHINE]
    output = subprocess.run(
        [*words, str(machine), COMMAND],
        env={
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            **{name: value for name, value in os.environ.items() if VARIABLES.fullmatch(name)},
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    ).stdout
    # It went as far as it may, and the generator was built meanwhile by what the system has.
    last = re.findall(r"TASK \[local_hosts : (Boot the hosts|.*)", output)[-1:]
    assert last == ["Boot the hosts"], output
    assert re.search(r"(?m)^cargo(-web)?: /usr/bin/cargo$", output), output
    assert re.search(r"(?m)^metronome \d+\.\d+\.\d+$", output), output
