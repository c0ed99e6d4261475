"""Thin module around module_utils/calibration.py; runs on the controller."""

DOCUMENTATION = """
module: calibration
short_description: Write calibration.json from what was measured
description: Keeps the raw output of iperf3 and ping beside it, below calibration/link/.
options:
  run_dir:
    description: The run's directory.
    type: path
    required: true
  repetition:
    description: Number of this calibration in the run.
    type: int
    required: true
  iperf3:
    description: Direction (client_to_server, server_to_client) to iperf3's JSON.
    type: dict
    required: true
  ping:
    description: Output of C(ping -q).
    type: str
    required: true
  generator:
    description: Generator of the measurements to come.
    type: str
    required: true
  thresholds:
    description: Content of files/verdict.yml.
    type: dict
    required: true
author: the lab's developers
"""

EXAMPLES = """
- name: Derive the calibration
  lab.bench.calibration:
    run_dir: results/latest
    repetition: 1
    iperf3: "{{ iperf_output }}"
    ping: "{{ ping.stdout }}"
    generator: oha
    thresholds: "{{ thresholds }}"
"""

RETURN = """
calibration:
  description: The content of calibration.json.
  type: dict
  returned: success
text:
  description: The same in two or three lines.
  type: str
  returned: success
"""

import json
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.lab.bench.plugins.module_utils import calibration, files


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "run_dir": {"type": "path", "required": True},
            "repetition": {"type": "int", "required": True},
            "iperf3": {"type": "dict", "required": True},
            "ping": {"type": "str", "required": True},
            "generator": {"type": "str", "required": True},
            "thresholds": {"type": "dict", "required": True},
        }
    )
    p = module.params
    run_dir = Path(p["run_dir"])
    link = run_dir / "calibration" / "link" / f"rep-{p['repetition']}"
    link.mkdir(parents=True)
    for direction, output in p["iperf3"].items():
        # Ansible may have taken the text for the JSON that it is.
        raw = output if isinstance(output, str) else json.dumps(output)
        files.write(link / f"iperf3-{direction}.json", raw.encode())
    files.write(link / "ping.txt", p["ping"].encode())
    try:
        derived = calibration.derive(
            run_dir / "calibration", p["repetition"], p["generator"], p["thresholds"]
        )
    except ValueError as problem:
        module.fail_json(msg=f"{problem}. The raw files are kept in {run_dir}/calibration.")
    files.write(run_dir / "calibration.json", files.dump(derived))
    module.exit_json(changed=True, calibration=derived, text=calibration.text(derived))


if __name__ == "__main__":
    main()
