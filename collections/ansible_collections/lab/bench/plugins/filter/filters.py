"""The lab's filters: functions of loadlab by the names that templates have for them."""

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import get_type_hints

import msgspec
from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.lab.bench.plugins.plugin_utils.records import convert

from loadlab.generators import registry
from loadlab.generators.load import calibration, load_run, proof, split
from loadlab.hosts import (
    cloud_init,
    ec2,
    ec2_access,
    ec2_launch,
    ec2_price,
    hardware,
    host_in_use,
    identity,
    local_lab,
    pairs,
    probe,
    qdisc,
)
from loadlab.hosts.probe import HostProbe
from loadlab.model import kinds_of
from loadlab.plan import offered_load
from loadlab.report.words import failures, planned_words
from loadlab.report.words import generators_words as generator_words
from loadlab.results import build_manifest
from loadlab.run import documents, fingerprint
from loadlab.run.run_dir import CalibrationDir, RepetitionDir, RunDir
from loadlab.stacks import application, contract, places, reverse_proxies, servers, visit_requests
from loadlab.telemetry import iperf3
from loadlab.tuning import sizing
from loadlab.tuning.profiles import TuningProfile

# What a login needs -> the rest of the name of Ansible's variable.
_LOGIN = {
    "address": "host",
    "user": "user",
    "port": "port",
    "key": "ssh_private_key_file",
    "arguments": "ssh_common_args",
}


def path_in(folder: Callable[[Path], object]) -> Callable[..., str | list[object]]:
    """Return a filter for the paths in such a folder, by the name of an attribute or method of its
    class and the arguments."""

    def path(place: Path, name: str, *args: str | int) -> str | list[object]:
        attribute = getattr(folder(place), name)
        value = attribute(*args) if callable(attribute) else attribute
        return value if isinstance(value, list) else str(getattr(value, "path", value))

    return path


run_path = path_in(RunDir)


def document(path: Path) -> dict[str, object]:
    """Return a JSON document, empty where there is none."""
    return documents.load(path) if path.exists() else {}


def use_of_host(
    text: str, use: dict[str, object], tunings: dict[str, TuningProfile]
) -> dict[str, object]:
    """Return whether and how the lab uses a host; see loadlab/hosts/host_in_use.py.

    ``text``: from in_use.sh; ``use``: the fields of Use; ``tunings``: as in the plan.
    """
    settings = {
        name: {entry.name: str(entry.value) for entry in profile.postgresql}
        for name, profile in tunings.items()
    }
    host = host_in_use.parse(text)
    demanded = convert({**use, "postgresql": settings}, host_in_use.Use)
    return {
        "refusal": host_in_use.refusal(host, demanded),
        "taken": host_in_use.taken(host, demanded),
        "owned": host_in_use.owned(host, demanded),
        "noted": host.owned,
        "deployed": host.deployed,
    }


def load_run_host(variables: Mapping[str, object]) -> dict[str, object]:
    """Return what a measurement depends on, from the variables of a host that was checked."""
    host = convert(variables["host_check_host"], HostProbe)
    programs = variables.get("load_tools_programs", {})
    reported = convert(programs, dict[str, proof.InstalledProgram])
    return {
        "cpus": host.cpus,
        "interface": host.interface,
        "emulated": hardware.emulated(host.manifest),
        "exporter": convert(variables["host_check_exporter"], dict[str, str])["url"],
        "snaps": [name for name, installed in reported.items() if installed.program.snap_revision],
    }


def fetched_sources(variables: Mapping[str, object]) -> object:
    """Return the servers that packages of a host without internet come from, None with internet."""
    online = boolean(variables.get("hosts_online", True))
    return None if online else variables.get("package_sources", [])


def login(variables: Mapping[str, object]) -> dict[str, str]:
    """Return how a host is logged in on, from its variables."""
    return {
        name: str(variables.get(f"ansible_{variable}", "")) for name, variable in _LOGIN.items()
    }


def shares(load: dict[str, int | float], names: list[str]) -> list[split.Share]:
    """Return each client's share of a load {rate, connections}: [{name, rate, connections}]."""
    return split.shares(load["rate"], int(load["connections"]), names)


def proof_refusal(text: str, name: str, host: str) -> str:
    """Return why a generator did not prove itself; empty where it did."""
    return generator_words.proof_refusal(host, name, proof.outcome(text))


def failure(result: dict[str, object], task: dict[str, object], python: str = "") -> str:
    """Return why a task failed and what to do; ``python``: the Python that packages are for."""
    return failures.reason(failures.failure("", task, result), python)


