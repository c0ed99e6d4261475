"""The requests for instances, the image to use, and why an instance ended."""

from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.hosts import ec2_launch
from loadlab.hosts.ec2_launch import Image, Launch, RunInstance, There
from tests.unit.hosts.test_ec2 import KIND

ARM = replace(KIND, architecture="arm64", threads_per_core=1, threads=[])
TYPES = {"c7i.large": KIND, "c7g.large": ARM}
LAUNCH = Launch(
    name="loadlab-mine",
    group="sg-1",
    tags={"loadlab": "mine"},
    tenancy="default",
    spot=False,
    disk_gb=20,
    user_data="#cloud-config",
    hosts={"server": "c7i.large", "client": "c7i.large"},
    servers=["server"],
    types=TYPES,
    threads_per_core=1,
    images={
        "x86_64": Image(image_id="ami-1", root_device_name="/dev/xvda"),
        "arm64": Image(image_id="ami-2", root_device_name="/dev/sda1"),
    },
    made_of={"server": "small", "client": "small"},
    labels={"loadlab_user": "admin"},
)


def requests(**changes: Any) -> list[tuple[list[str], dict[str, Any]]]:
    return ec2_launch.requests(replace(LAUNCH, **changes), "subnet-1")


def test_hosts_of_one_type_are_one_request() -> None:
    ((names, request),) = requests()
    assert names == ["server", "client"]
    assert (request["MinCount"], request["MaxCount"]) == (2, 2)
    (interface,) = request["NetworkInterfaces"]
    assert interface["AssociatePublicIpAddress"] is True
    assert request["CpuOptions"] == {"CoreCount": 4, "ThreadsPerCore": 1}
    assert "InstanceMarketOptions" not in request


def test_hosts_of_two_types_are_two_requests_with_their_own_image() -> None:
    found = requests(hosts={"server": "c7g.large", "client": "c7i.large"})
    assert [(names, one["ImageId"], one["MinCount"]) for names, one in found] == [
        (["server"], "ami-2", 1),
        (["client"], "ami-1", 1),
    ]
    assert found[0][1]["BlockDeviceMappings"][0]["DeviceName"] == "/dev/sda1"
    # A core with one thread is what was asked for.
    assert "CpuOptions" not in found[0][1]


def test_threads_that_a_type_has_by_itself_are_not_asked_for() -> None:
    ((_, request),) = requests(threads_per_core=2, spot=True)
    assert "CpuOptions" not in request
    assert request["InstanceMarketOptions"]["MarketType"] == "spot"


def test_labels_tell_a_server_from_a_client() -> None:
    groups = {host: ec2_launch.labels(LAUNCH, host)["loadlab_group"] for host in LAUNCH.hosts}
    assert groups == {"server": "servers", "client": "clients"}


def test_images_of_the_run_of_the_instances_and_of_the_user_count_in_this_order() -> None:
    run = [
        RunInstance(instance_type="c7i.large", image="ami-run"),
        # Of a type that is not asked for now, and of a host that is no instance.
        RunInstance(instance_type="c5.large", image="ami-other"),
        RunInstance(),
    ]
    there = [There(architecture="x86_64", image_id="ami-there")]
    assert ec2_launch.images("", [], [], TYPES) == {}
    assert ec2_launch.images("", [], run, TYPES) == {"x86_64": "ami-run"}
    assert ec2_launch.images("", there, run, TYPES) == {"x86_64": "ami-there"}
    assert ec2_launch.images("ami-9", there, run, TYPES) == {"x86_64": "ami-9", "arm64": "ami-9"}


@pytest.mark.parametrize(
    ("code", "message", "told"),
    [
        (
            "Client.InternalError",
            "Client.InternalError: Client error on launch",
            "it is terminated (Client.InternalError: Client error on launch). Most often the "
            "account encrypts disks with a KMS key of its own",
        ),
        (
            "Client.InstanceInitiatedShutdown",
            "Client.InstanceInitiatedShutdown: Instance initiated shutdown",
            "its lifetime was over",
        ),
        ("Server.Unheard", "", "it is terminated (Server.Unheard)."),
        ("", "", "it is terminated (AWS gives no reason)."),
    ],
)
def test_an_instance_that_ended_is_explained(code: str, message: str, told: str) -> None:
    assert told in ec2_launch.ended("terminated", code, message)
