"""Records for tests: recorded documents of a real run, with the fields that a test changes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from loadlab.core import documents
from loadlab.core.model import Calibration, Cell, Item, Load, Result, Summary

RUN = Path(__file__).parents[1] / "fixtures" / "documents"
NAME = "aiohttp-gunicorn-unix-http-index-production-lan-oha-1000rps-c64-6s"


@cache
def _result() -> Result:
    return documents.read(RUN / "cells" / NAME / "rep-1" / "result.json", Result)


def load(**changes: Any) -> Load:
    """Return a load of 1,000 requests/s for 6 s over 64 connections, with these changes."""
    return replace(_result().cell.load, **changes)


def cell(**changes: Any) -> Cell:
    """Return a cell, aiohttp behind nginx at /index, with these changes."""
    return replace(_result().cell, **changes)


def result(**changes: Any) -> Result:
    """Return the valid result of one repetition of cell(), with these changes."""
    return replace(_result(), **changes)


def item(**changes: Any) -> Item:
    """Return a plan's entry for cell(), with these changes."""
    built = Item(
        cell_id=NAME,
        purpose="measure",
        cell=cell(),
        stack="aiohttp-gunicorn-unix-http",
        expected_s=8.0,
    )
    return replace(built, **changes)


def summary() -> Summary:
    """Return the summary of a run with four cells."""
    return documents.read(RUN / "summary.json", Summary)


def calibration() -> Calibration:
    """Return the calibration of that run."""
    return documents.read(RUN / "calibration.json", Calibration)
