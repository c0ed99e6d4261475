from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs

from loadlab.model import Drops, HostSeries, HostTelemetry, Iperf3Direction, Reason, Validity
from loadlab.report import words
from loadlab.results.validity import disturbance
from loadlab.telemetry.counters import MODES, Counters
from tests.unit import builders
from tests.unit.builders import telemetry as host
from tests.unit.results.validity.judging import (
    CLOSED,
    CLOSED_LOOP,
    GOOD,
    NONE,
    by_host,
    codes,
    judged,
)

CAPACITY = 1e9


def series(seconds: int = 20, **changes: Any) -> HostSeries:
    """The seconds of a quiet load; a change is a list, or one value for each second."""
    names = (
        *("cpu_busy", "cpu_user", "cpu_system", "cpu_softirq", "cpu_iowait", "cpu_steal"),
        *("cpu_busiest_core", "softirq_busiest_core", "rx_bits", "tx_bits", "foreign_cpu"),
    )
    values = {**dict.fromkeys(names, 0.0), **changes}
    fields: dict[str, Any] = {
        name: value if value is None or isinstance(value, list) else [value] * seconds
        for name, value in values.items()
    }
    return HostSeries(t=[float(second) for second in range(1, seconds + 1)], **fields)


def some(count: int, value: float, of: int = 20) -> list[float]:
    return [value] * count + [0.0] * (of - count)


def seconds(**changes: Any) -> HostTelemetry:
    return host(per_second=series(**changes))


@pytest.mark.parametrize("role", ["server", "client"])
def test_foreign_cpu_voids_by_the_core_time_of_disturbed_seconds(role: str) -> None:

    def of(cores: int, foreign: float | list[float]) -> Validity:
        return by_host(role, host(cores=cores, per_second=series(foreign_cpu=foreign)))

    assert of(1, 0.09).valid
    assert of(1, some(1, 0.09)).valid
    # What a controller does beside a load of local hosts.
    assert of(1, some(2, 0.2)).valid
    assert not of(1, some(6, 0.2)).valid
    # One core of sixteen for a second of twenty: the mean over the cores is 6 % in that second.
    for cores, part in ((1, 1.0), (16, 1 / 16)):
        (reason,) = of(cores, some(1, part)).reasons
        assert reason.code == "foreign_cpu"
        assert reason.value == pytest.approx(0.05)
    text = words.reason(of(2, some(10, 0.3)).reasons[0])
    assert f"used a core of the {role} for 30 % of the load, limit 0.50 %" in text
    assert "cores: 0.60 in the worst, 15 % of its CPU on average" in text


@pytest.mark.parametrize(("foreign", "of", "valid"), [(0.3, 90, True), (0.3, 30, False)])
def test_disturbed_second_of_a_long_load_is_weighed(foreign: float, of: int, valid: bool) -> None:
    """It moves no p99 where it is so short that less than half of 1 % of the requests met it."""
    loaded = host(cores=1, per_second=series(of, foreign_cpu=some(1, foreign, of)))
    assert judged(server=loaded).valid == valid


def test_a_clock_that_was_set_is_no_foreign_cpu() -> None:
    loaded = host(clock_step_s=100.0, per_second=series(foreign_cpu=some(1, 0.99)))
    assert codes(judged(server=loaded).reasons) == ["clock_jump"]


@pytest.mark.parametrize("role", ["server", "client"])
def test_allowance_voids_where_its_counter_rose(role: str) -> None:

    def of(**counted: int) -> Validity:
        return by_host(role, structs.replace(host(), allowances_exceeded=counted))

    (reason,) = of(bw_in_allowance_exceeded=0, pps_allowance_exceeded=12345).reasons
    told = f"held back or dropped 12,345 packets of {role} (pps_allowance_exceeded), limit 0"
    assert words.coded(reason) == f"allowance: the cloud {told}"
    assert of(bw_in_allowance_exceeded=0, pps_allowance_exceeded=0).valid


def test_what_was_not_recorded_is_not_judged() -> None:
    assert judged(client=seconds(foreign_cpu=None)).valid
    assert judged(client=host(per_second=None)).valid


def test_steal_voids_by_its_seconds_too() -> None:
    """A tenth of the seconds with 9 % are 0.9 % on average, which alone would pass."""
    (reason,) = judged(server=seconds(cpu_steal=some(2, 0.09))).reasons
    assert words.coded(reason).startswith(
        "steal: 0.090 on server, limit 0.05 a second, exceeded in 10 % of"
    )
    assert judged(server=seconds(cpu_steal=some(1, 0.09))).valid


