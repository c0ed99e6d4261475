"""The connection to Amazon EC2, and its errors as messages with a remedy."""

from __future__ import annotations

from typing import Any

import boto3
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from loadlab.hosts import ec2 as aws

# Seconds between two questions for the same.
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


def code(problem: BotoCoreError | ClientError) -> str:
    """Return EC2's code of an error, or the name of botocore's exception."""
    answer: Any = getattr(problem, "response", {})
    return str(answer.get("Error", {}).get("Code") or type(problem).__name__)


class Ec2Action(ControllerAction):
    """Asks EC2; its errors fail the task with a message and the remedy."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        region = args["region"]
        try:
            return self.ask(client(region), args)
        except (BotoCoreError, ClientError) as problem:
            told = aws.refusal(code(problem), str(problem), region)
            raise ValueError(told or f"EC2 in {region}: {problem}") from problem

    def ask(self, ec2: Any, args: dict[str, Any]) -> dict[str, Any]:
        """Return the keys of the action's result. Raises ValueError to fail the task."""
        raise NotImplementedError
