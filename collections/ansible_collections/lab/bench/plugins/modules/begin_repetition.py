"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: begin_repetition
short_description: Work out one measurement and write its cell.json
description:
  - The options are the variables of the role load_run. The record is written first, so that an
    interrupted measurement is recognized by it.
options:
  item:
    description: Measurement to run, with cell_id, cell, repetition, purpose and definition.
    type: dict
    required: true
  dir:
    description: Folder of the repetition on the controller.
    type: str
    required: true
  url:
    description: URL to load.
    type: str
    required: true
  request:
    description: Contract of the endpoint, of which method, headers and body are used.
    type: dict
    default: {}
  status:
    description: URL of nginx's request counters; empty for none.
    type: str
    default: ""
  answer:
    description: Verified answer, with status, sha256, body_bytes and wire_bytes.
    type: dict
    required: true
  beside:
    description: URL of background requests; empty for none.
    type: str
    default: ""
  server:
    description: Inventory name of the server.
    type: str
    required: true
  client:
    description: Inventory name of the client that leads.
    type: str
    required: true
  clients:
    description: Inventory names of all clients, the leading one first; empty for a single client.
    type: list
    elements: str
    default: []
  hosts:
    description: >-
      The server and all clients by inventory name, with cpus, interface and the URL of the
      exporter.
    type: dict
    required: true
  started:
    description: Units of the server to start if they are down.
    type: list
    elements: str
    default: []
  restart:
    description: Units of the server to restart before the warm-up.
    type: list
    elements: str
    default: []
  again:
    description: Whether the previous measurement used the same services and nothing else did since.
    type: bool
    default: false
  units:
    description: Recorded units of the server by name.
    type: dict
    default: {}
  database:
    description: Database of the server to record; empty for none.
    type: str
    default: ""
  keep_requests:
    description: Whether the generator keeps a record of each request.
    type: bool
    default: true
  request_timeout:
    description: Request timeout, in seconds.
    type: int
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Begin the repetition
  lab.bench.begin_repetition:
    item: "{{ measure_next.item }}"
    dir: results/latest/cells/example/rep-1
    url: http://10.77.0.11/index
    answer: {sha256: 9f86d08, body_bytes: 17, wire_bytes: 180}
    server: server
    client: client
    hosts: {}
    request_timeout: 2
  register: begun
"""

RETURN = """
record:
  description: Content of cell.json.
  type: dict
  returned: always
remote:
  description: Folder of the measurement on the hosts.
  type: str
  returned: always
offers:
  description: For each client its name, its folder, and the options of systemd-run.
  type: list
  returned: always
"""
