from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.planning import client_programs
from tests.unit import builders

WITHOUT_SNAPD = (
    "the generator wrk2 is not there, and neither is snapd, which could install the snap wrk2. "
    "Name an executable of yours with -e wrk2_binary=/path/to/wrk2, or install the package snapd, "
    "or measure with -e generator=oha."
)
WITHOUT_INTERNET = (
    "the generator wrk2 is not there, and snapd cannot install its snap without internet on the "
    "host (hosts_online=false). Name an executable of yours with -e wrk2_binary=/path/to/wrk2, or "
    "measure with -e generator=oha."
)


def refusals(
    *names: str,
    wrk2: str = "",
    packages: list[str] | None = None,
    machine: str = platform.machine(),
    binaries: dict[str, str] | None = None,
    fetched: list[str] | None = None,
) -> list[str]:
    found = builders.host_probe()
    host = replace(
        found,
        machine=machine,
        programs={"oha": "", "wrk": "", "wrk2": wrk2},
        manifest=replace(found.manifest, packages=dict.fromkeys(packages or [], "1")),
    )
    return client_programs.refusals(host, names, binaries or {}, sys.executable, fetched)


def test_a_client_without_a_way_to_the_snap_is_refused() -> None:
    assert refusals("wrk2") == [WITHOUT_SNAPD]
    assert refusals("wrk2", wrk2="/usr/local/bin/wrk2") == []
    assert refusals("wrk2", packages=["snapd"]) == []
    assert refusals("wrk2", binaries={"wrk2_binary": sys.executable}) == []
    assert refusals("oha", "wrk", "python-sync") == []


@pytest.mark.parametrize("packages", [[], ["snapd"]])
def test_the_snap_store_is_no_source_of_packages(packages: list[str]) -> None:
    assert refusals("wrk2", packages=packages, fetched=[]) == [WITHOUT_INTERNET]
    assert refusals("wrk2", packages=packages, fetched=[], wrk2="/snap/bin/wrk2") == []


def test_a_program_for_another_machine_is_refused(tmp_path: Path) -> None:
    for_aarch64 = tmp_path / "wrk2"
    for_aarch64.write_bytes(b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\xb7\0" + bytes(44))
    own = {"wrk2_binary": str(for_aarch64)}
    assert refusals("oha", "wrk2", machine="aarch64", binaries=own) == [
        f"it is aarch64, and the oha that it would get from this machine is for "
        f"{platform.machine()}. Name one for aarch64 with -e oha_binary=/path/to/oha."
    ]
    assert len(refusals("oha", "wrk2", machine="riscv64", binaries=own)) == 2
    script = tmp_path / "oha"
    script.write_text("#!/bin/sh\n")
    assert refusals("oha", machine="aarch64", binaries={"oha_binary": str(script)}) == []
