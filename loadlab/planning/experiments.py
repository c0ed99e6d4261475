"""Turn cells into tracks: sweeps over rates or connections, searches, and scaled rates.

Combinations that cannot be measured are refused with PlanError.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadlab.core.catalog import load_yaml
from loadlab.core.errors import PlanError
from loadlab.core.formatting import plain
from loadlab.generators.registry import CLIENTS, CLOSED_LOOP
from loadlab.scheduling import dispatch, search

LEVELS = ("rate", "connections")
SATURATION = "-saturation"


def refuse(values: Mapping[str, Any]) -> None:
    """Raise PlanError where rate, connections and slo of the checked options cannot be combined."""
    generator = values["generator"]
    several = [name for name in LEVELS if len(values[name]) > 1]
    if values["rate"] == [None] and (several or values["slo"]):
        raise PlanError(
            "rate: a share of a saturation is one rate, with one value of connections and without "
            "slo. Leave the others out, or give a number."
        )
    if len(several) > 1:
        raise PlanError(
            f"rate and connections both have several values: {_list(values['rate'])} and "
            f"{_list(values['connections'])}. A sweep goes over one of them: give one value with "
            "-e rate= or -e connections=."
        )
    for name in several:
        if generator in CLIENTS or (generator == CLOSED_LOOP and name == "rate"):
            why = "makes a number of requests" if generator in CLIENTS else "has no rate"
            raise PlanError(
                f"{name}: {_list(values[name])} with generator={generator}, which {why} and is not "
                f"swept over it. Give one value with -e {name}=, or -e generator=oha."
            )
    if values["slo"] is None:
        return
    if generator in (CLOSED_LOOP, *CLIENTS):
        why = "makes a number of requests" if generator in CLIENTS else "is a closed loop"
        raise PlanError(
            f"slo: it is for a rate, and generator={generator} {why}. Give a constant-rate "
            "generator with -e generator=oha, or leave slo out."
        )
    for name in several:
        raise PlanError(
            f"{name}: {_list(values[name])} with slo, which searches the rate at one number of "
            f"connections by itself. Give one value with -e {name}=; the search starts at rate."
        )
    if values["rate"][0] < search.LOWEST:
        raise PlanError(
            f"rate: {plain(values['rate'][0])} is below {plain(search.LOWEST)}, the lowest "
            "that a search for slo tries. Give a higher one with -e rate=, where it starts."
        )


def _list(numbers: Sequence[float]) -> str:
    return ",".join(map(plain, numbers))


def share(value: Any) -> dict[str, Any]:
    """Return a study's `rate: {share, of}`, checked: {share: above 0 to 2, of: [cell name]}.

    Raises PlanError for another form.
    """
    if set(value) != {"share", "of"} or not isinstance(value["of"], list) or not value["of"]:
        raise PlanError(
            f"rate: {dict(value)} is no share of a saturation. Give share, a fraction, and of, a "
            "list of the study's cells."
        )
    part = value["share"]
    if isinstance(part, bool) or not isinstance(part, int | float) or not 0 < part <= 2:
        raise PlanError(f"rate: share: '{part}' is out of range. Give a fraction above 0, up to 2.")
    return {"share": part, "of": [str(name) for name in value["of"]]}


def share_slug(shared: Mapping[str, Any]) -> str:
    """Return the part of a cell's id that replaces a rate which is not known yet."""
    digest = hashlib.sha256("\0".join(sorted(shared["of"])).encode()).hexdigest()
    return f"{plain(100 * shared['share'])}pct{digest[:6]}"


def tracks(root: Path, values: Mapping[str, Any], planned: Sequence[Any]) -> list[Any]:
    """Return the tracks of the cells of one set of options, in order.

    loadlab/scheduling/dispatch.py describes tracks. A scaled track has only the study's names of
    the cells it refers to; its `of` is filled in later.
    """
    whole = values["generator"] == "wrk2"
    made = []
    for _, group in itertools.groupby(planned, _alike):
        items = list(group)
        first, track = items[0], dispatch.fixed(items[0])
        load = first["cell"]["load"]
        if first["purpose"] != "measure":
            pass
        elif values["slo"] is not None:
            sent_min = _rule(root, "rate_min")["rate_min"]
            rule = _rule(root, "apart_max", "lower_steps_max")
            track |= {"kind": "search", "rule": rule, "whole": whole, "ceiling": None}
            # The item carries what is needed to judge a measurement of it.
            track |= {"cells": [{**first, "slo": values["slo"], "sent_min": sent_min}]}
        elif "share" in load:
            track |= {"kind": "scaled", "whole": whole, "share": load["share"]}
            track |= {"names": load["of"], "of": []}
        elif len(items) > 1:
            by = next(name for name in LEVELS if len(values[name]) > 1)
            rule = _rule(root, "growth_min", "server_cpu_full")
            track |= {"kind": "sweep", "cells": items, "by": by, "rule": rule}
        made.append(track)
    return made


def _rule(root: Path, *names: str) -> dict[str, Any]:
    """Return values of files/methods.yml and files/verdict.yml, for the plan to record."""
    found = {**load_yaml(root / "files/methods.yml"), **load_yaml(root / "files/verdict.yml")}
    return {name: found[name] for name in names}


def _alike(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the levels of a sweep have in common."""
    cell = item["cell"]
    return item["purpose"], item["stack"], cell["endpoint"], cell["tuning"], cell["network"]


def saturation(item: Mapping[str, Any], cell_id: str, load: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fixed track that finds a cell's limit.

    ``load``: its closed loop. ``cell_id``: that of the cell with this load.
    """
    plainly = {key: value for key, value in item["cell"].items() if key != "about"}
    return dispatch.fixed(
        {
            **item,
            "cell_id": cell_id + SATURATION,
            "purpose": "saturation",
            "cell": {**plainly, "load": load},
            "expected_s": float(load["duration_s"] + load["warmup_s"]),
        }
    )
