"""Words for the reasons that void a repetition, and for findings, which do not.

analysis/validity.py and the generators return them.
"""

from __future__ import annotations

from loadlab.core.model import Reason
from loadlab.core.run_dir import ERROR
from loadlab.report.words import quantities
from loadlab.report.words.table import Entry, Table

_FILES = (
    "Raise its limit (-e open_files=, ulimit -n), or have fewer requests under way "
    "(-e generator=python-bounded -e connections=)"
)


def _failed(why: Reason) -> str:
    return str(why.value)


def _generator_failed(why: Reason) -> str:
    return f"exit code {why.value}, {why.limit} expected"


def _nothing_sent(why: Reason) -> str:
    return f"{why.value} requests, at least {why.limit} expected"


def _short(why: Reason) -> str:
    fact = why.facts
    return f"{fact['measured_s']:.1f} s measured of {fact['asked_s']:g}, limit {why.limit}"


def _generator_cpu(why: Reason) -> str:
    text = f"client {why.value:.2f} busy, limit {why.limit}{_seconds(why)}"
    if "server_cpu_busy" not in why.facts:
        return text
    server, full = why.facts["server_cpu_busy"], why.facts["server_cpu_full"]
    assert isinstance(server, float | int)
    assert isinstance(full, float | int)
    cause = "both were full" if server >= full else "the generator was the limit"
    return f"{text}, server {server:.2f} busy, full from {full}: {cause}"


def _seconds(why: Reason) -> str:
    """Return in how many seconds a limit was exceeded; nothing where the mean was above it."""
    fact = why.facts
    if "seconds" not in fact:
        return ""
    return (
        f" a second, exceeded in {fact['seconds']:.0%} of the seconds, limit "
        f"{fact['seconds_max']:.0%}"
    )


def _steal(why: Reason) -> str:
    return f"{why.value:.3f} on {why.facts['host']}, limit {why.limit}{_seconds(why)}"


def _foreign_cpu(why: Reason) -> str:
    fact = why.facts
    return (
        f"processes that are not the lab's used more than {fact['second_max']:.0%} of the "
        f"{fact['host']}'s CPU in {why.value:.0%} of the seconds, limit {why.limit:.0%}; "
        f"{fact['mean']:.0%} on average, {fact['worst']:.0%} in the worst second"
    )


def _full_core(why: Reason) -> str:
    fact = why.facts
    return (
        f"the busiest of the {fact['host']}'s {fact['cores']} cores was {why.value:.0%} busy, all "
        f"together {fact['cpu_busy']:.0%}; softirq took at most {fact['softirq']:.0%} of a core"
    )


def _retransmits(why: Reason) -> str:
    fact = why.facts
    text = (
        f"{fact['host']} sent {fact['retransmits']} of {fact['segments']} segments again, "
        f"{why.value:.2%}, limit {why.limit:.1%}"
    )
    if not fact["network"]:
        return text
    return f"{text}; p99 is that of a lost segment, which is sent again after 200 ms"


def _packet_drops(why: Reason) -> str:
    fact = why.facts
    return (
        f"{fact['host']} lost {why.value:.2%} of {fact['received']:,} packets before TCP saw them, "
        f"limit {why.limit:.2%}: {fact['card']:,} dropped by the card, {fact['softnet']:,} for a "
        f"full backlog of a core; {fact['squeezed']:,} times a core left packets for later"
    )


def _link_disturbed(why: Reason) -> str:
    codes = why.facts["codes"]
    assert isinstance(codes, list)
    return f"the link was not judged, because its calibration was disturbed: {', '.join(codes)}"


def _iperf3_spread(why: Reason) -> str:
    return (
        f"{why.facts['direction']}: fastest less slowest second of iperf3 {why.value:.0%} of the "
        f"mean, limit {why.limit:.0%}"
    )


def _iperf3_retransmits(why: Reason) -> str:
    return (
        f"{why.facts['direction']}: iperf3 sent {why.value:.1%} of its segments again, limit "
        f"{why.limit:.0%}"
    )


def _clock_jump(why: Reason) -> str:
    return f"{why.value:.3f} s on {why.facts['host']}, limit {why.limit}"


def _swapping(why: Reason) -> str:
    return f"{why.value} pages on {why.facts['host']}, limit {why.limit}"


def _telemetry_gap(why: Reason) -> str:
    fact = why.facts
    return (
        f"{fact['scrapes']} scrapes of {fact['host']} in {fact['duration_s']:.1f} s, limit "
        f"{why.limit} a second"
    )


def _listen_overflows(why: Reason) -> str:
    return f"{why.value} on the server, limit {why.limit}"


def _connections(why: Reason) -> str:
    return f"{why.value} established on the client, at least {why.limit} expected"


def _link(why: Reason) -> str:
    fact = why.facts
    count = fact["clients"]
    clients = "" if count == 1 else f" of {count} clients"
    return (
        f"{fact['bits_per_second']:.3g} bits/s{clients} {fact['direction']} of "
        f"{fact['iperf3_bits_per_second']:.3g} measured by iperf3, limit {why.limit}{_seconds(why)}"
    )


