"""Filters for the tuning ledger, from ledger, host_state and service_ledger in loadlab/tuning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.records import decode
from msgspec import to_builtins

from loadlab.model import LedgerRow, TuningLedger
from loadlab.tuning import host_state, ledger, service_ledger
from loadlab.tuning.host_state import HostState, Paths
from loadlab.tuning.ledger import HostLedgers, RequestedSetting
from loadlab.tuning.profiles import ServiceSetting


def state(
    settings: object,
    lines: list[str],
    paths: object,
    granted: int,
    earlier: object = None,
) -> object:
    """Return what a profile's settings ask of a host, from what it printed."""
    return to_builtins(
        host_state.decide(
            decode(settings, list[RequestedSetting]),
            lines,
            decode(paths, Paths),
            granted,
            decode(earlier, HostState) if earlier else None,
        )
    )


def rows(settings: object, found: object, lines: list[str]) -> object:
    """Return the ledger rows of a host, from what it printed after the change."""
    return to_builtins(
        host_state.rows(decode(settings, list[RequestedSetting]), decode(found, HostState), lines)
    )


def document(
    hosts: Iterable[Mapping[str, object]], profile: str, written: Mapping[str, object]
) -> object:
    """Return tuning.json.

    ``hosts``: the variables of each host. ``written``: the document that this run has, empty where
    there is none.
    """
    earlier = decode(written, TuningLedger) if written else None
    recorded = earlier.hosts if earlier and earlier.profile == profile else {}
    found = {}
    for host in hosts:
        name = str(host["inventory_hostname"])
        facts = {key: host[key] for key in HostLedgers.__struct_fields__ if key in host}
        found[name] = ledger.host_rows(decode(facts, HostLedgers), recorded.get(name, []))
    return to_builtins(TuningLedger(profile=str(profile), hosts=found))


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "tuning_state": state,
            "tuning_rows": rows,
            "tuning_unrestored": lambda restored, originals: ledger.unrestored(
                decode(restored, list[LedgerRow]), originals
            ),
            "tuning_document": document,
            "postgresql_rows": lambda settings, before, after: to_builtins(
                service_ledger.postgresql_rows(
                    decode(settings, list[ServiceSetting]), before, after
                )
            ),
            "postgresql_outdated": lambda settings, file, text: service_ledger.postgresql_outdated(
                decode(settings, list[ServiceSetting]), file, text
            ),
            "postgresql_conf_dir": service_ledger.postgresql_conf_dir,
            "serving_rows": lambda settings, *asked: to_builtins(
                service_ledger.serving_rows(decode(settings, list[ServiceSetting]), *asked)
            ),
            "ledger_not_taken": lambda found: ledger.not_taken(decode(found, list[LedgerRow])),
        }
