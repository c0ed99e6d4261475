"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: first_contact
short_description: Run a script in a host's login shell, or say why the host is unreachable
description:
  - For an unreachable host, fails with its address, SSH's error and the remedy.
  - The script must change nothing; it also runs in check mode.
options:
  script:
    description: The script.
    type: str
    required: true
  make:
    description: The command that creates the host, if the lab does so.
    type: str
    default: ""
author: the lab's developers
"""

EXAMPLES = """
- name: Probe the host
  lab.bench.first_contact:
    script: uname -r
"""

RETURN = """
stdout:
  description: What the script printed.
  type: str
  returned: success
"""
