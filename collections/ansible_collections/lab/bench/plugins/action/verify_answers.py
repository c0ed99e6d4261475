"""Action plugin lab.bench.verify_answers: compares answers with the endpoints' contracts.

``answers`` of the result: endpoint -> status, sha256 of the body, body_bytes and wire_bytes.
loadlab/stacks/visit_requests.py does the work.
"""

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.model import SessionStep
from loadlab.model.base import Json
from loadlab.stacks import visit_requests
from loadlab.stacks.contract import Answer, ContractError, Contracts, cut


class Arguments(Struct, kw_only=True, frozen=True):
    """Endpoints and what they answered."""

    contracts: Contracts  #: Endpoint -> contract, as in files/endpoints.yml or requests.yml.
    #: The whole answers to the requests of the filter verification_requests, as `curl --include`
    #: prints them, each followed by the mark.
    answers: str
    mark: str  #: Text that separates an answer, its time and the next answer.
    dataset: dict[str, list[dict[str, Json]]]  #: The content of files/dataset.yml.
    before: dict[str, Answer] = {}  #: Endpoint -> answer that the run recorded earlier.
    session: list[SessionStep] = []  #: What each visitor sends; empty where requests come alone.


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        try:
            requests = visit_requests.asked(args.contracts, args.session)
            answers = cut(args.answers, args.mark, requests)
            return {
                "answers": visit_requests.verified(
                    args.contracts, answers, args.session, args.dataset, args.before
                )
            }
        except ContractError as problem:
            raise ContractError(f"{problem}. No load was offered.") from None
