"""The properties of each load generator and Python client."""

from __future__ import annotations

CLOSED_LOOP = "wrk"
# Python clients: the client itself is the subject of the measurement.
CLIENTS = ("python-sync", "python-async", "python-bounded")
# Minimum duration for wrk2, which discards the latencies of its first 10 s.
WRK2_DURATION_S = 30
# The file that each leaves in a repetition's folder.
OUTPUTS = {
    "oha": "oha.json",
    CLOSED_LOOP: "wrk.txt",
    "wrk2": "wrk2.txt",
    **{name: f"{name}.json.gz" for name in CLIENTS},
}
# Load generators that run for a given duration.
_LOADS = ("oha", "wrk2", CLOSED_LOOP)
# Option -> the generators that read it. An option not listed applies to all.
USERS: dict[str, tuple[str, ...]] = {
    "rate": ("oha", "wrk2"),
    "duration": _LOADS,
    "warmup": _LOADS,
    "keepalive": _LOADS,
    "connections": (*_LOADS, "python-bounded"),
    "keep_requests": ("oha",),
    "requests": CLIENTS,
    "open_files": CLIENTS,
    "reuse": CLIENTS,
    "oha_binary": ("oha",),
    "wrk2_binary": ("wrk2",),
}
