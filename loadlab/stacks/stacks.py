"""The stacks of files/stacks.yml, and the stack that the user's options select."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadlab.core.catalog import known, load_yaml, names
from loadlab.core.errors import PlanError
from loadlab.stacks.contract import expected_body

# Options that select a stack; every list of them has this order.
CHOICES = (
    "server", "transport", "protocol", "worker_class", "event_loop", "upstream_keepalive",
)  # fmt: skip
# Port that clients connect to, by the option front: nginx, or the application server itself.
PORTS = {"nginx": 80, "none": 8000}
# Transport and protocol that front=none requires.
DIRECT = ("tcp", "http")


def stacks(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return every stack that the rows of an interface in files/stacks.yml describe, in their
    order.

    Each is a dict of the CHOICES and loop, python_below, python_reason and threaded.
    """
    found = []
    for row in rows:
        lists = [row[k] if isinstance(row.get(k), list) else [row.get(k)] for k in CHOICES]
        rest = {key: row.get(key) for key in ("loop", "python_below", "python_reason")}
        found += [
            {**dict(zip(CHOICES, choice, strict=True)), "threaded": row.get("threads", False)}
            | rest
            for choice in itertools.product(*lists)
        ]
    return found


def stack(root: Path, values: Mapping[str, Any], python: str | None) -> dict[str, Any]:
    """Return the first stack of files/stacks.yml that fits the options.

    ``values``: the options; None leaves a choice open. ``python``: the server's Python version,
    None where it is not known. Returns a dict:
    - framework, and app: the content of its apps/<framework>/app.yml
    - the CHOICES, loop, python_below and python_reason of the row in files/stacks.yml
    - front: nginx or none; port: the port that clients connect to
    - workers and threads: as in the options
    - needs: the sorted services that the application's endpoints need, by files/endpoints.yml
    - constants: [{path, content_type, body}] that nginx answers itself where there is no
      application

    Raises PlanError where the framework is unknown or no stack fits.
    """
    apps = names(root / "apps", "*/app.yml")
    framework = values["framework"]
    if framework is None:
        raise PlanError(
            "framework: none was given. Give one with -e framework=<name>. "
            f"There are: {', '.join(apps)}."
        )
    known("framework", framework, apps, " A new one is a folder in apps/.")
    app = load_yaml(root / "apps" / framework / "app.yml")
    _refuse_direct(values, app)
    interface = load_yaml(root / "files" / "stacks.yml")[app["interface"]]
    asked = {key: values[key] for key in CHOICES if values[key] is not None}
    fitting = [
        choice
        for choice in stacks(interface["stacks"])
        if all(choice[key] == value for key, value in asked.items())
        and (values["front"] != "none" or (choice["transport"], choice["protocol"]) == DIRECT)
        and (choice["threaded"] or values["threads"] == 1)
        and (app["language"] != "none" or values["workers"] is None)
    ]
    if not fitting:
        words = [f"{key}={_word(value)}" for key, value in asked.items()]
        words += [f"threads={values['threads']}"] if values["threads"] != 1 else []
        if app["language"] == "none" and values["workers"]:
            words.append(f"workers={values['workers']}")
        reason = interface.get("refused", {}).get(asked.get("server"))
        raise PlanError(
            f"{framework} does not run with {' '.join(words)}{f': {reason}' if reason else ''}. "
            f"It runs with: {'; '.join(_row(row) for row in interface['stacks'])}."
        )
    contracts = load_yaml(root / "files" / "endpoints.yml")
    needs = {need for name in app["endpoints"] for need in contracts[name].get("needs", [])}
    chosen = {key: value for key, value in fitting[0].items() if key != "threaded"}
    refuse_python(framework, chosen, python)
    constants = [
        {
            "path": contracts[name]["path"],
            "content_type": contracts[name]["content_type"],
            "body": expected_body(contracts[name], {}).decode(),
        }
        for name in app["endpoints"]
        if app["language"] == "none"
    ]
    return {
        "framework": framework,
        "app": app,
        **chosen,
        "front": values["front"],
        "port": PORTS[values["front"]],
        **{key: values[key] for key in ("workers", "threads")},
        "needs": sorted(needs),
        "constants": constants,
    }


def _refuse_direct(values: Mapping[str, Any], app: Mapping[str, Any]) -> None:
    """Raise PlanError where front=none is asked and clients cannot reach the application server."""
    if values["front"] != "none":
        return
    if app["language"] == "none":
        raise PlanError(
            f"front: {values['framework']} is answered by nginx itself, front=none leaves nobody. "
            "Leave front out."
        )
    for name, wanted in (("transport", "tcp"), ("protocol", "http")):
        if values[name] not in (None, wanted):
            raise PlanError(
                f"front: without nginx the generator asks the application server itself, which is "
                f"{wanted} and not {name}={values[name]}. Leave {name} out, or front."
            )
    # uWSGI alone keeps connections open without nginx, on a separate socket.
    if values["upstream_keepalive"] is not None and values["server"] != "uwsgi":
        raise PlanError(
            "front: upstream_keepalive is of nginx's connections, and front=none leaves nginx out. "
            "Leave it out; the generator's own are kept or not by -e keepalive=."
        )


def refuse_python(framework: str, chosen: Mapping[str, Any], python: str | None) -> None:
    """Raise PlanError where the stack does not run on this Python; None means not known yet."""
    if python is None or chosen["python_below"] is None:
        return
    if _release(python) >= _release(chosen["python_below"]):
        raise PlanError(
            f"{framework} does not run with server={chosen['server']} on Python {python}: "
            f"{chosen['python_reason']}. Use Debian 12 on the server (local hosts: "
            "-e local_hosts_release=bookworm), or leave server and protocol out: then its own "
            "server stands in."
        )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _row(row: Mapping[str, Any]) -> str:
    """Return a row of files/stacks.yml as options; alternatives are separated by "|"."""
    words = []
    for key in CHOICES:
        value = row.get(key)
        if value not in (None, "none"):
            several = value if isinstance(value, list) else [value]
            words.append(f"{key}={'|'.join(_word(one) for one in several)}")
    return " ".join(words) + (" threads=<n>" if row.get("threads") else "")


def stack_slug(cell: Mapping[str, Any]) -> str:
    """Return the part of a cell's id that names its stack."""
    parts = [cell[key] for key in ("framework", "server", "transport", "protocol")]
    # A dotted name is the worker class of the event loop, which the slug already names.
    if cell["worker_class"] and "." not in cell["worker_class"]:
        parts.append(cell["worker_class"])
    if cell["event_loop"]:
        parts.append(cell["event_loop"])
    if cell["workers"]:
        parts.append(f"{cell['workers']}workers")
    if cell["threads"] != 1:
        parts.append(f"{cell['threads']}threads")
    if not cell["upstream_keepalive"]:
        parts.append("unkept")
    if "front" in cell:
        parts.append("direct")
    parts.append(f"b{cell['backlog']}")
    return "-".join(parts)
