"""Action plugin lab.bench.ec2: asks EC2, and changes nothing there.

Its result, with types: types (see loadlab/hosts/ec2.py), zones that have every type, account and
caller of the credentials, vcpu_quota (None where it is not known) and vcpus_used, and instances
that did not end, each with instance_id, image_id, architecture, zone, state and tags. With images:
architecture -> image_id and root_device_name of an image with ENA. With console: hosts: instance ->
its keys and when it ends (UTC), and lost: instance -> why it is of no use.
"""

from __future__ import annotations

import time
from typing import Any

import jmespath
import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.aws import (
    ASK_EVERY_S,
    Ec2Action,
    client,
)
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from loadlab.hosts import ec2 as aws
from loadlab.hosts import ec2_launch, ec2_quota

# Of an instance that did not end.
_STATES = ["pending", "running", "stopping", "stopped"]


def described_instances(ec2: Any, filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the instances that pass the filters, as EC2 describes them."""
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    instances: list[dict[str, Any]] = jmespath.search(
        "Reservations[].Instances[]", pages.build_full_result()
    )
    return instances


class Arguments(Struct, kw_only=True, frozen=True):
    """A question; exactly one of ``types``, ``images`` and ``console``.

    - types: instance types to describe, with the zones that have all of them, whose the credentials
      are, the account's quota of vCPUs, and the instances that have the tag loadlab
    - spot: whether the quota is that of spot instances; tag: value of the tag loadlab
    - images: architecture -> the id of an image, or its owner and the pattern of its name; of
      several the newest is returned
    - console: ids of instances, until their consoles show the SSH host keys, or they ended
    - seconds: how long to wait for the keys of all, after which those without are lost
    """

    region: str
    types: list[str] = []
    spot: bool = False
    tag: str = ""
    images: dict[str, dict[str, str]] = {}
    console: list[str] = []
    seconds: int = 0


class ActionModule(Ec2Action):
    def work(self, args: Arguments) -> dict[str, Any]:
        if args.types:
            return self._offer(args)
        if args.images:
            return {"images": self._images(args.images)}
        return self._console(args.console, args.seconds)

    def _offer(self, args: Arguments) -> dict[str, Any]:
        names, ec2 = sorted(set(args.types)), self.ec2
        described = ec2.describe_instance_types(InstanceTypes=names)["InstanceTypes"]
        zones = ec2.describe_availability_zones()["AvailabilityZones"]
        offerings = ec2.describe_instance_type_offerings(
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": names}],
        )["InstanceTypeOfferings"]
        running = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        instances = described_instances(ec2, running)
        caller = client(args.region, "sts").get_caller_identity()
        return {
            "account": caller["Account"],
            "caller": caller["Arn"],
            "instances": self._instances(args.tag),
            "types": msgspec.to_builtins(aws.offered(described)),
            "zones": aws.common_zones(zones, offerings, names),
            "vcpu_quota": self._vcpu_quota(args.spot, args.region),
            "vcpus_used": ec2_quota.vcpus_used(instances, args.spot),
        }

    @staticmethod
    def _vcpu_quota(spot: bool, region: str) -> float | None:
        try:
            answer = client(region, "service-quotas").get_service_quota(
                ServiceCode="ec2", QuotaCode=ec2_quota.CODES[spot]
            )
        except (BotoCoreError, ClientError):
            # The credentials may not ask, or the service is out of reach: EC2 itself refuses then.
            return None
        return float(answer["Quota"]["Value"])

    def _instances(self, value: str) -> list[dict[str, Any]]:
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
            for instance in described_instances(self.ec2, filters)
        ]

    def _images(self, sought: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        """Return architecture -> the newest image with ENA; absent without an image."""
        newest = {}
        for architecture, image in sought.items():
            filters = {
                "architecture": architecture,
                "state": "available",
                **({"image-id": image["id"]} if "id" in image else {"name": image["name"]}),
            }
            answer = self.ec2.describe_images(
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

    def _console(self, instances: list[str], seconds: int) -> dict[str, Any]:
        end = time.monotonic() + seconds
        hosts: dict[str, aws.Console] = {}
        lost: dict[str, str] = {}
        while waiting := sorted(set(instances) - set(hosts) - set(lost)):
            late = time.monotonic() > end
            for name in waiting:
                answer = self.ec2.get_console_output(InstanceId=name, Latest=True)
                seen = aws.console(answer.get("Output", ""))
                if seen is None:
                    continue
                hosts[name] = seen
                if seen.ends is None:
                    lost[name] = (
                        "it did not say on its console when it terminates itself, so its timer is "
                        "not set"
                    )
            silent = sorted(set(waiting) - set(hosts))
            lost |= self._ended(silent)
            if late:
                reason = f"it showed no SSH host keys on its console within {seconds} s"
                lost |= {name: reason for name in silent if name not in lost}
            elif set(silent) - set(lost):
                time.sleep(ASK_EVERY_S)
        usable = {name: console for name, console in hosts.items() if name not in lost}
        return {"hosts": msgspec.to_builtins(usable), "lost": lost}

    def _ended(self, names: list[str]) -> dict[str, str]:
        """Return instance id -> why it ended, without the instances that run."""
        if not names:
            return {}
        # By a filter, as EC2 does not know an instance's id everywhere right after its creation.
        answer = self.ec2.describe_instances(Filters=[{"Name": "instance-id", "Values": names}])
        ended = {}
        for instance in jmespath.search("Reservations[].Instances[]", answer):
            state, reason = instance["State"]["Name"], instance.get("StateReason", {})
            if state not in ("pending", "running"):
                ended[instance["InstanceId"]] = ec2_launch.ended(
                    state, reason.get("Code", ""), reason.get("Message", "")
                )
        return ended
