import json
from pathlib import Path

import pytest

from loadlab.telemetry import iperf3

FIXTURES = Path(__file__).parents[2] / "fixtures" / "iperf3"


def text(name: str) -> str:
    return (FIXTURES / f"{name}.json").read_text()


@pytest.mark.parametrize("name", ["forward", "reverse", "one", "four"])
def test_the_receivers_rate_and_the_senders_retransmits(name: str) -> None:
    found, end = iperf3.parse(text(name)), json.loads(text(name))["end"]
    assert found.bits_per_second == end["sum_received"]["bits_per_second"]
    assert found.bits_per_second != end["sum_sent"]["bits_per_second"]
    assert found.retransmits == end["sum_sent"]["retransmits"]
    assert found.seconds == end["sum_received"]["seconds"]
    assert found.cpu_percent.local == end["cpu_utilization_percent"]["host_total"]
    assert found.cpu_percent.remote == end["cpu_utilization_percent"]["remote_total"]
    assert found.streams == len(end["streams"])


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


def filled(name: str, local: float, remote: float, version: str = "iperf 3.18") -> str:
    """A recorded test in which the two ends used so much of a core."""
    document = json.loads(text(name))
    document["end"]["cpu_utilization_percent"] |= {"host_total": local, "remote_total": remote}
    document["start"]["version"] = version
    return json.dumps(document)


@pytest.mark.parametrize(
    ("output", "limited"),
    [
        (text("forward"), True),  # 98.5 % at the sender
        (text("reverse"), True),  # 97.7 % at the receiver
        (text("one"), False),
        (filled("one", 89, 12), False),
        (filled("one", 12, 90), True),
        # Four threads, each with a core of its own.
        (filled("four", 320, 300), False),
        (filled("four", 360, 300), True),
        # Before version 3.16 all streams had one.
        (filled("four", 99, 60, "iperf 3.12"), True),
        (filled("four", 99, 60, "iperf 3.17.1+"), False),
    ],
)
def test_full_cores_limit_the_figure(output: str, limited: bool) -> None:
    assert iperf3.parse(output).core_limited is limited


def test_a_direction_is_repeated_with_several_streams_where_one_filled_a_core() -> None:
    outputs = {"client_to_server": text("one"), "server_to_client": text("reverse"), "ping": ""}
    assert iperf3.to_repeat(outputs, 4) == ["server_to_client"]
    # Hosts of one core have none for a second stream.
    assert iperf3.to_repeat(outputs, 1) == []
    # What failed is told with its reason when the calibration is derived.
    assert iperf3.to_repeat({**outputs, "server_to_client": text("error")}, 4) == []
