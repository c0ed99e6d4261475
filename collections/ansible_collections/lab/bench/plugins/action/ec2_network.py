"""Action plugin lab.bench.ec2_network: creates what a pair needs around its instances.

A key pair, a VPC with an internet gateway and a route table, a cluster placement group, and a
security group that lets in SSH and everything inside the pair. Everything carries its tags from the
request that creates it. Its result: the ids ``vpc``, ``route_table`` and ``group``.
"""

from ansible_collections.lab.bench.plugins.plugin_utils.aws import Ec2Action
from msgspec import Struct

from loadlab.hosts.ec2_network import Network


class Arguments(Struct, kw_only=True, frozen=True):
    """What a pair needs around it."""

    region: str
    name: str  #: Of the key pair, the placement group and the security group.
    tags: dict[str, str]  #: Of everything that is created; by the tag loadlab it is looked for.
    cidr: str  #: Addresses of the VPC.
    public_key: str  #: The public half of the key that opens the instances, as OpenSSH writes it.
    sources: list[str]  #: IPv4 networks that SSH is let in from.


class ActionModule(Ec2Action[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        network = Network(self.ec2, args.name, args.tags)
        return network.provide(args.cidr, args.public_key, args.sources)
