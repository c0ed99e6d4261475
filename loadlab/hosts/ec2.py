"""Interpret the answers of Amazon EC2: errors, instance types and consoles."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import jmespath
import msgspec
from msgspec import Struct

from loadlab.run.formatting import plural

# Names of botocore's exceptions and error codes of EC2 that others ask for too.
DENIED = frozenset(("AccessDenied", "AccessDeniedException", "UnauthorizedOperation"))
OUT_OF_REACH = frozenset(
    ("ConnectTimeoutError", "ConnectionClosedError", "EndpointConnectionError",
     "ProxyConnectionError", "ReadTimeoutError", "SSLError")
)  # fmt: skip
NO_CAPACITY = frozenset(
    ("InsufficientInstanceCapacity", "InsufficientHostCapacity", "UnfulfillableCapacity")
)

# Codes in Service Quotas by whether instances are spot, and the families that the two quotas count
# (https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html).
QUOTAS = {False: "L-1216C47A", True: "L-34B43A08"}
_STANDARD = re.compile(r"(?:[acdhimrtz]|i[ms])\d")
# An item of an answer of EC2's.
Answer = Mapping[str, Any]

TEARDOWN = "ansible-playbook -i inventory/aws playbooks/teardown.yml"

# Every kind of resource that can carry the lab's tag: EC2's call, the list in its answer, and the
# key of a resource's name.
KINDS = {
    "instance": ("describe_instances", "Reservations[].Instances[]", "InstanceId"),
    "placement-group": ("describe_placement_groups", "PlacementGroups[]", "GroupName"),
    "key-pair": ("describe_key_pairs", "KeyPairs[]", "KeyName"),
    "network-interface": (
        "describe_network_interfaces",
        "NetworkInterfaces[]",
        "NetworkInterfaceId",
    ),
    "volume": ("describe_volumes", "Volumes[]", "VolumeId"),
    "security-group": ("describe_security_groups", "SecurityGroups[]", "GroupId"),
    "internet-gateway": ("describe_internet_gateways", "InternetGateways[]", "InternetGatewayId"),
    "subnet": ("describe_subnets", "Subnets[]", "SubnetId"),
    "route-table": ("describe_route_tables", "RouteTables[]", "RouteTableId"),
    "vpc": ("describe_vpcs", "Vpcs[]", "VpcId"),
}
# Kind to the call that removes it by that key, in the order of removal; instances and their
# interfaces go before.
REMOVALS = {
    "placement-group": "delete_placement_group",
    "key-pair": "delete_key_pair",
    "security-group": "delete_security_group",
    "internet-gateway": "delete_internet_gateway",
    "subnet": "delete_subnet",
    "route-table": "delete_route_table",
    "vpc": "delete_vpc",
}
# Left out: "terminated". EC2 lists a terminated instance for about an hour; it costs nothing.
STATES = ["pending", "running", "shutting-down", "stopping", "stopped"]


# Error code to the things that are as many as the account may have, their quota, and one to remove.
_OTHER_LIMITS = {
    "VpcLimitExceeded": ("VPCs", "VPCs per Region", "one that nobody uses"),
    "InternetGatewayLimitExceeded": (
        "internet gateways",
        "VPCs per Region, which counts for gateways too",
        "one that is attached to no VPC",
    ),
    "PlacementGroupLimitExceeded": (
        "placement groups",
        "Placement groups per Region",
        "one without instances",
    ),
}
# Codes, and the message with the remedy for each of them.
REFUSALS: tuple[tuple[Collection[str], str], ...] = (
    (
        ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError",
         "ProfileNotFound", "NoAuthTokenError"),
        "There are no credentials for AWS ({detail}). Give them in one of AWS's own places: "
        "AWS_PROFILE naming a profile of ~/.aws, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in "
        "the environment, or the role of the instance that this is.",
    ),
    (
        ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "SSOTokenLoadError",
         "TokenRetrievalError", "UnauthorizedSSOTokenError"),
        "The credentials for AWS have expired ({detail}). Get new ones (aws sso login, or a new "
        "session token) and run the same command again; see too that this machine's clock is "
        "right.",
    ),
    (
        ("AuthFailure", "InvalidClientTokenId", "SignatureDoesNotMatch",
         "UnrecognizedClientException"),
        "AWS does not accept the credentials ({detail}). See that `aws sts get-caller-identity` "
        "answers with the account that you mean, and that the account has the region {region} "
        "enabled.",
    ),
    (
        ("OptInRequired",),
        "The account has not enabled the region {region} ({detail}). Enable it, or choose another "
        "with AWS_REGION=<region> in the environment.",
    ),
    (
        DENIED,
        "The credentials may not do what the lab needs ({detail}). docs/aws.md has the policy that "
        "allows it and nothing else. In an account that lets you make no network, make two "
        "instances of your own and use inventory/bare_metal (docs/bare-metal.md).",
    ),
    (
        OUT_OF_REACH,
        "EC2 in {region} is out of reach ({detail}). See that this machine reaches the internet, "
        "through HTTPS_PROXY where it needs one.",
    ),
    (
        NO_CAPACITY,
        "AWS has no capacity for this now in any zone that was tried ({detail}). Try another type "
        "(-e aws_hosts_server_type=, -e aws_hosts_client_type=), another region, on demand in "
        "place of spot, or later; `{teardown}` removes what was begun.",
    ),
    (
        ("InstanceLimitExceeded", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded"),
        "The account's quota does not allow this ({detail}). Ask for more under Service Quotas in "
        "{region}, or choose a smaller type (-e aws_hosts_server_type=, -e "
        "aws_hosts_client_type=); remove what was begun with `{teardown}`.",
    ),
    (
        _OTHER_LIMITS,
        "The account has as many {things} in {region} as its quota allows ({detail}). Remove "
        "{spare}, ask for more under Service Quotas ({quota}), or choose another region with "
        "AWS_REGION=<region> in the environment. Or make two instances of your own and use "
        "inventory/bare_metal (docs/bare-metal.md). `{teardown}` removes what was begun.",
    ),
    (
        ("SpotMaxPriceTooLow",),
        "The spot price is above the one for on demand ({detail}). Use the latter (-e "
        "aws_hosts_spot=false), or try later.",
    ),
    (
        ("InvalidInstanceType",),
        "The instance type is not known in {region} ({detail}). Choose another with -e "
        "aws_hosts_server_type= and -e aws_hosts_client_type=.",
    ),
)  # fmt: skip


def refusal(code: str, detail: str, region: str) -> str:
    """Return a message with the remedy for an error of EC2 or botocore; "" for an unknown one.

    ``code``: the exception's name or EC2's error code. ``detail``: its text.
    """
    detail = " ".join(detail.split()).rstrip(".")
    things, quota, spare = _OTHER_LIMITS.get(code, ("", "", ""))
    words = {"things": things, "quota": quota, "spare": spare, "teardown": TEARDOWN}
    message = next((text for codes, text in REFUSALS if code in codes), "")
    return message.format(detail=detail, region=region, **words)


# Path of each property of InstanceType in an item of EC2's DescribeInstanceTypes.
_PROPERTIES = {
    "architecture": "ProcessorInfo.SupportedArchitectures[-1]",
    "cores": "VCpuInfo.DefaultCores || VCpuInfo.DefaultVCpus",
    "threads_per_core": "VCpuInfo.DefaultThreadsPerCore || `1`",
    "threads": "VCpuInfo.ValidThreadsPerCore || `[]`",
    # Every type of the Nitro System requires ENA. Only these show their console without delay.
    "nitro": "NetworkInfo.EnaSupport && NetworkInfo.EnaSupport == 'required'",
    "cluster": "contains(PlacementGroupInfo.SupportedStrategies, 'cluster')",
    "burstable": "BurstablePerformanceSupported",
    "metal": "BareMetal",
    "spot": "contains(SupportedUsageClasses, 'spot')",
}


class InstanceType(Struct, frozen=True, kw_only=True):
    """An instance type."""

    architecture: str  #: The last supported one, such as x86_64.
    #: cores, threads_per_core: of an instance by default.
    cores: int
    threads_per_core: int
    threads: list[int]  #: The threads per core that may be asked for; empty where none may.
    #: nitro, cluster, burstable, metal, spot: whether it is of the Nitro System, may be in a
    #: cluster placement group, uses CPU credits, is a whole machine, and can be bought as spot.
    nitro: bool
    cluster: bool
    burstable: bool
    metal: bool
    spot: bool

    def vcpus(self, threads_per_core: int) -> int:
        """Return the processors of an instance with ``threads_per_core`` of its cores' threads."""
        return self.cores * min(threads_per_core, self.threads_per_core)


