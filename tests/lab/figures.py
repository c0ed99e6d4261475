"""Figures that others' load on this machine may disturb are measured once more, and then fail."""

import contextlib
import functools
import inspect
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Generic, TypeVar, cast

import pytest

RESULTS = Path(__file__).parents[2] / "results"
Found = TypeVar("Found")


class DisturbedError(AssertionError):
    """A measured figure is not what it should be."""


@contextlib.contextmanager
def figures() -> Iterator[None]:
    """Assert measured figures, which others' load on this machine may have disturbed.

    A test that fails in here is measured once more, and then fails; see ``pytest_pyfunc_call``.
    """
    try:
        yield
    except AssertionError as failed:
        raise DisturbedError(str(failed)) from failed


class Measured(Generic[Found]):
    """What several tests look at, measured when the first of them asks for it."""

    def __init__(self, measure: Callable[[], Found]) -> None:
        self._measure = measure

    @functools.cached_property
    def _outcome(self) -> tuple[Found, None] | tuple[None, BaseException]:
        try:
            return self._measure(), None
        # What could not be measured fails every test that looks at it, and is not tried for each.
        except (Exception, pytest.fail.Exception) as failed:
            return None, failed

    @property
    def found(self) -> Found:
        found, failed = self._outcome
        if failed is not None:
            raise failed
        return cast(Found, found)

    def again(self) -> None:
        """Measure anew when it is asked for next."""
        del self._outcome


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Measure once more what ``figures`` found disturbed; everything else fails at once."""
    try:
        return (yield)
    except DisturbedError as failed:
        words = f"measured once more: {str(failed).strip().splitlines()[0]}"
        pyfuncitem.warn(pytest.PytestWarning(words))
    for name, value in pyfuncitem.funcargs.items():
        if isinstance(value, Measured):
            value.again()
        if name == "run_id":
            shutil.rmtree(RESULTS / str(value), ignore_errors=True)
    names = inspect.signature(pyfuncitem.obj).parameters
    pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    return True
