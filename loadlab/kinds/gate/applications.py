"""Applications that a variant makes of another: as of a git ref, or with other packages.

Each is a folder with the files of apps/<framework>, made once and kept in .cache/variants under the
hash of what it is made of.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from loadlab.model import GivenOptions, OptionValue
from loadlab.run.catalog import path_of
from loadlab.run.errors import PlanError
from loadlab.run.fingerprint import IGNORED, fingerprint
from loadlab.stacks import application, requirements

# Options of a variant that make an application: a git ref; package==version; paths of wheels.
KEYS = ("ref", "packages", "wheel")
_FOLDER = Path(".cache/variants")
_LOCK, _WANTED = requirements.TEXT, "requirements.in"
_OWN, _WHEELS = "variant.in", "wheels"


def make(root: Path, name: str, options: GivenOptions) -> tuple[str, str | None]:
    """Make the application of a variant; return its folder below the lab's, and its commit.

    ``name``: of the variant, for messages. ``options``: the variant's and, where it has none, the
    run's. Raises PlanError where git or uv cannot make it.
    """
    framework = options.get("framework")
    if framework is None and not options.get("app"):
        raise PlanError(
            f"{name}: it has a ref or packages and no application. Give -e framework= or -e app=."
        )
    location = options.get("app") or f"apps/{framework}"
    source = path_of(root, f"{name}: app", str(location))
    packages = _words(options.get("packages"))
    files = _words(options.get("wheel"))
    wheels = [path_of(root, f"{name}: wheel", file) for file in files]
    for file, wheel in zip(files, wheels, strict=True):
        if wheel.suffix != ".whl" or not wheel.is_file():
            raise PlanError(
                f"{name}: wheel: '{file}' is no wheel. Give the path of a .whl file, "
                "relative to the lab's folder or absolute."
            )
    commit = None
    if options.get("ref") is None:
        if not source.is_dir():
            raise PlanError(f"{name}: '{location}' is no folder. Give -e framework=<name> or app.")
        state = fingerprint([], str(source), ["."])
    else:
        commit = _git(name, source, "rev-parse", "--verify", f"{options['ref']}^{{commit}}")
        state = _git(name, source, "rev-parse", f"{commit}:./")
    contents = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels]
    made_of = [state, sorted(packages), contents]
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]
    # A stack is called after the folder.
    folder = _FOLDER / key / application.name_of(str(location))
    if not (root / folder).is_dir():
        (root / folder.parent).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root / folder.parent) as temporary:
            new = Path(temporary) / folder.name
            _copy(name, source, commit, new)
            if packages or wheels:
                _pin(root, name, new, packages, wheels)
            new.rename(root / folder)
    return str(folder), commit


def _words(option: OptionValue) -> list[str]:
    values = option if isinstance(option, list) else [option]
    return [str(value) for value in values if value is not None]


def _git(name: str, folder: Path, *words: str) -> str:
    return _run(name, ["git", *words], folder).decode().strip()


def _run(name: str, words: Sequence[str], folder: Path) -> bytes:
    """Return what a command prints. Raises PlanError with its last line where it fails."""
    try:
        ended = subprocess.run(words, cwd=folder, capture_output=True, check=False)
    except (OSError, ValueError) as problem:
        raise PlanError(f"{name}: {words[0]} cannot run: {problem}.") from None
    if ended.returncode:
        said = " ".join(ended.stderr.decode(errors="replace").split())
        raise PlanError(f"{name}: {Path(words[0]).name} {words[1]} failed: {said[-600:]}")
    return ended.stdout


def _copy(name: str, source: Path, commit: str | None, new: Path) -> None:
    if commit is None:
        ignored = shutil.ignore_patterns(*(pattern for pattern in IGNORED if pattern != ".env"))
        shutil.copytree(source, new, ignore=ignored)
        return
    new.mkdir()
    packed = new.resolve() / ".packed.tar"
    _run(name, ["git", "archive", f"--output={packed}", commit], source)
    _run(name, ["tar", "--extract", f"--file={packed}"], new)
    packed.unlink()


def _pin(
    root: Path, name: str, folder: Path, packages: Sequence[str], wheels: Sequence[Path]
) -> None:
    """Give the application these packages."""
    app = application.manifest(root, str(folder))
    if app.language != "python":
        raise PlanError(f"{name}: packages and wheels are of Python applications only.")
    if app.requirements is None:
        _lock(root, name, folder, packages, wheels)
        return
    # The lab locks what its file lists.
    file = app.requirements
    if wheels or requirements.is_wheel(file):
        raise PlanError(
            f"{name}: of an application from outside the tree, a variant may have packages of the "
            "index, and the application may be no wheel. Give two folders with app=."
        )
    pinned = {_normal(package.split("==")[0]) for package in packages}
    lines = [
        line
        for line in requirements.wanted(folder, file)
        if _normal(re.split(r"[^A-Za-z0-9._-]", line)[0]) not in pinned
    ]
    text = "".join(f"{line}\n" for line in [*lines, *packages])
    (folder / requirements.TEXT).write_text(text, encoding="utf-8")


def _lock(
    root: Path, name: str, folder: Path, packages: Sequence[str], wheels: Sequence[Path]
) -> None:
    """Lock the application's packages again with these; the others change only where they must.

    A package of the server's goes there too: of both, the application's is installed.
    """
    if not all((folder / file).is_file() for file in (_WANTED, _LOCK)):
        raise PlanError(
            f"{name}: its application has no {_WANTED} and {_LOCK} to lock again. Give another "
            "folder with app=, or a git ref with ref=."
        )
    lines = [*packages]
    for wheel in wheels:
        (folder / _WHEELS).mkdir(exist_ok=True)
        shutil.copy(wheel, folder / _WHEELS)
        lines.append(f"./{_WHEELS}/{wheel.name}")
    files = [folder / _LOCK, *root.glob(f"files/servers/*/{_LOCK}")]
    texts = [path.read_text(encoding="utf-8") for path in files]
    names = {
        package for text in texts for package in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)
    }
    for name_of in [
        *(package.split("==")[0] for package in packages),
        *(w.name.split("-")[0] for w in wheels),
    ]:
        if _normal(name_of) not in {_normal(package) for package in names}:
            raise PlanError(
                f"{name}: '{name_of}' is no package of the application or a server. There are: "
                f"{', '.join(sorted(names))}."
            )
    (folder / _OWN).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    uv = str(Path(sys.executable).with_name("uv"))
    options = ["--quiet", "--universal", "--generate-hashes", "--no-header", "--no-annotate"]
    versions = ["--python-version", requirements.PYTHON, "--output-file", _LOCK]
    _run(name, [uv, "pip", "compile", *options, *versions, _WANTED, _OWN], folder)


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()
