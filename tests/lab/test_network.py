"""A network profile is applied to the test interface, measured, and removed."""

from __future__ import annotations

import json

import pytest

from .conftest import CLIENT, ROOT, SERVER, playbook, run, ssh

pytestmark = pytest.mark.lab


def shapes() -> list[str]:
    """The queueing disciplines of both hosts that are not the kernel's own."""
    lines = [line for host in (SERVER, CLIENT) for line in ssh(host, "tc qdisc show").splitlines()]
    return [line for line in lines if " tbf " in line or " netem " in line]


def test_a_slower_link_is_what_iperf_finds(run_id: str) -> None:
    run(
        "lab.yml",
        framework="nginx",
        endpoint="hello",
        rate=200,
        duration=2,
        warmup=1,
        network="fast_ethernet",
        run_id=run_id,
    )
    found = json.loads((ROOT / "results" / run_id / "calibration.json").read_text())
    for direction in ("client_to_server", "server_to_client"):
        assert 90e6 < found["iperf3"][direction]["bits_per_second"] < 100e6
    assert len(shapes()) == 2
    assert all("dev test0" in line for line in shapes())
    run("playbooks/tune.yml", network="lan", run_id=run_id)
    assert shapes() == []


def test_a_profile_that_the_kernel_cannot_have_is_refused() -> None:
    if ssh(SERVER, "modinfo sch_netem >/dev/null 2>&1 && echo yes || true").strip():
        pytest.skip("this kernel has netem")
    process = playbook("playbooks/tune.yml", network="transatlantic")
    output, _ = process.communicate(timeout=60)
    words = " ".join(output.split())
    assert process.returncode != 0
    assert "the network profile transatlantic needs netem" in words
    assert "Use a profile with a rate only (-e network=gigabit)" in words
    assert "Nothing was changed" in words
