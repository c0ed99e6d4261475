"""files/validity.yml: the thresholds of void reasons and findings."""

from loadlab.model.base import Above0, Count, Fraction, NotNegative, Record


class Thresholds(Record, kw_only=True, frozen=True, omit_defaults=False):
    """Thresholds that make a repetition void, and thresholds of findings, which do not."""

    #: Void above: the client's CPU utilization, fraction; in a closed loop only where the server's
    #: is below server_cpu_full.
    generator_cpu_max: Fraction
    #: Server's CPU utilization from which it counts as saturated, fraction.
    server_cpu_full: Fraction
    #: Void above: requests that the generator made later / scheduled, where each request is
    #: recorded. Half of the requests above the p99. p99.9 and p99.99 are withheld above a tenth and
    #: a hundredth of it.
    late_max: Fraction
    #: A request counts as made later where the generator added more than this, seconds, and more
    #: than late_least_fraction, and its latency is the median or above.
    late_least_s: NotNegative
    #: Part of the latency with an ideal generator that the generator added, fraction.
    late_least_fraction: NotNegative
    #: A percentile is withheld above: the generator's own part of it, fraction, if that is more
    #: than own_least_us too. Void if it is the median. Where the generator reports its part.
    own_fraction_max: Fraction
    own_least_us: NotNegative  #: The generator's own part up to which a percentile is kept, µs.
    #: Void above: longest time in which the generator stood still, seconds.
    stop_max_s: NotNegative
    #: Void above: time in which the generator stood still / duration, of each thread.
    stops_max: Fraction
    #: Void above: p99 of the inter-arrival error, µs, if it is above gap_error_max too. Where the
    #: generator reports it.
    gap_error_max_us: NotNegative
    #: p99 of the inter-arrival error / mean time between two requests or bursts.
    gap_error_max: Fraction
    #: Void above: requests that a second had too many or too few / requests due in it, if they are
    #: more than second_off_least too.
    second_off_max: Fraction
    second_off_least: Count  #: Requests by which a second may be off.
    #: Time in which oha opens a connection, seconds. Where it is more than half of the time between
    #: two requests, those due before all are open, at most in a quarter of the load, are in no
    #: latency.
    opening_connection_s: NotNegative
    #: Requests sent / scheduled, below which the server was saturated or, where the requests are
    #: not recorded and the server was not the limit, the repetition is void.
    sent_min: Fraction
    #: Mean connections in use / highest mean possible, as they fill up over time, from which all of
    #: them waited for the server.
    connections_busy_min: Fraction
    #: Request timeout, seconds: how long a timed-out request held its connection, and the response
    #: time that a failed request counts with.
    timeout_s: Above0
    steal_max: Fraction  #: Void above: CPU steal of either host, fraction.
    #: Void above: fraction of the seconds in which the client's CPU utilization was above
    #: generator_cpu_max.
    generator_cpu_seconds_max: Fraction
    #: Steal above which a second counts as disturbed, fraction of the cores' time.
    steal_disturbing: Fraction
    #: Void above: fraction of the seconds disturbed by steal, either host.
    steal_seconds_max: Fraction
    #: Foreign CPU above which a second counts as disturbed, cores.
    foreign_cpu_disturbing: NotNegative
    #: Void above: core time that others had in the disturbed seconds / duration, on a host.
    foreign_cpu_time_max: Fraction
    foreign_cpu_heavy: NotNegative  #: Foreign CPU above which a second moves any p99, cores.
    #: Void above: core time that others had in such seconds / duration, on a host. Half of the
    #: requests above the p99.
    foreign_cpu_heavy_time_max: Fraction
    #: Void above: fraction of the seconds in which the link was above link_max.
    link_seconds_max: Fraction
    #: Link not judged above: (fastest - slowest second) / mean of iperf3, in either direction.
    iperf3_spread_max: NotNegative
    #: Link not judged above: segments retransmitted / sent by iperf3, in either direction; more
    #: than the loss of any network profile.
    iperf3_retransmits_max: Fraction
    #: Finding from: utilization of a host's busiest core, where its mean is below.
    core_full: Fraction
    retransmits_max: Fraction  #: Finding above: TCP segments retransmitted / sent, either host.
    #: Finding above: packets dropped by a host's card, its driver or the kernel's backlog /
    #: received.
    drops_max: Fraction
    #: Void above: bits/s / iperf3's bits/s in the same direction; for several clients the sum / the
    #: highest iperf3 result of a single client.
    link_max: Fraction
    #: Finding above: connections refused for a full accept queue of the server.
    listen_overflows_max: Count
    clock_step_max_s: NotNegative  #: Void above: step of either host's clock, seconds.
    #: Void above: seconds between the first and the last start of a server's clients, on the
    #: controller's clock.
    start_spread_max_s: NotNegative
    #: Void above: packets that the cloud held back or dropped because either host was above one
    #: allowance of its instance type.
    allowance_packets_max: Count
    swap_pages_max: Count  #: Void above: pages swapped in and out, either host.
    duration_min: Fraction  #: Void below: measured / requested duration.
    samples_min: NotNegative  #: Void below: telemetry scrapes a second, either host.
    #: No finding up to: backlog of unsent requests, seconds, that the generator's 1 ms timer
    #: explains at the end.
    send_delay_tail_s: NotNegative
    #: Finding above: p99 of the generator's own delay, µs. Requests due in this time before the end
    #: and not sent are in no latency and no response time, where the generator explains it.
    send_delay_p99_max_us: NotNegative
    #: Finding above: difference of the requests under way by count and by rate times mean latency,
    #: fraction of those by count.
    littles_law_max: NotNegative
    #: Recovered up to: growth of p99 over that before an overload, a fraction.
    recovered_max: NotNegative
    #: Least length of the part of a load by which a recovery is judged, seconds.
    recovery_window_s: Above0
    #: Finding above: seconds by which the mean latency grew with each second of a constant rate,
    #: about the part of the requests that the server cannot answer.
    backlog_growth_max: NotNegative
