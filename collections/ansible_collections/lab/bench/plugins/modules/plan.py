"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: plan
short_description: Check what the user asked for and plan the cells to measure
description:
  - Refuses names that do not exist and numbers out of range, with the list or the limits.
  - Reads only; check mode is supported and does the same.
options:
  root:
    description: Top directory of the lab.
    type: path
    required: true
  specs:
    description: Options of the role run's argument specs, the one place that documents them.
    type: dict
    required: true
  given:
    description: What the user gave, by option name; null where nothing was given.
    type: dict
    required: true
  begin:
    description: Start a new run instead of going on with run_id or the latest.
    type: bool
    default: false
  needs_framework:
    description: Whether a framework must have been given.
    type: bool
    default: true
  needs_run:
    description: Whether the run must be there.
    type: bool
    default: false
  user:
    description: Names that were given with -e; what of them changes nothing is refused.
    type: list
    elements: str
    default: []
  python:
    description: The server's Python version, such as 3.13, where it is known beforehand.
    type: str
  kind:
    description: study or lesson, where one must have been given.
    type: str
  pairs:
    description: How many pairs of hosts there are.
    type: int
    default: 1
  clients:
    description: How many clients each pair has.
    type: int
    default: 1
  made:
    description: What the hosts are, in words; a run goes on with hosts of the same.
    type: str
    default: ""
  reach:
    description: >-
      What a command takes to reach these hosts, such as C(-i inventory/aws); nothing by default.
    type: str
    default: ""
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
    run_id, run_dir, options, stack (the first), stacks, tunings, networks, endpoints, generators,
    tracks (cells in order), comparisons, twins, study, load_seconds.
  type: dict
  returned: success
"""
