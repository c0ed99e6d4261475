"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: watch
short_description: Scrape the hosts and tell the progress while a load is under way
description:
  - Runs on the controller for the given time. Writes a recording of each scraped host into the
    repetition's folder, one scrape a second.
  - A scrape that fails is recorded as such; the verdict judges the gaps.
  - The terminal is told every ten seconds how far the load is.
options:
  seconds:
    description: Warm-up and measurement together, seconds; with I(until) the most that they take.
    type: float
    required: true
  until:
    description:
      - Shell command for the host, asked every two seconds. Success says that the load is over, and
        what it prints says how far it is.
    type: str
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
    seconds: 40
    dest: results/latest/cells/example/rep-1
    scrape: {telemetry-server: "http://10.77.0.11:9100/metrics"}
"""

RETURN = """# """