# Each argument becomes what its annotation says, and the answer plain values.
FILTERS: dict[str, Callable[..., object]] = {
    "ablation_power": planned_words.ablation_power,
    "announced": planned_words.line,
    "aws_budget_refusal": ec2_price.budget_refusal,
    "aws_estimate": ec2_price.estimate,
    "aws_image": ec2_launch.image,
    "aws_images": ec2_launch.images,
    "aws_lifetime_s": ec2_price.lifetime_s,
    "aws_named_sources": ec2_access.named_sources,
    "aws_needed_s": ec2_price.needed_s,
    "aws_no_image": ec2_launch.no_image,
    "aws_over_quota": ec2.over_quota,
    "aws_own_source": ec2_access.own_source,
    "aws_remarks": ec2.remarks,
    "aws_shut_out": ec2_access.shut_out,
    "aws_unfit": ec2.unfit,
    "calibrating": registry.calibrating,
    "calibration_path": path_in(CalibrationDir),
    "calibration_plan": calibration.plan,
    "command_line": build_manifest.command_line,
    "console": ec2.console,
    "contract_text": lambda name: contract.TEXTS[name]().decode("ascii"),
    "directory_refusal": local_lab.directory_refusal,
    "document": document,
    "exporter_address": lambda address: f"{address}:{host_in_use.EXPORTER_PORT}",
    "failure": failure,
    "fingerprint": fingerprint.fingerprint,
    "first_boot": cloud_init.first_boot,
    "forward_refusal": local_lab.forward_refusal,
    "generators": registry.described,
    "hardware_warnings": hardware.warnings,
    "host_identity": identity.identity,
    "host_in_use": use_of_host,
    "iperf3_to_repeat": iperf3.to_repeat,
    "lab_paths": host_in_use.paths,
    "kinds": lambda endpoint: [*kinds_of(endpoint)],
    "lanes": offered_load.lanes,
    "load_run_failure": load_run.failure,
    "lock_without": servers.without,
    "machine_memory": local_lab.machine_memory,
    "machines_refusal": local_lab.machines_refusal,
    "of_play": fingerprint.of_play,
    "of_roles": fingerprint.of_roles,
    "open_files": sizing.open_files,
    "pairs": pairs.of_inventory,
    "pairs_refusal": pairs.refusal,
    "mix": offered_load.mix,
    "parse_hardware": hardware.parse,
    "parse_probe": probe.parse,
    "parse_programs": proof.parse,
    "places": places.arrangements,
    "pools_refusal": sizing.pools_refusal,
    "ports_taken": host_in_use.ports,
    "program_to_prove": lambda program: "{name}={program}={snap}".format(**program),
    "proof_refusal": proof_refusal,
    "proofs_due": proof.missing_proofs,
    "proxies_in_use": host_in_use.proxies_in_use,
    "proxies_running": reverse_proxies.running,
    "proxy_files": reverse_proxies.proxy_files,
    "proxy_settings": sizing.proxy_settings,
    "qdisc_commands": qdisc.commands,
    "qdisc_differences": qdisc.differences,
    "qdisc_obstacle": qdisc.obstacle,
    "relay_ms": qdisc.relay_ms,
    "repetition_path": path_in(RepetitionDir),
    "reverse_proxies": reverse_proxies.reverse_proxies,
    "reverse_proxy": reverse_proxies.reverse_proxy,
    "rsync_excludes": application.rsync_excludes,
    "run_path": run_path,
    "served": reverse_proxies.served,
    "server_command": servers.command,
    "shares": shares,
    "sources_refusal": failures.sources_refusal,
    "subnet_refusal": local_lab.subnet_refusal,
    "verification_requests": visit_requests.requests,
}
# These read some of a host's variables, which Ansible templates when they are read.
OF_VARIABLES: dict[str, Callable[..., object]] = {
    "fetched_sources": fetched_sources,
    "load_run_host": load_run_host,
    "login": login,
}


def adapted(function: Callable[..., object]) -> Callable[..., object]:
    """Return a function of Ansible's values: see FILTERS. It raises ValueError with the path and
    the reason where a value does not fit."""

    @functools.cache
    def types() -> tuple[inspect.Signature, dict[str, type]]:
        return inspect.signature(function), get_type_hints(function)

    @functools.wraps(function)
    def call(*values: object, **options: object) -> object:
        signature, hints = types()
        bound = signature.bind(*values, **options)
        for name, value in bound.arguments.items():
            is_variadic = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            bound.arguments[name] = convert(
                value, object if is_variadic else hints.get(name, object)
            )
        return msgspec.to_builtins(function(*bound.args, **bound.kwargs))

    return call


class FilterModule:
    def filters(self) -> dict[str, Callable[..., object]]:
        return {**{name: adapted(function) for name, function in FILTERS.items()}, **OF_VARIABLES}
