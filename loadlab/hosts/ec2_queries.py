"""Ask EC2 what it offers, which images there are, and what consoles show; change nothing."""

import time
from collections.abc import Iterable
from typing import Any

import jmespath
import msgspec
from botocore.client import BaseClient
from botocore.exceptions import BotoCoreError, ClientError

from loadlab.hosts import ec2_launch
from loadlab.hosts.ec2 import QUOTAS, Console, common_zones, console, offered, vcpus_used
from loadlab.hosts.ec2_client import ASK_EVERY_S, client, described_instances

# Of an instance that did not end.
_STATES = ["pending", "running", "stopping", "stopped"]


def offer(
    ec2: BaseClient, region: str, types: Iterable[str], *, spot: bool, tag: str
) -> dict[str, Any]:
    """Return what a region and an account offer of instance types: see lab.bench.ec2."""
    names = sorted(set(types))
    described = ec2.describe_instance_types(InstanceTypes=names)["InstanceTypes"]
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    offerings = ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": names}]
    )["InstanceTypeOfferings"]
    running = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    instances = described_instances(ec2, running)
    caller = client(region, "sts").get_caller_identity()
    return {
        "account": caller["Account"],
        "caller": caller["Arn"],
        "instances": _instances(ec2, tag),
        "types": msgspec.to_builtins(offered(described)),
        "zones": common_zones(zones, offerings, names),
        "vcpu_quota": _vcpu_quota(spot, region),
        "vcpus_used": vcpus_used(instances, spot),
    }


def _vcpu_quota(spot: bool, region: str) -> float | None:
    try:
        answer = client(region, "service-quotas").get_service_quota(
            ServiceCode="ec2", QuotaCode=QUOTAS[spot]
        )
    except (BotoCoreError, ClientError):
        # The credentials may not ask, or the service is out of reach: EC2 itself refuses then.
        return None
    return float(answer["Quota"]["Value"])


def _instances(ec2: BaseClient, value: str) -> list[dict[str, Any]]:
    """Return what the role reads of the instances with the tag that did not end."""
    filters = [
        {"Name": "tag:loadlab", "Values": [value]},
        {"Name": "instance-state-name", "Values": _STATES},
    ]
    return [
        {
            "instance_id": instance["InstanceId"],
            "image_id": instance["ImageId"],
            "architecture": instance["Architecture"],
            "zone": instance["Placement"]["AvailabilityZone"],
            "state": instance["State"]["Name"],
            "tags": {tag["Key"]: tag["Value"] for tag in instance["Tags"]},
        }
        for instance in described_instances(ec2, filters)
    ]


def images(ec2: BaseClient, sought: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Return architecture -> the newest image with ENA; absent without an image."""
    newest = {}
    for architecture, image in sought.items():
        filters = {
            "architecture": architecture,
            "state": "available",
            **({"image-id": image["id"]} if "id" in image else {"name": image["name"]}),
        }
        answer = ec2.describe_images(
            Filters=[{"Name": name, "Values": [value]} for name, value in filters.items()],
            **({"Owners": [image["owner"]]} if "owner" in image else {}),
        )
        if images := [item for item in answer["Images"] if item.get("EnaSupport")]:
            last = max(images, key=lambda item: str(item["CreationDate"]))
            newest[architecture] = {
                "image_id": last["ImageId"],
                "root_device_name": last["RootDeviceName"],
            }
    return newest


def consoles(ec2: BaseClient, instances: Iterable[str], seconds: int) -> dict[str, Any]:
    """Return hosts: instance -> the keys that its console shows, and lost: instance -> why it is of
    no use; wait for the keys at most so many seconds."""
    end = time.monotonic() + seconds
    hosts: dict[str, Console] = {}
    lost: dict[str, str] = {}
    while waiting := sorted(set(instances) - set(hosts) - set(lost)):
        late = time.monotonic() > end
        for name in waiting:
            answer = ec2.get_console_output(InstanceId=name, Latest=True)
            seen = console(answer.get("Output", ""))
            if seen is None:
                continue
            hosts[name] = seen
            if seen.ends is None:
                lost[name] = (
                    "it did not say on its console when it terminates itself, so its timer is "
                    "not set"
                )
        silent = sorted(set(waiting) - set(hosts))
        lost |= _ended(ec2, silent)
        if late:
            reason = f"it showed no SSH host keys on its console within {seconds} s"
            lost |= {name: reason for name in silent if name not in lost}
        elif set(silent) - set(lost):
            time.sleep(ASK_EVERY_S)
    usable = {name: seen for name, seen in hosts.items() if name not in lost}
    return {"hosts": msgspec.to_builtins(usable), "lost": lost}


def _ended(ec2: BaseClient, names: list[str]) -> dict[str, str]:
    """Return instance id -> why it ended, without the instances that run."""
    if not names:
        return {}
    # By a filter, as EC2 does not know an instance's id everywhere right after its creation.
    answer = ec2.describe_instances(Filters=[{"Name": "instance-id", "Values": names}])
    ended = {}
    for instance in jmespath.search("Reservations[].Instances[]", answer):
        state, reason = instance["State"]["Name"], instance.get("StateReason", {})
        if state not in ("pending", "running"):
            ended[instance["InstanceId"]] = ec2_launch.ended(
                state, reason.get("Code", ""), reason.get("Message", "")
            )
    return ended
