"""The packages of an application from outside the tree, and the name of their lock file.

The lock holds for every Python and machine, as those of apps/ do. make_lock() makes it, once for
the same requirements.
"""

import hashlib
import re
import tempfile
import tomllib
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from loadlab.run import documents
from loadlab.run.catalog import path_of
from loadlab.run.errors import PlanError
from loadlab.stacks import uv

# Below the lab's folder.
LOCKS = ".cache/locks"
TEXT, PROJECT = "requirements.txt", "pyproject.toml"
# The oldest Python of a server.
PYTHON = "3.11"
# Seconds; a resolution that backtracks for longer has no answer.
_TIMEOUT_S = 300
_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
# What a lock cannot pin by a hash.
_LOCAL = re.compile(r"\s*(-e\b|--editable\b|\.|/|file:|(git|hg|svn|bzr)\+|[^#]*@\s*(file:|git\+))")


def file_of(folder: Path) -> str:
    """Return the name of the file that lists an application's packages.

    Raises PlanError where there is none, or several wheels.
    """
    wheels = sorted(path.name for path in folder.glob("*.whl"))
    if (folder / TEXT).is_file():
        return TEXT
    if _has_project(folder / PROJECT):
        return PROJECT
    if len(wheels) == 1:
        return wheels[0]
    has = f"{len(wheels)} wheels" if wheels else "none of them"
    raise PlanError(
        f"app: '{folder}' needs a {TEXT}, a {PROJECT} with [project], or one wheel, and has {has}. "
        f"Write what `pip freeze` prints to {folder / TEXT}."
    )


def lock(root: Path, folder: Path, file: str) -> str:
    """Return the path of an application's lock file, relative to ``root``."""
    text = "\0".join([*wanted(folder, file), own_pin(folder, file), PYTHON])
    return f"{LOCKS}/{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"


def own_pin(folder: Path, file: str) -> str:
    """Return the line of a lock file for an application that is a wheel itself; "" of others."""
    if not is_wheel(file):
        return ""
    metadata, digest = _metadata(folder / file), documents.digest_of(folder / file)
    return f"{metadata['Name']}=={metadata['Version']} --hash=sha256:{digest}"


def is_wheel(file: str) -> bool:
    """Return whether the packages are those that a wheel asks for."""
    return file.endswith(".whl")


def _has_project(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        return isinstance(tomllib.loads(_text(path)).get("project"), dict)
    except tomllib.TOMLDecodeError as problem:
        raise PlanError(f"app: {path} cannot be read: {problem}.") from None


def _text(path: Path) -> str:
    """Return a file's text. Raises PlanError where it has none, such as UTF-16 of PowerShell."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise PlanError(f"app: {path} cannot be read: {problem}. Give text in UTF-8.") from None


def wanted(folder: Path, file: str) -> list[str]:
    """Return what an application asks for, a requirement each. ``file``: of file_of().

    Raises PlanError for requirements that cannot be read or locked.
    """
    path = folder / file
    if is_wheel(file):
        needs = _metadata(path).get_all("Requires-Dist") or []
        return [line for line in needs if "extra ==" not in line]
    if file == PROJECT:
        project = tomllib.loads(_text(path))["project"]
        if "dependencies" in project.get("dynamic", []):
            raise PlanError(
                f"app: {path} has dynamic dependencies, which are known after a build only. Write "
                f"what `pip freeze` prints to {folder / TEXT}."
            )
        dependencies = project.get("dependencies", [])
        if not isinstance(dependencies, list):
            raise PlanError(f"app: dependencies in {path} is no list. Give one, in brackets.")
        packages = [str(line) for line in dependencies]
    else:
        packages = _of_text(path, set())
    for line in packages:
        if _LOCAL.match(line):
            shown = re.sub(r"//[^/@]*@", "//", line)
            raise PlanError(
                f"app: '{shown}' in {path} is no package of an index, which alone can "
                "be locked by its hash. Leave it out: the folder and its src/ are on the path."
            )
    return packages


def _of_text(path: Path, seen: set[Path]) -> list[str]:
    """Return the requirements of a file and of those that it includes, without hashes."""
    if path in seen or not path.is_file():
        raise PlanError(f"app: {path} is included and is not there, or includes itself.")
    seen.add(path)
    packages = []
    text = _text(path).replace("\\\n", " ")
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in text.splitlines())
    for line in filter(None, lines):
        included = re.fullmatch(r"(?:-r|--requirement)[ =]?\s*(\S+)", line)
        if included:
            packages += _of_text(path_of(path.parent, f"app: {path}", included[1]).resolve(), seen)
            continue
        line = re.sub(r"\s--hash[= ]\S+", "", line).strip()
        if line.startswith("-") and not _LOCAL.match(line):
            raise PlanError(
                f"app: {path} has the option {line.split()[0].partition('=')[0]}. Leave options "
                "out; the lab takes the index that pip on the controller takes."
            )
        packages.append(line)
    return packages


def _metadata(path: Path) -> Message:
    try:
        with zipfile.ZipFile(path) as wheel:
            names = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
            text = wheel.read(names[0]).decode("utf-8")
    except (zipfile.BadZipFile, IndexError, UnicodeDecodeError):
        raise PlanError(
            f"app: {path} is no wheel. Build it again, for example with uv build."
        ) from None
    return HeaderParser().parsestr(text)


def make_lock(root: Path, folder: Path, file: str) -> bool:
    """Make the lock file of an application where it is not there; return whether it was made.

    Raises PlanError where the index has no such packages, or no wheels of them.
    """
    path = root / lock(root, folder, file)
    if path.exists():
        return False
    packages = wanted(folder, file)
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "wanted.in").write_text("\n".join([*packages, ""]), encoding="utf-8")
        reason = uv.failure(
            [
                *("pip", "compile", "--quiet"),
                *("--universal", "--python-version", PYTHON, "--no-header"),
                *("--generate-hashes", "--only-binary", ":all:"),
                *("wanted.in", "--output-file", "lock.txt"),
            ],
            _TIMEOUT_S,
            f"app: locking the packages of {folder / file}",
            "Give it narrower versions, such as those that pip freeze names where the application "
            "runs.",
            Path(place),
        )
        if reason:
            raise PlanError(
                f"app: the packages of {folder / file} cannot be locked: {reason} Give versions "
                f"that the index has as wheels for Python {PYTHON} and newer."
            )
        text = (Path(place) / "lock.txt").read_text(encoding="utf-8")
    bare = [pinned[1] for pinned in _PINNED.finditer(text) if "--hash=" not in pinned[0]]
    if bare:
        raise PlanError(f"app: {', '.join(bare)} of {folder / file} came without hashes.")
    path.parent.mkdir(parents=True, exist_ok=True)
    documents.write(path, f"{text}{own_pin(folder, file)}\n".encode())
    return True
