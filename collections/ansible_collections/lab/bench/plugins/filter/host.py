"""Filters about hosts, from loadlab/hosts and core/fingerprint.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.lab.bench.plugins.plugin_utils.records import decode, plain

from loadlab.hosts import cloud_init, hardware, host_in_use, identity, probe
from loadlab.model import HostDescription
from loadlab.run import fingerprint

# What a login needs -> the rest of the name of Ansible's variable.
_LOGIN = {
    "address": "host",
    "user": "user",
    "port": "port",
    "key": "ssh_private_key_file",
    "arguments": "ssh_common_args",
}


def _host_in_use(
    text: str, use: Mapping[str, object], tunings: Mapping[str, Mapping[str, Any]]
) -> dict[str, object]:
    """Return whether and how the lab uses a host; see loadlab/hosts/host_in_use.py.

    ``text``: from in_use.sh; ``use``: the fields of Use; ``tunings``: as in the plan.
    """
    settings = {
        name: {one["name"]: str(one["value"]) for one in profile.get("postgresql", [])}
        for name, profile in tunings.items()
    }
    host = host_in_use.parse(plain(text))
    demanded = decode({**use, "postgresql": settings}, host_in_use.Use)
    return {
        "refusal": host_in_use.refusal(host, demanded),
        "taken": host_in_use.taken(host, demanded),
        "owned": host_in_use.owned(host, demanded),
        "noted": host.owned,
    }


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "parse_probe": lambda text: msgspec.to_builtins(probe.parse(text)),
            "parse_hardware": lambda text: msgspec.to_builtins(hardware.parse(text)),
            "host_identity": lambda host: msgspec.to_builtins(
                identity.identity(decode(host, probe.HostProbe))
            ),
            "fetched_sources": lambda variables: (
                None
                if boolean(variables.get("hosts_online", True))
                else variables.get("package_sources", [])
            ),
            "login": lambda variables: {
                name: str(variables.get(f"ansible_{variable}", ""))
                for name, variable in _LOGIN.items()
            },
            "hardware_warnings": lambda hosts: hardware.warnings(
                decode(hosts, dict[str, HostDescription])
            ),
            "first_boot": lambda text: msgspec.to_builtins(cloud_init.first_boot(plain(text))),
            "host_in_use": _host_in_use,
            "lab_paths": host_in_use.paths,
            "exporter_address": lambda address: f"{address}:{host_in_use.EXPORTER_PORT}",
            "fingerprint": fingerprint.fingerprint,
            "of_roles": lambda root, names: fingerprint.of_roles(Path(root), names),
            "of_play": lambda root, *play: fingerprint.of_play(Path(root), *play),
        }
