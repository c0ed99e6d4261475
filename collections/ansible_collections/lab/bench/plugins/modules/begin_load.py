"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: begin_load
short_description: Prepare the server, and let the clients of one load begin it together
description:
  - Runs the commands of I(first), and when all of them have ended well those of the clients.
  - Runs each client's command, all at once. Fails with the reasons of all that fail.
  - Several clients get an agreed start, each by its own clock, as the shell variable C(BEGIN_AT),
    unix seconds; a single client gets an empty one. The clocks are read from node_exporter, over
    the management network.
  - The agreed start is as far ahead as the hosts are distant, which a command to each shows just
    before. Returns when I(seconds) remain until it.
options:
  offers:
    description: >-
      The clients, each with its inventory I(name), its shell command I(begin), and the URL of its
      node_exporter, I(exporter).
    type: list
    elements: dict
    required: true
  first:
    description: Shell command of each host, by inventory name, before the load.
    type: dict
    default: {}
  seconds:
    description: Seconds from the return of this action to the start of the measurement.
    type: float
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Begin the load on both clients
  lab.bench.begin_load:
    offers:
      - {name: client, begin: echo $BEGIN_AT, exporter: "http://10.77.0.12:9109/metrics"}
      - {name: clientb, begin: echo $BEGIN_AT, exporter: "http://10.77.0.13:9109/metrics"}
    seconds: 10
"""

RETURN = """# """
