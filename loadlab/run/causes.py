"""The cause of each reason that voids a repetition, which decides whether a repeat may help.

- outside: another machine, or another program on the host, took its CPU
- hosts: the load is too much for these hosts, so a repeat is as likely void
- passing: the rest
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

CAUSES: Mapping[str, Literal["outside", "hosts", "passing"]] = {
    "failed": "passing",
    "generator_failed": "passing",
    "nothing_sent": "passing",
    "short": "passing",
    "generator_cpu": "hosts",
    "steal": "outside",
    "foreign_cpu": "outside",
    "clock_jump": "passing",
    "swapping": "hosts",
    "allowance": "hosts",
    "telemetry_gap": "passing",
    "connections": "hosts",
    "link": "hosts",
    "generator_stopped": "passing",
    "generator_stops": "passing",
    "own_median": "passing",
    "generator_late": "passing",
    "rate_missed": "hosts",
    "start_spread": "passing",
}
