"""See before anything is made whether the account's quota of vCPUs allows the instances.

A dry run of RunInstances does not tell: it checks permissions and parameters alone.
"""

import re
from collections.abc import Iterable

import msgspec
from msgspec import Struct, field

from loadlab.hosts.ec2 import Offer

# Codes in Service Quotas by whether instances are spot, and the families that the two quotas count
# (https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html).
CODES = {False: "L-1216C47A", True: "L-34B43A08"}
_STANDARD = re.compile(r"(?:[acdhimrtz]|i[ms])\d")


class _CpuOptions(Struct, rename="pascal"):
    core_count: int = 0
    threads_per_core: int = 0


class _Running(Struct, rename="pascal"):
    """An item of EC2's DescribeInstances."""

    instance_type: str
    cpu_options: _CpuOptions = field(default_factory=_CpuOptions)
    instance_lifecycle: str = ""


def vcpus_used(instances: object, spot: bool) -> int:
    """Return the vCPUs of the instances that the quota of spot, or of on demand, counts.

    ``instances``: items of EC2's DescribeInstances that are pending or running.
    """
    return sum(
        instance.cpu_options.core_count * instance.cpu_options.threads_per_core
        for instance in msgspec.convert(instances, list[_Running])
        if _STANDARD.match(instance.instance_type)
        and (instance.instance_lifecycle == "spot") == spot
    )


def over_quota(
    offer: Offer, types: Iterable[str], threads_per_core: int, spot: bool, region: str
) -> str:
    """Return why the quota of vCPUs does not allow one more instance of each of ``types``.

    "" where it does, is not known, or is another one than that of standard instances.
    """
    names = list(types)
    needed = sum(offer.types[name].vcpus(threads_per_core) for name in names)
    standard = all(_STANDARD.match(name) for name in names)
    if offer.vcpu_quota is None or not standard or needed + offer.vcpus_used <= offer.vcpu_quota:
        return ""
    return (
        f"{', '.join(names)} need {needed} vCPUs, and the account's quota of "
        f"{'spot' if spot else 'on-demand'} standard instances in {region} is "
        f"{offer.vcpu_quota:g}, of which {offer.vcpus_used} are in use. Ask for more under Service "
        f"Quotas in {region} (Amazon EC2, {CODES[spot]}), or choose smaller types "
        "(-e aws_hosts_server_type=, -e aws_hosts_client_type=)."
    )
