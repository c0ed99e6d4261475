"""Parse `iperf3 -J` of a TCP test in one direction."""

import contextlib
import json
import re
import statistics
from collections.abc import Mapping

from loadlab.model import Iperf3Cpu, Iperf3Direction
from loadlab.run.errors import LabError
from loadlab.run.run_dir import IPERF3

# Percent of each core that iperf3 can use, from which they count as full.
FULL_PERCENT = 90
# Since this version each stream has a thread (release notes of iperf3 3.16).
THREADS_SINCE = (3, 16)
_VERSION = re.compile(r"iperf (\d+)\.(\d+)")


class Iperf3Error(LabError):
    """iperf3 failed, or its JSON is not that of a TCP test in one direction."""


def parse(text: str) -> Iperf3Direction:
    """Return the figures of a test; bits and seconds are the receiver's, retransmits the sender's.

    cpu_percent is 0 to 100 for each core used; local is the host that wrote the JSON.
    Raises Iperf3Error, with iperf3's own message where it has one.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise Iperf3Error(f"iperf3's JSON is truncated: {error}: …{text[-80:]!r}") from error
    if not isinstance(document, dict):
        raise Iperf3Error(f"iperf3's JSON is no object: {text[:80]!r}")
    if "error" in document:
        raise Iperf3Error(f"iperf3 failed: {document['error']}")
    try:
        end = document["end"]
        sent, received, cpu = end["sum_sent"], end["sum_received"], end["cpu_utilization_percent"]
        if "sum_bidir_reverse" in end or "sum_sent_bidir_reverse" in end:
            raise Iperf3Error("iperf3 ran in both directions; run one at a time, without --bidir")
        bits, seconds = float(received["bits_per_second"]), float(received["seconds"])
        # Only a TCP sender reports them; the JSON of a UDP test has no such key.
        retransmits = int(sent["retransmits"])
        moved, size = float(sent["bytes"]), float(document["start"]["tcp_mss_default"])
        rates = [float(interval["sum"]["bits_per_second"]) for interval in document["intervals"]]
        percent = Iperf3Cpu(local=float(cpu["host_total"]), remote=float(cpu["remote_total"]))
        streams = int(document["start"]["test_start"]["num_streams"])
        version = _VERSION.match(document["start"]["version"])
    except (KeyError, TypeError) as error:
        raise Iperf3Error(
            f"iperf3's JSON is not of a TCP test: {error!r} missing; keys are {sorted(document)}"
        ) from error
    if bits <= 0 or seconds <= 0:
        raise Iperf3Error(f"iperf3 moved {bits} bits/s in {seconds} s: no traffic passed")
    threads = version is None or (int(version[1]), int(version[2])) >= THREADS_SINCE
    cores = streams if threads else 1
    # The last interval may be a fraction of a second.
    whole = rates[: int(seconds)]
    return Iperf3Direction(
        bits_per_second=bits,
        retransmits=retransmits,
        seconds=seconds,
        cpu_percent=percent,
        spread=(max(whole) - min(whole)) / statistics.mean(whole) if len(whole) > 1 else None,
        retransmitted=min(1.0, retransmits * size / moved) if moved and size else None,
        streams=streams,
        core_limited=max(percent.local, percent.remote) >= FULL_PERCENT * cores,
    )


def to_repeat(outputs: Mapping[str, str], streams: int) -> list[str]:
    """Return the directions to measure again with several streams, because one filled a core.

    ``outputs``: iperf3's output by direction; other keys are skipped. ``streams``: how many the
    hosts have cores for.
    """
    directions = []
    for name in IPERF3 if streams > 1 else ():
        # The derivation of the calibration reports a failed test, after the raw files were kept.
        with contextlib.suppress(Iperf3Error):
            if parse(outputs[name]).core_limited:
                directions.append(name)
    return directions