def _start_spread(why: Reason) -> str:
    return f"{why.value:.3f} s between the first and the last client's start, limit {why.limit}"


def _schedule(why: Reason) -> str:
    fact = why.facts
    return (
        f"{fact['rate_achieved']:.1f}/s achieved of {fact['rate']:g}/s asked, {fact['unsent']} of "
        f"{fact['scheduled']} requests never sent, limit {why.limit} sent; server "
        f"{fact['server_cpu_busy']:.2f} busy, {fact['connections_used']:.1f} of "
        f"{fact['connections']} connections in use on average, {fact['connections_usable']:.1f} "
        "if all were as soon as they could be"
    )


def _late(why: Reason) -> str:
    fact = why.facts
    return (
        f"{fact['late']} of {fact['scheduled']} scheduled requests made later by the generator, by "
        f"more than {fact['least_s']} s and {_fraction(fact['least_fraction']):.0%} of the latency "
        f"with an ideal one; {fact['unsent']} of them never sent"
    )


def _fraction(value: object) -> float:
    assert isinstance(value, float | int)
    return float(value)


def _generator_late(why: Reason) -> str:
    return f"{_late(why)}; {why.value:.4f} of all, limit {why.limit}"


def _late_tail(why: Reason) -> str:
    names = why.facts["percentiles"]
    assert isinstance(names, list)
    return f"{_late(why)}; {' and '.join(map(quantities.percentile, names))} withheld"


def _late_hidden(why: Reason) -> str:
    return (
        f"{why.value} requests without an answer, {why.limit} connections: they may have held "
        "every connection, so how late the generator was cannot be told"
    )


def _counts_differ(why: Reason) -> str:
    fact = why.facts
    return (
        f"nginx counted {fact['nginx']:,} requests, the generator {fact['generator']:,}: "
        f"{why.value:,} apart beyond failed requests, limit {why.limit:,}, one for each connection"
    )


def _rate_missed(why: Reason) -> str:
    return f"{_schedule(why)}: the generator did not keep up"


# Which resource of the server was used up, by the fact `resource`.
SATURATED = {
    "cpu": "the server's CPU was the limit",
    "connections": "all waited for the server",
}


def _saturated(why: Reason) -> str:
    return f"{_schedule(why)}: {SATURATED[str(why.facts['resource'])]}"


def _uncounted(why: Reason) -> str:
    return "nginx is not in the path, and nobody else counts requests at the server"


def _uncalibrated(why: Reason) -> str:
    return "no iperf3 figures, the link was not judged"


def _unsent(why: Reason) -> str:
    return (
        f"{why.value} of {why.facts['scheduled']} scheduled requests were never sent; each waited "
        "until the end at least"
    )


def _aborted(why: Reason) -> str:
    return f"{why.value} of {why.facts['requests']} requests were cut off at the deadline"


def _errors(why: Reason) -> str:
    return f"{why.facts['class']} {why.value} of {why.facts['requests']} requests"


def _send_delay(why: Reason) -> str:
    return (
        f"p99 of {why.value:.0f} µs, limit {why.limit:g}: the generator's own delay, a part of the "
        "latency"
    )


def _littles_law(why: Reason) -> str:
    fact = why.facts
    return (
        f"{fact['concurrency']:.1f} requests under way on average, {fact['connections']} "
        f"connections, limit {why.limit}: rate and latency do not agree"
    )


def _open_files_granted(why: Reason) -> str:
    return f"{why.value:,} granted of {why.limit:,} asked, the hard limit of the client's process"


def _open_files(why: Reason) -> str:
    fact = why.facts
    return (
        f"{why.value:,} of {fact['requests']:,} requests found no free file descriptor (EMFILE): "
        f"each connection is an open file, and the client may have {fact['open_files']:,}. {_FILES}"
    )


def _local_ports(why: Reason) -> str:
    fact = why.facts
    low, high = fact["first"], fact["last"]
    assert isinstance(low, int)
    assert isinstance(high, int)
    cause, remedy = "each connection under way needs one", "Have fewer under way"
    if not fact["reuse"]:
        cause = "a closed connection keeps its own for 60 s more (TIME-WAIT)"
        remedy = "Reuse the connections (-e reuse=true)"
    return (
        f"{why.value:,} of {fact['requests']:,} requests found no free local port (EADDRNOTAVAIL): "
        f"net.ipv4.ip_local_port_range gives {high - low + 1:,}, {low} to {high}, and {cause}. "
        f"{remedy}, or widen the range"
    )


def _overlap(why: Reason) -> str:
    return (
        f"{why.facts['refused']} answers of 400 and above and {why.facts['late']} late ones may be "
        "the same; ok counts both off"
    )


def _body(why: Reason) -> str:
    fact = why.facts
    return (
        f"{fact['mean_bytes']:.1f} bytes an answer on average, {fact['expected_bytes']} expected, "
        f"limit {why.limit:.0%}"
    )


