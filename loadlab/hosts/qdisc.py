"""Network profiles: the queueing discipline (qdisc) of each, and how to check and set it.

A profile with a delay and neither jitter nor loss, up to 100 Mbit/s, needs no netem: the lab's own
relay delays its frames (roles/network_emulation), and a tbf has the rate and the queue.

Units are bytes per second, bytes and seconds, as in the output of `tc -j qdisc show`.
"""

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from loadlab.run.catalog import known, names, read_yaml
from loadlab.run.errors import LabError

# The handle of every root qdisc that the lab adds; it identifies the lab's own.
HANDLE = "1ab:"

# A tbf's burst is at least what TCP hands down as one segment, 64 KiB plus the headers of its
# frames; otherwise the CPU cuts up every segment. It is also at least what the rate sends in 2 ms,
# so that a late timer on a busy machine costs no rate. A larger burst would let more through at the
# link's own speed after each pause.
BURST_BYTES = 80_000
BURST_S = 0.002
# Where the lab's relay sends frame by frame, two frames. The bucket's bytes wait in the queue as
# well, so 80,000 would add 32 ms to each wait at 20 Mbit/s.
RELAY_BURST_BYTES = 2 * 1514
# How long a frame may wait in the queue of the slow link before it is dropped, where the profile
# sets no queue_ms. The queue holds several segments even at 100 Mbit/s (nine); tc-tbf(8) has the
# same value in its example.
QUEUE_S = 0.05
# The interface of the relay, and the fastest link whose frames it can delay, one by one, on a
# fraction of a core.
RELAY_INTERFACE = "loadlab-delay"
RELAY_MBIT = 100
# The smallest frame of a TCP connection, an acknowledgement with timestamps. netem's limit counts
# frames of any size, so it assumes these.
FRAME_BYTES = 66
# Frames a second where the profile has no rate: more than a host of the lab sends.
FRAMES_PER_S = 1_000_000
# Relative. The kernel counts 64 ns ticks in 32 bits, and tc prints six digits.
TOLERANCE = 0.002

_Above0 = Annotated[float, Meta(gt=0)]