def test_a_second_without_its_cores_voids_whoever_took_them() -> None:
    """Half of both cores in a second of 60 are 0.8 % on average; the p99 is 50 times as long."""
    loaded = host(cores=2, per_second=series(60, cpu_steal=some(1, 0.5, 60)))
    (reason,) = judged(server=loaded).reasons
    assert words.coded(reason) == (
        "steal: the hypervisor took a core of the server for 1.7 % of the load, limit 0.50 %, in "
        "seconds with more than 0.25 cores; 1.0 cores in the worst second"
    )
    many = host(cores=32, per_second=series(60, cpu_steal=some(1, 0.009, 60)))
    assert judged(server=many).valid
    stolen = host(cores=32, per_second=series(60, cpu_steal=some(1, 0.03, 60)))
    assert not judged(server=stolen).valid


@pytest.mark.parametrize("disturbed", [{"foreign_cpu": 0.15}, {"cpu_steal": 0.09}])
def test_a_p99_9_that_others_may_have_made_is_withheld(disturbed: dict[str, float]) -> None:
    """A second of 20, which voids nothing; a p99.99 needs more answers."""
    ((name, part),) = disturbed.items()
    found = judged(server=seconds(**{name: some(1, part)}))
    assert found.valid
    assert [words.coded(finding) for finding in found.findings] == [
        "disturbed_tail: p99.9 withheld: others had a core of the server for "
        f"{5 * part:.2g} % of the load, in disturbed seconds"
    ]
    assert judged(server=seconds(**{name: some(20, 0.04)})).findings == []


def test_a_client_is_judged_by_its_full_seconds() -> None:
    """The mean of .94 .98 .98 .99 .16 is .81, below the limit."""
    busy = [0.94, 0.98, 0.98, 0.99, 0.16]
    client = host(cpu_busy=float(np.mean(busy)), per_second=series(5, cpu_busy=busy))
    (reason,) = judged(client=client).reasons
    told = "client 0.99 busy, limit 0.9 a second, exceeded in 80 % of the seconds, limit 20 %"
    assert words.coded(reason) == f"generator_cpu: {told}"
    calm = host(cpu_busy=0.5, per_second=series(5, cpu_busy=[0.95, 0.4, 0.4, 0.4, 0.4]))
    assert judged(client=calm).valid


def test_other_programs_that_fill_the_client_are_not_the_generator() -> None:
    busy = series(5, cpu_busy=[0.98] * 5, foreign_cpu=[0.5] * 5)
    found = judged(client=host(cpu_busy=0.98, foreign_cpu=0.5, per_second=busy))
    assert codes(found.reasons) == ["foreign_cpu"]


def test_a_closed_loop_may_fill_both_hosts_by_the_second() -> None:
    client = host(cpu_busy=0.8, per_second=series(cpu_busy=some(15, 0.99)))
    found = judged(CLOSED, load=CLOSED_LOOP, client=client, server=host(cpu_busy=0.95))
    assert found.valid
    assert codes(found.findings) == ["generator_cpu"]
    assert not judged(CLOSED, load=CLOSED_LOOP, client=client).valid


@pytest.mark.parametrize(("name", "direction"), [("tx", "client_to_server"), ("rx", "server_to")])
def test_a_link_is_judged_by_its_seconds_too(name: str, direction: str) -> None:
    client = seconds(**{f"{name}_bits": some(5, 0.95 * CAPACITY)})
    (reason,) = judged(client=client, calibration=builders.calibration_at(CAPACITY)).reasons
    assert reason.code == "link"
    assert direction in words.reason(reason)
    assert "exceeded in 25 % of the seconds, limit 20 %" in words.reason(reason)


def test_a_disturbed_calibration_voids_no_link() -> None:
    full = host(network={"tx_bits_per_second": 0.99 * CAPACITY}, per_second=None)
    good = builders.calibration_at(CAPACITY)
    assert not judged(client=full, calibration=good).valid
    reasons = [Reason(code="steal", value=0.3, limit=0.05, facts={"host": "server"})]
    found = judged(client=full, calibration=msgspec.structs.replace(good, link_reasons=reasons))
    assert found.valid
    (finding,) = map(words.coded, found.findings)
    assert finding.startswith("link_disturbed: ")
    assert finding.endswith("disturbed: steal")


