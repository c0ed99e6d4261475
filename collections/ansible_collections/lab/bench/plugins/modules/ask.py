"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: ask
short_description: Ask the questions of a lesson before it is measured
description:
  - Without O(predict), asks in the terminal; without a terminal, asks nothing and says so.
  - Asks nothing where the run has the answers.
options:
  run_dir:
    description: Directory of the run.
    type: path
    required: true
  study:
    description: The lesson, as the plan has it.
    type: dict
    required: true
  stage:
    description: run or transfer.
    type: str
    required: true
  predict:
    description: Answers, one for each question with commas between, or V(none).
    type: str
    default: ""
author: the lab's developers
"""

EXAMPLES = """
- name: Ask for predictions
  lab.bench.ask:
    run_dir: "{{ preflight_plan.run_dir }}"
    study: "{{ preflight_plan.study }}"
    stage: run
    predict: b,1000,a
"""

RETURN = """
reader:
  description: Content of reader.json.
  type: dict
  returned: success
"""
