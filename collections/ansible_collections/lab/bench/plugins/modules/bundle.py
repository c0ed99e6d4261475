"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: bundle
short_description: Pack a run as one archive
description:
  - Writes <run_id>.tar.gz beside the runs, with SHA256SUMS in it. The same files give the same
    bytes. In check mode it writes nothing.
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
  description: Where the archive is.
  type: str
  returned: success
files:
  description: How many files it holds, without SHA256SUMS.
  type: int
  returned: success, but for check mode
bytes:
  description: Its size.
  type: int
  returned: success, but for check mode
sha256:
  description: Its SHA-256, hexadecimal.
  type: str
  returned: success, but for check mode
"""
