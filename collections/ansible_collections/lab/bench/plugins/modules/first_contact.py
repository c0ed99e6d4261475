"""Documentation of the action plugin of the same name."""

DOCUMENTATION = """
module: first_contact
short_description: Run a script on a host by its login shell, or tell why the host is out of reach
description:
  - A host that cannot be reached is refused with its address, what SSH said and what to do.
  - The script must change nothing; check mode is supported and does the same.
options:
  script:
    description: What the login shell is given.
    type: str
    required: true
  make:
    description: The command that makes the host, where the lab does.
    type: str
    default: ""
author: the lab's developers
"""

EXAMPLES = """
- name: Look at the host
  lab.bench.first_contact:
    script: uname -r
"""

RETURN = """
stdout:
  description: What the script printed.
  type: str
  returned: success
"""
