"""Plays that tests run with ansible-playbook, on this machine alone."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
# Variables of this machine as a host.
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}


def run(
    folder: Path, inventory: Mapping[str, object], *plays: Mapping[str, object], **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run plays on an inventory, both of which are written into ``folder``; at most 300 s."""
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    (folder / "play.yml").write_text(yaml.safe_dump([*plays]))
    return playbook("-i", str(folder / "hosts.yml"), str(folder / "play.yml"), **environment)


def playbook(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ansible-playbook with these words in the lab's folder; at most 300 s."""
    return subprocess.run(
        ["ansible-playbook", *words],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
