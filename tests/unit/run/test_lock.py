import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loadlab.run import lock


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """Another process, whose name is made to be misread."""
    words = "import sys; open('/proc/self/comm', 'w').write('a) Z 1 ('); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", words], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    return folder


def held(run_dir: Path) -> str:
    return (run_dir / ".lock").read_text()


def test_a_run_is_its_holders(run_dir: Path, other: subprocess.Popen[bytes]) -> None:
    lock.take(run_dir, other.pid, "")
    before = held(run_dir)
    assert before.split()[0] == str(other.pid)
    # Each of its stages takes it anew.
    lock.take(run_dir, other.pid, "")
    with pytest.raises(lock.HeldError) as refusal:
        lock.take(run_dir, os.getpid(), "")
    words = str(refusal.value)
    assert f"run_id: '{run_dir.name}' is under way in process {other.pid} " in words
    assert f"(kill {other.pid})" in words
    assert words.endswith("Nothing was changed.")
    assert held(run_dir) == before


def test_who_was_killed_holds_nothing(run_dir: Path, other: subprocess.Popen[bytes]) -> None:
    lock.take(run_dir, other.pid, "")
    other.kill()
    # Not waited for, it is still listed among the processes.
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{other.pid}").exists()
    lock.take(run_dir, os.getpid(), "")
    assert held(run_dir).split()[0] == str(os.getpid())


# The last is of another process with the same number.
@pytest.mark.parametrize("text", ["", "\n", "words\n", "12", "-1 5\n", "OTHER 1\n"])
def test_what_names_no_live_process_holds_nothing(
    run_dir: Path, other: subprocess.Popen[bytes], text: str
) -> None:
    (run_dir / ".lock").write_text(text.replace("OTHER", str(other.pid)))
    lock.take(run_dir, os.getpid(), "")
    lock.take(run_dir, os.getpid(), "")
    assert held(run_dir).split()[0] == str(os.getpid())


def test_one_run_at_a_time_has_the_hosts(run_dir: Path, other: subprocess.Popen[bytes]) -> None:
    """Wherever the other one is known by latest, too."""
    theirs = run_dir.with_name("theirs")
    theirs.mkdir()
    theirs.with_name("latest").symlink_to("theirs")
    (theirs / "plan.json").write_text('{"place": "-i inventory/aws"}')
    lock.take(theirs, other.pid, "-i inventory/aws")
    # Other hosts are nobody's concern.
    lock.take(run_dir, os.getpid(), "")
    before = held(run_dir)
    with pytest.raises(lock.HeldError, match=f"'theirs' is under way in process {other.pid} of"):
        lock.take(run_dir, os.getpid(), "-i inventory/aws")
    assert held(run_dir) == before
    # What is refused leaves no folder.
    new = run_dir.with_name("new")
    with pytest.raises(lock.HeldError):
        lock.take(new, os.getpid(), "-i inventory/aws")
    assert not new.exists()
    other.kill()
    other.wait()
    lock.take(new, os.getpid(), "-i inventory/aws")
    assert held(new) == before


def test_one_at_a_time_reads_and_writes(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")

    def add() -> None:
        for _ in range(50):
            with lock.alone(tmp_path):
                before = int(count.read_text())
                time.sleep(0)
                count.write_text(str(before + 1))

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(add) for _ in range(4)]:
            done.result()
    assert count.read_text() == "200"
