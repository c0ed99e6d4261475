"""Thin module around module_utils/result.py, summary.py and manifest.py; on the controller."""

DOCUMENTATION = """
module: results
short_description: Derive result.json, summary.json, metrics.prom and manifest.json
description:
  - Every repetition's result.json is made from its raw files where it is not there yet; the rest is
    made anew from what is on disk, and comes out the same each time.
  - Each document is checked against files/schema/lab-1.schema.json before it is written.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
  root:
    description: Top directory of the lab.
    type: path
    required: true
  keep_requests:
    description: Keep every request's own times, compressed.
    type: bool
    default: false
  hosts:
    description: Inventory name to what the host is.
    type: dict
    required: true
  logs:
    description: Inventory name to what its services logged.
    type: dict
    required: true
  controller:
    description: What the controller is.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Derive the results
  lab.bench.results:
    run_dir: results/latest
    root: .
    hosts: {}
    logs: {}
    controller: {}
"""

RETURN = """
table:
  description: The results as a short table for the terminal.
  type: str
  returned: success
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.lab.bench.plugins.module_utils import derive, files


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "run_dir": {"type": "path", "required": True},
            "root": {"type": "path", "required": True},
            "keep_requests": {"type": "bool", "default": False},
            "hosts": {"type": "dict", "required": True},
            "logs": {"type": "dict", "required": True},
            "controller": {"type": "dict", "required": True},
        }
    )
    p = module.params
    run_dir = Path(p["run_dir"])
    (run_dir / "logs").mkdir(exist_ok=True)
    try:
        for host, log in p["logs"].items():
            files.write(run_dir / "logs" / f"{host}.log", log.encode())
        derive.results(run_dir, Path(p["root"]), p["keep_requests"])
        derive.describe(run_dir, Path(p["root"]), p["hosts"], p["controller"])
        table = derive.summary(run_dir, Path(p["root"]))
    except ValueError as problem:
        module.fail_json(msg=f"{problem}. The raw files are kept in {run_dir}.")
    module.exit_json(changed=True, table=table)


if __name__ == "__main__":
    main()
