"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: progress
short_description: Tell the person at the terminal what the lab is doing
description: Prints the message at once, also where results of unchanged tasks are not shown.
options:
  msg:
    description: One or several lines.
    type: str
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Tell what takes a while
  lab.bench.progress:
    msg: Making the base file system, about 30 s
"""

RETURN = """# """
