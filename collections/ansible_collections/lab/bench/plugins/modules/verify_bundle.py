"""Documentation of the action plugin of the same name, which runs on the controller."""

DOCUMENTATION = """
module: verify_bundle
short_description: Derive every document of a bundle again from its raw files, and compare
description:
  - Unpacks the archive in a temporary folder and removes it afterwards. Writes the report as
    derived again, and a list of the state of each file, into <run_id>.derived beside the archive.
    Needs no host, no network and no privileges. Refuses an archive that differs from what
    lab.bench.bundle writes, or has a signature that is not of its files, and names the difference.
options:
  bundle:
    description: The archive.
    type: path
    required: true
  root:
    description: Top directory of the lab.
    type: path
    required: true
  signers:
    description:
      - Signers that are trusted, in the format of ssh-keygen's allowed signers. Where it is given,
        a bundle that none of them signed is not verified.
    type: path
    default: ""
author: the lab's developers
"""

EXAMPLES = """
- name: Verify the numbers of a bundle
  lab.bench.verify_bundle:
    bundle: run.tar.gz
    root: .
"""

RETURN = """
verified:
  description: >-
    Whether every derived document is the same as the bundle's, every raw file that a result names
    has the hash that it names, and a trusted signer signed the bundle, where signers are given.
  type: bool
  returned: success
refusal:
  description: Why it is not verified, with the remedy; empty where it is.
  type: str
  returned: success
lines:
  description: >-
    The result in words: the place and both values of each difference, each file that was not
    verified, the signer, and the files written.
  type: list
  elements: str
  returned: success
"""
