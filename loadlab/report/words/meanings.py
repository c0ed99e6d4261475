"""What each code of a reason means, without the values of one case."""

from __future__ import annotations

from typing import NamedTuple


class Meaning(NamedTuple):
    """What a code means; ``thresholds``: its limits in files/validity.yml or files/methods.yml."""

    text: str
    thresholds: tuple[str, ...] = ()


MEANINGS: dict[str, Meaning] = {
    # Reasons that void a repetition.
    "failed": Meaning("The measurement is not complete; the text is the error."),
    "generator_failed": Meaning("The generator ended with an error."),
    "nothing_sent": Meaning("The generator sent no request."),
    "short": Meaning("The load lasted shorter than requested.", ("duration_min",)),
    "generator_cpu": Meaning(
        "The client's CPU was full: with a constant rate always, in a closed loop where the "
        "server's was not.",
        ("generator_cpu_max", "generator_cpu_seconds_max", "server_cpu_full"),
    ),
    "steal": Meaning(
        "Another machine on the same hardware took CPU time.",
        ("steal_max", "steal_second_max", "steal_seconds_max"),
    ),
    "foreign_cpu": Meaning(
        "Processes that are not the lab's used the cores of a host.",
        ("foreign_cpu_second_max", "foreign_cpu_seconds_max"),
    ),
    "clock_jump": Meaning("The clock of a host was set during the load.", ("clock_step_max_s",)),
    "swapping": Meaning("A host moved memory to or from swap.", ("swap_pages_max",)),
    "allowance": Meaning(
        "The cloud held back packets of a host that was above an allowance of its instance type: "
        "bandwidth, packets per second or tracked connections.",
        ("allowance_packets_max",),
    ),
    "telemetry_gap": Meaning(
        "A host could not be observed for part of the load.", ("samples_min",)
    ),
    "connections": Meaning("The client had fewer connections than requested."),
    "link": Meaning(
        "The load used so much of the link that the link may have been the limit.",
        ("link_max", "link_seconds_max"),
    ),
    "generator_stopped": Meaning(
        "The generator stood still for so long that the server was not asked what was due.",
        ("stop_max_s",),
    ),
    "generator_stops": Meaning(
        "The generator stood still for too much of the load.",
        ("stops_max",),
    ),
    "own_median": Meaning(
        "The generator itself made too much of the median latency.",
        ("own_fraction_max", "own_least_us"),
    ),
    "generator_late": Meaning(
        "The generator made so many requests later than an ideal generator that the p99 may be "
        "its own.",
        ("late_max", "late_least_s", "late_least_fraction"),
    ),
    "rate_missed": Meaning(
        "wrk2 did not send the requests that were due, and the server was not the limit.",
        ("sent_min", "connections_busy_min"),
    ),
    "start_spread": Meaning(
        "The clients of one server did not start together.", ("start_spread_max_s",)
    ),
    # Findings.
    "saturated": Meaning(
        "The server did not keep the rate: its CPU was full, or all connections waited for it.",
        ("sent_min", "server_cpu_full", "connections_busy_min"),
    ),
    "own_part": Meaning(
        "The generator itself made too much of these percentiles, so they are withheld.",
        ("own_fraction_max", "own_least_us"),
    ),
    "failure_kinds": Meaning("How requests without an answer failed."),
    "self_check": Meaning("A check of the generator on itself failed."),
    "late_tail": Meaning(
        "The generator made requests later: p99.9 or p99.99 may be its own and are withheld.",
        ("late_max",),
    ),
    "late_hidden": Meaning(
        "So many requests failed that they may have held every connection: how late the generator "
        "was is not known."
    ),
    "counts_differ": Meaning(
        "nginx counted fewer requests than were answered, or more than the generator sent."
    ),
    "listen_overflows": Meaning(
        "The server dropped connections, as an accept queue was full.", ("listen_overflows_max",)
    ),
    "full_core": Meaning(
        "One core of a host was full while the others had room, or was full of softirq.",
        ("core_full",),
    ),
    "retransmits": Meaning(
        "A host sent many TCP segments again: the network lost them.", ("retransmits_max",)
    ),
    "packet_drops": Meaning(
        "A host's card or kernel dropped packets that arrived: the core that takes them was too "
        "slow.",
        ("drops_max",),
    ),
    "link_disturbed": Meaning(
        "The measurement of the link was disturbed twice, so the link was not judged."
    ),
    "iperf3_spread": Meaning(
        "The throughput of iperf3 differed from second to second.", ("iperf3_spread_max",)
    ),
    "iperf3_retransmits": Meaning(
        "iperf3 sent many TCP segments again.", ("iperf3_retransmits_max",)
    ),
    "uncounted": Meaning("Nothing counted requests at the server, as nginx was not in the path."),
    "uncalibrated": Meaning("The link was not measured, so its use was not judged."),
    "unsent": Meaning(
        "The generator never sent some scheduled requests. They rank behind every answer.",
        ("send_delay_tail_s",),
    ),
    "aborted": Meaning("The generator cut off requests at its deadline."),
    "errors": Meaning("Requests failed, by class."),
    "send_delay": Meaning(
        "The generator itself delayed requests. Latency includes this delay.",
        ("send_delay_p99_max_us",),
    ),
    "littles_law": Meaning(
        "Rate and latency imply more requests in progress than there are connections.",
        ("littles_law_max",),
    ),
    "open_files_granted": Meaning("The client was granted fewer open files than requested."),
    "open_files": Meaning("Requests failed, as the client had no free file descriptor."),
    "local_ports": Meaning("Requests failed, as the client had no free local port."),
    "overlap": Meaning("wrk counts a late answer with an error status twice."),
    "body": Meaning("The answers had another length than the verified one."),
    "opened": Meaning("wrk2 opened fewer connections than requested."),
    "calibrated": Meaning("Some threads of wrk2 did not finish their calibration of 10 s."),
    "ticks": Meaning("wrk2 saw connections that sent nothing for the request timeout."),
    "service": Meaning("wrk2 reported no service time."),
    # Conclusions of comparisons and rankings.
    "few_repetitions": Meaning("There are too few repetitions for an interval."),
    "few_blocks": Meaning("Too few blocks have a valid repetition of both cells."),
    "few_sittings": Meaning(
        "Runs differ from sitting to sitting though nothing is changed. By how much, only several "
        "runs a side can show."
    ),
    "value_0": Meaning("A value is 0, so there is no ratio."),
    "interval_within_margin": Meaning(
        "There is no difference: the interval includes 0 and is within the margin.", ("margin",)
    ),
    "interval_includes_0": Meaning(
        "The interval includes 0 and goes beyond the margin: neither a difference nor none is "
        "shown.",
        ("margin",),
    ),
    "value_within_noise": Meaning(
        "The interval excludes 0, but a cell differs as much from its A/A control."
    ),
    "p_high": Meaning(
        "The interval excludes 0, but p is too high after the correction for the number of "
        "comparisons."
    ),
    "difference": Meaning("There is a difference."),
    "difference_within_margin": Meaning(
        "There is a difference, and all of its interval is within the margin.", ("margin",)
    ),
    "few_looks": Meaning("There are too few blocks for an interval that holds at every look."),
    "looks_within_margin": Meaning(
        "All of the interval is within the margin, so the variants do not differ by more.",
        ("margin",),
    ),
    "looks_include_0": Meaning(
        "The interval includes 0 and goes beyond the margin. More blocks make it narrower.",
        ("margin",),
    ),
    "looks_within_noise": Meaning(
        "The interval excludes 0, but so does that of the A/A control, and the base differs as "
        "much from itself."
    ),
    "looks_exclude_0": Meaning("The variants differ: the interval excludes 0."),
    "two_sittings": Meaning(
        "Base and head were measured in two runs, which differ though nothing is changed."
    ),
    "value_absent": Meaning("No repetition of a variant has a value of this metric."),
    "candidate_failed": Meaning(
        "The candidate failed twice in a row: it did not start, or an answer was wrong."
    ),
    "candidate_void": Meaning("The candidate has no valid measurement in a round."),
    "candidate_behind": Meaning("The candidate was not in the better half of a round."),
    "side_not_measured": Meaning("One of the two cells was not measured."),
    "side_not_valid": Meaning("One of the two cells has no valid repetition."),
    "latency_bases": Meaning(
        "The latencies of the two cells count from different moments: scheduled or actual send "
        "time."
    ),
    "few_answers": Meaning("There are too few answers for this percentile."),
    "few_answers_compared": Meaning(
        "A repetition of one cell has too few answers for this percentile."
    ),
    "few_answers_each": Meaning(
        "A repetition has too few answers for an interval of this percentile."
    ),
    "among_censored": Meaning(
        "Requests without an answer reach up to the percentile, so it or its interval is not known."
    ),
    "percentile_withheld": Meaning(
        "The generator made too much of the percentile (own_part, late_tail)."
    ),
    "side_failed": Meaning(
        "Requests of one cell failed, and only latencies of answers are known. Requests that fail "
        "fast would make the cell look better.",
        ("failed_max",),
    ),
    "better_failed_more": Meaning(
        "The faster cell failed more of its requests, so it is not called better.", ("failed_max",)
    ),
    # Claims.
    "cell_not_measured": Meaning("A cell was not measured."),
    "saturation_not_valid": Meaning(
        "The rate of a cell is a fraction of a closed loop, and each of that was void."
    ),
    "cells_not_valid": Meaning("Cells of the claim have no valid repetition."),
    "metric_not_measured": Meaning("The metric was not measured of these cells."),
    "divisor_median_0": Meaning("The median of the divisor is 0."),
    "ratio_value_0": Meaning("A value is 0, so the ratio has no interval."),
    "no_sample_interval": Meaning("The recording has no interval of its samples."),
    "few_valid_repetitions": Meaning("There are too few valid repetitions for an interval."),
    "below_bound": Meaning("The whole interval is below the lower bound."),
    "above_bound": Meaning("The whole interval is above the upper bound."),
    "across_bound": Meaning("The interval includes the bound."),
    "near_bound": Meaning("The value is no further from the bound than the noise floor."),
    "no_control_between_pairs": Meaning(
        "The cells were measured on different host pairs, and no A/A control shows how these "
        "differ."
    ),
    # Sweeps and searches.
    "server_cpu_full": Meaning(
        "The sweep stopped: the server's CPU was full.", ("server_cpu_full",)
    ),
    "throughput_flat": Meaning("The sweep stopped: throughput grew too little.", ("growth_min",)),
    "search_unfinished": Meaning("The search was interrupted."),
    "rate_undecided": Meaning("Every measurement of a rate was void."),
    "rate_missed_slo": Meaning("A higher rate does not meet the objective."),
    "lowest_rate_missed": Meaning("Not even the lowest rate meets the objective."),
    "generator_ceiling": Meaning("The rate is the highest that the generator can offer."),
    "found_rate_unconfirmed": Meaning("The rate met the objective once and was not confirmed."),
    "slo_latency": Meaning("A percentile against the objective."),
    "slo_failed": Meaning(
        "More requests failed than the percentile of the objective leaves out. A request that "
        "failed never meets a limit on latency."
    ),
    "slo_withheld": Meaning(
        "A percentile is above the objective and may be the generator's own (own_part, late_tail), "
        "so the measurement decides nothing."
    ),
    "slo_unknown": Meaning(
        "Requests without an answer reach up to the percentile, so the measurement decides nothing."
    ),
    "slo_errors": Meaning("Failed requests against the objective."),
    "slo_unsent": Meaning(
        "Too many requests were never sent for a judgement by the objective.", ("sent_min",)
    ),
    # Curves.
    "curve_closed_loop": Meaning("The generator keeps no rate, and a curve is of rates."),
    "curve_duration": Meaning(
        "The generator measures a rate for longer than the curve does.", ("curve_duration_s",)
    ),
    "curve_no_saturation": Meaning("The closed loop, whose goodput the rates follow, is void."),
    "curve_unmeasured": Meaning("The run ended before the curve, or each measurement failed."),
    # Generators.
    "generator_machine": Meaning("The executable is for another machine than the client's."),
    "generator_absent": Meaning("The client lacks the generator, and no package has it."),
    # Cells.
    "void_share": Meaning("The cell's repetitions were void more often than those of its rivals."),
    # Ablations.
    "key_changes_nothing": Meaning(
        "Leaving out this key changes nothing on the hosts, so the tuning was not measured."
    ),
}
