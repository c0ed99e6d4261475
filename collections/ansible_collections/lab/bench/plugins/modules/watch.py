"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: watch
short_description: Scrape the hosts and tell the progress while a load is under way
description:
  - Runs on the controller until the load is over. Writes a recording of each scraped host into the
    repetition's folder, one scrape a second.
  - A scrape that fails is recorded as such; the verdict judges the gaps.
  - The terminal shows how far the load is, and when the run's last will be over.
options:
  item:
    description: The item of the schedule, with its position, the total of them, and seconds_left.
    type: dict
    required: true
  path:
    description: Path that is asked for.
    type: str
    required: true
  server:
    description: Inventory name of the server, where there are several.
    type: str
    default: ""
  seconds:
    description:
      - Warm-up and measurement together, seconds; a load that has no such time has 0. How far it is
        is told by them, and before them the host is not asked. What is under way at their end may
        take longer, as the answers that a full server still owes.
    type: float
    required: true
  most:
    description: The most that the load may take, seconds.
    type: float
    required: true
  until:
    description:
      - Shell command for the host, asked from then on every second, or every two seconds where
        I(seconds) is 0. Success says that the load is over, and what it prints says how far it is.
    type: str
    required: true
  dest:
    description: Folder of the repetition on the controller.
    type: path
    required: true
  scrape:
    description: Recording, its path in I(dest) without .prom.gz, to the URL of the exporter.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Watch the hosts while the load runs
  lab.bench.watch:
    item: "{{ cell_next.item }}"
    path: /agents
    seconds: 40
    most: 120
    until: test -e /var/lib/loadlab-runs/latest/cells/example/rep-1/run.json
    dest: results/latest/cells/example/rep-1
    scrape: {telemetry-server: "http://10.77.0.11:9100/metrics"}
"""

RETURN = """# """
