"""Build manifest.json: what was run, with which versions, on which hosts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from msgspec import to_builtins

from loadlab.core.model import CertificateReference, Command, LabRevision, Manifest, ManifestHost
from loadlab.core.model.options import Options
from loadlab.scheduling.plan import Run

_PIN = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==([^\s;\\]+) *(;[^\\\n]*)?", re.MULTILINE
)
# Fields of the plan that the manifest keeps.
_PLANNED = (
    "options", "stack", "stacks", "tunings", "networks", "endpoints", "experiments", "study",
)  # fmt: skip
# -e, also after switches that take no value (-Kbe), with or without its value attached.
_SHORT = re.compile(r"(-[hvCDJKbk]*e)(.*)", re.DOTALL)
# --extra-vars or an abbreviation: no other option of ansible-playbook starts with --e.
_LONG = re.compile(r"(--e[a-z-]*)(?:=(.*))?", re.DOTALL)


def pins(locks: Mapping[str, str]) -> dict[str, str]:
    """Return {"<lock>/<package>": version} from lock files (name -> text).

    A version for some machines only is followed by its condition ("1.3 ; python_version < '3.12'");
    several are joined with " or ".
    """
    found: dict[str, list[str]] = {}
    for lock, text in locks.items():
        for name, version, condition in _PIN.findall(text):
            words = f"{version} ; {condition[1:].strip()}" if condition else version
            found.setdefault(f"{lock}/{name}", []).append(words)
    return {name: " or ".join(versions) for name, versions in found.items()}


def command_line(argv: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return the words of the command; of -e only the main variables, ``known``, keep their values.

    Any other extra variable may hold a secret: its value is replaced by '(not recorded)', and so
    are a whole file of variables and JSON.
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
    """Return the pairs of one -e; '(not recorded)' where Ansible would split the
    text differently."""
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
    begun: Run,
    finished: str | None,
    hosts: Mapping[str, ManifestHost],
    controller: Mapping[str, str],
    lab: LabRevision,
    pins: Mapping[str, str],
    certificate: CertificateReference | None,
) -> Manifest:
    """Return manifest.json.

    ``begun``: plan.json. ``finished``: ISO 8601 time or None. ``hosts``, ``controller``, ``lab``,
    ``pins``, ``certificate``: its fields of these names.
    """
    plan = begun.plan
    given = {name: value for name, value in plan.given.items() if value not in (None, "")}
    # For a script the first word is the Python interpreter.
    argv = begun.argv
    if argv and "python" in argv[0].rpartition("/")[2]:
        argv = argv[1:]
    planned = to_builtins(plan)
    kept = {key: planned[key] for key in _PLANNED}
    if plan.choice is not None:
        # An older lab chose nothing.
        kept["choice"] = planned["choice"]
    return Manifest(
        run_id=plan.run_id,
        started=begun.started,
        finished=finished,
        lab=lab,
        command=Command(argv=command_line(argv, Options.__struct_fields__), extra_vars=given),
        controller=dict(controller),
        hosts=dict(hosts),
        pins=dict(pins),
        plan=kept,
        certificate=certificate,
    )
