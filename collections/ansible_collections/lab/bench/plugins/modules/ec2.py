"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: ec2
short_description: Query Amazon EC2 for what no module of amazon.aws returns
description:
  - Changes nothing. Credentials come from AWS's own places, the endpoint from AWS_ENDPOINT_URL
    where that is set. Fails with a message and the remedy where credentials are absent or
    expired, and where the region is unknown or unreachable.
  - Takes exactly one of I(types), I(console) and I(tag).
options:
  region:
    description: Name of the region.
    type: str
    required: true
  types:
    description: Instance types to describe, with the zones that have all of them.
    type: list
    elements: str
  console:
    description: >-
      Ids of instances; waits until their consoles show the SSH host keys, or the instances ended.
    type: list
    elements: str
  seconds:
    description: >-
      How long to wait for the keys of all instances, after which those without are lost, or for
      the last resource to disappear.
    type: int
    default: 0
  tag:
    description: Value of the tag loadlab; lists the resources that carry it.
    type: str
author: the lab's developers
"""

EXAMPLES = """
- name: Query an instance type
  lab.bench.ec2:
    region: us-east-1
    types: [c7i.2xlarge]
  register: offer
"""

RETURN = """
types:
  description: >-
    By type its architecture, cores, threads_per_core, threads, nitro, cluster, burstable and spot.
  returned: with types
  type: dict
zones:
  description: Zones that have every type.
  returned: with types
  type: list
hosts:
  description: By instance the keys and ends (UTC) that its console shows.
  returned: with console
  type: dict
lost:
  description: >-
    By instance why it is of no use: it ended, its timer is not set, or its keys did not come.
  returned: with console
  type: dict
resources:
  description: By type of resource the ids, or names, of those that carry the tag and still exist.
  returned: with tag
  type: dict
"""
