"""What a stage asks to be planned."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from loadlab.model import GivenOptions, Original
from loadlab.plan.option_specs import Specs


class Request(Struct, kw_only=True, frozen=True):
    """What a stage asks to be planned.

    - root: top directory of the lab
    - specs: option name -> its spec, from roles/run/meta/argument_specs.yml
    - given: option name -> value, from -e and the inventory; None or "" where it was not given
    - user: names that were given with -e
    - begin: True starts a new run unless run_id names one; False resumes run_id or results/latest
    - needs_framework: False for stages that measure nothing, which then plan no cells
    - needs_run: whether the run must exist
    - now: the time, for a new run's id
    - cross_check: whether each client has the generator of cross-checks
    - python: the server's Python version, None where it is not known yet
    - kind: "study", "lesson" or "ab" (variants) where one must have been given; "matrix" where
      candidates are compared, though the cores of the server may not be known yet
    - stage: of STAGES in planning/lessons/stages.py; "run" of everything that is no lesson
    - pairs: number of host pairs; clients: of each pair
    - host_kind: what the hosts are, in words
    - inventory_args: the options that select them, "" where none are needed
    - lab: the lab's revision, None where unknown
    - original: the run that the new one repeats, None where it repeats none
    """

    root: Path
    specs: Specs
    given: GivenOptions
    now: datetime.datetime
    user: Sequence[str] = ()
    begin: bool = True
    needs_framework: bool = True
    needs_run: bool = False
    cross_check: bool = False
    python: str | None = None
    kind: str | None = None
    stage: str = "run"
    pairs: int = 1
    clients: int = 1
    host_kind: str = ""
    inventory_args: str = ""
    lab: str | None = None
    original: Original | None = None
