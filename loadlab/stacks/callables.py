"""Tell from an application's source whether a callable speaks WSGI or ASGI, without running it.

The plan needs to know before there is a host. The server asks the object itself once it is
installed (roles/app_server/files/ask-interface.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from typing import Literal, TypeAlias

Spoken = Literal["wsgi", "asgi"]
# What a module binds a name to.
_Bound: TypeAlias = "ast.stmt | ast.expr | tuple[str, str]"

# Callables that return an application, by their full names.
MADE_BY: dict[str, Spoken] = {
    "flask.Flask": "wsgi",
    "django.core.wsgi.get_wsgi_application": "wsgi",
    "bottle.Bottle": "wsgi",
    "bottle.default_app": "wsgi",
    "falcon.App": "wsgi",
    "webob.dec.wsgify": "wsgi",
    "a2wsgi.ASGIMiddleware": "wsgi",
    "socketio.WSGIApp": "wsgi",
    "django.core.asgi.get_asgi_application": "asgi",
    "fastapi.FastAPI": "asgi",
    "starlette.applications.Starlette": "asgi",
    "quart.Quart": "asgi",
    "litestar.Litestar": "asgi",
    "sanic.Sanic": "asgi",
    "falcon.asgi.App": "asgi",
    "channels.routing.ProtocolTypeRouter": "asgi",
    "a2wsgi.WSGIMiddleware": "asgi",
    "asgiref.wsgi.WsgiToAsgi": "asgi",
    "socketio.ASGIApp": "asgi",
}
# A method that returns an application, whatever its object is called.
_METHODS: dict[str, Spoken] = {"make_wsgi_app": "wsgi"}
# Parameters: (environ, start_response), and (scope, receive, send).
_WSGI_PARAMETERS, _ASGI_PARAMETERS = 2, 3
# How far names are followed, so that two modules that import each other end.
_DEPTH = 12


class Source:
    """The modules of an application, in folders or in a wheel."""

    def __init__(self, *folders: Traversable) -> None:
        self._folders = folders
        self._trees: dict[str, ast.Module | None] = {}

    def tree(self, module: str) -> ast.Module | None:
        """Return the syntax tree of a module or package; None where there is none to read."""
        if module not in self._trees:
            self._trees[module] = self._read(module)
        return self._trees[module]

    def _read(self, module: str) -> ast.Module | None:
        parts = module.split(".")
        for folder in self._folders:
            for names in ([*parts[:-1], f"{parts[-1]}.py"], [*parts, "__init__.py"]):
                file = folder.joinpath(*names)
                if file.is_file():
                    try:
                        return ast.parse(file.read_bytes())
                    except (SyntaxError, ValueError):
                        return None
        return None

    def packages(self) -> list[str]:
        """Return the names of the folders that hold modules, sorted."""
        return sorted(
            {
                package.name
                for folder in self._folders
                for package in folder.iterdir()
                if package.is_dir()
                and package.name.isidentifier()
                and any(file.name.endswith(".py") for file in package.iterdir())
            }
        )

    def binds(self, module: str, name: str) -> bool:
        """Return whether a module binds a name at its top level."""
        return self._bound(module, name) is not None

    def interface(self, module: str, name: str) -> Spoken | None:
        """Return what the object speaks; None where the source does not tell."""
        return self._of_name(module, name, _DEPTH)

    def _bound(self, module: str, name: str) -> _Bound | None:
        tree = self.tree(module)
        return None if tree is None else _last(tree.body, name)

    def _of_name(self, module: str, name: str, depth: int) -> Spoken | None:
        bound = self._bound(module, name) if depth else None
        if isinstance(bound, tuple):
            return self._of_name(self._absolute(module, bound[0]), bound[1], depth - 1)
        return self._of_bound(module, bound, depth)

    def _absolute(self, module: str, other: str) -> str:
        """Return the module that an import names; dots are relative to the importing one."""
        up = len(other) - len(other.lstrip("."))
        if not up:
            return other
        is_package = any(
            folder.joinpath(*module.split("."), "__init__.py").is_file() for folder in self._folders
        )
        parts = module.split(".") if is_package else module.split(".")[:-1]
        return ".".join([*parts[: len(parts) - up + 1], *filter(None, [other[up:]])])

    def _of_bound(
        self, module: str, bound: ast.stmt | ast.expr | None, depth: int
    ) -> Spoken | None:
        if isinstance(bound, ast.AsyncFunctionDef | ast.FunctionDef):
            return _of_function(bound, 0)
        return self._of_expression(module, bound, depth) if isinstance(bound, ast.expr) else None

    def _of_expression(self, module: str, value: ast.expr, depth: int) -> Spoken | None:
        if not depth:
            return None
        if isinstance(value, ast.Name):
            return self._of_name(module, value.id, depth - 1)
        if not isinstance(value, ast.Call):
            return None
        if isinstance(value.func, ast.Attribute) and value.func.attr in _METHODS:
            return _METHODS[value.func.attr]
        interface = self._of_called(module, value.func, depth)
        if interface is not None or not value.args:
            return interface
        # Middleware of either kind returns what it wraps.
        return self._of_expression(module, value.args[0], depth - 1)

    def _of_called(self, module: str, called: ast.expr, depth: int) -> Spoken | None:
        full = self._full_name(module, called)
        if full in MADE_BY:
            return MADE_BY[full]
        owner, _, name = full.rpartition(".")
        if self.tree(owner or module) is None:
            return None
        return self._made_by(owner or module, name, depth - 1)

    def _made_by(self, module: str, name: str, depth: int) -> Spoken | None:
        """Return what a call of a function or class of the application's own returns."""
        bound = self._bound(module, name) if depth > 0 else None
        if isinstance(bound, tuple):
            other = self._absolute(module, bound[0])
            return MADE_BY.get(f"{other}.{bound[1]}") or self._made_by(other, bound[1], depth - 1)
        if isinstance(bound, ast.ClassDef):
            call = _last(bound.body, "__call__")
            if isinstance(call, ast.AsyncFunctionDef | ast.FunctionDef):
                return _of_function(call, 1)
            bases = (self._of_called(module, base, depth) for base in bound.bases)
            return next((base for base in bases if base is not None), None)
        if isinstance(bound, ast.FunctionDef):
            returned = [node.value for node in ast.walk(bound) if isinstance(node, ast.Return)]
            for value in filter(None, returned):
                local = _last(bound.body, value.id) if isinstance(value, ast.Name) else value
                spoken = self._of_bound(
                    module, value if local is None or isinstance(local, tuple) else local, depth
                )
                if spoken is not None:
                    return spoken
        return None

    def _full_name(self, module: str, called: ast.expr) -> str:
        """Return the dotted name of what is called, its first part as it was imported."""
        parts: list[str] = []
        while isinstance(called, ast.Attribute):
            parts.insert(0, called.attr)
            called = called.value
        if not isinstance(called, ast.Name):
            return ""
        bound = self._bound(module, called.id)
        if not isinstance(bound, tuple):
            return ".".join([called.id, *parts])
        owner, name = self._absolute(module, bound[0]), bound[1]
        return ".".join([*filter(None, [owner, name]), *parts])


