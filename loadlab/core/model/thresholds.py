"""files/validity.yml: the thresholds of void reasons and findings."""

from typing import Annotated

from loadlab.core.model.base import Above0, Count, Fraction, NotNegative, Record, doc


class Thresholds(Record, kw_only=True, frozen=True):
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
    sent_min: Annotated[
        Fraction, doc("Void below: requests sent / scheduled, where the server was not the limit.")
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
    steal_second_max: Annotated[
        Fraction,
        doc("Steal above which a second counts as disturbed, fraction of the cores' time."),
    ]
    steal_seconds_max: Annotated[
        Fraction, doc("Void above: fraction of the seconds disturbed by steal, either host.")
    ]
    foreign_cpu_second_max: Annotated[
        Fraction,
        doc("Foreign CPU above which a second counts as disturbed, fraction of the cores' time."),
    ]
    foreign_cpu_seconds_max: Annotated[
        Fraction, doc("Void above: fraction of the seconds disturbed by foreign CPU, either host.")
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
    link_max: Annotated[
        Fraction,
        doc(
            "Void above: bits/s / iperf3's bits/s in the same direction; for several clients "
            "the sum / the highest iperf3 result of a single client."
        ),
    ]
    listen_overflows_max: Annotated[
        Count, doc("Void above: connections refused for a full accept queue of the server.")
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
            "Finding above: p99 of the generator's own lateness, which no latency includes, µs. "
            "Requests due in this time before the end and not sent are in no response time."
        ),
    ]
    littles_law_max: Annotated[
        NotNegative, doc("Finding above: mean concurrency / connections, closed loop.")
    ]
