"""A bundle of another clone is repeated, and compared with what it holds."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loadlab.model import Reproduction
from loadlab.run import documents

from .conftest import BRIEF, ROOT, loadlab, run

pytestmark = pytest.mark.lab

LOCK = "apps/aiohttp/requirements.txt"


def of_clone(clone: Path, **variables: Any) -> tuple[int, str]:
    """Run lab.yml of another clone on the local hosts; return its code and what it printed."""
    words = [f"{name}={value}" for name, value in {**BRIEF, **variables}.items()]
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(clone / "ansible.cfg"),
        "PYTHONPATH": str(clone),
    }
    done = subprocess.run(
        ["ansible-playbook", "lab.yml", *(word for each in words for word in ("-e", each))],
        cwd=clone,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )
    return done.returncode, done.stdout


def test_a_bundle_is_repeated_by_another_clone(run_id: str, tmp_path: Path) -> None:
    small = {"framework": "aiohttp", "endpoint": "index", "rate": 200, "duration": 3, "warmup": 1}
    run("lab.yml", **small, run_id=run_id)
    loadlab("bundle", run_id)
    received = tmp_path / "received.tar.gz"
    shutil.move(ROOT / "results" / f"{run_id}.tar.gz", received)
    clone = tmp_path / "lab"
    left = shutil.ignore_patterns("results", ".git", ".venv", ".*cache", "node_modules")
    shutil.copytree(ROOT, clone, ignore=left)
    with (clone / LOCK).open("a") as lock:
        lock.write("# another lock file\n")

    code, output = of_clone(clone, like=received, seed=5, run_id="again")
    assert code == 0, output[-6000:]
    told = " ".join(output.split())
    assert f"Repeats the run {run_id}, started" in told
    named = (
        "Differs, option seed: 1 in the original, 5 here (given with -e)",
        f"Differs, lock file {LOCK}: ",
        "Differs, input application aiohttp: ",
    )
    for each in named:
        # Once before anything is changed, and once at the end.
        assert told.index(each) < told.index("Run again: 2 measurements of aiohttp"), each
        assert told.rindex(each) > told.index(f"Compared with the original {run_id}:"), each

    folder = clone / "results" / "again"
    found = documents.read(folder / "reproduction.json", Reproduction)
    assert found.original.run_id == run_id
    assert found.original.sha256 == documents.digest_of(received)
    differs = {part.part: [one.name for one in part.deviations] for part in found.parts}
    assert differs["option"] == ["seed"]
    assert differs["lock file"] == [LOCK]
    assert differs["input"] == ["application aiohttp"]
    for same in ("pin", "threshold", "kernel", "package", "controller"):
        assert differs[same] == [], same
    assert {part.part: part.same for part in found.parts}["tuning"] > 10
    (compared,) = found.comparisons
    assert compared.cell.endpoint == "index"
    assert (compared.base.name, compared.head.name) == (run_id, "again")
    assert {row.conclusion for row in compared.rows} == {"inconclusive"}
    assert (found.only_original, found.only_here) == ([], [])
    assert "Beside the original" in (folder / "report.html").read_text()

    # What was altered on the way is refused, and nothing is begun.
    data = bytearray(received.read_bytes())
    data[len(data) // 2] ^= 1
    received.write_bytes(data)
    code, output = of_clone(clone, like=received, run_id="refused")
    assert code == 2
    told = " ".join(output.split())
    assert "It is refused. Nothing was changed." in told
    assert not (clone / "results" / "refused").exists()
