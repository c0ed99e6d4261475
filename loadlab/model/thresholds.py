"""files/validity.yml: the thresholds of void reasons and findings."""

from typing import Annotated

from loadlab.model.base import Above0, Count, Fraction, NotNegative, Record, doc


class Thresholds(Record, kw_only=True, frozen=True, omit_defaults=False):
    """Thresholds that make a repetition void, and thresholds of findings, which do not."""

    generator_cpu_max: Annotated[
        Fraction,
        doc(
            "Void above: the client's CPU utilization, fraction; in a closed loop only where "
            "the server's is below server_cpu_full."
        ),
    ]
    server_cpu_full: Annotated[
        Fraction, doc("Server's CPU utilization from which it counts as saturated, fraction.")
    ]
    late_max: Annotated[
        Fraction,
        doc(
            "Void above: requests that the generator made later / scheduled, where each request is "
            "recorded. Half of the requests above the p99. p99.9 and p99.99 are withheld above a "
            "tenth and a hundredth of it."
        ),
    ]
    late_least_s: Annotated[
        NotNegative,
        doc(
            "A request counts as made later where the generator added more than this, seconds, "
            "and more than late_least_fraction, and its latency is the median or above."
        ),
    ]
    late_least_fraction: Annotated[
        NotNegative,
        doc("Part of the latency with an ideal generator that the generator added, fraction."),
    ]
    own_fraction_max: Annotated[
        Fraction,
        doc(
            "A percentile is withheld above: the generator's own part of it, fraction, if that is "
            "more than own_least_us too. Void if it is the median. Where the generator reports its "
            "part."
        ),
    ]
    own_least_us: Annotated[
        NotNegative, doc("The generator's own part up to which a percentile is kept, µs.")
    ]
    stop_max_s: Annotated[
        NotNegative, doc("Void above: longest time in which the generator stood still, seconds.")
    ]
    stops_max: Annotated[
        Fraction,
        doc("Void above: time in which the generator stood still / duration, of each thread."),
    ]
    gap_error_max_us: Annotated[
        NotNegative,
        doc(
            "Void above: p99 of the inter-arrival error, µs, if it is above gap_error_max too. "
            "Where the generator reports it."
        ),
    ]
    gap_error_max: Annotated[
        Fraction, doc("p99 of the inter-arrival error / mean time between two requests or bursts.")
    ]
    second_off_max: Annotated[
        Fraction,
        doc(
            "Void above: requests that a second had too many or too few / requests due in it, if "
            "they are more than second_off_least too."
        ),
    ]
    second_off_least: Annotated[Count, doc("Requests by which a second may be off.")]
    opening_connection_s: Annotated[
        NotNegative,
        doc(
            "Time in which oha opens a connection, seconds. Where it is more than half of the time "
            "between two requests, those due before all are open, at most in a quarter of the "
            "load, are in no latency."
        ),
    ]
    sent_min: Annotated[
        Fraction,
        doc(
            "Requests sent / scheduled, below which the server was saturated or, where the "
            "requests are not recorded and the server was not the limit, the repetition is void."
        ),
    ]
    connections_busy_min: Annotated[
        Fraction,
        doc(
            "Mean connections in use / highest mean possible, as they fill up over time, from "
            "which all of them waited for the server."
        ),
    ]
    timeout_s: Annotated[
        Above0,
        doc(
            "Request timeout, seconds: how long a timed-out request held its connection, and "
            "the response time that a failed request counts with."
        ),
    ]
    steal_max: Annotated[Fraction, doc("Void above: CPU steal of either host, fraction.")]
    generator_cpu_seconds_max: Annotated[
        Fraction,
        doc(
            "Void above: fraction of the seconds in which the client's CPU utilization was above "
            "generator_cpu_max."
        ),
    ]
    steal_disturbing: Annotated[
        Fraction,
        doc("Steal above which a second counts as disturbed, fraction of the cores' time."),
    ]
    steal_seconds_max: Annotated[
        Fraction, doc("Void above: fraction of the seconds disturbed by steal, either host.")
    ]
    foreign_cpu_disturbing: Annotated[
        NotNegative,
        doc("Foreign CPU above which a second counts as disturbed, cores."),
    ]
    foreign_cpu_time_max: Annotated[
        Fraction,
        doc(
            "Void above: core time that others had in the disturbed seconds / duration, on a host."
        ),
    ]
    foreign_cpu_heavy: Annotated[
        NotNegative, doc("Foreign CPU above which a second moves any p99, cores.")
    ]
    foreign_cpu_heavy_time_max: Annotated[
        Fraction,
        doc(
            "Void above: core time that others had in such seconds / duration, on a host. Half of "
            "the requests above the p99."
        ),
    ]
    link_seconds_max: Annotated[
        Fraction, doc("Void above: fraction of the seconds in which the link was above link_max.")
    ]
    iperf3_spread_max: Annotated[
        NotNegative,
        doc(
            "Link not judged above: (fastest - slowest second) / mean of iperf3, in either "
            "direction."
        ),
    ]
    iperf3_retransmits_max: Annotated[
        Fraction,
        doc(
            "Link not judged above: segments retransmitted / sent by iperf3, in either direction; "
            "more than the loss of any network profile."
        ),
    ]
    core_full: Annotated[
        Fraction,
        doc("Finding from: utilization of a host's busiest core, where its mean is below."),
    ]
    retransmits_max: Annotated[
        Fraction, doc("Finding above: TCP segments retransmitted / sent, either host.")
    ]
    drops_max: Annotated[
        Fraction,
        doc(
            "Finding above: packets dropped by a host's card, its driver or the kernel's backlog / "
            "received."
        ),
    ]
    link_max: Annotated[
        Fraction,
        doc(
            "Void above: bits/s / iperf3's bits/s in the same direction; for several clients "
            "the sum / the highest iperf3 result of a single client."
        ),
    ]
    listen_overflows_max: Annotated[
        Count, doc("Finding above: connections refused for a full accept queue of the server.")
    ]
    clock_step_max_s: Annotated[
        NotNegative, doc("Void above: step of either host's clock, seconds.")
    ]
    start_spread_max_s: Annotated[
        NotNegative,
        doc(
            "Void above: seconds between the first and the last start of a server's clients, "
            "on the controller's clock."
        ),
    ]
    allowance_packets_max: Annotated[
        Count,
        doc(
            "Void above: packets that the cloud held back or dropped because either host was above "
            "one allowance of its instance type."
        ),
    ]
    swap_pages_max: Annotated[Count, doc("Void above: pages swapped in and out, either host.")]
    duration_min: Annotated[Fraction, doc("Void below: measured / requested duration.")]
    samples_min: Annotated[NotNegative, doc("Void below: telemetry scrapes a second, either host.")]
    send_delay_tail_s: Annotated[
        NotNegative,
        doc(
            "No finding up to: backlog of unsent requests, seconds, that the generator's 1 ms "
            "timer explains at the end."
        ),
    ]
    send_delay_p99_max_us: Annotated[
        NotNegative,
        doc(
            "Finding above: p99 of the generator's own delay, µs. Requests due in this time before "
            "the end and not sent are in no latency and no response time, where the generator "
            "explains it."
        ),
    ]
    littles_law_max: Annotated[
        NotNegative,
        doc(
            "Finding above: difference of the requests under way by count and by rate times mean "
            "latency, fraction of those by count."
        ),
    ]
    recovered_max: Annotated[
        NotNegative,
        doc("Recovered up to: growth of p99 over that before an overload, a fraction."),
    ]
    recovery_window_s: Annotated[
        Above0,
        doc("Least length of the part of a load by which a recovery is judged, seconds."),
    ]
    backlog_growth_max: Annotated[
        NotNegative,
        doc(
            "Finding above: seconds by which the mean latency grew with each second of a constant "
            "rate, about the part of the requests that the server cannot answer."
        ),
    ]
