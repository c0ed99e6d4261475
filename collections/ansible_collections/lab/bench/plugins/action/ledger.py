"""Action plugin lab.bench.ledger: writes the tuning ledger from the results of lab.bench.tune."""

from collections import Counter
from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell
from ansible_collections.lab.bench.plugins.plugin_utils.records import convert
from msgspec import Struct

from loadlab.model import LedgerRow, TuningLedger
from loadlab.run import documents
from loadlab.tuning import ledger


class Arguments(Struct, kw_only=True, frozen=True):
    """A document, results/<run_id>/tuning*.json."""

    path: Path
    profile: str  #: Name of the tuning profile.
    #: Inventory names of the hosts to include, which have registered their results.
    hosts: list[str]


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        earlier = documents.read_or_none(args.path, TuningLedger)
        recorded = earlier.hosts if earlier and earlier.profile == args.profile else {}
        rows = {name: self._rows(name, recorded.get(name, [])) for name in args.hosts}
        states = Counter(row.state for name in rows for row in rows[name])
        if not self.variables.get("progress_quiet") or self._task.check_mode:
            counts = ", ".join(f"{state} {count}" for state, count in sorted(states.items()))
            tell(
                f"Tuning '{args.profile}' on {', '.join(args.hosts)}, settings: {counts} "
                f"({args.path.name})"
            )
        document = TuningLedger(profile=args.profile, hosts=rows)
        return {"changed": self.put(args.path, documents.encode(document))}

    def _rows(self, name: str, recorded: list[LedgerRow]) -> list[LedgerRow]:
        variables = self.variables["hostvars"][name]
        rows = {
            part: variables.get(result, {}).get("rows") for part, result in ledger.PARTS.items()
        }
        return ledger.host_rows(convert(rows, dict[str, list[LedgerRow] | None]), recorded)
