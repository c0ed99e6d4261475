"""Action plugin lab.bench.verify_answers; loadlab/stacks/contract.py does the work."""

from __future__ import annotations

from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.stacks.contract import ContractError, cut, times, verified


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        try:
            contracts = args["contracts"]
            asked = [(name, n) for name, one in contracts.items() for n in range(times(one))]
            answers = cut(args["answers"], args["mark"], asked)
            return {
                "answers": {
                    name: verified(
                        contract,
                        [answers[one] for one in asked if one[0] == name],
                        args["dataset"],
                        args["before"].get(name),
                    )
                    for name, contract in contracts.items()
                }
            }
        except ContractError as problem:
            raise ContractError(f"{problem}. No load was offered.") from None
