"""Thresholds and words of the reasons that void a repetition, and of findings, which do not.

results/validity and the generators return them.
"""

from collections.abc import Mapping

from loadlab.model import Reason, Record
from loadlab.model.base import Above0, Count, Fraction, NotNegative
from loadlab.reasons.row import Cause, ReasonRow, ReasonTable, by, number, where, words_of
from loadlab.run.formatting import plural
from loadlab.run.run_dir import ERROR


class Thresholds(Record, kw_only=True, frozen=True, omit_defaults=False):
    """Thresholds that make a repetition void, and thresholds of findings, which do not.

    Fractions are 0 to 1. A run keeps those that it began with.
    """

    #: Void above: the client's CPU utilization, fraction; in a closed loop only where the server's
    #: is below server_cpu_full.
    generator_cpu_max: Fraction = 0.90
    #: Server's CPU utilization from which it counts as saturated, fraction.
    server_cpu_full: Fraction = 0.90
    #: Void above: requests that the generator made later / scheduled, where each request is
    #: recorded. Half of the requests above the p99. p99.9 and p99.99 are withheld above a tenth and
    #: a hundredth of it.
    late_max: Fraction = 0.005
    #: A request counts as made later where the generator added more than this, seconds, and more
    #: than late_least_fraction, and its latency is the median or above.
    late_least_s: NotNegative = 0.005
    #: Part of the latency with an ideal generator that the generator added, fraction.
    late_least_fraction: NotNegative = 0.1
    #: A percentile is withheld above: the generator's own part of it, fraction, if that is more
    #: than own_least_us too. Void if it is the median. Where the generator reports its part.
    own_fraction_max: Fraction = 0.1
    #: The generator's own part up to which a percentile is kept, µs.
    own_least_us: NotNegative = 20.0
    #: Void above: longest time in which the generator stood still, seconds.
    stop_max_s: NotNegative = 0.1
    #: Void above: time in which the generator stood still / duration, of each thread.
    stops_max: Fraction = 0.1
    #: Void above: p99 of the inter-arrival error, µs, if it is above gap_error_max too. Where the
    #: generator reports it.
    gap_error_max_us: NotNegative = 100.0
    #: p99 of the inter-arrival error / mean time between two requests or bursts.
    gap_error_max: Fraction = 0.1
    #: Void above: requests that a second had too many or too few / requests due in it, if they are
    #: more than second_off_least too.
    second_off_max: Fraction = 0.01
    second_off_least: Count = 3  #: Requests by which a second may be off.
    #: Time in which oha opens a connection, seconds. Where it is more than half of the time between
    #: two requests, those due before all are open, at most in a quarter of the load, are in no
    #: latency.
    opening_connection_s: NotNegative = 0.00025
    #: Requests sent / scheduled, below which the server was saturated or, where the requests are
    #: not recorded and the server was not the limit, the repetition is void.
    sent_min: Fraction = 0.99
    #: Mean connections in use / highest mean possible, as they fill up over time, from which all of
    #: them waited for the server.
    connections_busy_min: Fraction = 0.90
    #: Request timeout, seconds: how long a timed-out request held its connection, and the response
    #: time that a failed request counts with.
    timeout_s: Above0 = 30.0
    steal_max: Fraction = 0.01  #: Void above: CPU steal of either host, fraction.
    #: Void above: fraction of the seconds in which the client's CPU utilization was above
    #: generator_cpu_max.
    generator_cpu_seconds_max: Fraction = 0.20
    #: Steal above which a second counts as disturbed, fraction of the cores' time.
    steal_disturbing: Fraction = 0.05
    #: Void above: fraction of the seconds disturbed by steal, either host.
    steal_seconds_max: Fraction = 0.05
    #: Foreign CPU above which a second counts as disturbed, cores.
    foreign_cpu_disturbing: NotNegative = 0.10
    #: Void above: core time that others had in the disturbed seconds / duration, on a host.
    foreign_cpu_time_max: Fraction = 0.05
    #: Foreign CPU, or steal, above which a second moves any p99, cores.
    foreign_cpu_heavy: NotNegative = 0.25
    #: Void above: core time that others had in such seconds / duration, on a host. Half of the
    #: requests above the p99.
    foreign_cpu_heavy_time_max: Fraction = 0.005
    #: Void above: fraction of the seconds in which the link was above link_max.
    link_seconds_max: Fraction = 0.20
    #: Link not judged above: (fastest - slowest second) / mean of iperf3, in either direction.
    iperf3_spread_max: NotNegative = 0.60
    #: Link not judged above: segments retransmitted / sent by iperf3, in either direction; more
    #: than the loss of any network profile. Where memory is the link, 3 to 6 % are sent again, as
    #: the receiving core is full.
    iperf3_retransmits_max: Fraction = 0.10
    #: Finding from: utilization of a host's busiest core, where its mean is below.
    core_full: Fraction = 0.95
    #: Finding above: TCP segments retransmitted / sent, either host.
    retransmits_max: Fraction = 0.001
    #: Finding above: packets dropped by a host's card, its driver or the kernel's backlog /
    #: received.
    drops_max: Fraction = 0.0002
    #: Void above: bits/s / iperf3's bits/s in the same direction; for several clients the sum / the
    #: highest iperf3 result of a single client.
    link_max: Fraction = 0.80
    #: Finding above: connections refused for a full accept queue of the server.
    listen_overflows_max: Count = 0
    clock_step_max_s: NotNegative = 0.1  #: Void above: step of either host's clock, seconds.
    #: Void above: seconds between the first and the last start of a server's clients, on the
    #: controller's clock.
    start_spread_max_s: NotNegative = 0.25
    #: Void above: packets that the cloud held back or dropped because either host was above one
    #: allowance of its instance type.
    allowance_packets_max: Count = 0
    swap_pages_max: Count = 0  #: Void above: pages swapped in and out, either host.
    duration_min: Fraction = 0.95  #: Void below: measured / requested duration.
    samples_min: NotNegative = 0.80  #: Void below: telemetry scrapes a second, either host.
    #: No finding up to: backlog of unsent requests, seconds, that the generator's 1 ms timer
    #: explains at the end.
    send_delay_tail_s: NotNegative = 0.002
    #: Finding above: p99 of the generator's own delay, µs. Requests due in this time before the end
    #: and not sent are in no latency and no response time, where the generator explains it.
    send_delay_p99_max_us: NotNegative = 10000.0
    #: Finding above: difference of the requests under way by count and by rate times mean latency,
    #: fraction of those by count.
    littles_law_max: NotNegative = 0.05
    #: Recovered up to: growth of p99 over that before an overload, a fraction.
    recovered_max: NotNegative = 0.10
    #: Least length of the part of a load by which a recovery is judged, seconds.
    recovery_window_s: Above0 = 3.0
    #: Finding above: seconds by which the mean latency grew with each second of a constant rate,
    #: about the part of the requests that the server cannot answer.
    backlog_growth_max: NotNegative = 0.01


