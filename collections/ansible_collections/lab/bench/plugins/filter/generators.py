"""Filters about load generators, from loadlab/generators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.records import plain

from loadlab.generators import calibration, load_run, registry, split


def shares(load: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return each client's share of a load {rate, connections}: [{name, rate, connections}]."""
    rate, connections = plain([load["rate"], load["connections"]])
    return msgspec.to_builtins(split.shares(rate, connections, plain(list(names))))


def load_run_host(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a measurement depends on, from the variables of a host that was checked."""
    host = variables["host_check_host"]
    exporter = variables["host_check_exporter"]["url"]
    return {"cpus": host["cpus"], "interface": host["interface"], "exporter": exporter}


def calibration_plan(*args: Any, **options: Any) -> Any:
    """Return loadlab/generators/calibration.py's plan() as plain values."""
    return msgspec.to_builtins(calibration.plan(*plain(args), **plain(options)))


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "generators": registry.described,
            "calibrating": registry.calibrating,
            "shares": shares,
            "load_run_host": load_run_host,
            "load_run_failure": load_run.failure,
            "calibration_plan": calibration_plan,
        }
