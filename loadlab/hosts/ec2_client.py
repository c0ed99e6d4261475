"""The connection to Amazon EC2: clients, repeated calls, and what carries the lab's tag."""

import functools
import itertools
import time
from collections.abc import Callable
from typing import Any

import boto3
import jmespath
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from loadlab.hosts import ec2 as aws
from loadlab.run.errors import LabError

# Seconds between two questions for the same.
ASK_EVERY_S = 5
# Longest time for which EC2 does not know everywhere what it has just created or ended, s.
LAG_S = 120

# Endings of the codes for an id that EC2 does not know, and for a resource that another one uses.
UNKNOWN_YET = (".NotFound", ".Unknown")
USED_YET = ("DependencyViolation", ".InUse")


@functools.cache
def _session() -> tuple[boto3.Session, frozenset[str]]:
    """Return a session, which reads the descriptions of AWS's services once, and EC2's regions."""
    session = boto3.Session()
    regions = (
        session.get_available_regions("ec2", partition)
        for partition in session.get_available_partitions()
    )
    return session, frozenset(itertools.chain.from_iterable(regions))


def regions() -> frozenset[str]:
    """Return the names of EC2's regions."""
    return _session()[1]


def client(region: str, service: str = "ec2") -> BaseClient:
    """Return a boto3 client, with credentials from AWS's own places."""
    return _session()[0].client(
        service, region, config=Config(connect_timeout=10, retries={"mode": "standard"})
    )


def code(problem: BotoCoreError | ClientError) -> str:
    """Return EC2's code of an error, or the name of botocore's exception."""
    answer: Any = getattr(problem, "response", {})
    return str(answer.get("Error", {}).get("Code") or type(problem).__name__)


def insist(call: Callable[..., Any], endings: tuple[str, ...], **words: Any) -> Any:
    """Call EC2 again while the code of its error has one of these endings, for LAG_S at most."""
    end = time.monotonic() + LAG_S
    while True:
        try:
            return call(**words)
        except ClientError as problem:
            if not code(problem).endswith(endings) or time.monotonic() > end:
                raise
        time.sleep(1)


def wait_for_no_interface(ec2: BaseClient, name: str, value: str) -> None:
    """Wait for the interfaces of terminated instances, which end a little later.

    ``name`` and ``value``: of the filter. Raises ValueError where some stay.
    """
    filters = [{"Name": name, "Values": [value]}]
    end = time.monotonic() + LAG_S
    while interfaces := ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]:
        if time.monotonic() > end:
            names = ", ".join(interface["NetworkInterfaceId"] for interface in interfaces)
            raise LabError(
                f"{names}: still there {LAG_S} s after the instances ended. Run "
                f"`{aws.TEARDOWN}`; see in AWS's console what keeps them where that does not help."
            )
        time.sleep(ASK_EVERY_S)


def tagged(ec2: BaseClient, value: str) -> dict[str, list[str]]:
    """Return kind -> ids, or names, of the resources whose tag loadlab has this value."""
    resources = {}
    for kind, (call, rows, name) in aws.KINDS.items():
        filters = [{"Name": "tag:loadlab", "Values": [value]}]
        if kind == "instance":
            filters.append({"Name": "instance-state-name", "Values": aws.STATES})
        if ec2.can_paginate(call):
            answer = ec2.get_paginator(call).paginate(Filters=filters).build_full_result()
        else:
            answer = getattr(ec2, call)(Filters=filters)
        names = jmespath.search(f"{rows}.{name}", answer)
        if names:
            resources[kind] = sorted(names)
    return resources


def described_instances(ec2: BaseClient, filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the instances that pass the filters, as EC2 describes them."""
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    instances: list[dict[str, Any]] = jmespath.search(
        "Reservations[].Instances[]", pages.build_full_result()
    )
    return instances
