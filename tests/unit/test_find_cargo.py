"""How metronome is built, with stand-ins for the tools of a machine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

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


def test_a_new_cargo_is_taken_as_it_is(tmp_path: Path) -> None:
    assert way(tmp_path, rust="1.80.0", cargo="1.80.1", user=1000) == [str(tmp_path)]


def test_root_installs_what_it_links_with(tmp_path: Path) -> None:
    words = way(tmp_path, rust="1.80.0", cargo="1.80.1", offered={}, links=NOT)
    assert words == [str(tmp_path), *PACKAGES]


def test_who_cannot_link_and_not_install_has_no_way(tmp_path: Path) -> None:
    assert way(tmp_path, rust="1.80.0", cargo="1.80.1", user=1000, offered=NEW, links=NOT) == []


@pytest.mark.parametrize(("offered", "package"), [(OLD_AND_NEW, "cargo-web"), (NEW, "cargo")])
def test_root_installs_a_cargo_that_reads_the_index_by_http(
    tmp_path: Path, offered: dict[str, str], package: str
) -> None:
    assert way(tmp_path, offered=offered) == ["/usr/bin", *PACKAGES, package]
    (other := tmp_path / "other").mkdir()
    assert way(other, rust="1.63.0", cargo="1.65.0", offered=offered)[-1] == package


def test_a_cargo_that_another_would_replace_is_left_and_taken(tmp_path: Path) -> None:
    offered = {"cargo-web": f"Remv cargo [0.66.0]\n{OLD_AND_NEW['cargo-web']}"}
    assert way(tmp_path, rust="1.63.0", cargo="1.65.0", offered=offered) == [str(tmp_path)]


def test_an_old_cargo_is_better_than_none(tmp_path: Path) -> None:
    assert way(tmp_path, rust="1.63.0", cargo="1.65.0", user=1000, offered=NEW) == [str(tmp_path)]


@pytest.mark.parametrize(
    ("rust", "cargo", "offered"),
    [
        ("", "", None),
        ("1.62.0", "1.70.0", None),
        # A proxy of rustup without a toolchain.
        ("", "$(exit 1)", None),
        ("", "", {"cargo": OLD_AND_NEW["cargo"]}),
        ("", "", {"cargo": "Remv firefox [1]\nInst cargo (1.85.0 Debian:13 [amd64])"}),
    ],
)
def test_some_machines_have_no_way(
    tmp_path: Path, rust: str, cargo: str, offered: dict[str, str] | None
) -> None:
    assert way(tmp_path, rust=rust, cargo=cargo, offered=offered) == []


def test_a_build_that_outlasts_a_run_is_no_change_of_the_next(tmp_path: Path) -> None:
    stand_ins.put(tmp_path, {"flock": "[ $1 != --nonblock ]"})
    plan = {"tls": False, "options": {"tls": False}}
    localhost = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "preflight_plan": plan,
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
