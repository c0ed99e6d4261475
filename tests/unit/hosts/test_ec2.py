import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.hosts import ec2, ec2_price
from loadlab.run.catalog import load_yaml

ROOT = Path(__file__).parents[3]
PRICES: dict[str, Any] = load_yaml(ROOT / "files" / "aws_prices.yml")
ROLE = ROOT / "roles" / "aws_hosts"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHtLPyYYDvzdVYxOVgoyhVxJHMLVGGaPsrWbtNT1xXGk"
KIND = ec2.InstanceType(
    architecture="x86_64",
    cores=4,
    threads_per_core=2,
    threads=[1, 2],
    nitro=True,
    cluster=True,
    burstable=False,
    metal=False,
    spot=True,
)
ZONES = ["us-east-1a", "us-east-1b"]


def unfit(zones: list[str] = ZONES, zone: str = "", asked: int = 1, **kind: Any) -> list[str]:
    offer = ec2.Offer(types={"c7i.2xlarge": replace(KIND, **kind)}, zones=zones)
    return ec2.unfit(offer, {"server": "c7i.2xlarge"}, True, asked, zone, "us-east-1")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("NoCredentialsError", ["no credentials", "AWS_PROFILE"]),
        ("RequestExpired", ["have expired", "aws sso login", "clock"]),
        ("AuthFailure", ["does not accept", "get-caller-identity"]),
        ("OptInRequired", ["has not enabled the region eu-x-1", "AWS_REGION="]),
        ("UnauthorizedOperation", ["may not do", "docs/aws.md"]),
        ("EndpointConnectionError", ["out of reach", "HTTPS_PROXY"]),
        (
            "InsufficientInstanceCapacity",
            ["no capacity for this now in any zone", "aws_hosts_server_type", "teardown.yml"],
        ),
        ("VcpuLimitExceeded", ["quota", "Service Quotas in eu-x-1", "choose a smaller type"]),
        ("VpcLimitExceeded", ["as many VPCs in eu-x-1", "nobody uses", "inventory/bare_metal"]),
        ("InternetGatewayLimitExceeded", ["internet gateways", "VPCs per Region", "no VPC"]),
        ("PlacementGroupLimitExceeded", ["placement groups", "without instances", "teardown.yml"]),
        ("SpotMaxPriceTooLow", ["spot price", "aws_hosts_spot=false"]),
        ("InvalidInstanceType", ["not known in eu-x-1", "aws_hosts_server_type="]),
    ],
)
def test_a_refusal_has_what_aws_said_and_the_remedy(code: str, words: list[str]) -> None:
    told = ec2.refusal(code, "AWS's\n own  words.", "eu-x-1")
    assert "(AWS's own words)" in told
    for word in words:
        assert word in told


def test_what_is_not_known_is_left_to_aws_own_words() -> None:
    assert ec2.refusal("SomethingNew", "words", "eu-x-1") == ""


def test_every_code_has_one_meaning() -> None:
    known_codes = [code for codes, _ in ec2.REFUSALS for code in codes]
    assert len(known_codes) == len({*known_codes}) > 20
    assert all(ec2.refusal(code, "words", "eu-x-1") for code in known_codes)


def test_a_fit_type_is_not_refused() -> None:
    assert unfit() == []
    assert unfit(asked=2) == []
    assert unfit(zone="us-east-1b") == []
    # A core with one thread needs nobody to switch the other off.
    assert unfit(asked=2, architecture="arm64", threads_per_core=1, threads=[1]) == []


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({"nitro": False}, "not ENA"),
        ({"cluster": False}, "cluster placement group"),
        ({"burstable": True}, "CPU credits"),
        ({"spot": False}, "cannot be had as spot"),
        # A whole machine has what it has.
        ({"threads": []}, "aws_hosts_threads_per_core=2"),
        ({"zones": []}, "No zone of us-east-1 has c7i.2xlarge"),
        ({"zone": "us-east-1c"}, "There are: us-east-1a, us-east-1b"),
    ],
)
def test_each_way_to_be_unfit(asked: dict[str, Any], word: str) -> None:
    (reason,) = unfit(**asked)
    assert word in reason


