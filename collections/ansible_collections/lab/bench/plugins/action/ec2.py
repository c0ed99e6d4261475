"""Action plugin lab.bench.ec2: asks EC2 what no module of amazon.aws can."""

from __future__ import annotations

import time
from typing import Any

import boto3
import jmespath
import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from loadlab.hosts import ec2 as aws

ASK_EVERY_S = 5


def client(region: str) -> Any:
    """Return a boto3 client of EC2, with credentials from AWS's own places.

    Raises ValueError for an unknown region.
    """
    session = boto3.Session(region_name=region)
    known = {
        name
        for partition in session.get_available_partitions()
        for name in session.get_available_regions("ec2", partition)
    }
    if region not in known:
        raise ValueError(
            f"AWS_REGION: '{region}' is not a region of EC2. There are: "
            f"{', '.join(sorted(known))}. Nothing was changed."
        )
    return session.client("ec2", config=Config(connect_timeout=10, retries={"mode": "standard"}))


class ActionModule(ControllerAction):
    """Asks EC2; its errors fail the task with a message and the remedy."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        try:
            ec2 = client(args["region"])
            if args["types"]:
                return self._offer(ec2, args["types"])
            if args["console"]:
                return self._console(ec2, args["console"], args["seconds"])
            end = time.monotonic() + args["seconds"]
            while (found := self._tagged(ec2, args["tag"])) and time.monotonic() < end:
                time.sleep(ASK_EVERY_S)
            return {"resources": found}
        except (BotoCoreError, ClientError) as problem:
            answer: Any = getattr(problem, "response", {})
            code = answer.get("Error", {}).get("Code") or type(problem).__name__
            told = aws.refusal(code, str(problem), args["region"])
            raise ValueError(told or f"EC2 in {args['region']}: {problem}") from problem

    @staticmethod
    def _offer(ec2: Any, types: list[str]) -> dict[str, Any]:
        names = sorted(set(types))
        described = ec2.describe_instance_types(InstanceTypes=names)["InstanceTypes"]
        zones = ec2.describe_availability_zones()["AvailabilityZones"]
        offerings = ec2.describe_instance_type_offerings(
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": names}],
        )["InstanceTypeOfferings"]
        return {
            "types": msgspec.to_builtins(aws.offered(described)),
            "zones": aws.common_zones(zones, offerings, names),
        }

    @staticmethod
    def _console(ec2: Any, instances: list[str], seconds: int) -> dict[str, Any]:
        end = time.monotonic() + seconds
        said: dict[str, Any] = {}
        while True:
            for name in set(instances) - set(said):
                output = ec2.get_console_output(InstanceId=name, Latest=True).get("Output", "")
                seen = aws.console(output)
                if seen:
                    said[name] = msgspec.to_builtins(seen)
            if len(said) == len(set(instances)):
                return {"hosts": said}
            if time.monotonic() > end:
                silent = ", ".join(sorted(set(instances) - set(said)))
                raise ValueError(
                    f"{silent}: no SSH host keys on the console within {seconds} s of the start. "
                    "Read it with `aws ec2 get-console-output --latest --instance-id <id>`; remove "
                    "the pair with `ansible-playbook -i inventory/aws playbooks/teardown.yml`."
                )
            time.sleep(ASK_EVERY_S)

    @staticmethod
    def _tagged(ec2: Any, value: str) -> dict[str, list[str]]:
        found = {}
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
                found[kind] = sorted(names)
        return found
