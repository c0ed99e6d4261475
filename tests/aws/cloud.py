"""Amazon EC2 in this process: moto's server, and what it lacks. It makes no machine.

moto knows neither placement groups nor what an instance says on its console, accepts every
credential, lets everybody do everything, and has room for it: these are here, as AWS documents
them. What the policy of docs/aws.md does not allow is not allowed.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

import boto3
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models.amis import Ami
from moto.ec2.models.instances import StateReason
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from .policy import Policy, Resource, tags_asked

REGION = "us-east-1"
# Regions that the account has enabled.
REGIONS = (REGION, "eu-north-1", "eu-west-1")
NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
# id, publisher, name, architecture; the older of the two must not be taken.
IMAGES = (
    ("ami-00000001", "099720109477", "20260801", "amd64"),
    ("ami-00000002", "099720109477", "20261105", "amd64"),
    ("ami-00000003", "099720109477", "20261105", "arm64"),
    ("ami-00000004", "136693071363", "20261101-2200", "amd64"),
    # What anybody could publish under the name.
    ("ami-0000000e", "666666666666", "20261120", "amd64"),
)
NAMES = {
    "136693071363": "debian-13-{}-{}",
    "099720109477": "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-{}-server-{}",
    "666666666666": "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-{}-server-{}",
}
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHtLPyYYDvzdVYxOVgoyhVxJHMLVGGaPsrWbtNT1xXGk"
CONSOLE = """[    8.1] cloud-init[701]: loadlab: terminates itself at 2026-11-21 13:00:00 UTC
-----BEGIN SSH HOST KEY KEYS-----
{key} root@ip-10-78-0-5
-----END SSH HOST KEY KEYS-----
[    8.4] cloud-init[701]: Cloud-init finished
"""


class Quiet(WSGIRequestHandler):
    """What was asked is in Cloud.calls."""

    def log_request(self, *_: object) -> None:
        pass


class Cloud:
    """The server, on a port of the loopback (0: a free one), and the faults that a test gives
    it."""

    def __init__(self, port: int = 0) -> None:
        # Action to the code that it is answered with; "*" is every action.
        self.faults: dict[str, str] = {}
        # Every call that changes something, as (action, parameters).
        self.calls: list[tuple[str, dict[str, str]]] = []
        self.console: Callable[[str], str] = lambda name: CONSOLE.format(key=HOST_KEY)
        # Name of a placement group to its tags.
        self.groups: dict[str, dict[str, str]] = {}
        self.policy = Policy(REGION, self._tags)
        # Zones without room for an instance.
        self.full: set[str] = set()
        # The same of one instance type alone, as (zone, type).
        self.full_for: set[tuple[str, str]] = set()
        # vCPUs of the account's quota; None where the credentials may not ask.
        self.vcpus: float | None = 64
        # What an instance ends itself with as soon as it begins, as (code, message).
        self.ends: tuple[str, str] | None = None
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", port, self._answer, threaded=True, request_handler=Quiet
        )
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Cloud:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()

    def reset(self) -> None:
        """An account with nothing in it but the published images."""
        get_backend("ec2").reset()
        self.faults, self.calls, self.groups, self.full = {}, [], {}, set()
        self.full_for, self.ends, self.vcpus = set(), None, 64
        self.console = lambda name: CONSOLE.format(key=HOST_KEY)
        for image in IMAGES:
            self.publish(*image)

    def publish(self, name: str, owner: str, version: str, architecture: str) -> None:
        """Have one more image, as IMAGES describes them."""
        image = Ami(
            self.backend,
            name,
            name=NAMES[owner].format(architecture, version),
            owner_id=owner,
            architecture={"amd64": "x86_64"}.get(architecture, architecture),
            public=True,
        )
        image.creation_date = datetime.strptime(version[:8], "%Y%m%d").replace(tzinfo=UTC)
        image.ena_support = True
        self.backend.amis[name] = image

    @property
    def backend(self) -> Any:
        return get_backend("ec2")[DEFAULT_ACCOUNT_ID][REGION]

    def client(self, who: str = "stranger") -> Any:
        """A stranger's view of the same account; the policy confines anybody else."""
        return boto3.client(
            "ec2",
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id=who,
            aws_secret_access_key=who,
        )

    def called(self, action: str) -> list[dict[str, str]]:
        return [parameters for name, parameters in self.calls if name == action]

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("HTTP_X_AMZ_TARGET", "").endswith(".GetServiceQuota"):
            return self._quota(start)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        parameters = dict(parse_qsl(body.decode()))
        action = parameters.get("Action", "")
        if not action.startswith(("Describe", "Get")):
            self.calls.append((action, parameters))
        fault = self.faults.get(action) or self.faults.get("*")
        # Whoever has credentials may ask whose they are. A stranger has no policy.
        signed = environ.get("HTTP_AUTHORIZATION", "")
        of_lab = "Credential=stranger/" not in signed
        free = not of_lab or action == "GetCallerIdentity"
        if not free and not self.policy.allows(action, parameters):
            fault = "UnauthorizedOperation"
        if action == "RunInstances" and of_lab and not fault:
            zone = self._zone(parameters)
            if zone in self.full or (zone, parameters["InstanceType"]) in self.full_for:
                fault = "InsufficientInstanceCapacity"
        if fault:
            text = f"<Code>{fault}</Code><Message>as the test has it</Message>"
            xml = f"<Response><Errors><Error>{text}</Error></Errors></Response>"
            # EC2 answers a want of capacity with 500, the user's mistakes with 400.
            status = "500 Server Error" if "Capacity" in fault else "400 Bad Request"
            return self._send(start, xml, status)
        own = getattr(self, f"_{action}", None)
        if own is None:
            answer: list[bytes] = list(self._moto(environ, start))
            if action == "DeleteSubnet":
                self._dissociate(parameters["SubnetId"])
            if action == "TerminateInstances":
                self._remove_interfaces()
            if action == "RunInstances" and self.ends:
                self._end(*self.ends)
            return answer
        # What is here and not in moto is of one region.
        here = f"/{REGION}/" in signed or action == "DescribeRegions"
        content = own(parameters) if here else ""
        return self._send(
            start, f'<{action}Response xmlns="{NAMESPACE}">{content}</{action}Response>'
        )

    def _quota(self, start: Callable[..., Any]) -> list[bytes]:
        allowed = self.vcpus is not None
        denial = {"__type": "AccessDeniedException"}
        answer = {"Quota": {"Value": self.vcpus}} if allowed else denial
        headers = [("Content-Type", "application/x-amz-json-1.1")]
        start("200 OK" if allowed else "400 Bad Request", headers)
        return [json.dumps(answer).encode()]

    def _tags(self, resource: Resource) -> dict[str, str]:
        """The tags of what exists."""
        if resource.kind == "placement-group":
            return self.groups.get(resource.name, {})
        name = resource.name
        if resource.kind == "key-pair":
            name = self.backend.key_pairs[name].id if name in self.backend.key_pairs else name
        return dict(self.backend.tags.get(name, {}))

    def _zone(self, parameters: dict[str, str]) -> str:
        subnet = parameters["NetworkInterface.1.SubnetId"]
        return str(self.backend.get_subnet(subnet).availability_zone)

    def _dissociate(self, subnet: str) -> None:
        """As AWS does, and moto does not."""
        for table in self.backend.route_tables.values():
            for one in table.associations:
                if one.get("SubnetId") == subnet:
                    self.backend.disassociate_route_table(one["RouteTableAssociationId"])

    def _remove_interfaces(self) -> None:
        """As AWS does, and moto does not."""
        ids = {instance.id for instance in self.backend.all_running_instances()}
        for name, interface in list(self.backend.enis.items()):
            if interface.instance and interface.instance.id not in ids:
                del self.backend.enis[name]

    def _end(self, code: str, message: str) -> None:
        for instance in self.backend.all_running_instances():
            instance.terminate()
            instance.state_reason = StateReason(message, code)

    @staticmethod
    def _send(start: Callable[..., Any], xml: str, status: str = "200 OK") -> list[bytes]:
        start(status, [("Content-Type", "text/xml")])
        return [xml.encode()]

    def _GetConsoleOutput(self, parameters: dict[str, str]) -> str:  # noqa: N802
        name = parameters["InstanceId"]
        output = base64.b64encode(self.console(name).encode()).decode()
        return f"<instanceId>{name}</instanceId><output>{output}</output>"

    def _CreatePlacementGroup(self, parameters: dict[str, str]) -> str:  # noqa: N802
        name = parameters["GroupName"]
        self.groups[name] = tags_asked(parameters)["placement-group"]
        return f"<placementGroup>{self._group(name)}</placementGroup>"

    def _group(self, name: str) -> str:
        return (
            f"<groupName>{escape(name)}</groupName><groupId>pg-1</groupId>"
            "<strategy>cluster</strategy><state>available</state>"
        )

    def _DescribePlacementGroups(self, parameters: dict[str, str]) -> str:  # noqa: N802
        kind, _, key = parameters["Filter.1.Name"].partition(":")
        assert kind in ("group-name", "tag")
        value = parameters["Filter.1.Value.1"]
        found = [n for n, tags in self.groups.items() if (tags[key] if key else n) == value]
        items = "".join(f"<item>{self._group(name)}</item>" for name in found)
        return f"<placementGroupSet>{items}</placementGroupSet>"

    @staticmethod
    def _DescribeRegions(_: dict[str, str]) -> str:  # noqa: N802
        items = "".join(f"<item><regionName>{name}</regionName></item>" for name in REGIONS)
        return f"<regionInfo>{items}</regionInfo>"

    def _DeletePlacementGroup(self, parameters: dict[str, str]) -> str:  # noqa: N802
        del self.groups[parameters["GroupName"]]
        return "<return>true</return>"


def serve(port: int) -> None:
    """Serve until it is interrupted. The console of an instance shows a key that is nobody's."""
    with Cloud(port) as cloud:
        cloud.reset()
        print(f"EC2 of moto at {cloud.url}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