def test_a_type_of_one_core_is_remarked() -> None:
    small = ec2.Offer(types={"c7i.large": replace(KIND, cores=1), "c7i.xlarge": KIND}, zones=[])
    (remark,) = ec2.remarks(small, ["c7i.large", "c7i.large", "c7i.xlarge"], 1)
    assert remark.startswith("c7i.large is one core at 1 thread per core")
    assert "c7i.xlarge has more" in remark
    assert ec2.remarks(small, ["c7i.large"], 2) == []


def test_a_teardown_of_nothing_tells_where_else_the_tag_is() -> None:
    there = ec2.nothing_here("us-east-1", "loadlab=mine", {"eu-x-1": 1, "eu-x-2": 0}, ["me-x-1"])
    assert there == (
        "us-east-1: nothing carried the tag loadlab=mine, so nothing was removed. eu-x-1 has it: "
        "`AWS_REGION=eu-x-1 ansible-playbook -i inventory/aws playbooks/teardown.yml` removes "
        "that. The credentials may not look into me-x-1."
    )
    nowhere = ec2.nothing_here("us-east-1", "loadlab=mine", {"eu-x-1": 0}, [])
    assert nowhere.endswith("Nor does anything in another region of the account (1 looked at).")


def test_the_zones_have_every_type() -> None:
    zones = [{"ZoneName": name, "ZoneType": "availability-zone"} for name in ("1a", "1b", "1c")]
    # First in the alphabet, and far away.
    zones += [{"ZoneName": "1-atl-1a", "ZoneType": "local-zone"}]
    zones += [{"ZoneName": "1-wl1-atl-wlz-1", "ZoneType": "wavelength-zone"}]
    offerings = [
        {"InstanceType": kind, "Location": zone}
        for kind, places in (
            ("a", ["1b", "1a", "1-atl-1a"]),
            ("b", ["1-wl1-atl-wlz-1", "1-atl-1a", "1b", "1c"]),
            ("c", ["1a"]),
        )
        for zone in places
    ]
    assert ec2.common_zones(zones, offerings, ["a", "b"]) == ["1b"]
    assert ec2.common_zones(zones, offerings, ["a"]) == ["1a", "1b"]
    assert ec2.common_zones(zones, offerings, ["a", "nosuch"]) == []


def test_types_are_described_as_ec2_does() -> None:
    described = {
        "InstanceType": "c7i.2xlarge",
        "ProcessorInfo": {"SupportedArchitectures": ["i386", "x86_64"], "Manufacturer": "Intel"},
        "VCpuInfo": {
            "DefaultVCpus": 8,
            "DefaultCores": 4,
            "DefaultThreadsPerCore": 2,
            "ValidThreadsPerCore": [1, 2],
        },
        "NetworkInfo": {"EnaSupport": "required"},
        "PlacementGroupInfo": {"SupportedStrategies": ["cluster", "spread"]},
        "BurstablePerformanceSupported": False,
        "BareMetal": False,
        "SupportedUsageClasses": ["on-demand", "spot"],
    }
    assert ec2.offered([described]) == {"c7i.2xlarge": KIND}
    bare = {**described, "InstanceType": "bare", "VCpuInfo": {"DefaultVCpus": 8}, "BareMetal": True}
    alone = replace(KIND, cores=8, threads_per_core=1, threads=[], metal=True)
    assert ec2.offered([bare]) == {"bare": alone}
    with pytest.raises(msgspec.ValidationError, match="nitro"):
        ec2.offered([{**described, "NetworkInfo": {}}])


def test_the_table_of_prices_has_the_defaults_and_a_date() -> None:
    defaults = load_yaml(ROLE / "defaults" / "main.yml")
    table = msgspec.convert(PRICES, ec2_price.Prices).regions["us-east-1"]
    assert {defaults["aws_hosts_server_type"], defaults["aws_hosts_client_type"]} <= set(table)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(PRICES["date"]))
    assert PRICES["source"].startswith("https://aws.amazon.com/")
    for kind, price in table.items():
        assert 0 < price < 10, kind
    # Within a family a size costs in proportion to its cores.
    size = {"large": 1, "xlarge": 2, "2xlarge": 4, "4xlarge": 8, "8xlarge": 16}
    for kind, price in table.items():
        family, _, name = kind.partition(".")
        assert price == pytest.approx(table[f"{family}.large"] * size[name]), kind


