"""Words for what was found in the folder of an application from outside the tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from loadlab.plan.plan_document import Plan
from loadlab.stacks import requests

_NAMES = {"wsgi": "WSGI", "asgi": "ASGI"}


def found(plan: Plan) -> list[str]:
    """Return a line for each application of the plan that is from outside the tree."""
    own = {
        stack_plan["source"]: stack_plan
        for stack_plan in plan.stacks.values()
        if stack_plan.get("lock")
    }
    return [_line(stack, plan.endpoints) for stack in own.values()]


def paths(endpoints: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return name -> path of each endpoint: with the method where it is no GET, and with the name
    where others have the same."""
    plain = {name: _path(contract) for name, contract in endpoints.items()}
    alike = Counter(plain.values())
    return {name: path if alike[path] == 1 else f"{path} ({name})" for name, path in plain.items()}


def _path(contract: Mapping[str, Any]) -> str:
    method = contract.get("method", "GET")
    return str(contract["path"]) if method == "GET" else f"{method} {contract['path']}"


def _line(stack: Mapping[str, Any], endpoints: Mapping[str, Mapping[str, Any]]) -> str:
    app = stack["app"]
    spoken = _NAMES.get(app["interface"], app["interface"])
    data = [
        "PostgreSQL" if app["database"] == "postgresql" else "no database of the lab",
        *(f"{key} {app[key]}" for key in ("dump", "environment") if key in app),
        *([f"migrate '{app['migrate']}'"] if "migrate" in app else []),
    ]
    measured = [path for name, path in paths(endpoints).items() if name in stack["measured"]]
    return (
        f"Application {stack['source']}: {app['module']} speaks {spoken}; packages of "
        f"{app['requirements']}; {', '.join(data)}; measured: "
        f"{', '.join(measured)} (app.yml and {requests.FILE} there can say otherwise)"
    )
