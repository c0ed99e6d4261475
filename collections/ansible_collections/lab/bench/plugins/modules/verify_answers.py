"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: verify_answers
short_description: Compare answers with the endpoints' contract
description: Fails and names the difference. Changes nothing; does the same in check mode.
options:
  contracts:
    description: Contract of each endpoint by name, as in files/endpoints.yml or requests.yml.
    type: dict
    required: true
  answers:
    description: >-
      The whole answers to the requests of the filter verification_requests, as C(curl --include)
      prints them, each followed by the mark.
    type: str
    required: true
  mark:
    description: Text that separates an answer, its time and the next answer.
    type: str
    required: true
  before:
    description: Answers of the same endpoints that the run recorded earlier, by endpoint.
    type: dict
    default: {}
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
    answers: "{{ curl.stdout }}"
    mark: "=== end of answer ==="
    dataset: {agents: [], login_status: []}
"""

RETURN = """
answers:
  description: By endpoint {status, sha256 of the body, body_bytes, wire_bytes}.
  type: dict
  returned: success
"""
