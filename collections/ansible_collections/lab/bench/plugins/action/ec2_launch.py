"""Action plugin lab.bench.ec2_launch: creates instances in the first zone with room for them.

Keeps the network's subnet in one zone. Hosts of one type are created by one request, so that EC2
finds room for all of them or for none. Everything carries its tags from the request that creates
it; an instance gets its own tags right after that. Its result: ``zone`` that had room, and
``hosts``: id of each new instance -> the name of its host.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.aws import (
    UNKNOWN_YET,
    Ec2Action,
    code,
    insist,
    wait_for_no_interface,
)
from ansible_collections.lab.bench.plugins.plugin_utils.controller import tell
from botocore.exceptions import ClientError
from msgspec import Struct

from loadlab.hosts import ec2 as aws
from loadlab.hosts.ec2_launch import Launch, labels, requests, tag_specification


class Arguments(Struct, kw_only=True, frozen=True):
    """What to create, and where.

    - zones: to try, in this order; that of an existing subnet comes first
    - vpc: id of the lab's own network; cidr: addresses of its subnet
    - route_table: id of the subnet's
    """

    region: str
    zones: list[str]
    vpc: str
    cidr: str
    route_table: str
    launch: Launch


class ActionModule(Ec2Action):
    def work(self, args: Arguments) -> dict[str, Any]:
        ec2, launch = self.ec2, args.launch
        subnets = self._subnets(args)
        # An earlier run's subnet may be in one of the zones.
        zones = sorted(args.zones, key=lambda zone: zone not in subnets)
        for zone in zones:
            subnet = self._subnet(zone, args)
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
        raise ValueError("no zone was given")

    @staticmethod
    def _label(ec2: Any, launch: Launch, hosts: dict[str, str]) -> None:
        for instance, name in hosts.items():
            tags = tag_specification("", labels(launch, name))["Tags"]
            insist(ec2.create_tags, UNKNOWN_YET, Resources=[instance], Tags=tags)

    @staticmethod
    def _undo(ec2: Any, instances: list[str]) -> None:
        """Terminate what one zone had room for, so that all hosts come into one zone."""
        if instances:
            ec2.terminate_instances(InstanceIds=instances)
            ec2.get_waiter("instance_terminated").wait(InstanceIds=instances)

    def _subnets(self, args: Arguments) -> dict[str, str]:
        """Return the subnets of the lab's network: zone -> id."""
        filters = [{"Name": "vpc-id", "Values": [args.vpc]}]
        subnets = self.ec2.describe_subnets(Filters=filters)["Subnets"]
        return {subnet["AvailabilityZone"]: subnet["SubnetId"] for subnet in subnets}

    def _subnet(self, zone: str, args: Arguments) -> str:
        """Return the lab's subnet, in this zone alone."""
        ec2, subnets = self.ec2, self._subnets(args)
        for other in set(subnets) - {zone}:
            wait_for_no_interface(ec2, "subnet-id", subnets[other])
            ec2.delete_subnet(SubnetId=subnets[other])
        name = subnets.get(zone) or str(
            ec2.create_subnet(
                VpcId=args.vpc,
                CidrBlock=args.cidr,
                AvailabilityZone=zone,
                TagSpecifications=[tag_specification("subnet", args.launch.tags)],
            )["Subnet"]["SubnetId"]
        )
        insist(ec2.describe_subnets, UNKNOWN_YET, SubnetIds=[name])
        ec2.get_waiter("subnet_available").wait(SubnetIds=[name])
        # Changes nothing where it is so already.
        insist(
            ec2.associate_route_table,
            UNKNOWN_YET,
            SubnetId=name,
            RouteTableId=args.route_table,
        )
        return name
