from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadlab.telemetry import iperf3

FIXTURES = Path(__file__).parents[2] / "fixtures" / "iperf3"


def text(name: str) -> str:
    return (FIXTURES / f"{name}.json").read_text()


@pytest.mark.parametrize("name", ["forward", "reverse"])
def test_the_receivers_rate_and_the_senders_retransmits(name: str) -> None:
    found, end = iperf3.parse(text(name)), json.loads(text(name))["end"]
    assert found.bits_per_second == end["sum_received"]["bits_per_second"]
    assert found.bits_per_second != end["sum_sent"]["bits_per_second"]
    assert found.retransmits == end["sum_sent"]["retransmits"]
    assert found.seconds == end["sum_received"]["seconds"]
    assert found.cpu_percent.local == end["cpu_utilization_percent"]["host_total"]
    assert found.cpu_percent.remote == end["cpu_utilization_percent"]["remote_total"]


def test_error_that_iperf3_reports_is_raised() -> None:
    with pytest.raises(iperf3.Iperf3Error, match="unable to connect to server"):
        iperf3.parse(text("error"))


def test_what_is_not_a_tcp_test_is_refused() -> None:
    with pytest.raises(iperf3.Iperf3Error, match="truncated"):
        iperf3.parse(text("forward")[:500])
    with pytest.raises(iperf3.Iperf3Error, match="retransmits"):
        iperf3.parse(text("forward").replace('"retransmits"', '"jitter_ms"'))
    nothing = json.loads(text("forward"))
    nothing["end"]["sum_received"]["bits_per_second"] = 0
    with pytest.raises(iperf3.Iperf3Error, match="no traffic"):
        iperf3.parse(json.dumps(nothing))