THRESHOLDS = Thresholds()

_FILES = (
    "Raise its limit (-e open_files=, ulimit -n), or have fewer requests under way "
    "(-e generator=python-bounded -e connections=)"
)
_SCHEDULE = (
    "{rate_achieved:,.1f}/s achieved of {rate:,g}/s asked, {unsent} of {scheduled} requests "
    "never sent, limit {limit} sent; server {server_cpu_busy:.2f} busy, {connections_used:.1f} "
    "of {connections} connections in use on average, {connections_usable:.1f} if all were as "
    "soon as they could be"
)


_LATE = (
    "the generator delayed {late:,.0f} of {scheduled:,.0f} requests by more than {least_s:1000*g} "
    "ms and {least_fraction:part} of the latency without the delay, to the median or above; "
    "[{unsent:,.0f} of them were never sent|all of them were sent]"
)
_OWN_PART = (
    "{percentile:percentile} {latency_us:us}, of which generator {value:us}, limit {limit:us}"
)
# In how many seconds a limit was exceeded; nothing where the mean was above it.
_SECONDS = "[ a second, exceeded in {seconds:.0%} of the seconds, limit {seconds_max:.0%}]"
# What stopped the generator, by the names of Stops.causes.
_CAUSES = {
    "own_work": "its own work",
    "other_thread": "another thread on its core",
    "outside": "the hypervisor, or a signal",
}


