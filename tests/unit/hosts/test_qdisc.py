import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from loadlab.hosts import qdisc
from loadlab.hosts.qdisc import Netem, NetworkProfile, RootQdisc, Tbf
from loadlab.run.catalog import load_yaml
from loadlab.run.errors import PlanError

ROOT = Path(__file__).parents[3]
FILES: dict[str, Any] = {
    path.stem: load_yaml(path) for path in sorted((ROOT / "files" / "network").glob("*.yml"))
}
PROFILES = {name: qdisc.network_profile(ROOT, name) for name in FILES}
COUNTERS = '"bytes":0,"packets":0,"drops":0,"overlimits":0,"requeues":0,"backlog":0,"qlen":0'
# What `tc -j -s qdisc show dev X` of iproute2 6.1 printed on Linux 6.18.
NOQUEUE = (
    '[{"kind":"noqueue","handle":"0:","root":true,"refcnt":2,"options":{},' + COUNTERS + "}]\n"
)
PFIFO_FAST = (
    '[{"kind":"pfifo_fast","handle":"0:","root":true,"refcnt":2,"options":{"bands":3,"priomap":'
    '[1,2,2,2,1,2,0,0,1,1,1,1,1,1,1,1],"multiqueue":false},' + COUNTERS + "}]\n"
)
# Added by hand, which its handle tells.
MQ = (
    '[{"kind":"mq","handle":"8002:","root":true,"options":{},' + COUNTERS + "},"
    '{"kind":"pfifo_fast","handle":"0:","parent":"8002:1","options":{"bands":3,"priomap":'
    '[1,2,2,2,1,2,0,0,1,1,1,1,1,1,1,1],"multiqueue":false},' + COUNTERS + "}]\n"
)
HTB = (
    '[{"kind":"htb","handle":"5:","root":true,"refcnt":3,"options":{"r2q":10,"default":"0",'
    '"direct_packets_stat":0,"direct_qlen":1000},' + COUNTERS + "}]\n"
)


def tbf(rate: int, burst: int) -> str:
    """What tc printed of a tbf of the lab's, bytes/s and bytes."""
    return (
        '[{"kind":"tbf","handle":"1ab:","root":true,"refcnt":3,"options":{"rate":'
        f'{rate},"burst":{burst},"lat":50000}},{COUNTERS}}}]\n'
    )


GIGABIT, FAST_ETHERNET = tbf(125_000_000, 250_000), tbf(12_500_000, 80_000)


def netem(profile: NetworkProfile, **changed: float) -> str:
    """What tc would print for a profile. Not recorded, as this kernel has no netem.

    The shape is that of iproute2 6's tc/q_netem.c as quoted in the tests of other projects: delay
    and jitter in seconds, loss a fraction, rate in bytes a second, what is zero left out.
    """
    asked = qdisc.qdisc(profile)
    assert asked
    wanted = {**asdict(asked), **changed}
    options: dict[str, Any] = {"limit": wanted["limit"]}
    if wanted["delay"] or wanted["jitter"]:
        options["delay"] = {"delay": wanted["delay"], "jitter": wanted["jitter"], "correlation": 0}
    if wanted["loss"]:
        options["loss-random"] = {"loss": wanted["loss"], "correlation": 0}
    if wanted["rate"]:
        rate = {"packetoverhead": 0, "cellsize": 0, "celloverhead": 0}
        options["rate"] = {"rate": int(wanted["rate"]), **rate}
    options |= {"ecn": False, "gap": 0}
    entry = {"kind": "netem", "handle": "1ab:", "root": True, "refcnt": 3, "options": options}
    return json.dumps([entry])


WITH_NETEM = sorted(name for name in PROFILES if qdisc.needs_netem(PROFILES[name]))


def test_the_profiles_are_those_of_the_documentation() -> None:
    assert WITH_NETEM == ["mobile_3g", "mobile_4g", "transatlantic"]
    relayed = [name for name in PROFILES if qdisc.relay_ms(PROFILES[name])]
    assert relayed == ["continental", "deep_queue", "short_queue"]
    others = ["fast_ethernet", "gigabit", "lan"]
    assert sorted(PROFILES) == sorted([*WITH_NETEM, *relayed, *others])
    assert qdisc.qdisc(PROFILES["lan"]) is None


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_says_what_it_is_and_where_that_is_from(name: str) -> None:
    spec = ROOT / "roles" / "network_emulation" / "meta" / "argument_specs.yml"
    options = load_yaml(spec)["argument_specs"]["main"]["options"]
    profile = FILES[name]
    assert {"description"} <= set(profile) <= set(options["network_emulation_shape"]["options"])
    assert ("source" in profile) == (set(profile) != {"description"})
    figures = {k: v for k, v in profile.items() if k not in ("description", "source")}
    assert figures.get("jitter_ms", 0) <= figures.get("delay_ms", 0)
    # Without a rate, netem's jitter puts frames out of order.
    assert "jitter_ms" not in figures or "rate_mbit" in figures


