"""Action plugin lab.bench.ec2_launch: creates instances in the first zone with room for them."""

from __future__ import annotations

from typing import Any

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.aws import (
    UNKNOWN_YET,
    Ec2Action,
    code,
    insist,
    wait_for_no_interface,
)
from ansible_collections.lab.bench.plugins.plugin_utils.controller import tell
from botocore.exceptions import ClientError

from loadlab.hosts import ec2 as aws
from loadlab.hosts.ec2_launch import Launch, labels, requests, tag_specification
from loadlab.run.errors import LabError


class ActionModule(Ec2Action):
    def ask(self, ec2: Any, args: dict[str, Any]) -> dict[str, Any]:
        launch = msgspec.convert(args["launch"], Launch)
        there = self._subnets(ec2, args)
        # An earlier run's subnet may be in one of the zones.
        zones = sorted(args["zones"], key=lambda zone: zone not in there)
        for zone in zones:
            subnet = self._subnet(ec2, launch, zone, args)
            hosts: dict[str, str] = {}
            try:
                for names, request in requests(launch, subnet):
                    instances = insist(ec2.run_instances, UNKNOWN_YET, **request)["Instances"]
                    hosts |= {
                        instance["InstanceId"]: name
                        for instance, name in zip(instances, names, strict=True)
                    }
                    # EC2 does not know a new id everywhere at once.
                    ec2.get_waiter("instance_exists").wait(InstanceIds=list(hosts))
                    self._label(ec2, launch, hosts)
                return {"changed": True, "zone": zone, "hosts": hosts}
            except ClientError as problem:
                if code(problem) not in aws.NO_CAPACITY:
                    raise
                self._undo(ec2, list(hosts))
                if zone == zones[-1]:
                    raise
                tell(f"{zone} has no room for all of them now, the next zone is tried")
        raise LabError("no zone was given")

    @staticmethod
    def _label(ec2: Any, launch: Launch, hosts: dict[str, str]) -> None:
        for instance, name in hosts.items():
            tags = tag_specification("", labels(launch, name))["Tags"]
            insist(ec2.create_tags, UNKNOWN_YET, Resources=[instance], Tags=tags)

    @staticmethod
    def _undo(ec2: Any, made: list[str]) -> None:
        """Terminate what one zone had room for, so that all hosts come into one zone."""
        if made:
            ec2.terminate_instances(InstanceIds=made)
            ec2.get_waiter("instance_terminated").wait(InstanceIds=made)

    @staticmethod
    def _subnets(ec2: Any, args: dict[str, Any]) -> dict[str, str]:
        """Return the subnets of the lab's network: zone -> id."""
        filters = [{"Name": "vpc-id", "Values": [args["vpc"]]}]
        found = ec2.describe_subnets(Filters=filters)["Subnets"]
        return {one["AvailabilityZone"]: one["SubnetId"] for one in found}

    def _subnet(self, ec2: Any, launch: Launch, zone: str, args: dict[str, Any]) -> str:
        """Return the lab's subnet, in this zone alone."""
        there = self._subnets(ec2, args)
        for other in set(there) - {zone}:
            wait_for_no_interface(ec2, "subnet-id", there[other])
            ec2.delete_subnet(SubnetId=there[other])
        name = there.get(zone) or str(
            ec2.create_subnet(
                VpcId=args["vpc"],
                CidrBlock=args["cidr"],
                AvailabilityZone=zone,
                TagSpecifications=[tag_specification("subnet", launch.tags)],
            )["Subnet"]["SubnetId"]
        )
        insist(ec2.describe_subnets, UNKNOWN_YET, SubnetIds=[name])
        ec2.get_waiter("subnet_available").wait(SubnetIds=[name])
        # Changes nothing where it is so already.
        insist(
            ec2.associate_route_table,
            UNKNOWN_YET,
            SubnetId=name,
            RouteTableId=args["route_table"],
        )
        return name
