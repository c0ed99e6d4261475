"""Filters about hosts, from loadlab/hosts and core/fingerprint.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.lab.bench.plugins.plugin_utils.records import decode, plain

from loadlab.core import fingerprint
from loadlab.core.model import HostDescription
from loadlab.hosts import cloud_init, hardware, identity, probe

# What a login needs -> the rest of the name of Ansible's variable.
_LOGIN = {
    "address": "host",
    "user": "user",
    "port": "port",
    "key": "ssh_private_key_file",
    "arguments": "ssh_common_args",
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
            "fingerprint": fingerprint.fingerprint,
            "of_roles": lambda root, names: fingerprint.of_roles(Path(root), names),
            "of_play": lambda root, *play: fingerprint.of_play(Path(root), *play),
        }