def _stopped(reason: Reason) -> str:
    facts = reason.facts
    causes = [
        f"{number(facts[name]) * 1000:,.0f} ms by {words}"
        for name, words in _CAUSES.items()
        if number(facts.get(name) or 0) >= 0.0005
    ]
    return (
        f"its loop stood still for {number(facts['total_s']) * 1000:,.0f} ms in all "
        f"({', '.join(causes)}), {number(facts['longest_s']) * 1000:,.1f} ms at most"
    )


# How requests failed, by the names of metronome.
_KINDS = {
    "no_port": "found no free local port (EADDRNOTAVAIL)",
    "no_descriptor": "found no free file descriptor (EMFILE)",
    "connect_timeout": "timed out while connecting",
    "closed": "lost their connection before an answer",
    "truncated": "lost their connection within an answer",
    "protocol": "got no valid HTTP",
    "timeout": "timed out",
    "reset": "were reset",
    "refused": "were refused",
    "unreachable": "found no route to the server",
    "write": "could not be sent",
    "tls": "failed in the TLS handshake",
}


def _failure_kinds(reason: Reason) -> str:
    kinds = reason.facts["kinds"]
    assert isinstance(kinds, list)
    parts = (kind.split(" ", 1) for kind in kinds)
    return "of the failed requests " + ", ".join(
        f"{count} {_KINDS.get(name, name)}" for count, name in parts
    )


def _littles_law(reason: Reason) -> str:
    facts = reason.facts
    apart = "rate and latency do not agree"
    if number(facts["by_latency"]) <= number(facts["counted"]):
        unanswered = int(number(facts["unanswered"]))
        parts = [f"{plural(unanswered, 'request')} without an answer"] if unanswered else []
        parts += ["the opening of a connection for each"] if facts["opens"] else []
        rest = "the time between an answer and the next request"
        apart = f"the latencies leave out {' and '.join(parts) or rest}"
    return words_of(
        "{counted:.1f} requests under way on average by count, {by_latency:.1f} by rate times "
        "mean latency, {value:percent} apart, limit {limit:.0%}: {apart}",
        reason,
        apart=apart,
    )


# Checks of metronome on itself, by its names.
_SELF_CHECKS = {
    "schedule": "the generator sent late while it was not stopped, p99 in µs",
    "littles_law": "requests under way by count and by rate times mean latency differ, fraction",
    "turnaround": "the generator took so much of the connections' time in the closed loop that it, "
    "not the server, may have been the limit, fraction",
    "halves": "the medians of the two halves of the load differ, fraction",
}


def _generator_cpu(reason: Reason) -> str:
    server, full = (
        number(reason.facts.get(name, 0)) for name in ("server_cpu_busy", "server_cpu_full")
    )
    cause = "both were full" if server >= full else "the generator was the limit"
    if reason.facts.get("failing"):
        cause = "most requests failed at once"
    return words_of(
        "client {value:.2f} busy, limit {limit}"
        + _SECONDS
        + "[, server {server_cpu_busy:.2f} busy, full from {server_cpu_full}: {cause}]",
        reason,
        cause=cause,
    )


def _link(reason: Reason) -> str:
    clients = reason.facts["clients"]
    return words_of(
        "{bits_per_second:bits}[ of {several} clients] {direction} of "
        "{iperf3_bits_per_second:bits} measured by iperf3, limit {limit}" + _SECONDS,
        reason,
        several=None if clients == 1 else clients,
    )


