"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: bundle
short_description: Pack a run as one archive
description:
  - Writes <run_id>.tar.gz beside the runs, with SHA256SUMS in it. The same files give the same
    bytes. Writes nothing in check mode.
options:
  results:
    description: Directory of all runs.
    type: path
    required: true
  run_id:
    description: Name of the run, or latest.
    type: str
    required: true
  sign:
    description:
      - Private SSH key that signs SHA256SUMS, or a public key whose private key an ssh-agent has.
        ssh-keygen asks for a passphrase on the terminal. Not signed where it is empty.
    type: path
    default: ""
author: the lab's developers
"""

EXAMPLES = """
- name: Pack yesterday's run
  lab.bench.bundle:
    results: results
    run_id: yesterday
    sign: ~/.ssh/id_ed25519
"""

RETURN = """
path:
  description: Path of the archive.
  type: str
  returned: success
files:
  description: Number of files in it, without SHA256SUMS and SHA256SUMS.sig.
  type: int
  returned: success, except in check mode
bytes:
  description: Its size in bytes.
  type: int
  returned: success, except in check mode
sha256:
  description: Its SHA-256, hexadecimal.
  type: str
  returned: success, except in check mode
signer:
  description: Fingerprint of the key that signed it, none where it was not signed.
  type: str
  returned: success, except in check mode
"""