@pytest.mark.parametrize(
    ("cores", "mean", "busiest", "softirq", "told"),
    [
        (32, 0.03, 0.99, 0.97, True),
        (32, 0.03, 0.99, 0.1, True),
        (1, 0.99, 0.99, 0.97, False),
        (4, 0.97, 0.99, 0.5, False),
        # All are full, and one of them with packets.
        (4, 0.97, 0.99, 0.97, True),
        (4, 0.3, 0.9, 0.9, False),
    ],
)
def test_one_full_core_is_a_finding(
    cores: int, mean: float, busiest: float, softirq: float, told: bool
) -> None:
    server = host(
        cores=cores, cpu_busy=mean, cpu_busiest_core=busiest, softirq_busiest_core=softirq,
        per_second=None,
    )  # fmt: skip
    found = judged(server=server)
    assert found.valid
    assert codes(found.findings) == (["full_core"] if told else [])
    if told:
        text = (
            f"{cores} cores was 99 % busy, all together {100 * mean:.0f} %; softirq took at most "
        )
        assert f"{text}{100 * softirq:.0f} % of" in words.reason(found.findings[0])


@pytest.mark.parametrize("role", ["server", "client"])
@pytest.mark.parametrize(
    ("card", "kernel", "told"), [(0, 0, False), (20, 0, False), (21, 0, True), (0, 21, True)]
)
def test_lost_packets_are_a_finding(role: str, card: int, kernel: int, told: bool) -> None:
    lost = Drops(received=100_000, dropped=card, softnet_dropped=kernel, softnet_squeezed=1_000_000)
    found = by_host(role, host(drops=lost))
    assert found.valid
    assert codes(found.findings) == (["packet_drops"] if told else [])
    if told:
        text = words.reason(found.findings[0])
        assert f"{role} lost 0.021 % of 100,000 packets before TCP saw them, limit 0.02 %" in text
        assert f"{card} dropped by the card, {kernel} for a full backlog" in text


@pytest.mark.parametrize(("p99", "network"), [(204_000, True), (4_000, False), (900_000, False)])
def test_retransmissions_are_a_finding(p99: int, network: bool) -> None:
    server = host(tcp={"retransmits": 2_000, "segments": 100_000})
    measured = replace(GOOD, latency_us={**GOOD.latency_us, "p99": p99})
    (finding,) = judged(measured, server=server).findings
    assert (finding.code, finding.value, finding.facts["network"]) == ("retransmits", 0.02, network)
    text = words.reason(finding)
    assert text.startswith("server sent 2000 of 100000 segments again, 2.00 %, limit 0.1 %")
    assert ("lost segment" in text) == network
    assert judged(server=host(tcp={"retransmits": 100, "segments": 100_000})).findings == []


def test_server_that_swaps_is_a_finding_and_a_client_that_does_voids() -> None:
    """What the stack does never voids: it may need more memory than its host has."""
    found = judged(server=host(swap_pages=50))
    assert (found.valid, codes(found.findings)) == (True, ["swapping"])
    assert codes(judged(client=host(swap_pages=50)).reasons) == ["swapping"]


def test_emulated_host_voids() -> None:
    (reason,) = judged(emulated=["server", "client"]).reasons
    told = "QEMU emulates the processors of server and client, without KVM"
    assert words.reason(reason) == told


def test_answers_that_fail_at_once_may_fill_the_client_of_a_closed_loop() -> None:
    """A reverse proxy that answers 502 is faster than the generator can ask: its goodput is 0."""
    failing = replace(CLOSED, ok=0, errors={**NONE, "status_5xx": 30_000})
    found = judged(failing, host(cpu_busy=0.3), host(cpu_busy=0.97), load=CLOSED_LOOP)
    assert (found.valid, codes(found.findings)) == (True, ["generator_cpu", "errors"])
    assert words.reason(found.findings[0]).endswith("most requests failed at once")


def test_connections_that_the_server_closes_with_an_error_do_not_void() -> None:
    few = host(sockets={"established_max": 3})
    broken = replace(CLOSED, ok=29_000, responses=29_000, errors={**NONE, "read": 1_000})
    assert judged(broken, load=CLOSED_LOOP, client=few).valid
    # The client may lack a port or a file.
    none = replace(broken, errors={**NONE, "connect": 1_000})
    for measured in (CLOSED, none):
        assert codes(judged(measured, load=CLOSED_LOOP, client=few).reasons) == ["connections"]


@pytest.mark.parametrize(
    ("measured", "text"),
    [(0.0104, "0.0104 on server, limit 0.01"), (0.010000004, "0.010000004 on server"),
     (0.5, "0.500 on server, limit 0.01")],
)  # fmt: skip
def test_value_has_the_digits_that_tell_it_from_its_limit(measured: float, text: str) -> None:
    (reason,) = judged(server=host(cpu={"steal": measured})).reasons
    assert words.reason(reason).startswith(text)


def test_disturbed_seconds_are_marked() -> None:
    thresholds = builders.thresholds()
    quiet = seconds(foreign_cpu=[0.0, 0.5, 0.0], cpu_steal=[0.0, 0.0, 0.2], seconds=3)
    unknown = seconds(foreign_cpu=None, seconds=3)
    for measured, expected in ((quiet, [False, True, True]), (unknown, [False] * 3)):
        marked = disturbance.marked(measured, thresholds).per_second
        assert builders.present(marked).disturbed == expected
    assert disturbance.marked(host(per_second=None), thresholds).per_second is None


