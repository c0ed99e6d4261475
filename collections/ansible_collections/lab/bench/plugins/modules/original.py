"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: original
short_description: Read the run that a new one repeats, and verify it where it is a bundle
description:
  - Refuses what is no run, an unfinished run, documents of another schema, and an altered bundle.
  - Changes nothing but a temporary file, which Ansible removes when it ends; does the same in
    check mode.
options:
  like:
    description: Path of a bundle or of a run's folder, or the name of a run in results/.
    type: str
    required: true
  root:
    description: Top directory of the lab.
    type: path
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Read the run to repeat
  lab.bench.original:
    like: results/20261120-172927-aiohttp.tar.gz
    root: .
"""

RETURN = """
path:
  description: The temporary file with the run, original.json.
  type: str
  returned: success
made_with:
  description: Variables of the role that made the run's hosts, name to value.
  type: dict
  returned: success
line:
  description: Which run is repeated, and how far it was verified.
  type: str
  returned: success
"""
