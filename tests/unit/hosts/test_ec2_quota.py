"""Whether the account's quota of vCPUs allows the instances."""

from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.hosts import ec2_quota
from loadlab.hosts.ec2 import Offer
from tests.unit.hosts.test_ec2 import KIND

PAIR = ["c7i.2xlarge", "c7i.2xlarge"]


def over(quota: float | None, used: int = 0, threads: int = 2, types: list[str] = PAIR) -> str:
    offer = Offer(types=dict.fromkeys(types, KIND), zones=[], vcpu_quota=quota, vcpus_used=used)
    return ec2_quota.over_quota(offer, types, threads, False, "eu-x-1")


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
        return {
            "InstanceType": kind,
            "CpuOptions": {"CoreCount": 4, "ThreadsPerCore": 2},
            **more,
        }

    instances = [
        running("c7i.2xlarge"),
        running("im4gn.large"),
        running("g6.xlarge"),
        running("hpc7a.12xlarge"),
        running("m7i.large", InstanceLifecycle="spot"),
    ]
    assert ec2_quota.vcpus_used(instances, spot=False) == 16
    assert ec2_quota.vcpus_used(instances, spot=True) == 8
