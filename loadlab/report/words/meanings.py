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
        ("generator_cpu_max", "server_cpu_full"),
    ),
    "steal": Meaning("Another machine on the same hardware took CPU time.", ("steal_max",)),
    "clock_jump": Meaning("The clock of a host was set during the load.", ("clock_step_max_s",)),
    "swapping": Meaning("A host moved memory to or from swap.", ("swap_pages_max",)),
    "telemetry_gap": Meaning(
        "A host could not be observed for part of the load.", ("samples_min",)
    ),
    "connections": Meaning("The client had fewer connections than requested."),
    "link": Meaning(
        "The load used so much of the link that the link may have been the limit.", ("link_max",)
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
    "p_out_of_reach": Meaning("So few repetitions cannot reach the p value that is needed."),
    "base_median_0": Meaning("The base's median is 0, so there is no relative difference."),
    "base_value_0": Meaning("A repetition of the base is 0, so the difference has no interval."),
    "interval_within_noise": Meaning(
        "There is no difference: the whole interval is within the noise floor."
    ),
    "too_noisy": Meaning(
        "The interval is within the noise floor, but that is too wide to conclude equality."
    ),
    "interval_includes_0": Meaning("The interval includes 0, so the sign is not known."),
    "value_within_noise": Meaning("The difference is within the noise floor, its interval is not."),
    "many_comparisons": Meaning(
        "The p value is not small enough after the correction for the number of comparisons."
    ),
    "p_high": Meaning("The corrected p value is too high."),
    "difference": Meaning("There is a difference."),
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
    # Claims.
    "cell_not_measured": Meaning("A cell was not measured."),
    "cells_not_valid": Meaning("Cells of the claim have no valid repetition."),
    "metric_not_measured": Meaning("The metric was not measured of these cells."),
    "divisor_median_0": Meaning("The median of the divisor is 0."),
    "divisor_value_0": Meaning("A value of the divisor is 0."),
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
    "rate_unconfirmed": Meaning(
        "Neither the rate nor a lower candidate was confirmed.", ("lower_steps_max",)
    ),
    "found_rate_unconfirmed": Meaning("The rate met the objective once and was not confirmed."),
    "slo_latency": Meaning("A percentile against the objective."),
    "slo_errors": Meaning("Failed requests against the objective."),
    "slo_unsent": Meaning(
        "Too many requests were never sent for a judgement by the objective.", ("sent_min",)
    ),
    # Ablations.
    "key_changes_nothing": Meaning(
        "Leaving out this key changes nothing on the hosts, so the tuning was not measured."
    ),
}
