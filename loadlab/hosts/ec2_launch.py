"""Word the requests that create instances, and explain an instance that ended by itself."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from loadlab.hosts.ec2 import InstanceType

Request = dict[str, object]


class Image(Struct, frozen=True, kw_only=True):
    """A machine image: its id, and the device of its root disk."""

    image_id: str
    root_device_name: str


class Launch(Struct, frozen=True, kw_only=True):
    """What to create."""

    name: str  #: Of the key pair and placement group.
    group: str  #: Id of the security group.
    tags: dict[str, str]  #: Of everything that is created.
    tenancy: str
    spot: bool
    disk_gb: int  #: Size of each disk, GB.
    user_data: str
    hosts: dict[str, str]  #: Host -> instance type.
    servers: list[str]  #: Those that are servers, the others are clients.
    types: dict[str, InstanceType]  #: Instance type by name.
    threads_per_core: int  #: Asked for, 1 or 2.
    images: dict[str, Image]  #: Image by architecture.
    made_of: dict[str, str]  #: Host -> what was asked for, in words.
    labels: dict[str, str]  #: Further tags of each instance.


def tag_specification(kind: str, tags: dict[str, str]) -> Request:
    """Return the tags of a new resource in EC2's form."""
    return {
        "ResourceType": kind,
        "Tags": [{"Key": key, "Value": value} for key, value in sorted(tags.items())],
    }


def requests(launch: Launch, subnet: str) -> list[tuple[list[str], Request]]:
    """Return the requests RunInstances, each with the names of its hosts.

    Hosts of one type are in one request, so that EC2 finds room for all of them or for none.
    """
    kinds: dict[str, list[str]] = {}
    for name, kind in launch.hosts.items():
        kinds.setdefault(kind, []).append(name)
    return [(names, _request(launch, kind, len(names), subnet)) for kind, names in kinds.items()]


def labels(launch: Launch, host: str) -> dict[str, str]:
    """Return the tags of one instance beside those of everything."""
    return {
        **launch.labels,
        "Name": f"{launch.name}-{host}",
        "loadlab_host": host,
        "loadlab_group": "servers" if host in launch.servers else "clients",
        "loadlab_made_of": launch.made_of[host],
    }


def _request(launch: Launch, name: str, count: int, subnet: str) -> Request:
    kind = launch.types[name]
    image = launch.images[kind.architecture]
    request: Request = {
        "MinCount": count,
        "MaxCount": count,
        "ImageId": image.image_id,
        "InstanceType": name,
        "KeyName": launch.name,
        "NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "SubnetId": subnet,
                "Groups": [launch.group],
                "AssociatePublicIpAddress": True,
            }
        ],
        "Placement": {"GroupName": launch.name, "Tenancy": launch.tenancy},
        # Require a session token (IMDSv2), and refuse requests that were forwarded.
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 1,
        },
        "BlockDeviceMappings": [
            {
                "DeviceName": image.root_device_name,
                "Ebs": {
                    "VolumeType": "gp3",
                    "VolumeSize": launch.disk_gb,
                    "Encrypted": True,
                    "DeleteOnTermination": True,
                },
            }
        ],
        "InstanceInitiatedShutdownBehavior": "terminate",
        "UserData": launch.user_data,
        "TagSpecifications": [
            tag_specification(kind, launch.tags)
            for kind in ("instance", "volume", "network-interface")
        ],
    }
    # Set only where the type has another number by itself.
    if kind.threads_per_core not in (1, launch.threads_per_core):
        request["CpuOptions"] = {"CoreCount": kind.cores, "ThreadsPerCore": launch.threads_per_core}
    if launch.spot:
        request["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {
                "SpotInstanceType": "one-time",
                "InstanceInterruptionBehavior": "terminate",
            },
        }
    return request


class There(Struct, frozen=True, kw_only=True):
    """An instance that exists."""

    architecture: str
    image_id: str


class RunInstance(Struct, frozen=True, kw_only=True):
    """An instance as plan.json records it; "" where a host of the run was none."""

    instance_type: str = ""
    image: str = ""


def images(
    pinned: str,
    instances: Iterable[There],
    run: Iterable[RunInstance],
    types: Mapping[str, InstanceType],
) -> dict[str, str]:
    """Return the images to use in place of the newest: architecture -> id of the image.

    The one that the user names (``pinned``, or "") counts before that of an instance that exists,
    and this before that of the run's earlier hosts. ``types``: those of the hosts, by name.
    """
    earlier = {
        types[host.instance_type].architecture: host.image
        for host in run
        if host.image and host.instance_type in types
    }
    existing = {host.architecture: host.image_id for host in instances}
    named = {kind.architecture: pinned for kind in types.values()} if pinned else {}
    return {**earlier, **existing, **named}


# Publishers' names of architectures.
_PUBLISHED = {"x86_64": "amd64", "arm64": "arm64"}


def image(architecture: str, pins: Mapping[str, str], newest: Mapping[str, str]) -> dict[str, str]:
    """Return the image to look for: its id where one is pinned, else its owner and name.

    ``newest``: owner, and name with {} in place of the architecture, where * stands for anything.
    """
    if architecture in pins:
        return {"id": pins[architecture]}
    return {"owner": newest["owner"], "name": newest["name"].format(_PUBLISHED[architecture])}


def no_image(sought: Mapping[str, Mapping[str, str]], available: Iterable[str], region: str) -> str:
    """Return why there is no image for an architecture; "" where there is one for each.

    ``sought``: architecture -> image(). ``available``: architectures that have one.
    """
    for architecture in sorted(set(sought) - set(available)):
        image = sought[architecture]
        if "id" in image:
            return (
                f"aws_hosts_image_id: {region} has no image {image['id']} for {architecture} with "
                "ENA. Name another with -e aws_hosts_image_id=, or begin another run (-e run_id=), "
                "which takes the newest."
            )
        return (
            f"aws_hosts_image: {region} has no image '{image['name']}' of the owner "
            f"{image['owner']} for {architecture} with ENA. Choose another image or region."
        )
    return ""


# What AWS's codes of an ended instance mean where its message does not say it
# (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html).
_ENDED = {
    "Client.InternalError": (
        "Most often the account encrypts disks with a KMS key of its own that these credentials "
        "may not use: allow them kms:CreateGrant and kms:Decrypt on it, or choose AWS's key under "
        "EC2, Settings, EBS encryption."
    ),
    "Client.VolumeLimitExceeded": (
        "The account's quota of disks is used up: see Service Quotas, Amazon EBS."
    ),
    "Client.InstanceInitiatedShutdown": (
        "It shut itself down: its lifetime was over (-e aws_hosts_max_lifetime=)."
    ),
    "Server.InsufficientInstanceCapacity": (
        "AWS had no room for it: try another zone (-e aws_hosts_zone=), another type, or later."
    ),
    "Server.SpotInstanceTermination": (
        "AWS took the spot instance back: leave -e aws_hosts_spot=true out, or try later."
    ),
}


def ended(state: str, code: str, message: str) -> str:
    """Return why an instance ended, by its ``state`` and the ``code`` and ``message`` of EC2's
    StateReason, which may be empty."""
    # The message begins with the code.
    said = " ".join(message.split()) or code or "AWS gives no reason"
    return f"it is {state} ({said.rstrip('.')}). {_ENDED.get(code, '')}".rstrip()
