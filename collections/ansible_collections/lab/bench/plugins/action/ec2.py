"""Action plugin lab.bench.ec2: asks EC2, and changes nothing there.

Its result, with types: types (see loadlab/hosts/ec2.py), zones that have every type, account and
caller of the credentials, vcpu_quota (None where it is not known) and vcpus_used, and instances
that did not end, each with instance_id, image_id, architecture, zone, state and tags. With images:
architecture -> image_id and root_device_name of an image with ENA. With console: hosts: instance ->
its keys and when it ends (UTC), and lost: instance -> why it is of no use.
"""

from ansible_collections.lab.bench.plugins.plugin_utils.aws import Ec2Action
from msgspec import Struct

from loadlab.hosts import ec2_queries


class Arguments(Struct, kw_only=True, frozen=True):
    """A question; exactly one of ``types``, ``images`` and ``console``."""

    region: str
    #: Instance types to describe, with the zones that have all of them, whose the credentials are,
    #: the account's quota of vCPUs, and the instances that have the tag loadlab.
    types: list[str] = []
    spot: bool = False  #: Whether the quota is that of spot instances.
    tag: str = ""  #: Value of the tag loadlab.
    #: Architecture -> the id of an image, or its owner and the pattern of its name; of several the
    #: newest is returned.
    images: dict[str, dict[str, str]] = {}
    #: Ids of instances, until their consoles show the SSH host keys, or they ended.
    console: list[str] = []
    seconds: int = 0  #: How long to wait for the keys of all, after which those without are lost.


class ActionModule(Ec2Action[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        if args.types:
            return ec2_queries.offer(
                self.ec2, args.region, args.types, spot=args.spot, tag=args.tag
            )
        if args.images:
            return {"images": ec2_queries.images(self.ec2, args.images)}
        return ec2_queries.consoles(self.ec2, args.console, args.seconds)
