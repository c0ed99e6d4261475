"""Build manifest.json: what was run, with which versions, on which hosts."""

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import to_builtins

from loadlab.generators import registry
from loadlab.model import (
    Cell,
    CertificateReference,
    CloudInstance,
    Command,
    GivenOptions,
    LabRevision,
    Manifest,
    ManifestHost,
)
from loadlab.model.options import Options
from loadlab.plan.plan_document import Run
from loadlab.run import catalog, documents
from loadlab.stacks import application
from loadlab.stacks.servers import FOLDER

_PIN = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==([^\s;\\]+) *(;[^\\\n]*)?", re.MULTILINE
)
# Fields of the plan that the manifest keeps.
_PLANNED = (
    "options", "stack", "stacks", "tunings", "networks", "endpoints", "experiments", "study",
)  # fmt: skip
# Of a generator that is a crate of the lab.
_CRATES = "Cargo.lock"
_REQUIREMENTS = "requirements.txt"
# Ending of a lock file of Python.
_PINS = ".txt"
# -e, also after switches that take no value (-Kbe), with or without its value attached.
_SHORT = re.compile(r"(-[hvCDJKbk]*e)(.*)", re.DOTALL)
# --extra-vars or an abbreviation: no other option of ansible-playbook starts with --e.
_LONG = re.compile(r"(--e[a-z-]*)(?:=(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Locked:
    """What the lab pins: pins as in the manifest, and lock file -> its SHA-256."""

    pins: dict[str, str]
    locks: dict[str, str]


def sources(cells: Iterable[Cell]) -> dict[str, str]:
    """Return the folder of each application and server of the cells, by its name in the pins."""
    cells = list(cells)
    return {
        **{(cell.app or cell.framework): cell.app or f"apps/{cell.framework}" for cell in cells},
        **{f"server-{cell.server}": f"{FOLDER}/{cell.server}" for cell in cells},
    }


def locked(
    root: Path, apps: Mapping[str, str], generators: Collection[str], py_spy: bool
) -> Locked:
    """Return what the lab in ``root`` pins of the controller, these applications, their servers and
    generators, and the profiler.

    ``apps``: from sources(), folders relative to ``root`` or absolute.
    """
    folders = {"controller": root}
    pinned: dict[str, str] = {}
    for name in generators:
        if registry.get(name).mode == "batch":
            folders["clients"] = root / "files" / "clients"
        pinned |= _version(root, registry.get(name).role)
    if py_spy:
        folders["profiler"] = root / "files" / "profiler"
    paths = {name: [folder / _REQUIREMENTS] for name, folder in folders.items()}
    paths |= {name: [root / name / _CRATES] for name in generators}
    paths |= {
        name: [root / source / _REQUIREMENTS]
        if source.startswith(FOLDER)
        else application.locks(root, source)
        for name, source in apps.items()
    }
    texts = {
        name: documents.text(path)
        for name, files in paths.items()
        for path in files
        if path.suffix == _PINS and path.exists()
    }
    files = [path for files in paths.values() for path in files if path.exists()]
    # Of a path below ``root`` the rest, of any other all.
    hashes = {
        path.as_posix().removeprefix(f"{root.as_posix()}/"): documents.digest_of(path)
        for path in files
    }
    return Locked({**pins(texts), **pinned}, hashes)


def _version(root: Path, role: str) -> dict[str, str]:
    """Return the version that the role of a generator pins; empty where it pins none."""
    path = root / "roles" / role / "defaults" / "main.yml"
    name = f"{role}_version"
    defaults = (catalog.load_yaml(path) or {}) if path.exists() else {}
    return {f"{role}/{name}": str(defaults[name])} if name in defaults else {}


def pins(locks: Mapping[str, str]) -> dict[str, str]:
    """Return {"<lock>/<package>": version} from lock files (name -> text).

    A version for some machines only is followed by its condition ("1.3 ; python_version < '3.12'");
    several are joined with " or ".
    """
    by_name: dict[str, list[str]] = {}
    for lock, text in locks.items():
        for name, version, condition in _PIN.findall(text):
            words = f"{version} ; {condition[1:].strip()}" if condition else version
            by_name.setdefault(f"{lock}/{name}", []).append(words)
    return {name: " or ".join(versions) for name, versions in by_name.items()}


def command_line(argv: Sequence[str], recorded: Iterable[str]) -> list[str]:
    """Return the words of the command; only main variables (``recorded``) keep their -e values.

    Any other extra variable may hold a secret: its value is replaced by '(not recorded)', and so
    are a whole file of variables and JSON.
    """
    names = set(recorded)
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
        f"{name}={_quoted(value) if name in names else '(not recorded)'}"
        for name, _, value in pairs
    )


def _quoted(value: str) -> str:
    """Return a value as Ansible reads it whole: it splits at spaces outside of quotes."""
    return f'"{value}"' if " " in value else value


def build(
    begun: Run,
    finished: str | None,
    hosts: Mapping[str, ManifestHost],
    controller: Mapping[str, str],
    lab: LabRevision,
    locked: Locked,
    certificate: CertificateReference | None,
    instances: Sequence[CloudInstance] | None,
) -> Manifest:
    """Return manifest.json.

    ``begun``: plan.json. ``finished``: ISO 8601 time or None. ``hosts``, ``controller``, ``lab``,
    ``certificate``, ``instances``: its fields of these names. ``locked``: its pins and locks.
    """
    plan = begun.plan
    options: GivenOptions = {
        name: value for name, value in plan.given_options.items() if value not in (None, "")
    }
    # For a script the first word is the Python interpreter.
    argv = begun.argv
    if argv and "python" in argv[0].rpartition("/")[2]:
        argv = argv[1:]
    planned = to_builtins(plan)
    kept = {key: planned[key] for key in _PLANNED}
    return Manifest(
        run_id=plan.run_id,
        started=begun.started,
        finished=finished,
        lab=lab,
        command=Command(argv=command_line(argv, Options.__struct_fields__), extra_vars=options),
        controller=dict(controller),
        hosts=dict(hosts),
        pins=locked.pins,
        locks=locked.locks,
        plan=kept,
        certificate=certificate,
        instances=None if instances is None else list(instances),
    )
