"""Whether the policy of docs/aws.md allows a request, as IAM decides it for EC2.

Of each action the resources are those of AWS's service authorization reference for EC2
(https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html): each must
be allowed by a statement, and the tags of a new one by a statement for CreateTags.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

# Action to the kinds of resources that it creates.
CREATES = {
    "CreateVpc": ["vpc"],
    "CreateSubnet": ["subnet"],
    "CreateInternetGateway": ["internet-gateway"],
    "CreateRouteTable": ["route-table"],
    "CreateSecurityGroup": ["security-group"],
    "CreatePlacementGroup": ["placement-group"],
    "ImportKeyPair": ["key-pair"],
    "RunInstances": ["instance", "volume", "network-interface"],
}
# Prefix of an id to the kind of its resource.
IDS = {
    "ami": "image",
    "i": "instance",
    "igw": "internet-gateway",
    "rtb": "route-table",
    "sg": "security-group",
    "subnet": "subnet",
    "vpc": "vpc",
}
ID = re.compile(rf"({'|'.join(IDS)})-[0-9a-f]{{8,17}}")
# Parameters that hold no resource of the action: a gateway of a route is no resource of CreateRoute
# and a group that is let in none of the rule.
BESIDE = re.compile(r"GatewayId|.*UserData|IpPermissions\..*")


@dataclass(frozen=True)
class Resource:
    """One resource of a request; ``name`` is "*" for a new one."""

    kind: str
    name: str


def documented() -> list[dict[str, object]]:
    """Return the statements of the policy in docs/aws.md."""
    page = (Path(__file__).parents[2] / "docs" / "aws.md").read_text()
    (text,) = re.findall(r"^    \{\n.*^    \}\n", page, re.MULTILINE | re.DOTALL)
    statements: list[dict[str, object]] = json.loads(text)["Statement"]
    return statements


def resources(action: str, parameters: Mapping[str, str]) -> Iterator[Resource]:
    """Yield the resources that a request names or creates."""
    for kind in CREATES.get(action, []):
        yield Resource(kind, "*")
    for key, value in parameters.items():
        # Attaching and detaching, the gateway is the subject.
        if (found := ID.fullmatch(value)) and (
            not BESIDE.fullmatch(key) or "InternetGateway" in key
        ):
            yield Resource(IDS[found[1]], value)
    if action in ("RunInstances", "DeleteKeyPair") and "KeyName" in parameters:
        yield Resource("key-pair", parameters["KeyName"])
    group = parameters.get("Placement.GroupName") or (
        parameters.get("GroupName") if action == "DeletePlacementGroup" else None
    )
    if group:
        yield Resource("placement-group", group)


def tags_asked(parameters: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the tags of a request: kind of the new resource -> tag -> value."""
    found: dict[str, dict[str, str]] = {}
    for key, kind in parameters.items():
        if match := re.fullmatch(r"(TagSpecification\.\d+\.)ResourceType", key):
            prefix = re.escape(match[1])
            names = {
                k: v for k, v in parameters.items() if re.fullmatch(rf"{prefix}Tag.\d+.Key", k)
            }
            found[kind] = {name: parameters[f"{place[:-3]}Value"] for place, name in names.items()}
    return found


class Policy:
    """The statements, and who knows the tags of an existing resource."""

    def __init__(self, region: str, tags_of: Callable[[Resource], Mapping[str, str]]) -> None:
        self.region, self.tags_of = region, tags_of
        self.statements = documented()

    def allows(self, action: str, parameters: Mapping[str, str]) -> bool:
        """Return whether every resource of the request is allowed, and each new one's tags."""
        asked = tags_asked(parameters)
        # What only reads is asked of no resource in particular, except an instance's console.
        named = list(resources(action, parameters))
        subjects = (named if named and not action.startswith("Describe") else []) or [
            Resource("*", "*")
        ]
        direct = {
            parameters[key]: parameters[key.replace("Key", "Value")]
            for key in parameters
            if action == "CreateTags" and re.fullmatch(r"Tag\.\d+\.Key", key)
        }
        return all(
            self._allowed(action, one, asked.get(one.kind, direct), "") for one in subjects
        ) and all(
            self._allowed("CreateTags", Resource(kind, "*"), tags, action)
            for kind, tags in asked.items()
        )

    def _allowed(
        self, action: str, resource: Resource, tags: Mapping[str, str], creating: str
    ) -> bool:
        account = "" if resource.kind == "image" else "123456789012"
        arn = f"arn:aws:ec2:{self.region}:{account}:{resource.kind}/{resource.name}"
        own = {} if resource.name == "*" else self.tags_of(resource)
        context = {"aws:RequestedRegion": self.region}
        context |= {f"aws:RequestTag/{key}": value for key, value in tags.items()}
        context |= {f"aws:ResourceTag/{key}": value for key, value in own.items()}
        if creating:
            context["ec2:CreateAction"] = creating
        return any(self._matches(one, f"ec2:{action}", arn, context) for one in self.statements)

    @staticmethod
    def _matches(
        statement: dict[str, object], action: str, arn: str, context: Mapping[str, str]
    ) -> bool:
        assert statement["Effect"] == "Allow"
        if not any(fnmatchcase(action, one) for one in _several(statement["Action"])):
            return False
        if not any(fnmatchcase(arn, one) for one in _several(statement["Resource"])):
            return False
        conditions = statement.get("Condition", {})
        assert isinstance(conditions, dict)
        for operator, keys in conditions.items():
            assert operator in ("StringEquals", "StringLike"), operator
            for key, wanted in keys.items():
                if key not in context:
                    return False
                values = _several(wanted)
                alike = any(
                    fnmatchcase(context[key], one)
                    if operator == "StringLike"
                    else context[key] == one
                    for one in values
                )
                if not alike:
                    return False
        return True


def _several(value: object) -> list[str]:
    return [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
