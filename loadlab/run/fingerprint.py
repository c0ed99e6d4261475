"""Compute a fingerprint of everything that decides what a stage puts on a host.

What a role consists of follows from the role itself: its folder, the roles that it includes, the
files of files/ that it names, and the modules behind the filters that it uses.
"""

import ast
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from loadlab.run.catalog import load_yaml
from loadlab.run.errors import LabError

# Folders and files of an application's folder that are never copied to a server.
IGNORED = (
    "__pycache__", ".git", ".venv", "venv", "node_modules", ".tox", ".mypy_cache", ".pytest_cache",
    ".ruff_cache", ".env",
)  # fmt: skip

_FILTERS = "collections/ansible_collections/lab/bench/plugins/filter/filters.py"
_COMMENT = re.compile(r"^\s*#.*$|\s#\s.*$", re.MULTILINE)
_INCLUDED = re.compile(r"(?:include|import)_role:\s+name: (\S+)")
_FILE = re.compile(r"(?<![\w.-])files/[\w./-]*\w")
_FILTER = re.compile(r"\blab\.bench\.(\w+)")


def fingerprint(
    values: object, root: str, paths: Sequence[str], without: Collection[Path] = ()
) -> str:
    """Return the SHA-256 (hexadecimal) of the values as JSON and of every file below root/<path>.

    Raises ValueError where a path does not exist. IGNORED below a path are skipped, and the files
    ``without``.
    """
    digest = hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode())
    for path in paths:
        top = Path(root) / path
        if not top.exists():
            raise LabError(f"{path} is not there, so nothing can be told of what it holds")
        for file in [top] if top.is_file() else sorted(_below(top)):
            if file in without:
                continue
            name = Path(path) / file.relative_to(top)
            digest.update(f"{name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _below(top: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in IGNORED]
        paths = (Path(place) / name for name in files if name not in IGNORED)
        yield from (path for path in paths if path.is_file())


def of_roles(root: Path, names: Sequence[str]) -> list[str]:
    """Return the sorted paths below ``root`` that the roles consist of.

    A role is an input as a whole, also where only one of its task files is included. Raises
    ValueError where a role is absent, is included by a name that is not literal, or names a file of
    files/ that does not exist.
    """
    paths: set[str] = set()
    texts: list[str] = []
    left = list(names)
    while left:
        role = root / "roles" / left.pop()
        path = role.relative_to(root).as_posix()
        if path in paths:
            continue
        if not role.is_dir():
            raise LabError(f"{path} is not there, so nothing can be told of what it puts there")
        paths.add(path)
        text = "\n".join(_texts(role))
        left += _INCLUDED.findall(text)
        paths |= set(_files(root, role, text))
        texts.append(text)
    return sorted(paths.union(_modules(root, "\n".join(texts))))


def of_play(root: Path, playbook: str, play: str, part: str) -> list[str]:
    """Return the playbook and what the roles of one of its plays consist of.

    ``part``: "roles" for the play's list of that name, "tasks" for the roles that its tasks
    include.
    """
    (content,) = (entry for entry in load_yaml(root / playbook) if entry["name"] == play)
    names = [entry["role"] for entry in content["roles"]]
    if part == "tasks":
        names = list(_included(content["tasks"]))
    return [playbook, *of_roles(root, names)]


def _included(tasks: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the roles that tasks include, also those in blocks."""
    for task in tasks:
        for key in ("block", "rescue", "always"):
            yield from _included(task.get(key, []))
        for key in ("include_role", "import_role"):
            if f"ansible.builtin.{key}" in task:
                yield task[f"ansible.builtin.{key}"]["name"]


def _texts(role: Path) -> Iterator[str]:
    """Yield the role's YAML and templates without comments, except its documentation."""
    for path in sorted(role.rglob("*")):
        if path.suffix in (".yml", ".j2") and path.name != "argument_specs.yml":
            yield _COMMENT.sub("", path.read_text(encoding="utf-8"))


def _files(root: Path, role: Path, text: str) -> Iterator[str]:
    for name in set(_FILE.findall(text)):
        if (root / name).exists():
            yield name
        elif not (role / name).exists():
            raise LabError(f"roles/{role.name} names {name}, which is not there")


def _modules(root: Path, text: str) -> Iterator[str]:
    """Yield the table of filters, and every module below the rows of it that a text uses."""
    table = root / _FILTERS
    tree = ast.parse(table.read_text(encoding="utf-8"))
    # The rows, and the functions of the table itself that they name.
    bodies: dict[str, ast.AST] = {
        str(key.value): value
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant)
    }
    used = _FILTER.findall(text)
    left = [bodies[name] for name in used if name in bodies]
    bodies = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    names = set[str]()
    while left:
        nodes = ast.walk(left.pop())
        named = {node.id for node in nodes if isinstance(node, ast.Name)} - names
        left += [bodies[name] for name in named if name in bodies]
        names |= named
    seen = {table}
    if names:
        yield _FILTERS
        yield from _imports(root, tree, seen, names)


def _imported(root: Path, module: Path, seen: set[Path]) -> Iterator[str]:
    """Yield a module and the repository's modules that it imports, directly or through others."""
    if module in seen:
        return
    seen.add(module)
    yield module.relative_to(root).as_posix()
    yield from _imports(root, ast.parse(module.read_text(encoding="utf-8")), seen)


def _imports(
    root: Path, tree: ast.Module, seen: set[Path], only: Collection[str] | None = None
) -> Iterator[str]:
    """Yield the repository's modules that a module imports; ``only``: those for these names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [
                alias.name
                for alias in node.names
                if only is None or (alias.asname or alias.name) in only
            ]
            name = node.module.replace(".", "/")
            for base in (root / name, root / "collections" / name) if names else ():
                parts = [base / f"{part}.py" for part in names]
                for path in (base.with_suffix(".py"), base / "__init__.py", *parts):
                    if path.is_file():
                        yield from _imported(root, path, seen)
