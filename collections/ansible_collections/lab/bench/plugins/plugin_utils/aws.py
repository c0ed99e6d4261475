"""The base of the actions that ask Amazon EC2."""

from collections.abc import Mapping

from ansible_collections.lab.bench.plugins.plugin_utils import controller
from botocore.client import BaseClient
from botocore.exceptions import BotoCoreError, ClientError

from loadlab.hosts import ec2, ec2_client
from loadlab.run.errors import LabError


class Ec2Action(controller.ControllerAction[controller.Arguments]):
    """Asks EC2 in the region of the argument ``region``; its errors are messages with the remedy.

    Credentials come from AWS's own places, the endpoint from AWS_ENDPOINT_URL where that is set.
    """

    ec2: BaseClient

    def act(self, values: Mapping[str, object]) -> dict[str, object]:
        region, regions = str(values["region"]), ec2_client.regions()
        if region not in regions:
            raise LabError(
                f"AWS_REGION: '{region}' is not a region of EC2. There are: "
                f"{', '.join(sorted(regions))}. Nothing was changed."
            )
        try:
            self.ec2 = ec2_client.client(region)
            return super().act(values)
        except (BotoCoreError, ClientError) as problem:
            refusal = ec2.refusal(ec2_client.code(problem), str(problem), region)
            raise LabError(refusal or f"EC2 in {region}: {problem}") from problem
