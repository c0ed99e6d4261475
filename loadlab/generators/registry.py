"""What is known of the programs that offer the load, wherever it is asked."""

from __future__ import annotations

CLOSED_LOOP = "wrk"
# Python clients, which are measured themselves.
CLIENTS = ("python-sync", "python-async", "python-bounded")
# wrk2 throws away the latencies of its first 10 s.
WRK2_DURATION_S = 30
# What each leaves in a repetition's folder.
OUTPUTS = {
    "oha": "oha.json",
    CLOSED_LOOP: "wrk.txt",
    "wrk2": "wrk2.txt",
    **{name: f"{name}.json.gz" for name in CLIENTS},
}
# The load generators, which offer a load for a time.
_LOADS = ("oha", "wrk2", CLOSED_LOOP)
# What is for some of them alone: option -> which read it.
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
