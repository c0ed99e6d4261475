"""playbooks/rehearse.yml: a first boot with the user data of the instances, and its refusals."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import ROOT, finish, playbook

pytestmark = pytest.mark.lab

STATE = Path("/var/lib/loadlab-rehearsal")
USER_DATA = ROOT / "roles/aws_hosts/templates/user-data.yml.j2"
STEPS = (
    "host keys on its console; it terminates itself at",
    "reached as admin by a key of the console; cloud-init had no errors; sudo makes admin root",
    "waited for the package lock, installed a package from the lists that the first boot read",
    "the timer that ends it is set, and apt's own timers are off",
    "it powered itself off",
)


def passed(output: str) -> list[tuple[float, str]]:
    """The steps that passed: seconds since the boot, and words."""
    found = re.findall(r"^ +([0-9.]+) s: (.+)$", output, re.MULTILINE)
    return [(float(seconds), words) for seconds, words in found]


def left() -> list[str]:
    """The rehearsal's network and mounts that are there."""
    shown = "ip -o link; ip netns; nft list tables; mount"
    lines = subprocess.run(["sh", "-ec", shown], check=True, capture_output=True, text=True).stdout
    return [line for line in lines.splitlines() if "10-79" in line]


def test_first_boot_passes_every_step_and_leaves_nothing() -> None:
    output = finish(playbook("playbooks/rehearse.yml"), 300)
    steps = passed(output)
    assert len(steps) == len(STEPS), output
    for (_, words), expected in zip(steps, STEPS, strict=True):
        assert words.startswith(expected)
    seconds = [each for each, _ in steps]
    assert seconds == sorted(seconds)
    # The lock was held for five seconds, and the timer was set within the boot for 90 s.
    assert seconds[2] > 5
    assert 90 <= seconds[-1] <= 90 + seconds[0] + 30
    assert left() == []
    assert not STATE.exists()


@pytest.mark.parametrize(
    ("added", "words"),
    [
        pytest.param("  - 'false'\n", "cloud-init says 'error' of the first boot", id="bootcmd"),
        pytest.param(
            # Nobody listens there.
            "  - echo deb http://127.0.0.1:9/ none main >/etc/apt/sources.list.d/none.list\n",
            "Failed to update package using apt",
            id="package_update",
        ),
    ],
)
def test_first_boot_that_fails_is_refused(tmp_path: Path, added: str, words: str) -> None:
    """The keys are on the console and the timer is set in both cases."""
    text = USER_DATA.read_text()
    head, mark, tail = text.partition("# The lists of packages in the image")
    assert mark
    (tmp_path / "user-data.yml.j2").write_text(head + added + mark + tail)
    process = playbook("playbooks/rehearse.yml", rehearsal_user_data=tmp_path / "user-data.yml.j2")
    output, _ = process.communicate(timeout=300)
    assert process.returncode != 0, output
    assert [step.partition(";")[0] for _, step in passed(output)] == ["host keys on its console"]
    assert "rehearsal: cloud-init says '" in " ".join(output.split())
    assert words in " ".join(output.split())
    assert f"The host is removed; its logs are in {STATE}" in output
    assert (STATE / "cloud-init-output.log").exists()
    assert left() == []
    shutil.rmtree(STATE)
