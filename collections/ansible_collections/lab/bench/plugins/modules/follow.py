"""Documentation of the action plugin of the same name; nothing runs on a target."""

DOCUMENTATION = """
module: follow
short_description: Wait for an asynchronous task of the controller and tell how far it is
options:
  what:
    description: What is under way, in words.
    type: str
    required: true
  results_file:
    description: The status file that starting the task returned.
    type: path
    required: true
  log:
    description: File whose last line is shown.
    type: path
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Tell how far the build is
  lab.bench.follow:
    what: Building oha
    results_file: "{{ oha_build.results_file }}"
    log: build.log
"""

RETURN = """# """
