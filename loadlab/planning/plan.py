"""Plan a run: check the user's options and expand them into tracks.

Reads apps/*/app.yml, files/ and the run's own folder, writes nothing, and does not use Ansible.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadlab.core import documents
from loadlab.core.catalog import known, load_yaml, names, runs
from loadlab.core.errors import PlanError
from loadlab.core.formatting import plural
from loadlab.generators import split
from loadlab.hosts import identity
from loadlab.planning import (
    cells,
    experiments,
    inputs,
    load_options,
    options,
    placement,
    studies,
    user_options,
)
from loadlab.planning import claims as planning_claims
from loadlab.scheduling import dispatch, records, schedule
from loadlab.scheduling import experiments as scheduling_experiments
from loadlab.stacks.stacks import stack
from loadlab.tuning import ablation
from loadlab.tuning.profiles import tuning_profile


def done(folder: Path) -> int:
    """Return the highest n of a folder's rep-<n>; 0 where there is none."""
    numbers = (p.name.removeprefix("rep-") for p in folder.glob("rep-*"))
    return max((int(n) for n in numbers if n.isdecimal()), default=0)


def _cells_of(
    root: Path, values: Mapping[str, Any], python: str | None, entry: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """Return (stacks by id, contracts by endpoint, tracks) of one set of options.

    There is a stack for each backlog of the tuning profiles.
    """
    known("network", values["network"], names(root / "files" / "network", "*.yml"))
    experiments.refuse(values)
    options.refuse_wrk2(values)
    profiles = {name: tuning_profile(root, name) for name in values["tuning"]}
    backlogs = {name: options.backlog(values, name, found) for name, found in profiles.items()}
    chosen = stack(root, values, python)
    load_options.refuse(values)
    split.refuse(values)
    options.refuse_profile(values, chosen)
    wanted = cells.endpoints(root, values, chosen["app"])
    beside = entry.get("beside")
    if beside:
        known(f"endpoint of {values['framework']}", beside, chosen["app"]["endpoints"])
    planned = experiments.tracks(root, values, cells.cells(values, chosen, backlogs, wanted, entry))
    if values["profile"]:
        measured = [track for track in planned if track["cells"][0]["purpose"] == "measure"]
        planned += [cells.profiled(track) for track in measured]
    also = [beside] if beside and beside not in wanted else []
    contracts = load_yaml(root / "files" / "endpoints.yml")
    chosen["measured"] = [*wanted, *also]
    stacks = {
        item["stack"]: chosen | {"backlog": item["cell"]["backlog"]}
        for item in scheduling_experiments.items(planned)
    }
    return stacks, {**wanted, **{name: contracts[name] for name in also}}, planned


def plan(
    root: Path,
    specs: Mapping[str, Any],
    given: Mapping[str, Any],
    begin: bool,
    needs_framework: bool,
    now: datetime.datetime,
    python: str | None = None,
    kind: str | None = None,
    pairs: int = 1,
    clients: int = 1,
    made: str = "",
    reach: str = "",
    lab: str | None = None,
    needs_run: bool = False,
    user: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the plan of a run, the key `plan` of plan.json.

    Arguments:
    - specs: option name -> its spec, from roles/run/meta/argument_specs.yml
    - given: option name -> value, from -e and the inventory; None or "" where it was not given
    - begin: True starts a new run unless run_id names one; False resumes run_id or results/latest
    - needs_framework: False for stages that measure nothing, which then plan no cells
    - now: the time, for a new run's id
    - python: the server's Python version, None where it is not known yet
    - kind: "study" or "lesson" where one must have been given
    - pairs: number of host pairs; clients: of each pair
    - made: what the hosts are, in words; reach: the options that reach them, "" where none are
      needed
    - lab: the lab's revision; needs_run: whether the run must exist
    - user: names that were given with -e

    An existing run is resumed: its recorded options apply unless ``given`` says what to measure,
    and finished measurements are not repeated. Raises PlanError before anything is changed.

    Returned keys, what to measure:
    - given: name -> the value given, None where it was not; options: name -> the checked value (of
      a study: those of its first cell)
    - tracks: see loadlab/scheduling/dispatch.py, each with its pair
    - stacks: id -> stack() with backlog and measured (its endpoints); stack: the first of them, or
      None
    - endpoints: name -> contract; tunings and networks: name -> profile; generators: sorted names
    - study: None, or {kind, name, scale, description, claims, ablate, published, cells {name:
      [cell_id]}}
    - comparisons: [{by, base, head}]; twins: [[cell_id, cell_id of its twin]]
    - profile: whether py-spy is needed; tls: whether any load uses TLS
    - connections: the highest number of a load; calibrate: {rate, connections} of the calibration

    Returned keys, about the run:
    - run_id, run_dir; begun: the argument begin; made, reach: as given
    - go_on: the options that resume the run in any playbook
    - calibration_repetition: number of the next calibration
    - set_up: {stack, tuning, network} that the stages before the load apply; None where not known
    - measurements, most_measurements: the likely number and the upper bound, finished ones included
    - left: measurements left; load_seconds: seconds of load left, of the pair that has the most
    """
    user_options.refuse_empty(root, specs, given, user)
    run_id = _run_id(root, given, begin)
    _refuse_run(root, given, begin, needs_run, run_id, kind)
    run_dir = root / "results" / run_id if run_id else None
    kept = records.load(run_dir) if run_dir else {}
    if begin or needs_framework:
        given = _recorded(run_dir, given)
        if run_dir and kept:
            # Check the hosts first: on other hosts a later check could fail for a misleading
            # reason.
            _same_hosts(run_dir, made)
    study = studies.find(root, given, kind)
    words = {**(study["options"] if study else {}), **studies.filled(given)}
    if "default_generator" in words:
        # The inventory's default; the user's and the study's choices override it.
        options.convert("default_generator", words["default_generator"], specs["default_generator"])
        words = {"generator": words["default_generator"], **words}
    if clients > 1:
        words["clients"] = clients
    result: dict[str, Any] = {
        "given": {name: given.get(name) for name in specs},
        "stacks": {},
        "stack": None,
        "endpoints": {},
        "study": None,
        "comparisons": [],
        "twins": [],
    }
    tracks: list[Any] = []
    if study:
        tracks = _study(root, specs, words, study, python, result, user)
        values = result["options"]
    else:
        values = options.options(specs, words)
        if needs_framework or values["framework"]:
            result["stacks"], result["endpoints"], tracks = _cells_of(root, values, python, {})
        else:
            known("network", values["network"], names(root / "files" / "network", "*.yml"))
            experiments.refuse(values)
            options.refuse_wrk2(values)
        if tracks or "generator" in user:
            user_options.refuse_unused(user, given, "the run", [((), values["generator"])])
    planned = scheduling_experiments.items(tracks)
    result["options"] = values
    result["stack"] = next(iter(result["stacks"].values()), None)
    tunings = [item["cell"]["tuning"] for item in planned] or values["tuning"]
    networks = [item["cell"]["network"] for item in planned] or [values["network"]]
    result["tunings"] = {name: tuning_profile(root, name) for name in tunings}
    result["networks"] = {
        name: load_yaml(root / "files" / "network" / f"{name}.yml") for name in networks
    }
    result["generators"] = sorted(
        {item["cell"]["load"]["generator"] for item in planned} or {values["generator"]}
    )
    result["profile"] = any(item["purpose"] == "profile" for item in planned)
    result["tls"] = any(item["cell"]["load"].get("tls", False) for item in planned)
    if study is None or study["twins"]:
        # The cells of a search are not known yet.
        known_cells = [track for track in tracks if track["kind"] != "search"]
        result["comparisons"] = cells.comparisons(
            scheduling_experiments.items(known_cells),
            {name: profile["backlog"]["value"] for name, profile in result["tunings"].items()},
        )
        bases = {found["base"] for found in result["comparisons"]}
        if study and not bases and known_cells:
            bases = {known_cells[0]["cells"][0]["cell_id"]}
        twins = [
            cells.twin(track) for track in known_cells if track["cells"][0]["cell_id"] in bases
        ]
        result["twins"] = [
            [item["cell_id"].removesuffix("-twin"), item["cell_id"]]
            for item in scheduling_experiments.items(twins)
        ]
        tracks += twins
        planned += scheduling_experiments.items(twins)
    if run_id is None:
        named = study["name"] if study else values["framework"]
        run_id = "-".join([f"{now:%Y%m%d-%H%M%S}", *filter(None, [named])])
    run_dir = root / "results" / run_id
    if planned:
        _same_clients(run_dir, clients)
    inputs.define(root, result, planned, lab)
    tracks = dispatch.below(tracks, records.ceiling(run_dir))
    inputs.check(run_id, dispatch.known(tracks, kept), kept)
    result |= {
        "run_id": run_id,
        "begun": begin,
        "run_dir": str(run_dir),
        "made": made,
        "reach": reach,
        "go_on": f"-e run_id={run_id} {reach}".rstrip(),
        # One pair may have calibrated more often than the others, so take the highest number of
        # all.
        "calibration_repetition": max(map(done, run_dir.glob("calibration*/ceiling")), default=0)
        + 1,
        "tracks": _spread(result, tracks, pairs, run_dir),
        # The calibration offers the highest load of all that are asked for.
        "calibrate": {
            "rate": max(
                (rate for rate in values["rate"] if rate), default=specs["rate"]["default"][0]
            ),
            "connections": max(values["connections"]),
        },
        "connections": max((item["cell"]["load"]["connections"] for item in planned), default=0),
        # Set-up that the earlier stages apply. For a resumed run it is known only where all cells
        # have the same.
        "set_up": schedule.setup(planned[0])
        if planned and (begin or len({str(schedule.setup(item)) for item in planned}) == 1)
        else None,
    }
    idle = ablation.idle(result, records.ledgers(run_dir))
    going = {**result, "tracks": ablation.less(result["tracks"], idle)}
    ahead = schedule.progress(going, kept, None)
    each = [schedule.progress(going, kept, pair)["seconds_left"] for pair in range(pairs)]
    return {
        **result,
        "measurements": ahead["total"],
        "most_measurements": ahead["most"],
        "left": ahead["total"] - ahead["position"] + 1,
        "load_seconds": max(each),
    }


def _spread(
    result: dict[str, Any], planned: Sequence[Any], pairs: int, run_dir: Path
) -> list[dict[str, Any]]:
    """Return the planned tracks, each on its pair.

    Where there are twins, the first cell with a twin also gets one on every other pair, so that
    differences between pairs are part of its noise.
    """
    recorded = run_dir / "plan.json"
    before = documents.load(recorded)["plan"].get("tracks", []) if recorded.exists() else []
    earlier = {item["cell_id"]: track["pair"] for track in before for item in track["cells"]}
    together = [[found["base"], found["head"]] for found in result["comparisons"]]
    together += result["twins"]
    study = result["study"]
    together += planning_claims.compared(study["claims"], study["cells"]) if study else []
    tracks = placement.assign(
        planned,
        together,
        result["options"]["repetitions"],
        pairs,
        earlier,
    )
    if result["twins"]:
        base = result["twins"][0][0]
        own = next(track for track in tracks if track["cells"][0]["cell_id"] == base)
        for pair in range(pairs):
            if pair != own["pair"]:
                other = {**cells.twin(own, f"-twin-{pair + 1}"), "pair": pair}
                tracks.append(other)
                result["twins"].append([base, other["cells"][0]["cell_id"]])
    return tracks


def _same_clients(run_dir: Path, clients: int) -> None:
    """Raise PlanError where the run started with another number of clients to a server."""
    recorded = run_dir / "plan.json"
    if not recorded.exists():
        return
    before = documents.load(recorded)["plan"]["options"].get("clients", 1)
    if before != clients:
        raise PlanError(
            f"run_id: '{run_dir.name}' was begun with {plural(before, 'client')} to a server, and "
            f"the inventory has {clients} now. Results of both are not mixed: give the inventory "
            "of then with -i, or another -e run_id=<name>."
        )


def _same_hosts(run_dir: Path, made: str) -> None:
    """Raise PlanError where the run has measured on another kind of hosts than ``made``.

    loadlab/hosts/identity.py compares the hosts themselves, once they have been probed.
    """
    recorded = run_dir / "plan.json"
    begun = documents.load(recorded) if recorded.exists() else {"plan": {}}
    before = begun["plan"].get("made", made)
    if before != made:
        raise PlanError(
            f"run_id: '{run_dir.name}' was begun on {before}, and would go on with {made}. "
            f"{identity.remedy(begun.get('reach', ''))}"
        )


def _run_id(root: Path, given: Mapping[str, Any], begin: bool) -> str | None:
    """Return the run named, or the latest unless a new one begins; None for a new run."""
    named = studies.filled(given).get("run_id")
    if named is not None:
        return str(options.convert("run_id", named, {"type": "str"}))
    latest = root / "results" / "latest"
    return latest.resolve().name if not begin and latest.exists() else None


def _refuse_run(
    root: Path,
    given: Mapping[str, Any],
    begin: bool,
    needs_run: bool,
    run_id: str | None,
    kind: str | None,
) -> None:
    """Raise PlanError where the run does not exist and nothing given starts one.

    A run is started by what to measure or, in a stage that measures nothing, by what to tune.
    """
    results = root / "results"
    if run_id is not None and (results / run_id / "plan.json").exists():
        return
    words = studies.filled(given)
    begins = ["framework", *studies.FOLDERS, *([] if begin else ["tuning", "network"])]
    how = f"{'' if begin else 'lab.yml and '}-e {kind or 'framework'}=<name>"
    if "run_id" in words and (needs_run or not any(name in words for name in begins)):
        raise PlanError(
            f"run_id: '{run_id}' is not in results/. {runs(results)} Give another -e run_id=, or "
            f"begin this one with {how}."
        )
    if needs_run:
        raise PlanError(
            f"run_id: none was given, and results/latest names no run. {runs(results)} Give one "
            f"with -e run_id=<run_id>, or begin one with {how}."
        )


def _recorded(run_dir: Path | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options given, on top of those of the run unless they say what to measure."""
    if run_dir is None or not (run_dir / "plan.json").exists():
        return dict(given)
    words = studies.filled(given)
    if any(name in words for name in ("framework", *studies.FOLDERS)):
        return dict(given)
    earlier = studies.filled(documents.load(run_dir / "plan.json")["plan"]["given"])
    return {**given, **earlier, **words}


def _study(
    root: Path,
    specs: Mapping[str, Any],
    words: Mapping[str, Any],
    study: Mapping[str, Any],
    python: str | None,
    result: dict[str, Any],
    user: Sequence[str],
) -> list[Any]:
    """Plan a study's cells into ``result``; return their tracks, each cell once."""
    entries: list[tuple[Any, str]] = []
    planned: dict[str, Any] = {}
    named: dict[str, list[str]] = {}
    meant: dict[str, list[Any]] = {}
    tracks: list[Any] = []
    for entry in study["cells"]:
        try:
            for name in {**study["options"], **entry["options"]}:
                known("option", name, sorted(specs))
            wanted = {**words, **entry["options"]}
            share = wanted["rate"] if isinstance(wanted.get("rate"), Mapping) else None
            values = options.options(specs, wanted if share is None else {**wanted, "rate": None})
            if share is not None:
                values |= {"rate": [None], "share": experiments.share(share)}
            stacks, contracts, found = _cells_of(root, values, python, entry)
        except PlanError as problem:
            raise PlanError(
                f"{study['kind']} {study['name']}, cell {entry['name']}: {problem}"
            ) from None
        for key, chosen in stacks.items():
            same = result["stacks"].setdefault(key, chosen)
            same["measured"] = list(dict.fromkeys([*same["measured"], *chosen["measured"]]))
        result["endpoints"] |= contracts
        for item in scheduling_experiments.items(found):
            if planned.setdefault(item["cell_id"], item) != item:
                raise PlanError(
                    f"{study['kind']} {study['name']}, cell {entry['name']}: it differs from "
                    "another in `about` alone. Give both the same."
                )
        tracks += [track for track in found if track not in tracks]
        # A py-spy profile belongs to a named cell and has no name of its own.
        cells_of = [track for track in found if track["cells"][0]["purpose"] != "profile"]
        named[entry["name"]] = [item["cell_id"] for item in scheduling_experiments.items(cells_of)]
        meant[entry["name"]] = cells_of
        # The stages before the load set up the first cell.
        result.setdefault("options", values)
        entries.append((entry["options"], values["generator"]))
    user_options.refuse_unused(user, words, f"the {study['kind']} {study['name']}", entries)
    try:
        planning_claims.check(study["claims"], meant)
        saturations = _saturations(tracks, named, planned)
    except ValueError as problem:
        raise PlanError(f"{study['kind']} {study['name']}: {problem}") from None
    result["study"] = {
        **{key: study[key] for key in ("kind", "name", "scale", "description", "claims", "ablate")},
        "published": study["published"],
        "cells": named,
    }
    return [*tracks, *saturations]


def _saturations(
    tracks: Sequence[dict[str, Any]],
    named: Mapping[str, Sequence[str]],
    planned: Mapping[str, Any],
) -> list[Any]:
    """Return the tracks of the saturations that scaled rates refer to, and set `of` in those
    tracks.

    Cells of one stack, endpoint and number of connections share a saturation.
    """
    found: dict[str, Any] = {}
    for track in tracks:
        ids = []
        for name in track.get("names", []):
            known("cell that a rate is a share of", name, list(named))
            item = planned[named[name][0]]
            if len(named[name]) > 1 or item["cell"]["load"]["mode"] == "batch":
                raise PlanError(
                    f"rate: of: '{name}' is no one cell that a closed loop can saturate: it stands "
                    f"for {', '.join(named[name])}. Name cells of one load generator and level."
                )
            load = cells.closed_loop(item["cell"]["load"])
            made = experiments.saturation(item, cells.slug({**item["cell"], "load": load}), load)
            ids.append(made["cells"][0]["cell_id"])
            found.setdefault(ids[-1], made)
        track |= {"of": ids} if ids else {}
    return list(found.values())
