"""Action plugin lab.bench.ec2: asks EC2 what no module of amazon.aws can."""

from __future__ import annotations

import time
from typing import Any

import jmespath
import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.aws import ASK_EVERY_S, Ec2Action

from loadlab.hosts import ec2 as aws
from loadlab.hosts import ec2_launch


class ActionModule(Ec2Action):
    def ask(self, ec2: Any, args: dict[str, Any]) -> dict[str, Any]:
        if args["types"]:
            return self._offer(ec2, args["types"])
        if args["console"]:
            return self._console(ec2, args["console"], args["seconds"])
        end = time.monotonic() + args["seconds"]
        while (found := self._tagged(ec2, args["tag"])) and time.monotonic() < end:
            time.sleep(ASK_EVERY_S)
        return {"resources": found}

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

    def _console(self, ec2: Any, instances: list[str], seconds: int) -> dict[str, Any]:
        end = time.monotonic() + seconds
        hosts: dict[str, aws.Console] = {}
        lost: dict[str, str] = {}
        while waiting := sorted(set(instances) - set(hosts) - set(lost)):
            late = time.monotonic() > end
            for name in waiting:
                output = ec2.get_console_output(InstanceId=name, Latest=True).get("Output", "")
                seen = aws.console(output)
                if seen is None:
                    continue
                hosts[name] = seen
                if seen.ends is None:
                    lost[name] = (
                        "it did not say on its console when it terminates itself, so its timer is "
                        "not set"
                    )
            silent = sorted(set(waiting) - set(hosts))
            lost |= self._ended(ec2, silent)
            if late:
                why = f"it showed no SSH host keys on its console within {seconds} s"
                lost |= {name: why for name in silent if name not in lost}
            elif set(silent) - set(lost):
                time.sleep(ASK_EVERY_S)
        told = {name: msgspec.to_builtins(one) for name, one in hosts.items() if name not in lost}
        return {"hosts": told, "lost": lost}

    @staticmethod
    def _ended(ec2: Any, names: list[str]) -> dict[str, str]:
        """Return instance id -> why it ended, without the instances that run."""
        if not names:
            return {}
        # By a filter, as EC2 does not know an instance's id everywhere right after its creation.
        answer = ec2.describe_instances(Filters=[{"Name": "instance-id", "Values": names}])
        found = {}
        for one in jmespath.search("Reservations[].Instances[]", answer):
            state, reason = one["State"]["Name"], one.get("StateReason", {})
            if state not in ("pending", "running"):
                found[one["InstanceId"]] = ec2_launch.ended(
                    state, reason.get("Code", ""), reason.get("Message", "")
                )
        return found

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
