"""Prints what an application speaks: wsgi, asgi, or what it is. Argument: module:callable."""

import importlib
import inspect
import sys


def spoken(application):
    if not callable(application):
        return f"no callable but of the type {type(application).__name__}"
    call = application if inspect.isroutine(application) else type(application).__call__
    if inspect.iscoroutinefunction(call):
        return "asgi"
    try:
        parameters = inspect.signature(application).parameters.values()
    except ValueError:
        return "a callable whose parameters cannot be told"
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = sum(one.kind in kinds and one.default is one.empty for one in parameters)
    if needed in (2, 3):
        return "wsgi" if needed == 2 else "asgi"
    return f"a callable of {needed} arguments, where WSGI has 2 and ASGI 3"


if __name__ == "__main__":
    module, _, name = sys.argv[1].partition(":")
    print(spoken(getattr(importlib.import_module(module), name)))
