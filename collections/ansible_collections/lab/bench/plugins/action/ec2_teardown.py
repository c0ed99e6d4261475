"""Action plugin lab.bench.ec2_teardown: removes everything in a region that carries the lab's tag.

Instances first, the VPC last. Where the region has nothing with the tag, it looks for VPCs with it
in the account's other regions, and removes nothing there. ``message`` of the result: what was
removed, or where else there is something.
"""

from ansible_collections.lab.bench.plugins.plugin_utils.aws import Ec2Action
from msgspec import Struct

from loadlab.hosts import ec2_instances


class Arguments(Struct, kw_only=True, frozen=True):
    """The region, and the value of the tag loadlab."""

    region: str
    tag: str


class ActionModule(Ec2Action[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        changed, message = ec2_instances.remove(
            self.ec2, args.region, args.tag, check=self._task.check_mode
        )
        return {"changed": changed, "message": message}
