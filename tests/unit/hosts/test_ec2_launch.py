"""The image to use, and why an instance ended; tests/aws has the requests for instances."""

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.hosts import ec2_launch
from loadlab.hosts.ec2_launch import RunInstance, There
from tests.unit.hosts.test_ec2 import KIND

ARM = replace(KIND, architecture="arm64", threads_per_core=1, threads=[])
TYPES = {"c7i.large": KIND, "c7g.large": ARM}


def test_labels_tell_a_server_from_a_client() -> None:
    made_of = {"server": "small", "client": "small"}
    launch: Any = SimpleNamespace(name="mine", labels={}, servers=["server"], made_of=made_of)
    groups = {host: ec2_launch.labels(launch, host)["loadlab_group"] for host in made_of}
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
