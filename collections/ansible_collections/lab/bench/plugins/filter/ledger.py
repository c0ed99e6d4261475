"""Filters for the tuning ledger, from ledger.py and service_ledger.py in loadlab/tuning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadlab.tuning import ledger, service_ledger


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "tuning_originals": ledger.originals,
            "tuning_to_keep": lambda wanted, lines, kept: ledger.to_keep(
                wanted, ledger.read(lines), kept
            ),
            "tuning_with_restored": ledger.with_restored,
            "tuning_settable": lambda wanted, lines: ledger.settable(wanted, ledger.read(lines)),
            "tuning_to_set": lambda wanted, lines: ledger.to_set(wanted, ledger.read(lines)),
            "tuning_stale": ledger.stale,
            "tuning_ledger": lambda wanted, before, after, kept: ledger.entries(
                wanted, ledger.read(before), ledger.read(after), kept
            ),
            "tuning_left": ledger.left,
            "postgresql_ledger": service_ledger.postgresql_entries,
            "postgresql_stale": service_ledger.postgresql_stale,
            "postgresql_conf_dir": service_ledger.postgresql_conf_dir,
            "serving_ledger": service_ledger.serving_entries,
            "ledger_rows": lambda host, earlier: ledger.host_rows(
                host, earlier.get("hosts", {}).get(host["inventory_hostname"], [])
            ),
            "for_groups": ledger.for_groups,
            "ledger_not_taken": ledger.not_taken,
        }