def counters(moved: np.ndarray, own: np.ndarray, **spent: np.ndarray) -> Counters:
    """A host of one core, by these seconds of it in each mode at T and the bytes of its link."""
    modes = {**dict.fromkeys(MODES, np.zeros_like(T)), **spent}
    return Counters(T, {0: modes}, moved, moved, own=own, whole_seconds=True)


def recorded(foreign: float = 0.0, steal: float = 0.0) -> Counters:
    """8 s of the lab's own work, that of others, and steal."""
    idle = (0.7 - foreign - steal) * T
    return counters(T, 0.3 * T, user=(0.3 + foreign) * T, steal=steal * T, idle=idle)


T = np.arange(0, 8.01, 0.2)
DIRECTION = builders.calibration_at(CAPACITY).iperf3.client_to_server


@pytest.mark.parametrize(
    ("direction", "hosts", "expected"),
    [
        ({}, {}, []),
        ({"spread": 0.61}, {}, ["iperf3_spread"]),
        ({"spread": 0.59, "retransmitted": 0.101}, {}, ["iperf3_retransmits"]),
        ({}, {"server": recorded(foreign=0.4)}, ["foreign_cpu"]),
        ({}, {"client": recorded(steal=0.2)}, ["steal"]),
        ({}, {"client": None, "server": recorded()}, []),
    ],
)
def test_the_calibration_of_a_link_is_judged(
    direction: dict[str, float], hosts: dict[str, Counters | None], expected: list[str]
) -> None:
    one: Iperf3Direction = msgspec.structs.replace(DIRECTION, **direction)
    found = disturbance.calibration_link({"client_to_server": one}, hosts, builders.thresholds())
    assert codes(found) == expected
    for reason in found:
        assert words.reason(reason)


def test_work_of_others_between_the_tests_of_iperf3_disturbs_no_calibration() -> None:
    """iperf3 runs in the seconds 1 to 3 and 5 to 8; in between somebody else has the core."""
    with_pauses = np.interp(T, [0, 1, 3, 5, 8], [0, 0, 2e9, 2.01e9, 5.01e9])
    foreign = np.interp(T, [0, 1, 3, 5, 8], [0, 0.9, 0.9, 2.7, 2.7])
    thresholds, directions = builders.thresholds(), {"client_to_server": DIRECTION}
    for moved, expected in ((with_pauses, []), (T, ["foreign_cpu"])):
        host = counters(moved, np.zeros_like(T), user=foreign, idle=T - foreign)
        found = disturbance.calibration_link(directions, {"client": host}, thresholds)
        assert codes(found) == expected


def test_waiting_for_the_last_answers_is_no_gap_in_the_telemetry() -> None:
    late = replace(GOOD, duration_s=55.0)
    assert judged(late, server=host(samples=31)).valid
    assert codes(judged(late, server=host(samples=23)).reasons) == ["telemetry_gap"]


def test_a_host_whose_recorder_ended_early_voids() -> None:
    assert judged(server=host(exact=True)).valid
    assert codes(judged(server=host(exact=False)).reasons) == ["recording_gap"]
    # A clock that was set voids as that.
    set_forward = host(exact=False, clock_step_s=100.0)
    assert codes(judged(server=set_forward).reasons) == ["clock_jump"]


def test_a_closed_loop_that_fills_the_client_alone_says_nothing_of_the_server() -> None:
    for server, client, valid, why in (
        (0.9, 0.97, True, "client 0.97 busy, limit 0.9, server 0.90 busy, full from 0.9: both "
         "were full"),
        (0.74, 0.94, False, "client 0.94 busy, limit 0.9, server 0.74 busy, full from 0.9: the "
         "generator was the limit"),
    ):  # fmt: skip
        found = judged(CLOSED, host(cpu_busy=server), host(cpu_busy=client), load=CLOSED_LOOP)
        assert found.valid is valid
        (told,) = [*found.reasons, *found.findings]
        assert words.coded(told) == f"generator_cpu: {why}"
    assert judged(CLOSED, host(cpu_busy=0.74), host(cpu_busy=0.9), load=CLOSED_LOOP).valid
    # The calibration is about what the client can do.
    cell = builders.cell(expected_void=["generator_cpu"])
    ceiling = judged(CLOSED, client=host(cpu_busy=1.0), load=CLOSED_LOOP, cell=cell)
    assert (ceiling.valid, codes(ceiling.findings)) == (True, ["generator_cpu"])
