"""Create instances in the first zone that has room for all of them, and remove a whole lab."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from botocore.client import BaseClient
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from loadlab.hosts import ec2 as answers
from loadlab.hosts.ec2_client import (
    ASK_EVERY_S,
    UNKNOWN_YET,
    USED_YET,
    client,
    code,
    insist,
    tagged,
    wait_for_no_interface,
)
from loadlab.hosts.ec2_launch import Launch, labels, requests, tag_specification
from loadlab.run.errors import LabError

# AWS's list of tagged resources lags behind deletions by some seconds.
LIST_LAG_S = 60


class Vpc(Struct, frozen=True):
    """The lab's own network: its id, the addresses of its subnet, and the subnet's route table."""

    vpc: str
    cidr: str
    route_table: str


def create(
    ec2: BaseClient, launch: Launch, vpc: Vpc, zones: Sequence[str], announce: Callable[[str], None]
) -> tuple[str, dict[str, str]]:
    """Create all instances in one zone; return it, and instance id -> the name of its host.

    ``zones``: to try, in this order; that of an existing subnet comes first. ``announce``: is
    called with a line for each zone without room. Raises ClientError where no zone has room.
    """
    subnets = _subnets(ec2, vpc)
    # An earlier run's subnet may be in one of the zones.
    zones = sorted(zones, key=lambda zone: zone not in subnets)
    for zone in zones:
        subnet = _subnet(ec2, launch, vpc, zone)
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
                for instance, name in hosts.items():
                    tags = tag_specification("", labels(launch, name))["Tags"]
                    insist(ec2.create_tags, UNKNOWN_YET, Resources=[instance], Tags=tags)
            return zone, hosts
        except ClientError as problem:
            if code(problem) not in answers.NO_CAPACITY:
                raise
            # What one zone had room for goes, so that all hosts come into one zone.
            _terminate(ec2, list(hosts))
            if zone == zones[-1]:
                raise
            announce(f"{zone} has no room for all of them now, the next zone is tried")
    raise LabError("no zone was given")


def _terminate(ec2: BaseClient, instances: Sequence[str]) -> None:
    if instances:
        ec2.terminate_instances(InstanceIds=instances)
        ec2.get_waiter("instance_terminated").wait(InstanceIds=instances)


def _subnets(ec2: BaseClient, vpc: Vpc) -> dict[str, str]:
    """Return the subnets of the lab's network: zone -> id."""
    filters = [{"Name": "vpc-id", "Values": [vpc.vpc]}]
    subnets = ec2.describe_subnets(Filters=filters)["Subnets"]
    return {subnet["AvailabilityZone"]: subnet["SubnetId"] for subnet in subnets}


def _subnet(ec2: BaseClient, launch: Launch, vpc: Vpc, zone: str) -> str:
    """Return the lab's subnet, in this zone alone."""
    subnets = _subnets(ec2, vpc)
    for other in set(subnets) - {zone}:
        wait_for_no_interface(ec2, "subnet-id", subnets[other])
        ec2.delete_subnet(SubnetId=subnets[other])
    name = subnets.get(zone) or str(
        ec2.create_subnet(
            VpcId=vpc.vpc,
            CidrBlock=vpc.cidr,
            AvailabilityZone=zone,
            TagSpecifications=[tag_specification("subnet", launch.tags)],
        )["Subnet"]["SubnetId"]
    )
    insist(ec2.describe_subnets, UNKNOWN_YET, SubnetIds=[name])
    ec2.get_waiter("subnet_available").wait(SubnetIds=[name])
    # Changes nothing where it is so already.
    insist(ec2.associate_route_table, UNKNOWN_YET, SubnetId=name, RouteTableId=vpc.route_table)
    return name


def remove(ec2: BaseClient, region: str, value: str, *, check: bool) -> tuple[bool, str]:
    """Remove everything whose tag loadlab has this value, instances first and the VPC last.

    Return whether there was anything, and a sentence on it, or on what other regions have.
    ``check``: remove nothing. Raises ValueError where something is left.
    """
    resources = tagged(ec2, value)
    if not resources:
        return False, _elsewhere(ec2, value, region)
    if check:
        return True, f"{region}: {answers.listed(resources)} would go"
    _remove(ec2, value, resources)
    end = time.monotonic() + LIST_LAG_S
    while left := tagged(ec2, value):
        if time.monotonic() > end:
            raise LabError(
                f"{region}: the tag loadlab={value} is still carried by {answers.listed(left)}. "
                "Run the same command again, and see in AWS's console what keeps it where "
                "that does not help."
            )
        time.sleep(ASK_EVERY_S)
    count = sum(map(len, resources.values()))
    message = (
        f"{region}: nothing carries the tag loadlab={value} any more ({count} resources were there)"
    )
    return True, message


def _remove(ec2: BaseClient, value: str, resources: dict[str, list[str]]) -> None:
    _terminate(ec2, resources.get("instance", []))
    # They keep the subnet and the security group.
    wait_for_no_interface(ec2, "tag:loadlab", value)
    for kind, call in answers.REMOVALS.items():
        for name in resources.get(kind, []):
            if kind == "internet-gateway":
                _detach(ec2, name)
            try:
                insist(getattr(ec2, call), USED_YET, **{answers.KINDS[kind][2]: name})
            except ClientError as problem:
                # It went meanwhile.
                if not code(problem).endswith(".NotFound"):
                    raise


def _detach(ec2: BaseClient, gateway: str) -> None:
    answer = ec2.describe_internet_gateways(InternetGatewayIds=[gateway])
    for attachment in answer["InternetGateways"][0]["Attachments"]:
        insist(
            ec2.detach_internet_gateway,
            USED_YET,
            InternetGatewayId=gateway,
            VpcId=attachment["VpcId"],
        )


def _elsewhere(ec2: BaseClient, value: str, region: str) -> str:
    """Return what there is to say where the region has nothing with the tag."""
    regions = {item["RegionName"] for item in ec2.describe_regions()["Regions"]}
    others = {name: client(name) for name in sorted(regions - {region})}

    def count(other: BaseClient) -> int | None:
        filters = [{"Name": "tag:loadlab", "Values": [value]}]
        try:
            return len(other.describe_vpcs(Filters=filters)["Vpcs"])
        except (BotoCoreError, ClientError) as problem:
            if code(problem) in answers.DENIED | answers.OUT_OF_REACH:
                return None
            raise

    with ThreadPoolExecutor(8) as pool:
        counts = dict(zip(others, pool.map(count, others.values()), strict=True))
    vpcs = {name: number for name, number in counts.items() if number is not None}
    return answers.nothing_here(region, f"loadlab={value}", vpcs, set(others) - set(vpcs))
