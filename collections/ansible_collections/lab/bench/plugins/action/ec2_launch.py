"""Action plugin lab.bench.ec2_launch: creates instances in the first zone with room for them.

Keeps the network's subnet in one zone. Hosts of one type are created by one request, so that EC2
finds room for all of them or for none. Everything carries its tags from the request that creates
it; an instance gets its own tags right after that. Its result: ``zone`` that had room, and
``hosts``: id of each new instance -> the name of its host.
"""

from ansible_collections.lab.bench.plugins.plugin_utils.aws import Ec2Action
from ansible_collections.lab.bench.plugins.plugin_utils.controller import tell
from msgspec import Struct

from loadlab.hosts import ec2_instances
from loadlab.hosts.ec2_instances import Vpc
from loadlab.hosts.ec2_launch import Launch


class Arguments(Struct, kw_only=True, frozen=True):
    """What to create, and where."""

    region: str
    zones: list[str]  #: To try, in this order; that of an existing subnet comes first.
    vpc: str  #: Id of the lab's own network.
    cidr: str  #: Addresses of its subnet.
    route_table: str  #: Id of the subnet's.
    launch: Launch


class ActionModule(Ec2Action[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        vpc = Vpc(args.vpc, args.cidr, args.route_table)
        zone, hosts = ec2_instances.create(self.ec2, args.launch, vpc, args.zones, tell)
        return {"changed": True, "zone": zone, "hosts": hosts}
