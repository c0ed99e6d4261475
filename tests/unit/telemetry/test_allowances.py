"""The counters of a card's allowances, from ethtool to the telemetry."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import pytest

from loadlab.telemetry import cores
from tests.unit.telemetry.test_counters import Host, during

ROOT = Path(__file__).parents[3]
RECORDER = ROOT / "roles" / "telemetry" / "files" / "record-host.sh"
# What a card of the driver ena prints.
RECORDED = ROOT / "tests" / "fixtures" / "ena" / "ethtool-S.txt"


def lines(folder: Path, text: str) -> list[str]:
    """What the recorder writes of a machine with this card and a veth pair."""
    (folder / "sys/class/net/ens5/device").mkdir(parents=True, exist_ok=True)
    (folder / "sys/class/net/veth0").mkdir(exist_ok=True)
    (folder / "said").write_text(text)
    (folder / "ethtool").write_text(f'#!/bin/sh\n[ "$1 $2" = "-S ens5" ] && cat {folder}/said\n')
    (folder / "ethtool").chmod(0o755)
    script = RECORDER.read_text()
    begin = script.index("allowances() {")
    function = script[begin : script.index("\n}\n", begin) + 3].replace("/sys/", f"{folder}/sys/")
    return subprocess.run(
        ["bash", "-c", f"{function}shopt -s nullglob\nallowances"],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


def exceeded(folder: Path, first: list[str], last: list[str]) -> dict[str, int] | None:
    """What the telemetry has where the first and the last reading had these lines."""
    text = Host(during(2)).recording(0, 2).replace("eth0", "ens5").splitlines()
    second = [place for place, line in enumerate(text) if line.startswith("# reading")][1]
    path = folder / "cores.txt.gz"
    every = [*text[:second], *first, *text[second:], *last, ""]
    path.write_bytes(gzip.compress("\n".join(every).encode()))
    found = cores.counters(*cores.read(path), [0], "ens5")
    assert found is not None
    return dict(found.exceeded) if found.exceeded else None


def test_allowances_of_ena_are_recorded_and_their_rise_is_told(tmp_path: Path) -> None:
    text = RECORDED.read_text()
    before = lines(tmp_path, text)
    assert before == [
        "allowance ens5 bw_in_allowance_exceeded 0",
        "allowance ens5 bw_out_allowance_exceeded 1482",
        "allowance ens5 pps_allowance_exceeded 0",
        "allowance ens5 conntrack_allowance_exceeded 0",
        "allowance ens5 linklocal_allowance_exceeded 0",
    ]
    risen = text.replace("bw_out_allowance_exceeded: 1482", "bw_out_allowance_exceeded: 1985")
    assert exceeded(tmp_path, before, lines(tmp_path, risen)) == {
        "bw_in_allowance_exceeded": 0,
        "bw_out_allowance_exceeded": 503,
        "pps_allowance_exceeded": 0,
        "conntrack_allowance_exceeded": 0,
        "linklocal_allowance_exceeded": 0,
    }


def test_allowances_of_a_card_that_was_reset_count_from_0(tmp_path: Path) -> None:
    name = "pps_allowance_exceeded"
    first, last = ([f"allowance ens5 {name} {count}"] for count in (900, 7))
    assert exceeded(tmp_path, first, last) == {name: 7}


@pytest.mark.parametrize("text", ["NIC statistics:\n     rx_packets: 12\n", ""])
def test_allowances_of_another_card_are_unknown(tmp_path: Path, text: str) -> None:
    assert lines(tmp_path, text) == []
    assert exceeded(tmp_path, [], []) is None


def test_allowances_of_the_management_link_are_not_of_the_load(tmp_path: Path) -> None:
    other = ["allowance eth9 pps_allowance_exceeded 5"]
    assert exceeded(tmp_path, other, other) is None