class Offer(Struct, frozen=True, kw_only=True):
    """What a region offers."""

    types: dict[str, InstanceType]  #: Instance types by name.
    zones: list[str]  #: Those that have all of them.
    #: vCPUs of standard instances that the account may run; None where it is not known.
    vcpu_quota: float | None = None
    vcpus_used: int = 0  #: vCPUs of theirs that run.


class Console(Struct, frozen=True, kw_only=True):
    """What an instance's console shows."""

    keys: list[str]  #: Its host keys as "<type> <base64>".
    #: When its timer terminates it (UTC, "YYYY-MM-DD HH:MM:SS"), None where it has set none.
    ends: str | None


def offered(described: Iterable[Answer]) -> dict[str, InstanceType]:
    """Return the instance types by name, from the items of EC2's DescribeInstanceTypes.

    Raises ValueError where an item lacks a property.
    """
    properties = {
        item["InstanceType"]: {
            name: jmespath.search(path, item) for name, path in _PROPERTIES.items()
        }
        for item in described
    }
    return msgspec.convert(properties, dict[str, InstanceType])


def common_zones(
    described: Iterable[Answer], offerings: Iterable[Answer], types: Iterable[str]
) -> list[str]:
    """Return the sorted availability zones that offer every type.

    ``described`` and ``offerings`` are the items of EC2's DescribeAvailabilityZones and
    DescribeInstanceTypeOfferings. The Local Zones and Wavelength Zones that the account has enabled
    are left out: they are far away, cost more, and lack much of what the lab creates.
    """
    zones = {zone["ZoneName"] for zone in described if zone["ZoneType"] == "availability-zone"}
    offered_in = {(item["InstanceType"], item["Location"]) for item in offerings}
    return sorted(zone for zone in zones if {(name, zone) for name in types} <= offered_in)


