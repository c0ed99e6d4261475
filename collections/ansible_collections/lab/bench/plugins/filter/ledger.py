"""Filters for the tuning ledger; all they do stands in module_utils/ledger.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import ledger


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "sysctl_path": ledger.path,
            "sysctl_read": ledger.read,
            "sysctl_originals": ledger.originals,
            "sysctl_to_keep": lambda wanted, lines, kept: ledger.to_keep(
                wanted, ledger.read(lines), kept
            ),
            "sysctl_with_restored": ledger.with_restored,
            "sysctl_settable": lambda wanted, lines: ledger.settable(wanted, ledger.read(lines)),
            "sysctl_ledger": lambda wanted, before, after: ledger.entries(
                wanted, ledger.read(before), ledger.read(after)
            ),
            "postgresql_ledger": ledger.postgresql_entries,
            "postgresql_conf_dir": ledger.postgresql_conf_dir,
            "ledger_rows": lambda host, earlier: ledger.carry(
                host.get("kernel_tuning_ledger", []) + host.get("postgresql_ledger", []),
                earlier.get("hosts", {}).get(host["inventory_hostname"], []),
            ),
            "for_groups": ledger.for_groups,
            "ledger_not_taken": ledger.not_taken,
        }
