"""Create what a pair of instances needs around it."""

from typing import Any

from botocore.client import BaseClient

from loadlab.hosts import ec2_access
from loadlab.hosts.ec2_client import UNKNOWN_YET, insist
from loadlab.hosts.ec2_launch import tag_specification


class Network:
    """Finds each part by the tag loadlab and creates it where it is missing.

    Nothing that has the tag is created anew or loses other tags.
    """

    def __init__(self, ec2: BaseClient, name: str, tags: dict[str, str]) -> None:
        """``name``: of the key pair, the placement group and the security group; ``tags``: of
        everything that is created."""
        self._ec2, self._name, self._tags, self._changes = ec2, name, tags, 0

    def provide(self, cidr: str, public_key: str, sources: list[str]) -> dict[str, Any]:
        """Return the ids vpc, route_table and group, and whether anything was changed.

        ``cidr``: addresses of the VPC. ``public_key``: opens the instances. ``sources``: IPv4
        networks that SSH is let in from.
        """
        self._key(public_key)
        vpc = self._part("vpc", "Vpcs", "Vpc", CidrBlock=cidr)
        # A waiter gives up where it is asked for an id that EC2 does not know everywhere yet.
        insist(self._ec2.describe_vpcs, UNKNOWN_YET, VpcIds=[vpc["VpcId"]])
        self._ec2.get_waiter("vpc_available").wait(VpcIds=[vpc["VpcId"]])
        table = self._route(vpc["VpcId"], self._gateway(vpc["VpcId"]))
        # Keeps the two close to each other.
        words = {"GroupName": self._name, "Strategy": "cluster"}
        self._part("placement_group", "PlacementGroups", "PlacementGroup", **words)
        group = self._group(vpc["VpcId"], sources)
        return {
            "changed": self._changes > 0,
            "vpc": vpc["VpcId"],
            "route_table": table,
            "group": group,
        }

    def _change(self, call: str, **words: Any) -> Any:
        self._changes += 1
        # EC2 does not know a new id everywhere at once.
        return insist(getattr(self._ec2, call), UNKNOWN_YET, **words)

    def _part(self, kind: str, rows: str, item: str, **words: Any) -> dict[str, Any]:
        """Return the part with the tag, as EC2 describes it, created with ``words`` if need be."""
        filters = [{"Name": "tag:loadlab", "Values": [self._tags["loadlab"]]}]
        parts = getattr(self._ec2, f"describe_{kind}s")(Filters=filters)[rows]
        specification = tag_specification(kind.replace("_", "-"), self._tags)
        if not parts:
            parts = [self._change(f"create_{kind}", TagSpecifications=[specification], **words)]
        described: dict[str, Any] = parts[0].get(item, parts[0])
        return described

    def _key(self, public: str) -> None:
        """Give AWS the public half of the pair's key."""
        filters = [{"Name": "key-name", "Values": [self._name]}]
        keys = self._ec2.describe_key_pairs(Filters=filters, IncludePublicKey=True)["KeyPairs"]
        if keys and keys[0]["PublicKey"].split()[:2] == public.split()[:2]:
            return
        if keys:
            # That of a private half that is lost.
            self._change("delete_key_pair", KeyName=self._name)
        self._change(
            "import_key_pair",
            KeyName=self._name,
            PublicKeyMaterial=public.encode(),
            TagSpecifications=[tag_specification("key-pair", self._tags)],
        )

    def _gateway(self, vpc: str) -> str:
        """Return the way to the internet, for SSH and packages."""
        gateway = self._part("internet_gateway", "InternetGateways", "InternetGateway")
        name = str(gateway["InternetGatewayId"])
        if not gateway.get("Attachments"):
            self._change("attach_internet_gateway", InternetGatewayId=name, VpcId=vpc)
        return name

    def _route(self, vpc: str, gateway: str) -> str:
        """Return a tagged route table: the main table of a new VPC carries no tag."""
        table = self._part("route_table", "RouteTables", "RouteTable", VpcId=vpc)
        name = str(table["RouteTableId"])
        route = {"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": gateway}
        ways = {way.get("DestinationCidrBlock"): way for way in table["Routes"]}
        way = ways.get("0.0.0.0/0")
        if way is None:
            self._change("create_route", RouteTableId=name, **route)
        elif way.get("GatewayId") != gateway:
            # A teardown that ended early removed the gateway and left the route.
            self._change("replace_route", RouteTableId=name, **route)
        return name

    def _group(self, vpc: str, sources: list[str]) -> str:
        """Return a security group that lets in SSH from ``sources``, and the pair to each other."""
        group = self._part(
            "security_group",
            "SecurityGroups",
            "SecurityGroup",
            GroupName=self._name,
            Description="SSH from the controller, everything inside the pair",
            VpcId=vpc,
        )
        name = str(group["GroupId"])
        add, remove = ec2_access.differences(group.get("IpPermissions", []), sources, name)
        if add:
            self._change("authorize_security_group_ingress", GroupId=name, IpPermissions=add)
        if remove:
            self._change("revoke_security_group_ingress", GroupId=name, IpPermissions=remove)
        return name
