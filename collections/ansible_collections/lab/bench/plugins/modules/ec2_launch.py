"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: ec2_launch
short_description: Create instances of Amazon EC2 in the first zone that has room for all of them
description:
  - Keeps the network's subnet in one zone. Hosts of one type are created by one request, so that
    EC2 finds room for all of them or for none. Where a zone has no capacity, terminates what it had
    room for and tries the next.
  - Everything carries its tags from the request that creates it; an instance gets its own tags
    right after that.
  - Fails with a message and the remedy.
options:
  region:
    description: Name of the region.
    type: str
    required: true
  zones:
    description: Availability zones to try, in their order; that of an existing subnet comes first.
    type: list
    elements: str
    required: true
  vpc:
    description: Id of the lab's own network.
    type: str
    required: true
  cidr:
    description: Addresses of its subnet.
    type: str
    required: true
  route_table:
    description: Id of the route table of the subnet.
    type: str
    required: true
  launch:
    description: What to create, as loadlab/hosts/ec2_launch.py describes a Launch.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Create a pair
  lab.bench.ec2_launch:
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    vpc: vpc-0abc
    cidr: 10.78.0.0/24
    route_table: rtb-0abc
    launch:
      name: loadlab-mine
      group: sg-0abc
      tags: {loadlab: mine}
      tenancy: default
      spot: false
      disk_gb: 20
      user_data: "#cloud-config"
      hosts: {server: c7i.large, client: c7i.large}
      servers: [server]
      types: "{{ offer.types }}"
      threads_per_core: 1
      images:
        x86_64: {image_id: ami-0abc, root_device_name: /dev/xvda}
      made_of: {server: a small one, client: a small one}
      labels: {loadlab_user: admin}
"""

RETURN = """
zone:
  description: The zone that had room.
  returned: always
  type: str
hosts:
  description: Id of each new instance, to the name of its host.
  returned: always
  type: dict
"""