# Which resource of the server was used up, by the fact `resource`.
SATURATED = {"cpu": "the server's CPU was the limit", "connections": "all waited for the server"}


def _local_ports(reason: Reason) -> str:
    first, last = (int(number(reason.facts[name])) for name in ("first", "last"))
    return words_of(
        "{value:,} of {requests:,} requests found no free local port (EADDRNOTAVAIL): "
        "net.ipv4.ip_local_port_range gives {ports:,}, {first} to {last}, and [{reuse:if}each "
        "connection under way needs one. Have fewer under way|a closed connection keeps its own "
        "for 60 s more (TIME-WAIT). Reuse the connections (-e python_keepalive=true)], or widen "
        "the range",
        reason,
        ports=last - first + 1,
    )


# Reasons that void a repetition.
VOID: ReasonTable = {
    "failed": ReasonRow(
        "{value}", meaning="The measurement is not complete; the text is the error."
    ),
    "generator_failed": ReasonRow(
        "exit code {value}, {limit} expected",
        f"Read the generator's own message in the repetition's {ERROR}",
        meaning="The generator ended with an error.",
        brief="the generator failed",
    ),
    "nothing_sent": ReasonRow(
        "{value:n request}, at least {limit} expected",
        f"Read the generator's own message in the repetition's {ERROR}",
        meaning="The generator sent no request.",
        brief="the generator sent nothing",
    ),
    "short": ReasonRow(
        "{measured_s:.1f} s measured of {asked_s:g}, limit {limit}",
        "Read the generator's own output in the repetition's folder",
        meaning="The load ended earlier than requested.",
        thresholds=("duration_min",),
        brief="the load ended early",
    ),
    "generator_cpu": ReasonRow(
        _generator_cpu,
        "Give the client more cores, offer the load from several clients, or ask for less",
        meaning="The lab filled the client's CPU; in a closed loop, while the server's was not "
        "full. CPU time of other programs counts as foreign_cpu.",
        thresholds=("generator_cpu_max", "generator_cpu_seconds_max", "server_cpu_full"),
        cause="hosts",
        brief="the client's CPU was full ({:percent} busy)",
    ),
    "steal": ReasonRow(
        where(
            "second_max",
            "the hypervisor took a core of the {host} for {value:part} of the load, limit "
            "{limit:part}, in seconds with more than {second_max:two} cores; {worst:two} cores in "
            "the worst second",
            "{value:.3f} on {host}, limit {limit}" + _SECONDS,
        ),
        "Use a machine of your own, or an instance type whose CPU is not shared",
        meaning="Another machine on the same hardware took CPU time.",
        thresholds=(
            *("steal_max", "steal_disturbing", "steal_seconds_max"),
            *("foreign_cpu_heavy", "foreign_cpu_heavy_time_max"),
        ),
        cause="outside",
        brief="another machine took {:percent} of the CPU",
    ),
    "foreign_cpu": ReasonRow(
        "other programs used a core of the {host} for {value:part} of the load, limit "
        "{limit:part}. Counted are the seconds in which they used more than {second_max:two} "
        "cores: {worst:two} in the worst, {mean:percent} of its CPU on average",
        "Stop other programs on the host; local hosts share the machine that runs the lab",
        meaning="Processes that are not the lab's used the cores of a host.",
        thresholds=(
            *("foreign_cpu_disturbing", "foreign_cpu_time_max"),
            *("foreign_cpu_heavy", "foreign_cpu_heavy_time_max"),
        ),
        cause="outside",
        brief="other programs used a core for {:percent} of the time",
    ),
    "emulated": ReasonRow(
        "QEMU emulates the processors of {hosts:and}, without KVM",
        "Use a machine on which KVM works, or local containers (inventory/local)",
        meaning="The processors of a host are emulated, so the figures are those of the emulation.",
        cause="hosts",
        brief="the hosts are emulated",
    ),
    "clock_jump": ReasonRow(
        "{value:.3f} s on {host}, limit {limit}",
        "Let chrony or systemd-timesyncd slew the host's clock",
        meaning="The clock of a host was set during the load.",
        thresholds=("clock_step_max_s",),
        brief="a clock was set by {:.3f} s",
    ),
    "link_down": ReasonRow(
        "the test link was down {value:n time} on {hosts:and}",
        "Check the cable, the switch and what sets the network card",
        meaning="A host lost the test link.",
        brief="the test link was down",
    ),
    "swapping": ReasonRow(
        "{value} pages on {host}, limit {limit}",
        "Give the host more memory, or the application fewer workers",
        meaning="A host moved memory to or from swap.",
        thresholds=("swap_pages_max",),
        cause="hosts",
        brief="a host swapped memory",
    ),
    "allowance": ReasonRow(
        "the cloud held back or dropped {value:n packet} of {host} ({counter}), limit {limit}",
        "Use a larger instance type, whose allowance is higher and does not fall after a burst, or "
        "ask for less",
        meaning="The cloud held back packets of a host that was above an allowance of its "
        "instance type: bandwidth, packets per second or tracked connections.",
        thresholds=("allowance_packets_max",),
        cause="hosts",
        brief="the cloud held back packets",
    ),
    "telemetry_gap": ReasonRow(
        "{scrapes} scrapes of {host} in {duration_s:.1f} s, limit {limit} a second",
        "Leave the host's node_exporter more CPU: fewer workers, or a lower rate",
        meaning="A host could not be observed for part of the load.",
        thresholds=("samples_min",),
        brief="a host was not observed for part of the load",
    ),
    "recording_gap": ReasonRow(
        "the recording of {host}'s cores does not cover the load",
        "Look for what ended the recorder: a full disk, a lack of memory, or another program",
        meaning="Whether other programs took CPU time from the load is not known, as the recording "
        "of a host's cores begins too late or ends too early.",
        brief="a host's cores were not recorded for all of the load",
    ),
    "connections": ReasonRow(
        "{value} established on the client, at least {limit} expected",
        "Find out why the server refused or closed connections: its limits and its log",
        meaning="The client had fewer connections than requested.",
        cause="hosts",
        brief="the client had too few connections",
    ),
    "link": ReasonRow(
        _link,
        "Use a faster link, smaller answers, or ask for less",
        meaning="The load used so much of the link that the link may have been the limit.",
        thresholds=("link_max", "link_seconds_max"),
        cause="hosts",
        brief="the link was full",
    ),
    "generator_stopped": ReasonRow(
        lambda reason: words_of(f"{_stopped(reason)}, limit {{limit:1000*,.0f}} ms", reason),
        "Stop other work on the client's machine, and measure again",
        meaning="The generator stood still for so long that the server was not asked what was due.",
        thresholds=("stop_max_s",),
        brief="the generator stood still",
    ),
    "generator_stops": ReasonRow(
        lambda reason: words_of(
            f"{_stopped(reason)}: {{value:.1%}} of the load, limit {{limit:.0%}}", reason
        ),
        "Stop other work on the client's machine, give it more cores, or ask for less",
        meaning="The generator stood still for too much of the load.",
        thresholds=("stops_max",),
        brief="the generator stood still for {:percent} of the time",
    ),
    "shape": ReasonRow(
        "the p99 of the inter-arrival error was {value:us}, limit {limit:us}[; "
        "{seconds_off:n second} had too many requests or too few][; {mix_off:n block} of the mix "
        "had other counts than the weights]",
        "Give the client more cores, stop its other work, or ask for less",
        meaning="The generator did not send the arrivals that it was asked for: the gaps between "
        "requests, the requests of a second, or the counts of a mix. Waits for the server do not "
        "count.",
        thresholds=("gap_error_max_us", "gap_error_max", "second_off_max", "second_off_least"),
        brief="the generator did not send on time",
    ),
    "own_median": ReasonRow(
        _OWN_PART,
        "Give the client more cores, stop its other work, or ask for less",
        meaning="The generator itself made too much of the median latency.",
        thresholds=("own_fraction_max", "own_least_us"),
        brief="the generator made part of the median latency",
    ),
    "generator_late": ReasonRow(
        _LATE + "; {value:part} of all, limit {limit:part}",
        "Give the client more cores or memory, stop its other work, or ask for less",
        meaning="The generator made so many requests later than an ideal generator that the p99 "
        "may be its own.",
        thresholds=("late_max", "late_least_s", "late_least_fraction"),
        brief="the generator was late ({:percent} of requests)",
    ),
    "rate_missed": ReasonRow(
        _SCHEDULE + ": the generator did not keep up",
        "Ask for less, give the client more cores, or use several clients",
        meaning="wrk2 did not send the requests that were due, and the server was not the limit.",
        thresholds=("sent_min", "connections_busy_min"),
        cause="hosts",
        brief="the generator did not keep the rate",
    ),
    "start_spread": ReasonRow(
        "{value:.3f} s between the first and the last client's start, limit {limit}",
        "Synchronise the clients' clocks, and stop other work on them",
        meaning="The clients of one server did not start together.",
        thresholds=("start_spread_max_s",),
        brief="the clients did not start together",
    ),
}
# Findings. An expected void reason is a finding too.
FINDINGS: ReasonTable = {
    "saturated": ReasonRow(
        by("resource", {name: f"{_SCHEDULE}: {words}" for name, words in SATURATED.items()}),
        "Ask for less where the latency below saturation is wanted",
        meaning="The server did not keep the rate: its CPU was full, or all connections waited "
        "for it.",
        thresholds=("sent_min", "server_cpu_full", "connections_busy_min"),
    ),
    "backlog": ReasonRow(
        "with each second of the load requests waited {value:1000*,.0f} ms longer, limit "
        "{limit:1000*,.0f} ms: about {first_us:0.001*two} ms in its first second and "
        "{last_us:0.001*two} ms in its last",
        "Ask for less where the latency below saturation is wanted",
        meaning="The server answered more slowly than requests came, and what waited grew.",
        thresholds=("backlog_growth_max",),
    ),
    "connections_limit": ReasonRow(
        "{value:n request} found all {limit:,} connections that may be open busy, and waited for "
        "one",
        "Allow more (-e connections=open:<limit>), or ask for less",
        meaning="Connections are opened on demand, and reached their limit: requests waited for a "
        "free one, as visitors of a site do not.",
    ),
    "own_part": ReasonRow(
        "{percentiles:withheld}: " + _OWN_PART,
        "Stop other work on the client's machine, and measure again",
        meaning="The generator itself made too much of these percentiles, so they are withheld.",
        thresholds=("own_fraction_max", "own_least_us"),
    ),
    "failure_kinds": ReasonRow(_failure_kinds, meaning="How requests without an answer failed."),
    "self_check": ReasonRow(
        by(
            "check",
            {
                name: f"{words}: {{value:three}}, limit {{limit:,g}}"
                for name, words in _SELF_CHECKS.items()
            },
        ),
        "See the summary of the generator, metronome.json",
        meaning="A check of the generator on itself failed.",
    ),
    "late_tail": ReasonRow(
        _LATE + "; {percentiles:withheld}",
        "Stop other work on the client, or give it more cores",
        meaning="The generator made requests later: p99.9 or p99.99 may be its own and are "
        "withheld.",
        thresholds=("late_max",),
    ),
    "disturbed_tail": ReasonRow(
        "{percentiles:withheld}: others had a core of the {host} for {value:100*.2g} % of the "
        "load, in disturbed seconds",
        "Stop other work on the hosts, or load for longer",
        meaning="Others had a core in disturbed seconds for a larger part of the load than p99.9 "
        "or p99.99 leaves out, so they are withheld.",
        thresholds=("foreign_cpu_disturbing", "steal_disturbing"),
    ),
    "late_hidden": ReasonRow(
        "{value:n request} without an answer, {limit:n connection}: they may have held every "
        "connection, so how late the generator was cannot be told",
        "Find out why requests failed",
        meaning="So many requests failed that they may have held every connection: how late the "
        "generator was is not known.",
    ),
    "counts_differ": ReasonRow(
        "the reverse proxy counted {reverse_proxy:,} requests, the generator {generator:,}: "
        "{value:,} apart beyond failed requests, limit {limit:,}, one for each connection",
        "Check for other users of the server, and for a restart of the reverse proxy",
        meaning="The reverse proxy counted fewer requests than were answered, or more than the "
        "generator sent.",
    ),
    "listen_overflows": ReasonRow(
        "{value} on the server, limit {limit}",
        "Use a longer accept queue (-e backlog=, net.core.somaxconn) or fewer connections",
        meaning="The server dropped connections, as an accept queue was full.",
        thresholds=("listen_overflows_max",),
    ),
    "full_core": ReasonRow(
        "the busiest of the {host}'s {cores} cores was {value:.0%} busy, all together "
        "{cpu_busy:.0%}; softirq took at most {softirq:.0%} of a core",
        "Spread the work or the interrupts of the network card over more cores",
        meaning="One core of a host was full while the others had room, or was full of softirq.",
        thresholds=("core_full",),
    ),
    "killed": ReasonRow(
        "the kernel of {hosts:and} killed a process {value:n time} because memory was used "
        "up; journalctl -k names them",
        "Give the host more memory, or the application fewer workers",
        meaning="The kernel of a host killed processes because the machine or a control "
        "group had no memory left.",
    ),
    "retransmits": ReasonRow(
        "{host} sent {retransmits} of {segments} segments again, {value:.2%}, limit {limit:.1%}"
        "[{network:if}; p99 is that of a lost segment, which is sent again after 200 ms]",
        "Find out what the network loses: compare with ping and iperf3",
        meaning="A host sent many TCP segments again: the network lost them.",
        thresholds=("retransmits_max",),
    ),
    "packet_drops": ReasonRow(
        "{host} lost {value:.2%} of {received:,} packets before TCP saw them, limit "
        "{limit:.2%}: {card:,} dropped by the card, {softnet:,} for a full backlog of a core; "
        "{squeezed:n time} a core left packets for later",
        "Use larger rings (nic.ring.rx), spread the interrupts over more cores, raise "
        "net.core.netdev_max_backlog",
        meaning="A host's card or kernel dropped packets that arrived: the core that takes them "
        "was too slow.",
        thresholds=("drops_max",),
    ),
    "link_disturbed": ReasonRow(
        "the link was not judged, because its calibration was disturbed: {codes:list}",
        "Resume the run with -e recalibrate=true",
        meaning="The measurement of the link was disturbed twice, so the link was not judged.",
    ),
    "iperf3_spread": ReasonRow(
        "{direction}: fastest less slowest second of iperf3 {value:.0%} of the mean, limit "
        "{limit:.0%}",
        "Resume the run with -e recalibrate=true",
        meaning="The throughput of iperf3 differed from second to second.",
        thresholds=("iperf3_spread_max",),
    ),
    "iperf3_retransmits": ReasonRow(
        "{direction}: iperf3 sent {value:.1%} of its segments again, limit {limit:.0%}",
        "Resume the run with -e recalibrate=true",
        meaning="iperf3 sent many TCP segments again.",
        thresholds=("iperf3_retransmits_max",),
    ),
    "uncounted": ReasonRow(
        "no reverse proxy was there to count requests at the server",
        meaning="Nothing counted requests at the server, since no reverse proxy was there.",
    ),
    "uncalibrated": ReasonRow(
        "no iperf3 figures, the link was not judged",
        "Resume the run with -e recalibrate=true",
        meaning="The link was not measured, so its use was not judged.",
    ),
    "unsent": ReasonRow(
        "{value} of {scheduled} scheduled requests were never sent; each waited until the end "
        "at least",
        "Compare response times, which count these requests",
        meaning="The generator never sent some scheduled requests. They rank behind every answer.",
        thresholds=("send_delay_tail_s",),
    ),
    "aborted": ReasonRow(
        "{value} of {requests} requests were cut off at the deadline",
        meaning="The generator cut off requests at its deadline.",
    ),
    "errors": ReasonRow(
        "{class} {value} of {requests} requests",
        "Read the application's log in the run's logs/",
        meaning="Requests failed, by class.",
    ),
    "send_delay": ReasonRow(
        "p99 of {value:.0f} µs, limit {limit:g}: the generator's own delay, a part of the latency",
        "Leave the client more CPU: more cores, or a lower rate",
        meaning="The generator itself delayed requests. Latency includes this delay.",
        thresholds=("send_delay_p99_max_us",),
    ),
    "littles_law": ReasonRow(
        _littles_law,
        meaning="Requests under way by count differ from rate times mean latency: the latencies "
        "leave something out.",
        thresholds=("littles_law_max",),
    ),
    "open_files_granted": ReasonRow(
        "{value:,} granted of {limit:,} asked, the hard limit of the client's process",
        "Raise the hard limit of open files on the client",
        meaning="The client was granted fewer open files than requested.",
    ),
    "open_files": ReasonRow(
        "{value:,} of {requests:,} requests found no free file descriptor (EMFILE): each "
        "connection is an open file, and the client may have {open_files:,}. " + _FILES,
        _FILES,
        meaning="Requests failed, as the client had no free file descriptor.",
    ),
    "local_ports": ReasonRow(
        _local_ports,
        "Reuse the connections (-e python_keepalive=true), have fewer under way, or widen "
        "net.ipv4.ip_local_port_range",
        meaning="Requests failed, as the client had no free local port.",
    ),
    "opening": ReasonRow(
        "{value:,} of {scheduled:,} requests were due while the generator opened its "
        "connections; the slowest took {max_us:ms} ms. They are in no percentile of the "
        "latency; response times and objectives count them",
        meaning="The first requests are in no percentile of the latency, as oha opened its "
        "connections meanwhile.",
        thresholds=("opening_connection_s",),
    ),
    "overlap": ReasonRow(
        "{refused:n answer} of 400 and above and {late} late ones may be the same; goodput "
        "leaves out both",
        meaning="wrk counts a late answer with an error status twice.",
    ),
    "body": ReasonRow(
        "{mean_bytes:.1f} bytes an answer on average, {expected_bytes} expected, limit {limit:.0%}",
        "Check whether the endpoint's answers differ from the verified one",
        meaning="The answers had another length than the verified one.",
    ),
    "opened": ReasonRow(
        "{value:n connection} of {limit} asked, as many on each of {threads} threads",
        "Ask for a multiple of the client's cores as connections",
        meaning="wrk2 opened fewer connections than requested.",
    ),
    "calibrated": ReasonRow(
        "{value} of {limit} threads; the latencies of the others are of the whole run, its "
        "first 10 s included",
        "Measure for longer, 30 s or more",
        meaning="Some threads of wrk2 did not finish their calibration of 10 s.",
    ),
    "ticks": ReasonRow(
        "{value:n time} wrk2, which looks every 2 s, saw a connection that had sent nothing for "
        "the request timeout; these are no requests, and count as no errors",
        meaning="wrk2 saw connections that sent nothing for the request timeout.",
    ),
    "service": ReasonRow(
        "it ran without --u_latency, the service time is not known",
        meaning="wrk2 reported no service time.",
    ),
}
# Code of a reason that voids -> its cause.
CAUSES: Mapping[str, Cause] = {code: row.cause for code, row in VOID.items()}