def unfit(
    offer: Offer,
    types: Mapping[str, str],
    spot: bool,
    threads_per_core: int,
    zone: str,
    region: str,
) -> list[str]:
    """Return the reasons why these hosts cannot be created; empty where they can.

    ``types``: host -> instance type. ``zone``: the zone asked for, or "".
    """
    reasons = []
    for name in sorted(set(types.values())):
        kind = offer.types[name]
        problems = (
            (not kind.nitro, "is not of the Nitro System, so that its network card is not ENA or "
             "not always. Choose a newer type, such as c7i or c7g."),
            (not kind.cluster, "cannot be in a cluster placement group, which keeps the two close "
             "to each other. Choose another family, such as c7i or c7g."),
            (kind.burstable, "slows down when its CPU credits are spent. Choose a family without "
             "credits, such as c7i or c7g."),
            (spot and not kind.spot, "cannot be had as spot. Leave -e aws_hosts_spot=true out."),
        )  # fmt: skip
        reasons += [f"{name} {problem}" for is_unfit, problem in problems if is_unfit]
        allowed = kind.threads or [kind.threads_per_core]
        # A core with one thread meets any request: it has what was asked for, or less noise.
        if threads_per_core not in allowed and kind.threads_per_core != 1:
            words = [*map(str, allowed[:-1]), plural(allowed[-1], "thread")]
            reasons.append(
                f"{name} has {' or '.join(words)} per core, not "
                f"{threads_per_core}. Give -e aws_hosts_threads_per_core={allowed[-1]}."
            )
    together = ", ".join(sorted(set(types.values())))
    if not offer.zones:
        reasons.append(
            f"No zone of {region} has {together} (all of them); the two must be in the same. "
            "Choose another type or region."
        )
    elif zone and zone not in offer.zones:
        reasons.append(
            f"aws_hosts_zone: '{zone}' is no availability zone that has {together}. There are: "
            f"{', '.join(offer.zones)}."
        )
    return reasons