def test_the_console_gives_the_keys_and_the_end() -> None:
    text = (
        f"ec2: -----BEGIN SSH HOST KEY KEYS-----\r\nec2: {KEY} root@ip-10-78-0-5\r\n"
        "ec2: -----END SSH HOST KEY KEYS-----\r\n"
    )
    assert ec2.console(text) == ec2.Console(keys=[KEY], ends=None)
    ended = "[ 8.1] loadlab: terminates itself at 2026-11-21 13:00:00 UTC\r\n" + text
    assert ec2.console(ended) == ec2.Console(keys=[KEY], ends="2026-11-21 13:00:00")
    # After a second boot with new keys the last ones count.
    other = KEY.replace("HtL", "AAA")
    assert ec2.console(text + text.replace(KEY, other)) == ec2.Console(keys=[other], ends=None)


@pytest.mark.parametrize("end", range(0, 150, 10))
def test_a_console_that_is_not_there_yet_gives_nothing(end: int) -> None:
    text = f"-----BEGIN SSH HOST KEY KEYS-----\n{KEY} root@host\n-----END SSH HOST KEY KEYS-----\n"
    assert ec2.console(text[:end]) is None


@given(st.text())
def test_any_console_is_read(text: str) -> None:
    """Whatever it says, a key is a type and base64, which no line of known_hosts breaks out of."""
    wrapped = f"-----BEGIN SSH HOST KEY KEYS-----{text}-----END SSH HOST KEY KEYS-----"
    found = ec2.console(wrapped)
    for key in found.keys if found else []:
        assert re.fullmatch(r"[a-z0-9-]+ [A-Za-z0-9+/=]+", key)


def test_region_and_name_are_read_the_same_way_by_the_inventory_and_the_role() -> None:
    plugin = load_yaml(ROOT / "inventory" / "aws" / "aws_ec2.yml")
    variables = load_yaml(ROOT / "inventory" / "aws" / "group_vars" / "all.yml")
    assert plugin["regions"] == [variables["aws_hosts_region"]]
    assert plugin["filters"]["tag:loadlab"] == variables["aws_hosts_lab"]


PAIR = ["c7i.2xlarge", "c7i.2xlarge"]


def over(quota: float | None, used: int = 0, threads: int = 2, types: list[str] = PAIR) -> str:
    offer = ec2.Offer(types=dict.fromkeys(types, KIND), zones=[], vcpu_quota=quota, vcpus_used=used)
    return ec2.over_quota(offer, types, threads, False, "eu-x-1")


def test_a_refusal_names_need_quota_use_and_remedy() -> None:
    message = over(16, used=4)
    assert message.startswith("c7i.2xlarge, c7i.2xlarge need 16 vCPUs, and the account's quota of ")
    assert "on-demand standard instances in eu-x-1 is 16, of which 4 are in use" in message
    assert "Ask for more under Service Quotas in eu-x-1 (Amazon EC2, L-1216C47A)" in message
    assert "-e aws_hosts_server_type=" in message


@pytest.mark.parametrize(
    "allowed",
    [
        over(16),
        # A thread of each core is switched off.
        over(8, threads=1),
        # Not known, of other instances, and nothing to make.
        over(None),
        over(1, types=["hpc7a.12xlarge"]),
        over(0, types=[]),
    ],
)
def test_what_is_not_known_to_exceed_the_quota_is_not_refused(allowed: str) -> None:
    assert allowed == ""


def test_a_core_with_one_thread_has_one_vcpu() -> None:
    assert replace(KIND, threads_per_core=1).vcpus(2) == KIND.vcpus(1) == 4
    assert KIND.vcpus(2) == 8


def test_only_standard_instances_of_the_market_are_in_use() -> None:
    def running(kind: str, **more: Any) -> dict[str, Any]:
        return {"InstanceType": kind, "CpuOptions": {"CoreCount": 4, "ThreadsPerCore": 2}, **more}

    instances = [
        running("c7i.2xlarge"),
        running("im4gn.large"),
        running("g6.xlarge"),
        running("hpc7a.12xlarge"),
        running("m7i.large", InstanceLifecycle="spot"),
    ]
    assert ec2.vcpus_used(instances, spot=False) == 16
    assert ec2.vcpus_used(instances, spot=True) == 8
