"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: ec2_teardown
short_description: Remove everything in a region that carries the lab's tag
description:
  - Instances first, the VPC last.
  - Where the region has nothing with the tag, looks for VPCs with it in the account's other
    regions, and removes nothing there.
  - Fails with a message and the remedy, also where something is left.
options:
  region:
    description: Name of the region.
    type: str
    required: true
  tag:
    description: Value of the tag loadlab.
    type: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Remove a lab
  lab.bench.ec2_teardown:
    region: us-east-1
    tag: loadlab
"""

RETURN = """
message:
  description: A sentence on what was removed, or where else there is something with the tag.
  returned: always
  type: str
"""
