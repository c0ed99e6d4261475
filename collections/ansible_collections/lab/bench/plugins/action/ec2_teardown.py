"""Action plugin lab.bench.ec2_teardown: removes everything that carries the lab's tag."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.aws import (
    ASK_EVERY_S,
    USED_YET,
    Ec2Action,
    client,
    code,
    insist,
    tagged,
    wait_for_no_interface,
)
from botocore.exceptions import BotoCoreError, ClientError

from loadlab.hosts import ec2 as aws
from loadlab.run.errors import LabError

# AWS's list of tagged resources lags behind deletions by some seconds.
LIST_LAG_S = 60


class ActionModule(Ec2Action):
    def ask(self, ec2: Any, args: dict[str, Any]) -> dict[str, Any]:
        region, value = args["region"], args["tag"]
        resources = tagged(ec2, value)
        if not resources:
            return {"message": self._elsewhere(ec2, value, region)}
        if self._task.check_mode:
            return {"changed": True, "message": f"{region}: {aws.listed(resources)} would go"}
        self._remove(ec2, value, resources)
        end = time.monotonic() + LIST_LAG_S
        while left := tagged(ec2, value):
            if time.monotonic() > end:
                raise LabError(
                    f"{region}: the tag loadlab={value} is still carried by {aws.listed(left)}. "
                    "Run the same command again, and see in AWS's console what keeps it where "
                    "that does not help."
                )
            time.sleep(ASK_EVERY_S)
        count = sum(map(len, resources.values()))
        message = (
            f"{region}: nothing carries the tag loadlab={value} any more ({count} resources were "
            "there)"
        )
        return {"changed": True, "message": message}

    def _remove(self, ec2: Any, value: str, resources: dict[str, list[str]]) -> None:
        if instances := resources.get("instance"):
            ec2.terminate_instances(InstanceIds=instances)
            ec2.get_waiter("instance_terminated").wait(InstanceIds=instances)
        # They keep the subnet and the security group.
        wait_for_no_interface(ec2, "tag:loadlab", value)
        for kind, call in aws.REMOVALS.items():
            for name in resources.get(kind, []):
                if kind == "internet-gateway":
                    self._detach(ec2, name)
                try:
                    insist(getattr(ec2, call), USED_YET, **{aws.KINDS[kind][2]: name})
                except ClientError as problem:
                    # It went meanwhile.
                    if not code(problem).endswith(".NotFound"):
                        raise

    @staticmethod
    def _detach(ec2: Any, gateway: str) -> None:
        answer = ec2.describe_internet_gateways(InternetGatewayIds=[gateway])
        for attachment in answer["InternetGateways"][0]["Attachments"]:
            insist(
                ec2.detach_internet_gateway,
                USED_YET,
                InternetGatewayId=gateway,
                VpcId=attachment["VpcId"],
            )

    @staticmethod
    def _elsewhere(ec2: Any, value: str, region: str) -> str:
        """Return what there is to say where the region has nothing with the tag."""
        regions = {item["RegionName"] for item in ec2.describe_regions()["Regions"]}
        others = {name: client(name) for name in sorted(regions - {region})}

        def count(other: Any) -> int | None:
            filters = [{"Name": "tag:loadlab", "Values": [value]}]
            try:
                return len(other.describe_vpcs(Filters=filters)["Vpcs"])
            except (BotoCoreError, ClientError) as problem:
                if code(problem) in aws.DENIED | aws.OUT_OF_REACH:
                    return None
                raise

        with ThreadPoolExecutor(8) as pool:
            counts = dict(zip(others, pool.map(count, others.values()), strict=True))
        vpcs = {name: number for name, number in counts.items() if number is not None}
        return aws.nothing_here(region, f"loadlab={value}", vpcs, set(others) - set(vpcs))