def _opened(why: Reason) -> str:
    return (
        f"{why.value} connections of {why.limit} asked, as many on each of "
        f"{why.facts['threads']} threads"
    )


def _calibrated(why: Reason) -> str:
    return (
        f"{why.value} of {why.limit} threads; the latencies of the others are of the whole run, "
        "its first 10 s included"
    )


def _ticks(why: Reason) -> str:
    return (
        f"{why.value} times wrk2, which looks every 2 s, saw a connection that had sent nothing "
        "for the request timeout; these are no requests, and count as no errors"
    )


def _service(why: Reason) -> str:
    return "it ran without --u_latency, the service time is not known"


# Reasons that void a repetition.
VOID: Table = {
    "failed": Entry(_failed),
    "generator_failed": Entry(
        _generator_failed, f"Read the generator's own message in the repetition's {ERROR}"
    ),
    "nothing_sent": Entry(
        _nothing_sent, f"Read the generator's own message in the repetition's {ERROR}"
    ),
    "short": Entry(_short, "Read the generator's own output in the repetition's folder"),
    "generator_cpu": Entry(
        _generator_cpu,
        "Give the client more cores, offer the load from several clients, or ask for less",
    ),
    "steal": Entry(
        _steal, "Use a machine of your own, or an instance type whose CPU is not shared"
    ),
    "foreign_cpu": Entry(
        _foreign_cpu,
        "Stop what else runs on the host; with local hosts, on the controller",
    ),
    "clock_jump": Entry(_clock_jump, "Let chrony or systemd-timesyncd slew the host's clock"),
    "swapping": Entry(_swapping, "Give the host more memory, or the application fewer workers"),
    "telemetry_gap": Entry(
        _telemetry_gap,
        "Leave the host's node_exporter more CPU: fewer workers, or a lower rate",
    ),
    "connections": Entry(
        _connections, "See why the server refused or closed connections: its limits and its log"
    ),
    "link": Entry(_link, "Use a faster link, smaller answers, or ask for less"),
    "generator_late": Entry(
        _generator_late,
        "Give the client more cores or memory, stop its other work, or ask for less",
    ),
    "rate_missed": Entry(
        _rate_missed, "Ask for less, give the client more cores, or use several clients"
    ),
    "start_spread": Entry(
        _start_spread, "Synchronise the clients' clocks, and see what else loads them"
    ),
}
# Findings. An expected void reason is a finding too.
FINDINGS: Table = {
    "saturated": Entry(_saturated, "Ask for less where the latency below saturation is wanted"),
    "late_tail": Entry(_late_tail, "Stop other work on the client, or give it more cores"),
    "late_hidden": Entry(_late_hidden, "See why requests failed"),
    "counts_differ": Entry(
        _counts_differ, "See who else uses the server, and whether nginx was restarted"
    ),
    "listen_overflows": Entry(
        _listen_overflows,
        "Use a longer accept queue (-e backlog=, net.core.somaxconn) or fewer connections",
    ),
    "full_core": Entry(
        _full_core, "Spread the work or the interrupts of the network card over more cores"
    ),
    "retransmits": Entry(
        _retransmits, "See what the network loses, and compare with ping and iperf3"
    ),
    "packet_drops": Entry(
        _packet_drops,
        "Use larger rings (nic.ring.rx), spread the interrupts over more cores, raise "
        "net.core.netdev_max_backlog",
    ),
    "link_disturbed": Entry(_link_disturbed, "Resume the run with -e recalibrate=true"),
    "iperf3_spread": Entry(_iperf3_spread, "Resume the run with -e recalibrate=true"),
    "iperf3_retransmits": Entry(_iperf3_retransmits, "Resume the run with -e recalibrate=true"),
    "uncounted": Entry(_uncounted),
    "uncalibrated": Entry(_uncalibrated, "Resume the run with -e recalibrate=true"),
    "unsent": Entry(_unsent, "Compare response times, which count these requests"),
    "aborted": Entry(_aborted),
    "errors": Entry(_errors, "Read the application's log in the run's logs/"),
    "send_delay": Entry(_send_delay, "Leave the client more CPU: more cores, or a lower rate"),
    "littles_law": Entry(_littles_law),
    "open_files_granted": Entry(
        _open_files_granted, "Raise the hard limit of open files on the client"
    ),
    "open_files": Entry(_open_files, _FILES),
    "local_ports": Entry(
        _local_ports,
        "Reuse the connections (-e reuse=true), have fewer under way, or widen "
        "net.ipv4.ip_local_port_range",
    ),
    "overlap": Entry(_overlap),
    "body": Entry(_body, "See whether the endpoint's answers differ from the verified one"),
    "opened": Entry(_opened, "Ask for a multiple of the client's cores as connections"),
    "calibrated": Entry(_calibrated, "Measure for longer, 30 s or more"),
    "ticks": Entry(_ticks),
    "service": Entry(_service),
}
TABLE: Table = {**VOID, **FINDINGS}
