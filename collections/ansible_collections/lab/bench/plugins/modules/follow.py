"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: follow
short_description: Wait for an asynchronous task of the controller and show its progress
options:
  what:
    description: What the task does, in words.
    type: str
    required: true
  results_file:
    description: The status file that Ansible returned when it started the task.
    type: path
    required: true
  log:
    description: File whose last line is shown.
    type: path
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Show the progress of the build
  lab.bench.follow:
    what: Building oha
    results_file: "{{ oha_build.results_file }}"
    log: build.log
"""

RETURN = """# """