class NetworkProfile(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A file of files/network/; one without figures leaves the link as it is.

    ``rate_mbit`` is in Mbit/s of Ethernet frames without checksum and gap. ``delay_ms`` is one-way,
    added to each frame. ``jitter_ms`` is the half-width of the uniform distribution around it.
    ``loss_percent`` of the frames are lost at random. ``queue_ms`` is the longest that a frame may
    wait in the queue in front of the slow link before it is dropped, by default 50.
    """

    description: str = ""
    source: str | None = None
    rate_mbit: _Above0 | None = None
    delay_ms: _Above0 | None = None
    jitter_ms: _Above0 | None = None
    loss_percent: Annotated[float, Meta(gt=0, le=100)] | None = None
    queue_ms: _Above0 | None = None

    @property
    def queue_s(self) -> float:
        """The longest wait in the queue, seconds."""
        return QUEUE_S if self.queue_ms is None else self.queue_ms / 1000


class Tbf(Struct, frozen=True, kw_only=True):
    """A token bucket: rate (bytes/s), burst (bytes), latency (s; None where tc prints none)."""

    rate: float
    burst: float
    latency: float | None


class Netem(Struct, frozen=True, kw_only=True):
    """netem: limit (frames), delay and jitter (s), loss (fraction), rate (bytes/s, 0 for none)."""

    limit: float
    delay: float
    jitter: float
    loss: float
    rate: float


Parameters = Tbf | Netem
_KINDS: dict[type, str] = {Tbf: "tbf", Netem: "netem"}


class RootQdisc(Struct, frozen=True, kw_only=True):
    """The root qdisc of an interface; ``parameters`` are None of a kind that the lab never adds."""

    kind: str
    handle: str
    parameters: Parameters | None
    #: The kind of the qdisc that somebody gave the lab's in place of its own queue; "" for none.
    child: str = ""

    @property
    def is_labs(self) -> bool:
        """Whether the lab added it."""
        return self.handle == HANDLE and self.parameters is not None

    @property
    def is_kernels(self) -> bool:
        """Whether the kernel added it by default (noqueue, fq_codel, pfifo_fast, mq ...).

        Default qdiscs have the handle 0:, which nobody else can set; they return when another is
        removed.
        """
        return self.handle == "0:"


def network_profile(root: Path, name: str) -> NetworkProfile:
    """Return files/network/<name>.yml. Raises PlanError for an unknown name or a bad file."""
    known("network", name, names(root / "files" / "network", "*.yml"))
    return read_yaml(root, f"files/network/{name}.yml", NetworkProfile)


def needs_netem(profile: NetworkProfile) -> bool:
    """Return whether a profile has jitter, loss, or a delay that the lab's relay cannot make."""
    more = profile.delay_ms or profile.jitter_ms or profile.loss_percent
    return bool(more) and not relay_ms(profile)


def relay_ms(profile: NetworkProfile) -> float:
    """Return the delay that the lab's relay adds to each frame, ms; 0 where it delays none."""
    if profile.jitter_ms or profile.loss_percent or not profile.delay_ms:
        return 0
    return profile.delay_ms if 0 < (profile.rate_mbit or 0) <= RELAY_MBIT else 0


def qdisc(profile: NetworkProfile) -> Parameters | None:
    """Return the qdisc that a profile needs; None where it needs none."""
    rate = (profile.rate_mbit or 0) * 1_000_000 / 8
    if needs_netem(profile):
        delay, jitter = (profile.delay_ms or 0) / 1000, (profile.jitter_ms or 0) / 1000
        frames_per_s = rate / FRAME_BYTES if rate else FRAMES_PER_S
        return Netem(
            # All frames under way at once, plus the queue in front of the slow link.
            limit=math.ceil(frames_per_s * (delay + jitter + profile.queue_s)),
            delay=delay,
            jitter=jitter,
            loss=(profile.loss_percent or 0) / 100,
            rate=rate,
        )
    if rate:
        least = RELAY_BURST_BYTES if relay_ms(profile) else BURST_BYTES
        burst = max(least, math.ceil(rate * BURST_S))
        return Tbf(rate=rate, burst=burst, latency=profile.queue_s)
    return None


def root(text: str) -> RootQdisc:
    """Return the root qdisc from the output of `tc -j qdisc show dev X`.

    Raises ValueError where there is not exactly one root qdisc.
    """
    entries = msgspec.json.decode(text or "[]", type=list[dict[str, Any]])
    roots = [entry for entry in entries if entry.get("root")]
    if len(roots) != 1:
        raise LabError(f"not one root qdisc: {text[:200]!r}")
    kind, handle = roots[0]["kind"], roots[0]["handle"]
    below = [entry["kind"] for entry in entries if entry.get("parent", "").startswith(HANDLE)]
    parameters = _parameters(kind, roots[0].get("options", {}))
    return RootQdisc(kind=kind, handle=handle, parameters=parameters, child=" ".join(below))


def _parameters(kind: str, options: Mapping[str, Any]) -> Parameters | None:
    """Return the parameters from the options that tc prints, where it leaves out what is zero."""
    if kind == "tbf":
        latency_us = options.get("lat")
        latency = None if latency_us is None else latency_us / 1_000_000
        return Tbf(rate=options["rate"], burst=options["burst"], latency=latency)
    if kind == "netem":
        delay = options.get("delay", {})
        return Netem(
            limit=options["limit"],
            delay=delay.get("delay", 0),
            jitter=delay.get("jitter", 0),
            loss=options.get("loss-random", {}).get("loss", 0),
            rate=options.get("rate", {}).get("rate", 0),
        )
    return None


def differences(profile: NetworkProfile, text: str) -> list[str]:
    """Return how an interface's qdisc differs from a profile, one sentence a parameter; empty where
    equal. ``text``: see root()."""
    needed, current = qdisc(profile), root(text)
    if needed is None:
        return [f"{current.kind} {current.handle} instead of none"] if current.is_labs else []
    if not current.is_labs or type(current.parameters) is not type(needed):
        kind = _KINDS[type(needed)]
        return [f"{current.kind} {current.handle} instead of {kind} {HANDLE}"]
    pairs = zip(
        needed.__struct_fields__,
        msgspec.structs.astuple(needed),
        msgspec.structs.astuple(current.parameters),
        strict=True,
    )
    below = [f"{current.child} below it instead of none"] if current.child else []
    return below + [
        f"{key}: asked {value:.10g}, is {_number(present)}"
        for key, value, present in pairs
        if present is None or not math.isclose(present, value, rel_tol=TOLERANCE)
    ]


def _number(value: float | None) -> str:
    return "None" if value is None else f"{value:.10g}"


def obstacle(profile: NetworkProfile, text: str, name: str, interface: str) -> str:
    """Return why the lab will not shape an interface that has a foreign qdisc; "" where it will.
    ``text``: see root()."""
    current = root(text)
    if qdisc(profile) is None or current.is_labs or current.is_kernels:
        return ""
    return (
        f"{interface} has the queueing discipline {current.kind} {current.handle} already, which "
        f"is neither the kernel's default nor the lab's, and the network profile {name} would "
        "replace it. Use -e network=lan, which leaves it, or remove it with "
        f"`tc qdisc del dev {interface} root`."
    )


def commands(profile: NetworkProfile, text: str, interface: str) -> list[str]:
    """Return the shell commands that give an interface the profile's qdisc; empty where it
    has it. ``text``: see root()."""
    if not differences(profile, text):
        return []
    at = ["dev", interface, "root", "handle", HANDLE]
    result = []
    if root(text).is_labs:
        # tc cannot change the kind of a qdisc, and netem keeps options that are not given again.
        result.append(shlex.join(["tc", "qdisc", "del", *at]))
    needed = qdisc(profile)
    if needed is None:
        return result
    # `tc qdisc add` fails if a non-default root qdisc exists, so a foreign one is never replaced.
    words = ["tc", "qdisc", "add", *at, _KINDS[type(needed)]]
    if isinstance(needed, Tbf):
        words += ["rate", _bits(needed.rate), "burst", f"{needed.burst:.0f}"]
        words += ["latency", _microseconds(profile.queue_s)]
    else:
        words += ["limit", f"{needed.limit:.0f}"]
        words += ["delay", _microseconds(needed.delay), _microseconds(needed.jitter)]
        if needed.loss:
            words += ["loss", "random", f"{needed.loss * 100:.6g}%"]
        if needed.rate:
            words += ["rate", _bits(needed.rate)]
    return [*result, shlex.join(words)]


def _bits(bytes_per_s: float) -> str:
    return f"{round(bytes_per_s * 8)}bit"


def _microseconds(seconds: float) -> str:
    return f"{round(seconds * 1_000_000)}us"
