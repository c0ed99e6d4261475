"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: watch
short_description: Scrape the hosts and show the progress during a load
description:
  - Runs until the load ends. Writes a recording of each scraped host, with one scrape a second.
  - Records a failed scrape as such; the verdict judges the gaps. Connects anew to a host whose SSH
    connection ended and with it the port forward of its exporter.
  - The terminal shows the progress of the load, and when the last load of the run will end. If the
    playbook is interrupted, it names the repetition and the command that measures it again.
options:
  item:
    description: The item to measure, with position, total and seconds_left.
    type: dict
    required: true
  dir:
    description: Folder of the repetition on the controller.
    type: str
    required: true
  path:
    description: Path of the endpoint.
    type: str
    required: true
  server:
    description: Inventory name of the server, if there are several.
    type: str
    default: ""
  seconds:
    description:
      - Warm-up and measurement together, in seconds; 0 for a load without a duration. The progress
        shown is based on it, and the host is not asked before it has passed. An overloaded server
        may need longer to finish answering the requests already sent.
    type: float
    required: true
  most:
    description: Upper limit of the load's time, in seconds.
    type: float
    required: true
  until:
    description:
      - Shell command that runs on the host after I(seconds), every second, or every two seconds
        where I(seconds) is 0. Exit code 0 means that the load has ended; its output is the
        progress.
    type: str
    required: true
  scrape:
    description: >-
      For each recording, by its path on the controller, the host's inventory name and the URL of
      its exporter.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Watch the hosts while the load runs
  lab.bench.watch:
    item: "{{ measure_next.item }}"
    dir: results/example/cells/example/rep-1
    path: /agents
    seconds: 40
    most: 120
    until: test -e /var/lib/loadlab-runs/latest/cells/example/rep-1/run.json
    scrape: {server.prom.gz: {name: server, exporter: "http://10.77.0.11:9109/metrics"}}
"""

RETURN = """# """
