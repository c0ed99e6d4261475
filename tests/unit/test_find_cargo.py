"""How metronome is built, with stand-ins for the tools of a machine."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit import plays, stand_ins

SCRIPT = Path(__file__).parents[2] / "roles/metronome/files/find-cargo.sh"
PACKAGES = ["gcc", "libc6-dev"]
LINKS = "exit 0"
NOT = "exit 1"
# Debian 12: cargo 0.66 of Rust 1.65, and a newer one under another name.
OLD_AND_NEW = {
    "cargo": "Inst rustc (1.63.0 Debian:12 [amd64])\nInst cargo (0.66.0+ds1-1 Debian:12 [amd64])",
    "cargo-web": "Inst cargo-web (1.96.0+dfsg1-1 Debian-Security:12 [amd64])",
}
NEW = {"cargo": "Inst cargo (1.85.0+dfsg3-1 Debian:13.0/stable [amd64])"}


def way(
    folder: Path,
    *,
    rust: str = "",
    cargo: str = "",
    user: int = 0,
    offered: dict[str, str] | None = None,
    links: str = LINKS,
) -> list[str]:
    """Return the words that the script prints of a machine.

    ``rust``, ``cargo``: their versions, "" where they are absent. ``user``: its id. ``offered``:
    package -> what apt prints of its installation; None where there is no apt.
    """
    for name in ("awk", "cat", "mktemp", "rm", "sed", "grep", "dpkg", "sh"):
        (folder / name).symlink_to(str(shutil.which(name)))
    scripts = {"id": f"echo {user}", "cc": f"cat >/dev/null; {links}"}
    if cargo:
        scripts |= {
            "cargo": f"echo cargo {cargo} '(abc 2026-01-01)'",
            "rustc": f"echo rustc {rust}",
        }
    if offered is not None:
        cases = "".join(f"{name}) echo '{said}';; " for name, said in offered.items())
        scripts["apt-get"] = f'case "$3" in {cases}*) exit 100;; esac'
    stand_ins.put(folder, scripts)
    done = subprocess.run(
        [str(folder / "sh"), str(SCRIPT), "", *PACKAGES],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


FRESH, STALE = {"rust": "1.80.0", "cargo": "1.80.1"}, {"rust": "1.63.0", "cargo": "1.65.0"}
# A machine -> the words, with "here" for the folder of its own cargo.
MACHINES: list[tuple[dict[str, Any], list[str]]] = [
    ({**FRESH, "user": 1000}, ["here"]),
    # Root installs what it links with; who cannot link and not install has no way.
    ({**FRESH, "offered": {}, "links": NOT}, ["here", *PACKAGES]),
    ({**FRESH, "offered": NEW, "links": NOT, "user": 1000}, []),
    # Root installs a cargo that reads the index by HTTP, also beside an old one.
    ({"offered": OLD_AND_NEW}, ["/usr/bin", *PACKAGES, "cargo-web"]),
    ({"offered": NEW}, ["/usr/bin", *PACKAGES, "cargo"]),
    ({**STALE, "offered": OLD_AND_NEW}, ["/usr/bin", *PACKAGES, "cargo-web"]),
    ({**STALE, "offered": NEW}, ["/usr/bin", *PACKAGES, "cargo"]),
    # One that another would replace is left and taken, and an old one is better than none.
    (
        {**STALE, "offered": {"cargo-web": f"Remv cargo [0.66.0]\n{OLD_AND_NEW['cargo-web']}"}},
        ["here"],
    ),
    ({**STALE, "offered": NEW, "user": 1000}, ["here"]),
    ({}, []),
    ({"rust": "1.62.0", "cargo": "1.70.0"}, []),
    # A proxy of rustup without a toolchain.
    ({"cargo": "$(exit 1)"}, []),
    ({"offered": {"cargo": OLD_AND_NEW["cargo"]}}, []),
    ({"offered": {"cargo": "Remv firefox [1]\nInst cargo (1.85.0 Debian:13 [amd64])"}}, []),
]


@pytest.mark.parametrize(("machine", "words"), MACHINES)
def test_the_way_to_a_cargo(tmp_path: Path, machine: dict[str, Any], words: list[str]) -> None:
    found = way(tmp_path, **machine)
    assert ["here" if word == str(tmp_path) else word for word in found] == words


def test_a_build_that_outlasts_a_run_is_no_change_of_the_next(tmp_path: Path) -> None:
    stand_ins.put(tmp_path, {"flock": "[ $1 != --nonblock ]"})
    localhost = {
        **plays.LOCAL,
        "preflight_plan": {"tls": False, "options": {"tls": False}},
        "metronome_cache": str(tmp_path / "cache"),
        "metronome_way": ["/nowhere"],
    }
    begin = {"name": "metronome", "tasks_from": "begin"}
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [{"name": "Build", "ansible.builtin.include_role": begin}],
    }
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "ANSIBLE_ROLES_PATH": str(plays.ROOT / "roles"),
        "ANSIBLE_STDOUT_CALLBACK": "default",
    }
    ended = plays.run(tmp_path, {"all": {"hosts": {"localhost": localhost}}}, play, **environment)
    # The directory.
    assert " changed=1 " in ended.stdout
