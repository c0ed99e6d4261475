"""Filters about load generators, from loadlab/generators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.records import decode, plain

from loadlab.generators import calibration, load_run, proof, registry, split
from loadlab.report.words import generators_words as words


def shares(load: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return each client's share of a load {rate, connections}: [{name, rate, connections}]."""
    rate, connections = plain([load["rate"], load["connections"]])
    return msgspec.to_builtins(split.shares(rate, connections, plain(list(names))))


def load_run_host(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a measurement depends on, from the variables of a host that was checked."""
    host = variables["host_check_host"]
    exporter = variables["host_check_exporter"]["url"]
    programs = variables.get("load_tools_programs", {})
    snaps = [name for name, found in programs.items() if found["program"].get("snap_revision")]
    return {
        "cpus": host["cpus"],
        "interface": host["interface"],
        "exporter": exporter,
        "snaps": snaps,
    }


def parse_programs(text: str) -> Any:
    """Return the generators' executables that a client reported, by name."""
    return msgspec.to_builtins(proof.parse(text))


def proofs_due(programs: Mapping[str, Any]) -> Any:
    """Return the proofs that are due: [{name, sha256, command}]."""
    return msgspec.to_builtins(
        proof.missing_proofs(decode(programs, dict[str, proof.InstalledProgram]))
    )


def proof_refusal(text: str, name: str, host: str) -> str:
    """Return why a generator did not prove itself; empty where it did."""
    return words.proof_refusal(host, name, proof.outcome(text))


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
            "asked_program": lambda one: f"{one['name']}={one['program']}={one['snap']}",
            "parse_programs": parse_programs,
            "proofs_due": proofs_due,
            "proof_refusal": proof_refusal,
        }
