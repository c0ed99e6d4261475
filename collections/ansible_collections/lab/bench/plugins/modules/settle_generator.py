"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: settle_generator
short_description: Decide which generator every client can have
description:
  - Returns the plan if every client has or can get its generator, and otherwise the plan that takes
    its place.
  - Changes nothing. Supports check mode.
options:
  plan:
    description: The plan, from lab.bench.plan.
    type: dict
    required: true
  instead:
    description: The plan that takes its place, from lab.bench.plan.
    type: dict
    required: true
  clients:
    description: Each client by its name, from the filter lab.bench.parse_probe.
    type: dict
    required: true
  fetched_sources:
    description: By client, null, or without internet each source that the controller fetches from.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Settle the generator
  lab.bench.settle_generator:
    plan: "{{ preflight_plan }}"
    instead: "{{ preflight_instead }}"
    clients: {client: "{{ host_check_host }}"}
    fetched_sources: {client: null}
"""

RETURN = """
plan:
  description: The plan, whose generator is settled.
  type: dict
  returned: success
told:
  description: Which generator is taken and why.
  type: str
  returned: success
"""
