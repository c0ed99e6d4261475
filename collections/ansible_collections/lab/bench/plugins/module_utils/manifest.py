"""manifest.json: what was run, by what, on what. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^ ;\\]+)", re.MULTILINE)
_EXTRA_VARS = ("-e", "--extra-vars")


def pins(locks: Mapping[str, str]) -> dict[str, str]:
    """Lock files (name to text) as {"<lock>/<package>": version}."""
    return {
        f"{lock}/{name}": version
        for lock, text in locks.items()
        for name, version in _PIN.findall(text)
    }


def command_line(argv: Sequence[str], known: Iterable[str]) -> list[str]:
    """The words of the command, values given with -e only for the main variables.

    Any other extra variable may hold a secret: its value is replaced by '(not recorded)', and
    a file of variables or JSON stays out whole.
    """
    names = set(known)
    words: list[str] = []
    extra = False
    for word in argv:
        flag, joined, value = word.partition("=")
        if extra:
            words.append(_extra_vars(word, names))
        elif joined and flag == "--extra-vars":
            words.append(f"{flag}={_extra_vars(value, names)}")
        elif word.startswith("-e") and word != "-e":
            words.append("-e" + _extra_vars(word[2:], names))
        else:
            words.append(word.rpartition("/")[2] if not words else word)
        extra = word in _EXTRA_VARS
    return words


def _extra_vars(text: str, names: set[str]) -> str:
    if text.startswith(("@", "{", "[")):
        return "(not recorded)"
    kept = []
    for pair in text.split():
        name, separator, _ = pair.partition("=")
        kept.append(pair if name in names else f"{name}{separator}(not recorded)")
    return " ".join(kept)


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
        "schema": "lab/1",
        "run_id": plan["run_id"],
        "started": begun["started"],
        "finished": finished,
        "lab": dict(source),
        "command": {"argv": command_line(argv, plan["options"]), "extra_vars": given},
        "controller": dict(controller),
        "hosts": dict(hosts),
        "pins": pins(locks),
        "plan": {key: plan[key] for key in ("options", "stack", "endpoints", "work")},
    }
