"""The manifest of an application: app.yml, or derived from its folder where that says less.

An application of the lab has a whole app.yml. Any other folder needs none: its packages, its
callable and what that speaks are found in it. The keys of Beside, in an app.yml there, go first.
"""

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import yaml
from msgspec import field
from msgspec.structs import replace

from loadlab.model.base import Record
from loadlab.run.catalog import load_yaml, path_of, read_yaml
from loadlab.run.errors import PlanError
from loadlab.run.fingerprint import IGNORED
from loadlab.run.formatting import one_line
from loadlab.stacks import requests, requirements
from loadlab.stacks.callables import Source, Spoken
from loadlab.stacks.contract import Contracts, Need, contracts

MANIFEST = "app.yml"
# What is copied to a server at most, bytes.
FOLDER_BYTES_MAX = 200_000_000
# Databases of the server's PostgreSQL: with the lab's data set, and of an application's own.
DATASET, OWN = "loadlab", "loadlab_app"
# A line of an environment file, as systemd reads it.
_VARIABLE = re.compile(r"\s*([#;].*)?|[A-Za-z_][A-Za-z0-9_]*=.*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
# Modules that are looked at, with the names in them; those of a package go behind its name.
_WELL_KNOWN = {
    "app": ("app", "application"),
    "main": ("app", "application"),
    "wsgi": ("application", "app"),
    "asgi": ("application", "app"),
}


class Refused(Record, kw_only=True, frozen=True):
    """Stacks that an application does not run on, by some of their choices, and why."""

    server: str
    transport: str | None = None
    worker_class: str | None = None
    upstream_keepalive: bool | None = None
    reason: str

    @property
    def choices(self) -> dict[str, str | bool]:
        """The choices of these stacks."""
        return {key: value for key, value in msgspec.to_builtins(self).items() if key != "reason"}


class App(Record, kw_only=True, frozen=True):
    """Content of app.yml."""

    description: str
    language: Literal["python", "node", "go", "none"]
    interface: str  #: A key of files/interfaces.yml.
    endpoints: list[str]  #: Names in files/endpoints.yml or in its requests.yml.
    pool_size: int  #: Database connections of a worker, 0 without a pool.
    #: Database drivers that it can use, the default first; absent where there is no choice.
    drivers: list[str] = field(default_factory=list)
    #: module, uwsgi_module: "module:object" of the application.
    module: str | None = None
    uwsgi_module: str | None = None
    #: Stacks of its interface that it does not run on.
    refused: list[Refused] = field(default_factory=list)
    environment: str | None = None  #: File of variables.
    #: None, or postgresql for a database of its own, which the dump fills.
    database: Literal["postgresql", "none"] | None = None
    dump: str | None = None  #: SQL file; in its folder, or absolute.
    #: Shell command that is run in its folder, with its packages and variables.
    migrate: str | None = None
    #: Of an application from outside the tree, the file that lists its packages.
    requirements: str | None = None


class Beside(Record, kw_only=True, frozen=True):
    """An app.yml that says only what cannot be found; the keys are those of App."""

    module: str | None = None
    interface: Spoken | None = None
    environment: str | None = None
    database: Literal["postgresql", "none"] = "none"
    dump: str | None = None
    migrate: str | None = None


def is_own(app: App) -> bool:
    """Return whether the application is from outside the tree, and knows nothing of the lab."""
    return app.requirements is not None


def name_of(source: str) -> str:
    """Return the name of an application's folder, as a cell's id can have it."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(source).name).strip("._-")
    return name[:40] or "application"


def manifest(root: Path, source: str, module: str | None = None) -> App:
    """Return the manifest of an application's folder. ``module``: instead of its own.

    Raises PlanError with the place of a wrong value, and for what cannot be found.
    """
    folder = path_of(root, "app", source)
    if not folder.is_dir():
        raise PlanError(
            f"app: '{source}' is no folder. Give a folder with the files of apps/<framework>, or "
            f"your application's, with {requirements.TEXT}, {requirements.PROJECT} or a wheel."
        )
    said = _said(folder, source)
    if isinstance(said, Beside):
        return _derived(folder, said, module)
    app = read_yaml(root, f"{source}/{MANIFEST}", App)
    _check_files(folder, app)
    return app if module is None else replace(app, module=_module(module))


def contracts_of(root: Path, source: str, app: App) -> Contracts:
    """Return the contracts of an application's endpoints by name, its own before the lab's."""
    folder = root / source
    if is_own(app):
        needs: list[Need] = ["database"] if app.database == "postgresql" else []
        return {
            name: replace(contract, needs=needs) for name, contract in requests.read(folder).items()
        }
    own = requests.read(folder) if (folder / requests.FILE).exists() else {}
    return {**contracts(root), **own}


def locks(root: Path, source: str) -> list[Path]:
    """Return the lock files of an application, of any language; those that exist."""
    folder = root / source
    if not folder.is_dir():
        return []
    if isinstance(_said(folder, source), Beside):
        files = [root / requirements.lock(root, folder, requirements.file_of(folder))]
    else:
        files = [folder / name for name in (requirements.TEXT, "go.sum", "package-lock.json")]
    return [path for path in files if path.exists()]


def database(app: App) -> str:
    """Return the name of the database that the application uses, if any."""
    return OWN if app.database == "postgresql" else DATASET


def _said(folder: Path, source: str) -> Beside | None:
    """Return what a short app.yml says; None of a whole one."""
    path = folder / MANIFEST
    if not path.exists():
        return Beside()
    try:
        document = load_yaml(path)
        # Both forms have a module; the whole one says more.
        short = isinstance(document, dict) and not {"language", "description", "endpoints"} & {
            *document
        }
        return msgspec.convert(document, Beside) if short else None
    except (yaml.YAMLError, msgspec.ValidationError) as problem:
        raise PlanError(f"{source}/{MANIFEST}: {one_line(str(problem))}.") from None


def _derived(folder: Path, said: Beside, module: str | None) -> App:
    # First, as other folders may be as large as the whole disk, and change.
    file = requirements.file_of(folder)
    _check_size(folder)
    source = _source(folder, file)
    target = module or said.module
    named = _module(target) if target else _find(folder, source, said.interface)
    owner, _, name = named.partition(":")
    if target and not source.binds(owner, name):
        raise PlanError(
            f"module: '{target}' is not in {folder}: no module {owner} there has {name}. "
            f"{_candidates_words(source)}"
        )
    interface = said.interface or source.interface(owner, name)
    if interface is None:
        raise PlanError(
            f"module: whether {named} in {folder} speaks WSGI or ASGI cannot be told from its "
            f"source. Write 'interface: wsgi' or 'interface: asgi' to {folder / MANIFEST}."
        )
    app = App(
        description=f"{name_of(str(folder))}, from outside the tree",
        language="python",
        interface=interface,
        endpoints=[*requests.read(folder)],
        pool_size=0,
        module=named,
        database=said.database,
        requirements=file,
        environment=said.environment,
        dump=said.dump,
        migrate=said.migrate,
    )
    _check_files(folder, app)
    return app


def _module(target: str) -> str:
    if not _MODULE.fullmatch(target):
        raise PlanError(
            f"module: '{target}' is no module and callable. Give module:callable, such as app:app."
        )
    return target


def _source(folder: Path, file: str) -> Source:
    if requirements.is_wheel(file):
        return Source(zipfile.Path(folder / file))
    return Source(*(path for path in (folder, folder / "src") if path.is_dir()))


def _find(folder: Path, source: Source, interface: Spoken | None) -> str:
    """Return the first well-known callable, of this interface where one is given."""
    for owner, name in _candidates(source):
        if interface is None or source.interface(owner, name) in (interface, None):
            return f"{owner}:{name}"
    raise PlanError(
        f"module: {folder} has no application under a well-known name. {_candidates_words(source)}"
    )


def _candidates_words(source: Source) -> str:
    there_are = [f"{owner}:{name}" for owner, name in _candidates(source)]
    well_known = ", ".join(f"{module}:{name[0]}" for module, name in _WELL_KNOWN.items())
    listed = (
        f"There are: {', '.join(there_are)}."
        if there_are
        else f"Looked for: {well_known}, the same in each package, and <package>:app."
    )
    return f"{listed} Give one with -e module=<module>:<callable>."


def _candidates(source: Source) -> Iterator[tuple[str, str]]:
    """Yield (module, callable) of every well-known callable."""
    packages = source.packages()
    modules = [
        (f"{prefix}{module}", names)
        for prefix in ("", *(f"{package}." for package in packages))
        for module, names in _WELL_KNOWN.items()
    ]
    for module, names in [*modules, *((package, _WELL_KNOWN["app"]) for package in packages)]:
        yield from ((module, name) for name in names if source.binds(module, name))


def _check_size(folder: Path) -> None:
    total = 0
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in IGNORED]
        try:
            total += sum((Path(place) / name).lstat().st_size for name in files)
        except FileNotFoundError as gone:
            raise PlanError(
                f"app: '{folder}' changes while it is read: {gone.filename} is gone. Give the "
                "folder of the application alone."
            ) from None
        if total > FOLDER_BYTES_MAX:
            raise PlanError(
                f"app: '{folder}' has more than {FOLDER_BYTES_MAX // 10**6} MB, the most that is "
                f"copied to a server; {', '.join(IGNORED)} do not count. Give the folder of the "
                "application alone."
            )


def _check_files(folder: Path, app: App) -> None:
    """Raise PlanError where a file that the manifest names is absent or cannot be used."""
    if app.dump is not None and app.database != "postgresql":
        raise PlanError(
            f"{folder / MANIFEST}: dump: {app.dump} needs a database. Write "
            "'database: postgresql' there, or leave dump out."
        )
    for key, name in (("environment", app.environment), ("dump", app.dump)):
        option = f"{folder / MANIFEST}: {key}"
        if name is not None and not (file := path_of(folder, option, name)).is_file():
            raise PlanError(f"{option}: {file} is no file.")
    if app.environment is not None:
        _check_environment(folder / app.environment)


def _check_environment(path: Path) -> None:
    """Raise PlanError for a line that sets no variable; the message does not quote it."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise PlanError(f"{path}: it is no text. Give lines NAME=value.") from None
    for number, line in enumerate(lines, 1):
        if not _VARIABLE.fullmatch(line):
            raise PlanError(
                f"{path}: line {number} sets no variable. Give NAME=value, without export."
            )


def rsync_excludes(app: App) -> list[str]:
    """Return rsync's options that leave out what is never copied of an application's folder.

    The environment file and the dump go another way, to where only their reader has them.
    """
    apart = (app.environment, app.dump)
    patterns = [*IGNORED, *(f"/{name}" for name in apart if name and not name.startswith("/"))]
    return [f"--exclude={pattern}" for pattern in patterns]