def test_a_rate_alone_is_a_tbf_that_takes_whole_segments() -> None:
    fast = Tbf(rate=12_500_000, burst=80_000, latency=0.05)
    assert qdisc.qdisc(NetworkProfile(rate_mbit=100)) == fast
    # 64 KiB in frames of 1448 bytes, each with 66 bytes of headers.
    assert qdisc.BURST_BYTES > 65_536 + 66 * -(-65_536 // 1448)
    gigabit = Tbf(rate=125_000_000, burst=250_000, latency=0.05)
    assert qdisc.qdisc(NetworkProfile(rate_mbit=1000)) == gigabit


def test_a_delay_alone_is_relayed_on_a_link_that_is_slow_enough() -> None:
    profile = NetworkProfile(rate_mbit=20, delay_ms=25, queue_ms=1000)
    assert (qdisc.relay_ms(profile), qdisc.needs_netem(profile)) == (25, False)
    # Two milliseconds, for the bucket's bytes wait in the queue too.
    assert qdisc.qdisc(profile) == Tbf(rate=2_500_000, burst=5_000, latency=1)
    for profile in (
        NetworkProfile(rate_mbit=101, delay_ms=25),
        NetworkProfile(delay_ms=25),
        NetworkProfile(rate_mbit=20, delay_ms=25, loss_percent=1),
    ):
        assert (qdisc.relay_ms(profile), qdisc.needs_netem(profile)) == (0, True)


def test_a_queue_below_the_labs_is_a_difference_and_goes_with_it() -> None:
    below = ',{"kind":"bfifo","handle":"8001:","parent":"1ab:1","options":{"limit":50000}}]\n'
    found = FAST_ETHERNET.rstrip().removesuffix("]") + below
    profile = PROFILES["fast_ethernet"]
    assert qdisc.differences(profile, found) == ["bfifo below it instead of none"]
    delete, add = qdisc.commands(profile, found, "test0")
    assert delete == "tc qdisc del dev test0 root handle 1ab:"
    assert add.startswith("tc qdisc add dev test0 root handle 1ab: tbf rate 100000000bit")


def test_delay_jitter_and_loss_are_a_netem_that_holds_all_that_is_under_way() -> None:
    profile = NetworkProfile(rate_mbit=12, delay_ms=35, jitter_ms=5, loss_percent=0.1)
    assert qdisc.qdisc(profile) == Netem(
        # 12 Mbit/s in frames of 66 bytes for 35 + 5 + 50 ms.
        limit=2046,
        delay=0.035,
        jitter=0.005,
        loss=0.001,
        rate=1_500_000,
    )
    for profile in (
        NetworkProfile(delay_ms=50),
        NetworkProfile(loss_percent=1),
        NetworkProfile(delay_ms=10, jitter_ms=1),
    ):
        wanted = qdisc.qdisc(profile)
        assert isinstance(wanted, Netem)
        assert wanted.rate == 0
        # A million frames a second.
        assert wanted.limit == 50_000 + 1000 * sum((profile.delay_ms or 0, profile.jitter_ms or 0))


def test_root_qdisc_is_parsed_from_the_output_of_tc() -> None:
    assert qdisc.root(NOQUEUE) == RootQdisc(kind="noqueue", handle="0:", parameters=None)
    assert qdisc.root(MQ) == RootQdisc(kind="mq", handle="8002:", parameters=None)
    assert qdisc.root(FAST_ETHERNET) == RootQdisc(
        kind="tbf", handle="1ab:", parameters=Tbf(rate=12_500_000, burst=80_000, latency=0.05)
    )
    assert qdisc.root(netem(NetworkProfile(loss_percent=1))) == RootQdisc(
        kind="netem",
        handle="1ab:",
        parameters=Netem(limit=50_000, delay=0, jitter=0, loss=0.01, rate=0),
    )


@pytest.mark.parametrize("text", ["", "[]", "[]\n", '[{"kind":"ingress","handle":"ffff:"}]'])
def test_an_interface_that_has_no_root_qdisc(text: str) -> None:
    with pytest.raises(ValueError, match="not one root qdisc"):
        qdisc.root(text)


def test_qdisc_that_fits_the_profile_has_no_differences() -> None:
    def left(name: str, text: str) -> list[str]:
        differences = qdisc.differences(PROFILES[name], text)
        assert bool(qdisc.commands(PROFILES[name], text, "eth1")) == bool(differences)
        return differences

    # lan removes what the lab put there, and nothing else.
    for text in (NOQUEUE, PFIFO_FAST, MQ, HTB):
        assert left("lan", text) == []
    assert left("lan", GIGABIT) == ["tbf 1ab: instead of none"]
    assert left("gigabit", GIGABIT) == []
    assert left("fast_ethernet", FAST_ETHERNET) == []
    assert left("fast_ethernet", NOQUEUE) == ["noqueue 0: instead of tbf 1ab:"]
    assert left("fast_ethernet", GIGABIT) == [
        "rate: asked 12500000, is 125000000",
        "burst: asked 80000, is 250000",
    ]
    assert left("mobile_3g", GIGABIT) == ["tbf 1ab: instead of netem 1ab:"]
    # Another's tbf is not the lab's, whatever its parameters.
    assert left("gigabit", GIGABIT.replace("1ab:", "8001:")) == ["tbf 8001: instead of tbf 1ab:"]
    # Where the limit is below the burst, tc tells no latency.
    assert left("gigabit", GIGABIT.replace(',"lat":50000', "")) == ["latency: asked 0.05, is None"]


def test_the_ticks_of_the_kernel_are_no_difference() -> None:
    # Of rate 1000mbit burst 262144 latency 50ms.
    found = qdisc.root(tbf(125_000_000, 262_125)).parameters
    assert isinstance(found, Tbf)
    assert 0 < abs(found.burst / 262_144 - 1) < qdisc.TOLERANCE


@pytest.mark.parametrize("name", WITH_NETEM)
def test_every_parameter_of_netem_is_read_back(name: str) -> None:
    profile = PROFILES[name]
    wanted = qdisc.qdisc(profile)
    assert wanted
    assert qdisc.differences(profile, netem(profile)) == []
    for key, asked in asdict(wanted).items():
        for value in (0, asked * 1.1):
            (told,) = qdisc.differences(profile, netem(profile, **{key: value}))
            assert told.startswith(f"{key}: asked ")


def test_another_qdisc_is_refused_before_a_change() -> None:
    for text in (NOQUEUE, PFIFO_FAST, GIGABIT):
        assert qdisc.obstacle(PROFILES["gigabit"], text, "gigabit", "eth1") == ""
    for text in (MQ, HTB):
        assert qdisc.obstacle(PROFILES["lan"], text, "lan", "eth1") == ""
    assert qdisc.obstacle(PROFILES["gigabit"], HTB, "gigabit", "eth1") == (
        "eth1 has the queueing discipline htb 5: already, which is neither the kernel's default "
        "nor the lab's, and the network profile gigabit would replace it. Use -e network=lan, "
        "which leaves it, or remove it with `tc qdisc del dev eth1 root`."
    )
    assert qdisc.obstacle(PROFILES["gigabit"], MQ, "gigabit", "eth1")


def test_commands_replace_the_root_qdisc_only_where_needed() -> None:
    def commands(name: str, text: str) -> list[str]:
        return qdisc.commands(PROFILES[name], text, "eth1")

    remove = "tc qdisc del dev eth1 root handle 1ab:"
    add = "tc qdisc add dev eth1 root handle 1ab:"
    fast = f"{add} tbf rate 100000000bit burst 80000 latency 50000us"
    assert commands("fast_ethernet", NOQUEUE) == [fast]
    assert commands("fast_ethernet", GIGABIT) == [remove, fast]
    assert commands("lan", GIGABIT) == [remove]
    assert commands("mobile_3g", PFIFO_FAST) == [
        f"{add} netem limit 652 delay 150000us 15000us loss random 0.5% rate 1600000bit"
    ]
    assert qdisc.commands(NetworkProfile(delay_ms=0.5), NOQUEUE, "eth1") == [
        f"{add} netem limit 50500 delay 500us 0us"
    ]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "rate_mbit": st.floats(0.1, 100_000),
            "delay_ms": st.floats(0.1, 10_000),
            "jitter_ms": st.floats(0.1, 10_000),
            "loss_percent": st.floats(0.01, 100),
        },
    )
)
def test_any_profile_is_added_once_and_removed_whole(figures: dict[str, float]) -> None:
    profile = NetworkProfile(**figures)  # type: ignore[arg-type]
    added = qdisc.commands(profile, NOQUEUE, "eth1")
    assert len(added) == bool(figures)
    if qdisc.needs_netem(profile):
        there = netem(profile)
        assert qdisc.commands(profile, there, "eth1") == []
        assert len(qdisc.commands(NetworkProfile(), there, "eth1")) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("rate_mbit: fast", r"Expected `float \| null`, got `str` - at `\$.rate_mbit`"),
        ("rate_mbit: 0", r"Expected `float` > 0.0 - at `\$.rate_mbit`"),
        ("loss_percent: 101", r"Expected `float` <= 100.0 - at `\$.loss_percent`"),
        ("latency: 3", "Object contains unknown field `latency`"),
        ("{", "while parsing a flow node"),
    ],
)
def test_network_profile_names_file_path_and_reason(tmp_path: Path, text: str, reason: str) -> None:
    folder = tmp_path / "files" / "network"
    folder.mkdir(parents=True)
    (folder / "bad.yml").write_text(text)
    with pytest.raises(PlanError, match=rf"files/network/bad\.yml: {reason}"):
        qdisc.network_profile(tmp_path, "bad")
