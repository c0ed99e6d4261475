"""Variants: sets of options that playbooks/ab.yml compares in one run."""
