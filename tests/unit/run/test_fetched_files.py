"""Two hosts are fetched from at once, by rsync with the options of the action, into one folder."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loadlab.run import fetched_files
from loadlab.run.catalog import load_yaml
from loadlab.run.run_dir import RunDir

ROLE = Path(__file__).parents[3] / "roles" / "collect"
RUN = "a-run"
REP = "cells/one/rep-1"
OF_A_HOST = {
    "server": ("processes.txt.gz", "database.jsonl.gz"),
    "client": ("oha.json", "run.json", "clients/client/wrk.txt"),
}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    path = tmp_path / "results" / RUN
    path.mkdir(parents=True)
    return path


def write(folder: Path, content: str, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def below(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def test_hosts_that_are_fetched_from_at_once_do_not_meet(run_dir: Path, tmp_path: Path) -> None:
    def fetch(host: str) -> str:
        options = fetched_files.rsync_options(run_dir, host == "server")
        arrived = RunDir(run_dir).arriving(host)
        command = ["rsync", *options, str(tmp_path / host / RUN), f"{arrived}/"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        fetched_files.move(arrived, run_dir)
        return done.stderr

    with ThreadPoolExecutor(len(OF_A_HOST)) as pool:
        for number in range(15):
            expected: dict[str, str] = {}
            for host, names in OF_A_HOST.items():
                write(tmp_path / host / RUN / REP, f"{host} {number}", *names)
                expected |= {f"{REP}/{name}": f"{host} {number}" for name in names}
            # A server is believed of itself alone.
            write(tmp_path / "server" / RUN / REP, "forged", "oha.json", ".hidden", "cell.json")
            assert list(pool.map(fetch, OF_A_HOST)) == ["", ""]
            assert below(run_dir) == expected
            assert below(tmp_path / "client") == {}
            shutil.rmtree(run_dir / "cells")


@pytest.mark.parametrize(("address", "place"), [("10.0.0.2", "10.0.0.2"), ("fd00::2", "[fd00::2]")])
def test_rsync_uses_the_connection_that_is_kept(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, place: str
) -> None:
    """It neither makes the forwards of the inventory nor keeps a connection without them."""
    options = ["-o", 'User="a user"', "-o", "ControlPath=/root/.ansible/cp/a%%b"]
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/words\nexit 7\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    arriving = RunDir(run_dir).arriving("client")
    command = fetched_files.rsync(run_dir, False, options, address, arriving)
    assert command[-2:] == [f"{place}:{RunDir(run_dir).on_hosts}", f"{run_dir}/.arriving-client/"]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0
    own = ["-o", "ControlMaster=no", "-o", "ClearAllForwardings=yes"]
    assert (tmp_path / "words").read_text().splitlines()[:9] == [*own, *options, address]


def test_what_is_there_stays_and_what_was_cut_off_comes(run_dir: Path) -> None:
    arrived = run_dir / ".arriving-client"
    came = arrived / RUN / REP
    write(run_dir / REP, "first", "oha.json", "same.txt", "error.txt")
    # An earlier controller had fetched them; of the last it was in the middle.
    new = ("run.json", "clients/a/wrk.txt")
    write(came, "second", "oha.json", "error.txt", *new, ".wrk.txt.Xa3f9k")
    write(came, "first", "same.txt")
    moved, taken = fetched_files.move(arrived, run_dir)
    assert moved == [f"{REP}/clients/a/wrk.txt", f"{REP}/run.json"]
    # The controller's own word of an error has the client's in it.
    assert taken == [f"{REP}/oha.json"]
    assert below(run_dir / REP) == {
        **dict.fromkeys(("oha.json", "same.txt", "error.txt"), "first"),
        **dict.fromkeys(new, "second"),
    }
    assert not arrived.exists()
    assert fetched_files.move(arrived, run_dir) == ([], [])


def test_a_file_is_no_folder_and_a_folder_no_file(run_dir: Path) -> None:
    arrived = run_dir / ".arriving-client"
    write(run_dir, "ours", "plan.json", f"{REP}/cell.json")
    write(arrived / RUN, "theirs", "plan.json/x/y", "cells/one")
    assert fetched_files.move(arrived, run_dir) == ([], ["cells/one", "plan.json/x/y"])
    assert below(run_dir) == {"plan.json": "ours", f"{REP}/cell.json": "ours"}


def test_what_was_set_aside_on_a_host_is_taken_back_whole(tmp_path: Path) -> None:
    """Both as the role's scripts do it, which run one after another."""

    def script(name: str) -> str:
        task = load_yaml(ROLE / "tasks" / f"{name}.yml")[0]
        text = str(task["ansible.builtin.raw"]).replace("{{ __collect_remote | dirname }}", "RUNS")
        text = text.replace("{{ __collect_remote }}", f"{tmp_path}/{RUN}")
        return text.replace("RUNS", str(tmp_path))

    def sh(name: str) -> str:
        words = ["sh", "-c", script(name)]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    runs = tmp_path / RUN
    for number in (1, 2):
        write(runs / f"cells/one/rep-{number}", f"of {number}", "processes.txt.gz")
        assert sh("set_aside") == f"{runs}.left-{number}"
        assert not runs.exists()
    write(runs / "cells/one/rep-3", "of 3", "processes.txt.gz")
    assert sh("fetch_set_aside") == "regained\nregained\n"
    assert below(tmp_path) == {
        f"{RUN}/cells/one/rep-{number}/processes.txt.gz": f"of {number}" for number in (1, 2, 3)
    }
    assert sh("fetch_set_aside") == ""
