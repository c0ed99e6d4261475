"""Action plugin lab.bench.verify_answers: compares answers with the endpoints' contracts.

``answers`` of the result: endpoint -> status, sha256 of the body, body_bytes and wire_bytes.
loadlab/stacks/contract.py does the work.
"""

from __future__ import annotations

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.model.base import Json
from loadlab.stacks.contract import Answer, ContractError, Contracts, cut, times, verified


class Arguments(Struct, kw_only=True, frozen=True):
    """Endpoints and what they answered."""

    contracts: Contracts  #: Endpoint -> contract, as in files/endpoints.yml or requests.yml.
    #: The whole answers to the requests of the filter verification_requests, as `curl --include`
    #: prints them, each followed by the mark.
    answers: str
    mark: str  #: Text that separates an answer, its time and the next answer.
    dataset: dict[str, list[dict[str, Json]]]  #: The content of files/dataset.yml.
    before: dict[str, Answer] = {}  #: Endpoint -> answer that the run recorded earlier.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        try:
            contracts = args.contracts
            requests = [
                (name, number)
                for name, contract in contracts.items()
                for number in range(times(contract))
            ]
            answers = cut(args.answers, args.mark, requests)
            return {
                "answers": {
                    name: verified(
                        contract,
                        [answers[request] for request in requests if request[0] == name],
                        args.dataset,
                        args.before.get(name),
                    )
                    for name, contract in contracts.items()
                }
            }
        except ContractError as problem:
            raise ContractError(f"{problem}. No load was offered.") from None
