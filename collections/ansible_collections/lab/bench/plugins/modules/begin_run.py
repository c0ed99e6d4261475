"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: begin_run
short_description: Make a run's folder with its plan and point results/latest at it
description:
  - A plan that is there already stays as it is.
  - The run is this ansible-playbook's until that ends; where another one has it, or one on
    the same hosts, it is refused.
  - Changed is told where the run is new or was not the latest. Check mode is supported.
options:
  run_dir:
    description: Folder of the run on the controller.
    type: path
    required: true
  begun:
    description: Content of plan.json, when the run began, by which command, and its plan.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Begin the run
  lab.bench.begin_run:
    run_dir: results/example
    begun: {started: "2015-02-25T10:00:00Z", argv: [], plan: {}, place: ""}
"""

RETURN = """
new:
  description: Whether the run was not there before.
  type: bool
  returned: success
"""