def _of_function(function: ast.AsyncFunctionDef | ast.FunctionDef, bound: int) -> Spoken | None:
    """Return what a function speaks. ``bound``: number of arguments that it has when called."""
    count = len(function.args.posonlyargs) + len(function.args.args) - bound
    if isinstance(function, ast.AsyncFunctionDef):
        return "asgi" if count == _ASGI_PARAMETERS else None
    return "wsgi" if count == _WSGI_PARAMETERS else None


def _last(body: list[ast.stmt], name: str) -> _Bound | None:
    """Return what the last statement binds a name to: its value, itself, or (module, name) of an
    import."""
    return next((binding for binding in reversed([*_bindings(body, name)])), None)


def _bindings(body: list[ast.stmt], name: str) -> Iterator[_Bound]:
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if statement.name == name:
                    yield statement
            case ast.Assign(targets=targets, value=value):
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    yield value
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                if target == name:
                    yield value
            case ast.ImportFrom(names=names, level=level, module=module):
                for alias in names:
                    if (alias.asname or alias.name) == name:
                        yield "." * level + (module or ""), alias.name
            case ast.Import(names=names):
                for alias in names:
                    if (alias.asname or alias.name.partition(".")[0]) == name:
                        yield (alias.name if alias.asname else name), ""
            case _:
                for part in ("body", "orelse", "finalbody"):
                    yield from _bindings(getattr(statement, part, []), name)
