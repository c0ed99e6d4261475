"""Prints what an application can speak, wsgi, asgi or both, or what it is instead of that."""

import importlib
import inspect
import sys

# Number of arguments of a call: (environ, start_response), and (scope, receive, send).
ARGUMENTS = {"wsgi": 2, "asgi": 3}


def spoken(application):
    if not callable(application):
        return f"no callable but of the type {type(application).__name__}"
    try:
        signature = inspect.signature(application)
    except ValueError:
        return " ".join(ARGUMENTS)
    call = application if inspect.isroutine(application) else type(application).__call__
    awaited = inspect.iscoroutinefunction(call)
    interfaces = [name for name, count in ARGUMENTS.items() if accepts(signature, count)]
    if awaited and "wsgi" in interfaces:
        interfaces.remove("wsgi")
    kind = "a coroutine function" if awaited else "a callable"
    return " ".join(interfaces) or f"{kind} with {signature}, where WSGI has 2 arguments and ASGI 3"


def accepts(signature, count):
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


if __name__ == "__main__":
    module, _, name = sys.argv[1].partition(":")
    print(spoken(getattr(importlib.import_module(module), name)))
