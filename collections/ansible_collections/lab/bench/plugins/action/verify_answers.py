"""Action plugin lab.bench.verify_answers; loadlab/stacks/contract.py does the work."""

from __future__ import annotations

from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.stacks.contract import ContractError, check, cut


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        try:
            answers = cut(args["answers"], args["mark"], list(args["contracts"]))
            return {
                "answers": {
                    name: check(contract, *answers[name], args["dataset"])
                    for name, contract in args["contracts"].items()
                }
            }
        except ContractError as problem:
            raise ContractError(f"{problem}. No load was offered.") from None
