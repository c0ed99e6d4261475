"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: ec2_network
short_description: Create what a pair of instances needs around it, or see that it is there
description:
  - A key pair, a VPC with an internet gateway and a route table, a cluster placement group, and a
    security group that lets in SSH from the I(sources) and everything inside the pair.
  - Everything carries its tags from the request that creates it.
  - Fails with a message and the remedy.
options:
  region:
    description: Name of the region.
    type: str
    required: true
  name:
    description: Name of the key pair, the placement group and the security group.
    type: str
    required: true
  tags:
    description: Tags of everything that is created; its tag loadlab is that of what is found.
    type: dict
    required: true
  cidr:
    description: Addresses of the VPC.
    type: str
    required: true
  public_key:
    description: The public half of the key that opens the instances, as OpenSSH writes it.
    type: str
    required: true
  sources:
    description: IPv4 networks that SSH is let in from.
    type: list
    elements: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Create a network
  lab.bench.ec2_network:
    region: us-east-1
    name: loadlab-mine
    tags: {loadlab: mine, Name: loadlab-mine}
    cidr: 10.78.0.0/24
    public_key: ssh-ed25519 AAAA
    sources: [203.0.113.7/32]
"""

RETURN = """
vpc:
  description: Id of the VPC.
  returned: always
  type: str
route_table:
  description: Id of the route table.
  returned: always
  type: str
group:
  description: Id of the security group.
  returned: always
  type: str
"""