def vcpus_used(instances: Iterable[Answer], spot: bool) -> int:
    """Return the vCPUs of the instances that the quota of spot, or of on demand, counts.

    ``instances``: items of EC2's DescribeInstances that are pending or running.
    """
    processors = [
        instance["CpuOptions"]
        for instance in instances
        if _STANDARD.match(instance["InstanceType"])
        and (instance.get("InstanceLifecycle") == "spot") == spot
        and "CpuOptions" in instance
    ]
    return sum(options["CoreCount"] * options["ThreadsPerCore"] for options in processors)


def over_quota(
    offer: Offer, types: Iterable[str], threads_per_core: int, spot: bool, region: str
) -> str:
    """Return why the quota of vCPUs does not allow one more instance of each of ``types``.

    "" where it does, is not known, or is another one than that of standard instances. A dry
    run of RunInstances does not tell: it checks permissions and parameters alone.
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
        f"Quotas in {region} (Amazon EC2, {QUOTAS[spot]}), or choose smaller types "
        "(-e aws_hosts_server_type=, -e aws_hosts_client_type=)."
    )


def remarks(offer: Offer, types: Iterable[str], threads_per_core: int) -> list[str]:
    """Return a sentence for each of the types that can be had, and is small for a measurement."""
    return [
        f"{name} is one core at {threads_per_core} thread per core, which the load shares with the "
        f"system and the recorders; {name.partition('.')[0]}.xlarge has more"
        for name in sorted(set(types))
        if offer.types[name].vcpus(threads_per_core) == 1
    ]


def listed(resources: Mapping[str, Iterable[str]]) -> str:
    """Return resources, kind -> names, in words."""
    return "; ".join(f"{kind} {', '.join(names)}" for kind, names in resources.items())


def nothing_here(region: str, tag: str, vpcs: Mapping[str, int], unseen: Iterable[str]) -> str:
    """Return what a teardown that had nothing to remove says.

    ``vpcs``: another region -> how many of its VPCs carry ``tag``. ``unseen``: regions that the
    credentials may not look at.
    """
    text = f"{region}: nothing carried the tag {tag}, so nothing was removed."
    for other in sorted(name for name, count in vpcs.items() if count):
        text += f" {other} has it: `AWS_REGION={other} {TEARDOWN}` removes that."
    if not any(vpcs.values()):
        text += f" Nor does anything in another region of the account ({len(vpcs)} looked at)."
    if dark := sorted(unseen):
        text += f" The credentials may not look into {', '.join(dark)}."
    return text


# cloud-init prints the host's public keys between these two lines.
KEYS = re.compile(r"-----BEGIN SSH HOST KEY KEYS-----(.*?)-----END SSH HOST KEY KEYS-----", re.S)
KEY = re.compile(r"\b(ssh-ed25519|ecdsa-sha2-nistp\d+|ssh-rsa) ([A-Za-z0-9+/]+={0,2})(?=\s|$)")
# Printed by the role's user data once its shutdown timer runs.
ENDS = re.compile(r"loadlab: terminates itself at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC")


def console(text: str) -> Console | None:
    """Return what an instance's console shows; None while it shows no keys."""
    key_blocks = KEYS.findall(text)
    keys = [" ".join(key) for key in KEY.findall(key_blocks[-1])] if key_blocks else []
    ends = ENDS.findall(text)
    return Console(keys=keys, ends=ends[-1] if ends else None) if keys else None
