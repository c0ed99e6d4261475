"""Filters for values that depend on the host, from loadlab/tuning/sizing.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.records import decode
from msgspec import to_builtins

from loadlab.hosts.probe import HostProbe
from loadlab.tuning import sizing
from loadlab.tuning.profiles import HostSetting, ServiceSetting, TuningProfile
from loadlab.tuning.sizing import PooledStack, Sizes


def sizes(host: object, hosts: Iterable[object], stacks: object, root: str) -> object:
    """Return the sizes of a host; ``stacks`` as in the plan, ``root``: the lab's folder."""
    return to_builtins(
        sizing.sizes(
            decode(host, HostProbe),
            [decode(each, HostProbe) for each in hosts],
            decode(stacks, list[PooledStack]),
            sizing.largest_pool(Path(root)),
        )
    )


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "sizes": sizes,
            "host_settings": lambda profile, groups, size: to_builtins(
                sizing.host_settings(decode(profile, TuningProfile), groups, decode(size, Sizes))
            ),
            "postgresql_settings": lambda profile, size: to_builtins(
                sizing.postgresql_settings(decode(profile, TuningProfile), decode(size, Sizes))
            ),
            "pools_refusal": lambda stack, *asked: sizing.pools_refusal(
                decode(stack, PooledStack), *asked
            ),
            "open_files": lambda machine, connections: to_builtins(
                sizing.open_files(decode(machine, list[HostSetting]), connections)
            ),
            "nginx_for": lambda settings, connections: to_builtins(
                sizing.nginx(decode(settings, list[ServiceSetting]), connections)
            ),
        }
