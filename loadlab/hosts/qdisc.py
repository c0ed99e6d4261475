"""Network profiles: the queueing discipline (qdisc) of each, and how to check and set it.

Units are bytes per second, bytes and seconds, as in the output of `tc -j qdisc show`.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from typing import Any

# The handle of every root qdisc that the lab adds; it identifies the lab's own.
HANDLE = "1ab:"
KINDS = ("tbf", "netem")

# A tbf's burst is at least what TCP hands down as one segment, 64 KiB plus the headers of its
# frames; otherwise the CPU cuts up every segment. It is also at least what the rate sends in 2 ms,
# so that a late timer on a busy machine costs no rate. A larger burst would let more through at the
# link's own speed after each pause.
BURST_BYTES = 80_000
BURST_S = 0.002
# How long a frame may wait in the queue of the slow link before it is dropped. The queue holds
# several segments even at 100 Mbit/s (nine); tc-tbf(8) has the same value in its example.
QUEUE_S = 0.05
# The smallest frame of a TCP connection, an acknowledgement with timestamps. netem's limit counts
# frames of any size, so it assumes these.
FRAME_BYTES = 66
# Frames a second where the profile has no rate: more than a host of the lab sends.
FRAMES_PER_S = 1_000_000
# Relative. The kernel counts 64 ns ticks in 32 bits, and tc prints six digits.
TOLERANCE = 0.002


def needs_netem(profile: Mapping[str, Any]) -> bool:
    """Return whether a profile has more than a rate: delay, jitter or loss."""
    return any(profile.get(key) for key in ("delay_ms", "jitter_ms", "loss_percent"))


def qdisc(profile: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the qdisc that a profile needs: {kind, parameters}; None where it needs none.

    netem has limit (frames), delay, jitter (s), loss (fraction) and rate (bytes/s, 0 for none); tbf
    has rate (bytes/s), burst (bytes) and latency (s). ``profile`` has rate_mbit, delay_ms,
    jitter_ms and loss_percent; each may be absent or None.
    """
    rate = (profile.get("rate_mbit") or 0) * 1_000_000 / 8
    if needs_netem(profile):
        delay, jitter = ((profile.get(key) or 0) / 1000 for key in ("delay_ms", "jitter_ms"))
        frames_per_s = rate / FRAME_BYTES if rate else FRAMES_PER_S
        return {
            "kind": "netem",
            # All frames under way at once, plus the queue in front of the slow link.
            "limit": math.ceil(frames_per_s * (delay + jitter + QUEUE_S)),
            "delay": delay,
            "jitter": jitter,
            "loss": (profile.get("loss_percent") or 0) / 100,
            "rate": rate,
        }
    if rate:
        burst = max(BURST_BYTES, math.ceil(rate * BURST_S))
        return {"kind": "tbf", "rate": rate, "burst": burst, "latency": QUEUE_S}
    return None


def root(text: str) -> dict[str, Any]:
    """Return the root qdisc from the output of `tc -j qdisc show dev X`: kind, handle and
    parameters.

    Parameters are as in qdisc(). Raises ValueError where there is not exactly one root qdisc.
    """
    found = [entry for entry in json.loads(text or "[]") if entry.get("root")]
    if len(found) != 1:
        raise ValueError(f"not one root qdisc: {text[:200]!r}")
    entry = found[0]
    result = {"kind": entry["kind"], "handle": entry["handle"]}
    options = entry.get("options", {})
    if entry["kind"] == "tbf":
        latency = options["lat"] / 1_000_000 if "lat" in options else None
        return {**result, "rate": options["rate"], "burst": options["burst"], "latency": latency}
    if entry["kind"] == "netem":
        delay = options.get("delay", {})
        return {
            **result,
            "limit": options["limit"],
            "delay": delay.get("delay", 0),
            "jitter": delay.get("jitter", 0),
            "loss": options.get("loss-random", {}).get("loss", 0),
            "rate": options.get("rate", {}).get("rate", 0),
        }
    return result


def is_labs(found: Mapping[str, Any]) -> bool:
    """Return whether the lab added this root qdisc."""
    return found["handle"] == HANDLE and found["kind"] in KINDS


def is_kernels(found: Mapping[str, Any]) -> bool:
    """Return whether the kernel added it by default (noqueue, fq_codel, pfifo_fast, mq ...).

    Default qdiscs have the handle 0:, which nobody else can set; they return when another is
    removed.
    """
    return bool(found["handle"] == "0:")


def differences(profile: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return how an interface's qdisc differs from a profile, one text a parameter; empty where
    equal."""
    wanted = qdisc(profile)
    if wanted is None:
        return [f"{found['kind']} {found['handle']} instead of none"] if is_labs(found) else []
    if not is_labs(found) or found["kind"] != wanted["kind"]:
        return [f"{found['kind']} {found['handle']} instead of {wanted['kind']} {HANDLE}"]
    return [
        f"{key}: asked {value:.10g}, is {found[key]}"
        for key, value in wanted.items()
        if key != "kind"
        and (found[key] is None or not math.isclose(found[key], value, rel_tol=TOLERANCE))
    ]


def obstacle(
    profile: Mapping[str, Any], found: Mapping[str, Any], name: str, interface: str
) -> str | None:
    """Return why the lab will not shape an interface that has a foreign qdisc; None where
    it will."""
    if qdisc(profile) is None or is_labs(found) or is_kernels(found):
        return None
    return (
        f"{interface} has the queueing discipline {found['kind']} {found['handle']} already, which "
        f"is neither the kernel's default nor the lab's, and the network profile {name} would "
        "replace it. Use -e network=lan, which leaves it, or remove it with "
        f"`tc qdisc del dev {interface} root`."
    )


def commands(profile: Mapping[str, Any], found: Mapping[str, Any], interface: str) -> list[str]:
    """Return the shell commands that give an interface the profile's qdisc; empty where it
    has it."""
    if not differences(profile, found):
        return []
    at = ["dev", interface, "root", "handle", HANDLE]
    result = []
    if is_labs(found):
        # tc cannot change the kind of a qdisc, and netem keeps options that are not given again.
        result.append(shlex.join(["tc", "qdisc", "del", *at]))
    wanted = qdisc(profile)
    if wanted is None:
        return result
    # `tc qdisc add` fails if a non-default root qdisc exists, so a foreign one is never replaced.
    words = ["tc", "qdisc", "add", *at, wanted["kind"]]
    if wanted["kind"] == "tbf":
        words += ["rate", _rate(wanted["rate"]), "burst", str(wanted["burst"])]
        words += ["latency", _microseconds(wanted["latency"])]
    else:
        words += ["limit", str(wanted["limit"])]
        words += ["delay", _microseconds(wanted["delay"]), _microseconds(wanted["jitter"])]
        if wanted["loss"]:
            words += ["loss", "random", f"{wanted['loss'] * 100:.6g}%"]
        if wanted["rate"]:
            words += ["rate", _rate(wanted["rate"])]
    return [*result, shlex.join(words)]


def _rate(bytes_per_s: float) -> str:
    return f"{round(bytes_per_s * 8)}bit"


def _microseconds(seconds: float) -> str:
    return f"{round(seconds * 1_000_000)}us"
