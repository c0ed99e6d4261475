"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: ec2
short_description: Query Amazon EC2 for what there is, what it offers, and what consoles show
description:
  - Changes nothing. Credentials come from AWS's own places, the endpoint from AWS_ENDPOINT_URL
    where that is set. Fails with a message and the remedy where credentials are absent or
    expired, and where the region is unknown or unreachable.
  - Takes exactly one of I(types), I(images) and I(console).
options:
  region:
    description: Name of the region.
    type: str
    required: true
  types:
    description: >-
      Instance types to describe, with the zones that have all of them, whose the credentials are,
      the account's quota of vCPUs, and the instances that have the I(tag).
    type: list
    elements: str
  spot:
    description: Whether the quota is that of spot instances.
    type: bool
    default: false
  tag:
    description: Value of the tag loadlab.
    type: str
  images:
    description: >-
      By architecture the C(id) of an image, or its C(owner) and the pattern of its C(name); of
      several the newest is returned.
    type: dict
  console:
    description: >-
      Ids of instances; waits until their consoles show the SSH host keys, or the instances ended.
    type: list
    elements: str
  seconds:
    description: How long to wait for the keys of all instances, after which those without are lost.
    type: int
    default: 0
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
    By type its architecture, cores, threads_per_core, threads, nitro, cluster, burstable, metal and
    spot.
  returned: with types
  type: dict
zones:
  description: Zones that have every type.
  returned: with types
  type: list
account:
  description: Id of the account of the credentials.
  returned: with types
  type: str
caller:
  description: ARN of the credentials' user or role.
  returned: with types
  type: str
vcpu_quota:
  description: vCPUs of standard instances that the account may run; null where it is not known.
  returned: with types
  type: float
vcpus_used:
  description: vCPUs that the quota counts now.
  returned: with types
  type: int
hosts:
  description: By instance the keys and ends (UTC) that its console shows.
  returned: with console
  type: dict
lost:
  description: >-
    By instance why it is of no use: it ended, its timer is not set, or its keys did not come.
  returned: with console
  type: dict
instances:
  description: >-
    Those with the tag that did not end, each with instance_id, image_id, architecture, zone, state
    and tags.
  returned: with types
  type: list
images:
  description: >-
    By architecture the image_id and root_device_name of an image with ENA; without those that have
    none.
  returned: with images
  type: dict
"""
