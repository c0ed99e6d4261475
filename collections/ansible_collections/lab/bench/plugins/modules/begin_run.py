"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: begin_run
short_description: Create a run's folder with its plan and point results/latest at it
description:
  - Keeps an existing plan.
  - Locks the run for this ansible-playbook until it ends. Fails where another process holds the
    run, or another run on the same hosts.
  - Reports changed where the run is new or was not the latest. Supports check mode.
options:
  run_dir:
    description: Folder of the run on the controller.
    type: path
    required: true
  begun:
    description: Content of plan.json, including the run's start, command and plan.
    type: dict
    required: true
  original:
    description: File with the run that a new one repeats, kept in its folder; empty to repeat none.
    type: path
    default: ""
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
  description: Whether the run is new.
  type: bool
  returned: success
"""
