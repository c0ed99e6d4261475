"""What a program prints to a terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLEAR = "\r\x1b[K"


def seen(
    command: Sequence[str], columns: int, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command of Ansible in a terminal with that many columns; stdout has all that came."""
    variables = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "TERM": "xterm"}
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen(
        command,
        env={**variables, "COLUMNS": str(columns), **environment},
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        got = b""
        try:
            while data := os.read(controller, 4096):
                got += data
        except OSError:
            # The other side has gone.
            code = process.wait(60)
    os.close(controller)
    return subprocess.CompletedProcess(command, code, got.decode())


def left(got: str) -> list[str]:
    """Return the lines that are there at the end: without what was cleared."""
    return [line.rpartition(CLEAR)[2].rstrip("\r") for line in got.split("\n")]
