"""The part of the page on the tuning ledgers."""

from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path

from loadlab.model import LedgerRow, TuningLedger
from loadlab.report.html import Block, Column, Facts, Row, Section, Table, Text, link, table
from loadlab.run import documents, formatting
from loadlab.run.run_dir import HERE, RunDir

# State of a key -> its meaning.
STATES = {
    "applied": "changed to the value requested",
    "already": "had that value before",
    "absent": "this kernel does not have the key",
    "read_only": "this host must not write it",
    "clamped": "accepted, and reads back as another value; of a card the most that it can",
    "not_namespaced": "belongs to the machine, not to this host: left alone",
    "restored": "the value found first is back",
    "rejected": "refused and unchanged, or nothing here has the setting",
    "kept": "the host has more than requested, and keeps it",
}
AS_REQUESTED = ("applied", "already", "restored")


def section(run_dir: Path, left_out: Container[str]) -> Section:
    """Return the ledgers of the first profile and of others compared with it.

    ``left_out``: the profiles of an ablation, each without one key. They would fill the page; their
    files are listed.
    """
    ledgers: dict[str, list[Block]] = {}
    for path in RunDir(run_dir).ledgers():
        ledger = documents.read(path, TuningLedger)
        if ledger.profile not in left_out:
            ledgers.setdefault(ledger.profile, _ledger(ledger, path.name))
    blocks = [block for ledger in ledgers.values() for block in ledger]
    missing = Text(f"No {HERE.ledger()}.", css="missing")
    return Section("Tuning", blocks or [missing], "tuning", "Tuning", folded=True)


def _ledger(ledger: TuningLedger, name: str) -> list[Block]:
    used = {row.state for rows in ledger.hosts.values() for row in rows}
    hosts = sorted(ledger.hosts.items(), key=lambda item: (item[0] != "server", item[0]))
    return [
        Text("Profile ", strong=ledger.profile, after=".", sources=[link(name)]),
        Facts({state: meaning for state, meaning in STATES.items() if state in used}),
        *(_host(host, rows) for host, rows in hosts),
    ]


def _shown(value: str | None) -> str:
    return formatting.NONE if value is None else value


_KEY: Sequence[Column[LedgerRow]] = [
    Column("key", lambda row: row.key + (" (required)" if row.required else "")),
    Column("requested", lambda row: _shown(row.requested)),
    Column("before", lambda row: _shown(row.before)),
    Column("after", lambda row: _shown(row.after)),
    Column("state", lambda row: row.state),
    Column("reason", lambda row: row.reason),
]


def _host(host: str, ledger: Sequence[LedgerRow]) -> Table:
    counts = Counter(row.state for row in ledger)
    states = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])  # type: ignore[index]
    return table(
        f"Each key's value on the {host}: requested, found before, and read back after.",
        _KEY,
        ledger,
        lambda row: Row("" if row.state in AS_REQUESTED else "other"),
        title=f"{host}: {states}",
        open=any(row.state not in AS_REQUESTED for row in ledger),
    )
