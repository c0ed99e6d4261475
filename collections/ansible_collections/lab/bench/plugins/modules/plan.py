"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: plan
short_description: Check the user's options and plan the cells to measure
description:
  - Refuses unknown names and numbers out of range, and lists the names or limits.
  - Changes nothing; does the same in check mode.
options:
  root:
    description: Top directory of the lab.
    type: path
    required: true
  specs:
    description: Options from the argument specs of the role run, which document them.
    type: dict
    required: true
  given:
    description: Option name to the value given; null where none was given.
    type: dict
    required: true
  begin:
    description: Start a new run instead of resuming run_id or the latest run.
    type: bool
    default: false
  needs_framework:
    description: Whether a framework must have been given.
    type: bool
    default: true
  needs_run:
    description: Whether the run must exist.
    type: bool
    default: false
  user:
    description: Names that were given with -e; those without effect are refused.
    type: list
    elements: str
    default: []
  python:
    description: The server's Python version, such as 3.13, if it is known already.
    type: str
  kind:
    description: study or lesson, where one must have been given.
    type: str
  stage:
    description: Stage of a lesson; run for everything else.
    type: str
    default: run
  pairs:
    description: Number of host pairs.
    type: int
    default: 1
  clients:
    description: Number of clients of each pair.
    type: int
    default: 1
  host_kind:
    description: The kind of hosts, in words; a run resumes only on the same kind.
    type: str
    default: ""
  cross_check:
    description: >-
      Whether every client has or gets the generator of cross-checks. If it is not known yet, the
      clients decide.
    type: bool
    default: false
  inventory_args:
    description: >-
      Command-line options that reach these hosts, such as C(-i inventory/aws); none by default.
    type: str
    default: ""
  original:
    description: File with the run to repeat, which lab.bench.original wrote; empty to repeat none.
    type: path
    default: ""
  made_with:
    description: Variables of the role that makes the hosts, which decide what the hosts are.
    type: dict
    default: {}
author: the lab's developers
"""

EXAMPLES = """
- name: Plan the run
  lab.bench.plan:
    root: "{{ playbook_dir }}"
    specs: "{{ options }}"
    given: {framework: aiohttp, rate: 1000}
"""

RETURN = """
plan:
  description: >-
    The plan. Its keys are described in loadlab/plan/plan_document.py, class Plan.
  type: dict
  returned: success
cross_checked:
  description: The plan if every client has the generator of cross-checks; null if it is the same.
  type: dict
  returned: success
told:
  description: What a matrix compares, and why there is no curve. Empty for neither.
  type: str
  returned: success
applications:
  description: A line on each application from outside the tree, what was found in its folder.
  type: list
  elements: str
  returned: success
unlike:
  description: Lines on what differs from the run to repeat; empty where none is repeated.
  type: list
  elements: str
  returned: success
"""
