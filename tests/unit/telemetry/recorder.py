"""What record-host.sh writes of a host, and its own functions."""

import gzip
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.unit.builders import ROOT

SCRIPT = (ROOT / "roles/telemetry/files/record-host.sh").read_text()


def function(begin: str, end: str = "\n}\n") -> str:
    """Return the part of the script from one text to the end of another."""
    first = SCRIPT.index(begin)
    return SCRIPT[first : SCRIPT.index(end, first) + len(end)]


def printed(script: str, **environment: str) -> list[str]:
    """Return the lines that a bash script prints; it must print no error."""
    command = ["bash", "-c", f"set -u; shopt -s nullglob\n{script}"]
    env = environment or None
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    return done.stdout.splitlines()


def pack(path: Path, lines: Iterable[str]) -> Path:
    """Write a recording and return its path."""
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return path


def stat(number: int | str, name: str, user: int, system: int = 0) -> str:
    """Return the line of a process with these ticks of CPU time."""
    ticks = f"0 0 0 0 0 {user} {system} 0 0 20 0 1 0 9 100 10 0"
    return f"/proc/{number}/stat:{number} ({name}) S 1 7 7 0 -1 {ticks}"


def spent(number: int, ran_ns: int, waited_ns: int = 0) -> str:
    """Return the line of a process's only thread, with its time on a core and waiting for one."""
    return f"/proc/{number}/task/{number}/schedstat:{ran_ns} {waited_ns} 3"


def group(unit: str, us: int, system_us: int = 0) -> str:
    """Return the line of a control group."""
    return f"own /sys/fs/cgroup/system.slice/{unit} {us} {system_us}"
