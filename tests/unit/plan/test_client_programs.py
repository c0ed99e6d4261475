import platform
import sys
from pathlib import Path

import pytest

from loadlab.hosts.probe import HostProbe
from loadlab.plan import client_programs
from loadlab.report.words import generators_words
from tests.unit import builders

ABSENT = (
    "the generator wrk2 is not there, and no package of its distribution has it. Name an "
    "executable of yours with -e wrk2_binary=/path/to/wrk2, install it there yourself (the snap "
    "wrk2 has it, if you trust its publisher: `snap info`), or measure with -e generator=metronome."
)


def client(wrk2: str = "", machine: str = "x86_64") -> HostProbe:
    """A client with wrk2 at this path."""
    programs = {"oha": "", "wrk": "", "wrk2": wrk2}
    return builders.host_probe(machine=machine, programs=programs)


def refusals(host: HostProbe, *names: str, binaries: dict[str, str] | None = None) -> list[str]:
    reasons = client_programs.obstacles(host, names, binaries or {}, sys.executable)
    return [generators_words.refusal(reason) for reason in reasons]


@pytest.mark.parametrize(
    ("host", "refused"),
    [
        (client(), [ABSENT]),
        (client(wrk2="/usr/local/bin/wrk2"), []),
        (client(wrk2="/snap/bin/wrk2", machine="aarch64"), []),
    ],
)
def test_a_client_without_a_way_to_wrk2_is_refused(host: HostProbe, refused: list[str]) -> None:
    assert refusals(host, "wrk2") == refused
    # A script is for every machine.
    assert refusals(host, "wrk2", binaries={"wrk2_binary": __file__}) == []
    assert refusals(client(machine=platform.machine()), "oha", "wrk", "python-sync") == []


def test_a_program_for_another_machine_is_refused(tmp_path: Path) -> None:
    for_aarch64 = tmp_path / "wrk2"
    for_aarch64.write_bytes(b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\xb7\0" + bytes(44))
    own = {"wrk2_binary": str(for_aarch64)}
    arm = client(machine="aarch64")
    assert refusals(arm, "oha", "wrk2", binaries=own) == [
        f"it is aarch64, and the oha that it would get from this machine is for "
        f"{platform.machine()}. Name one for aarch64 with -e oha_binary=/path/to/oha."
    ]
    assert len(refusals(client(machine="riscv64"), "oha", "wrk2", binaries=own)) == 2
    script = tmp_path / "oha"
    script.write_text("#!/bin/sh\n")
    assert refusals(arm, "oha", binaries={"oha_binary": str(script)}) == []
