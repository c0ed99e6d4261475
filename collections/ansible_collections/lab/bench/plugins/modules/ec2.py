"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: ec2
short_description: Ask Amazon EC2 what no module of amazon.aws answers
description:
  - Changes nothing. Credentials come from AWS's own places, the endpoint from AWS_ENDPOINT_URL
    where that is set. Fails with one message and its remedy where credentials are absent or
    expired, and where the region is unknown or out of reach.
  - Exactly one of I(types), I(console) and I(tag) is asked.
options:
  region:
    description: Name of the region.
    type: str
    required: true
  types:
    description: Instance types to tell about, and the zones that have all of them.
    type: list
    elements: str
  console:
    description: Ids of instances on whose consoles to wait for the SSH host keys.
    type: list
    elements: str
  seconds:
    description: >-
      How long to wait for the keys of all, which is an error where they do not come, or for the
      last resource to be gone.
    type: int
    default: 0
  tag:
    description: Value of the tag loadlab whose resources to list.
    type: str
author: the lab's developers
"""

EXAMPLES = """
- name: Ask what there is
  lab.bench.ec2:
    region: us-east-1
    types: [c7i.2xlarge]
  register: offer
"""

RETURN = """
types:
  description: >-
    Type to its architecture, cores, threads_per_core, threads, nitro, cluster, burstable and spot.
  returned: with types
  type: dict
zones:
  description: Zones that have every type.
  returned: with types
  type: list
hosts:
  description: Instance to its keys and ends (UTC), as it said on its console.
  returned: with console
  type: dict
resources:
  description: Type of resource to the ids, or names, of those that carry the tag and still exist.
  returned: with tag
  type: dict
"""
