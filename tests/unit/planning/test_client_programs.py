from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.hosts.probe import HostProbe
from loadlab.planning import client_programs
from loadlab.report.words import generators
from tests.unit import builders

SNAPS = Path(__file__).parents[2] / "fixtures" / "snap"
REMEDY = (
    "Name an executable of yours with -e wrk2_binary=/path/to/wrk2, or measure with "
    "-e generator=metronome."
)
WITHOUT_SNAPD = (
    "the generator wrk2 is not there, and neither is snapd, which could install the snap wrk2. "
    "Name an executable of yours with -e wrk2_binary=/path/to/wrk2, or install the package snapd, "
    "or measure with -e generator=metronome."
)
WITHOUT_INTERNET = (
    "the generator wrk2 is not there, and snapd cannot install its snap without internet on the "
    f"host (hosts_online=false). {REMEDY}"
)
ABSENT = "the generator wrk2 is not there, and the snap store offers no snap wrk2 for x86_64: "


def client(wrk2: str = "", snap: str | None = None, machine: str = "x86_64") -> HostProbe:
    """A client with wrk2 at this path, and with this recorded output of `snap info`."""
    snaps = {} if snap is None else {"wrk2": (SNAPS / f"{snap}.txt").read_text()}
    programs = {"oha": "", "wrk": "", "wrk2": wrk2}
    return builders.host_probe(machine=machine, programs=programs, snaps=snaps)


def refusals(
    host: HostProbe,
    *names: str,
    binaries: dict[str, str] | None = None,
    fetched: list[str] | None = None,
) -> list[str]:
    found = client_programs.obstacles(host, names, binaries or {}, sys.executable, fetched)
    return [generators.refusal(why) for why in found]


@pytest.mark.parametrize(
    ("host", "refused"),
    [
        (client(), [WITHOUT_SNAPD]),
        (client(wrk2="/usr/local/bin/wrk2"), []),
        (client(wrk2="/usr/local/bin/wrk2", machine="aarch64"), []),
        (client(snap="strict"), []),
        (client(snap="classic"), []),
        (client(snap="absent"), [f'{ABSENT}error: no snap found for "wrk2". {REMEDY}']),
        (
            client(snap="strict", machine="aarch64"),
            ["the generator wrk2 is not there, and its snap does not work on aarch64. " + REMEDY],
        ),
    ],
)
def test_a_client_without_a_way_to_wrk2_is_refused(host: HostProbe, refused: list[str]) -> None:
    assert refusals(host, "wrk2") == refused
    # A script is for every machine.
    assert refusals(host, "wrk2", binaries={"wrk2_binary": __file__}) == []
    assert refusals(client(machine=platform.machine()), "oha", "wrk", "python-sync") == []


def test_a_snap_without_a_release_for_users_is_refused() -> None:
    text = (SNAPS / "undated.txt").read_text()
    devmode = {"wrk2": text.replace("28MB -", "28MB devmode")}
    (told,) = refusals(replace(client(), snaps=devmode), "wrk2")
    assert "its snap in latest/stable has the confinement devmode" in told
    closed = {"wrk2": text[: text.index("  latest/stable")] + "  latest/stable: --\n"}
    (told,) = refusals(replace(client(), snaps=closed), "wrk2")
    assert told == f"{ABSENT}no channel has a release. {REMEDY}"


@pytest.mark.parametrize("snap", [None, "strict"])
def test_the_snap_store_is_no_source_of_packages(snap: str | None) -> None:
    assert refusals(client(snap=snap), "wrk2", fetched=[]) == [WITHOUT_INTERNET]
    assert refusals(client(wrk2="/snap/bin/wrk2"), "wrk2", fetched=[]) == []


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
