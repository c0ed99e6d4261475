"""roles/postgresql/files/settings.sh keeps which clusters run; systemctl only says things."""

import subprocess
from pathlib import Path

import pytest

from tests.unit import stand_ins

SCRIPT = Path(__file__).parents[3] / "roles/postgresql/files/settings.sh"
ALL, MAIN = "postgresql.service", "postgresql@17-main.service"
SYSTEMCTL = """
case $* in
list-units*) for unit in $ACTIVE; do echo "$unit loaded active running"; done ;;
*is-enabled*) [ "$BOOT" = enable ] ;;
cat*) [ -z "$PURGED" ] ;;
*) echo "$*" >>"$0.said" ;;
esac
"""


def run(folder: Path, command: str, active: list[str], **variables: str) -> str:
    """Return what the command prints with these units active; ``folder`` stands for /."""
    programs = stand_ins.put(folder / "bin", {"systemctl": SYSTEMCTL})
    (folder / "etc/postgresql/17/main").mkdir(parents=True, exist_ok=True)
    text = SCRIPT.read_text().replace("=/var/", f"={folder}/var/")
    text = text.replace("=/etc/", f"={folder}/etc/")
    told = {"PATH": f"{programs}:/usr/bin:/bin", "ACTIVE": " ".join(active), **variables}
    words = ["sh", "-c", f"{text}\n{command}"]
    return subprocess.run(words, capture_output=True, text=True, check=True, env=told).stdout


@pytest.mark.parametrize(
    ("before", "boot", "said"),
    [
        ([], "disable", [f"stop {ALL}", f"stop {MAIN}", "--quiet disable postgresql"]),
        ([ALL, MAIN], "enable", [f"start {ALL} {MAIN}", "--quiet enable postgresql"]),
        ([ALL], "enable", [f"stop {MAIN}", f"start {ALL}", "--quiet enable postgresql"]),
        # Stopping the unit of all clusters stops the owner's too.
        ([MAIN], "disable", [f"stop {ALL}", f"start {MAIN}", "--quiet disable postgresql"]),
    ],
    ids=["stopped", "running", "a cluster stopped", "a cluster alone"],
)
def test_what_ran_runs_and_what_did_not_is_stopped(
    tmp_path: Path, before: list[str], boot: str, said: list[str]
) -> None:
    assert run(tmp_path, "keep_state", before, BOOT=boot) == "stored\n"
    # A later run meets what the lab started.
    assert run(tmp_path, "keep_state", [ALL, MAIN], BOOT="enable") == ""
    assert run(tmp_path, "put_state_back", [ALL, MAIN]) == "as before\n"
    assert (tmp_path / "bin/systemctl.said").read_text().splitlines() == said
    assert not (tmp_path / "var/lib/loadlab-tuning").exists()
    assert run(tmp_path, "put_state_back", [ALL, MAIN]) == ""


def test_a_package_that_was_purged_has_no_state(tmp_path: Path) -> None:
    run(tmp_path, "keep_state", [ALL, MAIN], BOOT="enable")
    assert run(tmp_path, "put_state_back", [], PURGED="yes") == "as before\n"
    assert not (tmp_path / "bin/systemctl.said").exists()
    assert run(tmp_path, "put_state_back", []) == ""


def test_a_cluster_that_was_dropped_is_not_started(tmp_path: Path) -> None:
    run(tmp_path, "keep_state", [ALL, MAIN, "postgresql@16-old.service"], BOOT="enable")
    assert run(tmp_path, "put_state_back", [ALL, MAIN]) == "as before\n"
    assert (tmp_path / "bin/systemctl.said").read_text().splitlines()[0] == f"start {ALL} {MAIN}"


def test_one_that_was_stopped_is_started_to_drop_the_labs_databases(tmp_path: Path) -> None:
    programs = stand_ins.put(tmp_path / "bin", {"pgrep": 'echo "$RUNS"', "runuser": "true"})
    # One that the lab never used is left alone.
    assert run(tmp_path, "start_used", [], RUNS="") == ""
    run(tmp_path, "keep_state", [ALL, MAIN], BOOT="enable")
    assert run(tmp_path, "start_used", [ALL, MAIN], RUNS="77") == ""
    assert run(tmp_path, "start_used", [], RUNS="") == "started\n"
    assert (programs / "systemctl.said").read_text().splitlines() == ["start postgresql"]
