"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: bundle
short_description: Pack a run as one archive
description:
  - Writes <run_id>.tar.gz beside the runs, with SHA256SUMS in it. The same files give the same
    bytes. Writes nothing in check mode.
options:
  results:
    description: Directory of all runs.
    type: path
    required: true
  run_id:
    description: Name of the run, or latest.
    type: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Pack yesterday's run
  lab.bench.bundle:
    results: results
    run_id: yesterday
"""

RETURN = """
path:
  description: Path of the archive.
  type: str
  returned: success
files:
  description: Number of files in it, without SHA256SUMS.
  type: int
  returned: success, except in check mode
bytes:
  description: Its size in bytes.
  type: int
  returned: success, except in check mode
sha256:
  description: Its SHA-256, hexadecimal.
  type: str
  returned: success, except in check mode
"""
