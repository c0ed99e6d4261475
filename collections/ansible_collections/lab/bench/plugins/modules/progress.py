"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: progress
short_description: Print on the terminal what the lab is doing
description:
  - Prints the message at once, even where results of unchanged tasks are not shown.
  - Prints nothing in a play with the variable C(progress_quiet), except in check mode.
options:
  msg:
    description: One or more lines.
    type: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Announce the base file system
  lab.bench.progress:
    msg: Making the base file system, about 30 s
"""

RETURN = """# """
