"""manifest.json: what was run, by what, on what. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loadlab.core.documents import SCHEMA

_PIN = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==([^\s;\\]+) *(;[^\\\n]*)?", re.MULTILINE
)
# What the manifest keeps of the plan; runs of one stack once had no studies.
_PLANNED = (
    "options", "stack", "stacks", "tunings", "networks", "endpoints", "tracks", "study",
)  # fmt: skip
# -e, also behind switches that take no value (-Kbe), and what may be joined to it.
_SHORT = re.compile(r"(-[hvCDJKbk]*e)(.*)", re.DOTALL)
# --extra-vars, also abbreviated: no other option of ansible-playbook begins with --e.
_LONG = re.compile(r"(--e[a-z-]*)(?:=(.*))?", re.DOTALL)


def pins(locks: Mapping[str, str]) -> dict[str, str]:
    """Lock files (name to text) as {"<lock>/<package>": version}.

    A version that is for some machines only has its condition beside it ("1.3 ; python_version <
    '3.12'"); several are joined with " or ".
    """
    found: dict[str, list[str]] = {}
    for lock, text in locks.items():
        for name, version, condition in _PIN.findall(text):
            words = f"{version} ; {condition[1:].strip()}" if condition else version
            found.setdefault(f"{lock}/{name}", []).append(words)
    return {name: " or ".join(versions) for name, versions in found.items()}


def command_line(argv: Sequence[str], known: Iterable[str]) -> list[str]:
    """The words of the command, values given with -e only for the main variables.

    Any other extra variable may hold a secret: its value is replaced by '(not recorded)', and
    a file of variables or JSON stays out whole.
    """
    names = set(known)
    words: list[str] = []
    extra = False
    for word in argv:
        if extra:
            words.append(_extra_vars(word, names))
            extra = False
        elif short := _SHORT.fullmatch(word):
            flag, value = short.groups()
            words.append(flag + (_extra_vars(value, names) if value else ""))
            extra = not value
        elif long := _LONG.fullmatch(word):
            flag, value = long.groups()
            words.append(flag if value is None else f"{flag}={_extra_vars(value, names)}")
            extra = value is None
        else:
            words.append(word.rpartition("/")[2] if not words else word)
    return words


def _extra_vars(text: str, names: set[str]) -> str:
    """The pairs of one -e. Where Ansible would split the text otherwise, nothing of it is kept."""
    try:
        pairs = [pair.partition("=") for pair in shlex.split(text)]
    except ValueError:
        pairs = []
    if not pairs or not all(name.isidentifier() and equals for name, equals, _ in pairs):
        return "(not recorded)"
    return " ".join(
        f"{name}={value if name in names else '(not recorded)'}" for name, _, value in pairs
    )


def build(
    begun: Mapping[str, Any],
    finished: str | None,
    hosts: Mapping[str, Any],
    controller: Mapping[str, str],
    source: Mapping[str, Any],
    locks: Mapping[str, str],
) -> dict[str, Any]:
    """manifest.json from plan.json (``begun``), the described hosts and the lock files' texts."""
    plan = begun["plan"]
    given = {name: value for name, value in plan["given"].items() if value not in (None, "")}
    # Python precedes the program where the program is a script.
    argv = list(begun["argv"])
    if argv and "python" in argv[0].rpartition("/")[2]:
        argv = argv[1:]
    return {
        "schema": SCHEMA,
        "run_id": plan["run_id"],
        "started": begun["started"],
        "finished": finished,
        "lab": dict(source),
        "command": {"argv": command_line(argv, plan["options"]), "extra_vars": given},
        "controller": dict(controller),
        "hosts": dict(hosts),
        "pins": pins(locks),
        "plan": {key: plan[key] for key in _PLANNED if key in plan},
    }
