"""Thin module around module_utils/contract.py; runs on the controller."""

DOCUMENTATION = """
module: verify_answers
short_description: Compare answers with the endpoints' contract
description: Fails with what differs. Changes nothing; check mode does the same.
options:
  contracts:
    description: Name to contract, as in files/endpoints.yml.
    type: dict
    required: true
  answers:
    description: Name to the whole answer as C(curl --include) prints it.
    type: dict
    required: true
  dataset:
    description: The content of files/dataset.yml.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Compare the answers with the contract
  lab.bench.verify_answers:
    contracts: "{{ contracts }}"
    answers: {index: "HTTP/1.1 200 OK..."}
    dataset: {agents: [], login_status: []}
"""

RETURN = """
answers:
  description: Name to {sha256 of the body, body_bytes, wire_bytes}.
  type: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.lab.bench.plugins.module_utils.contract import ContractError, check


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "contracts": {"type": "dict", "required": True},
            "answers": {"type": "dict", "required": True},
            "dataset": {"type": "dict", "required": True},
        },
        supports_check_mode=True,
    )
    p = module.params
    answers = {}
    for name, contract in p["contracts"].items():
        try:
            answer = p["answers"][name].encode("utf-8", "surrogateescape")
            answers[name] = check(contract, answer, p["dataset"])
        except ContractError as problem:
            module.fail_json(msg=f"{problem}. No load was offered.")
    module.exit_json(changed=False, answers=answers)


if __name__ == "__main__":
    main()
