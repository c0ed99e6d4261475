"""Whether a repetition may be believed. Limits come from files/verdict.yml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadlab.generators.measurement import Measurement

# Findings that are made of counts: of several clients they are told of the whole.
_COUNTED = ("saturated", "unsent", "aborted", "errors", "littles_law")


def judge(
    measurement: Measurement,
    cell: dict[str, Any],
    server: dict[str, Any],
    client: dict[str, Any],
    calibration: dict[str, Any] | None,
    exit_code: int,
    thresholds: dict[str, Any],
) -> dict[str, Any]:
    """Return {valid, reasons[], findings[]}; every string is "code: value and limit".

    cell is the contract's, with its load; server and client are telemetry.summarise of each
    host; calibration is calibration.json or None; thresholds is verdict.yml. A reason voids the
    repetition, a finding does not. In a batch the client is what is measured: what it uses, and
    where it breaks, is a finding. Raises KeyError for a threshold that is not in the file.
    """
    load = cell["load"]
    limit = thresholds
    reasons: list[str] = []
    findings = list(measurement.findings)
    hosts = {"server": server, "client": client}

    if exit_code != 0:
        reasons.append(f"generator_failed: exit code {exit_code}, 0 expected")
    if measurement.responses == 0:
        reasons.append("nothing_answered: 0 responses, at least 1 expected")
    span, asked = measurement.duration_s, load["duration_s"]
    if asked is not None and span < limit["duration_min"] * float(asked):
        reasons.append(f"short: {span:.1f} s measured of {asked:g}, limit {limit['duration_min']}")
    void, said = _generator(load["mode"], server["cpu_busy"], client["cpu_busy"], limit)
    reasons, findings = reasons + void, findings + said
    # Telemetry is of the duration asked, and not of the wait for the last answers.
    watched = span if asked is None else min(span, float(asked))
    for name, host in hosts.items():
        reasons += _host_reasons(name, host, watched, limit)
    if server["tcp"]["listen_overflows"] > limit["listen_overflows_max"]:
        reasons.append(
            f"listen_overflows: {server['tcp']['listen_overflows']} on the server, limit "
            f"{limit['listen_overflows_max']}"
        )
    # A generator opens a connection only when it has a request for it. More than asked are fine:
    # the control connection is among them.
    wanted = min(int(load["connections"]), measurement.requests)
    # One that is for one request may be over before it is seen.
    kept = load.get("keepalive", True) and (
        cell.get("front") != "none" or cell["upstream_keepalive"]
    )
    if load["mode"] != "batch" and kept and client["sockets"]["established_max"] < wanted:
        reasons.append(
            f"connections: {client['sockets']['established_max']} established on the client, "
            f"at least {wanted} expected"
        )
    if calibration is None:
        findings.append("uncalibrated: no iperf3 figures, the link was not judged")
    else:
        reasons += _link_reasons([client], [calibration], limit)
    more, said = _rate(measurement, load, server, limit)
    reasons, findings = reasons + more, findings + said
    findings += _count_findings(measurement, load, limit)
    if measurement.client is not None:
        findings += _client_findings(measurement, measurement.client, load)
    # What a study is about does not void its cells.
    about = [reason for reason in reasons if reason.partition(":")[0] in cell.get("about", [])]
    reasons = [reason for reason in reasons if reason not in about]
    return {"valid": not reasons, "reasons": reasons, "findings": about + findings}


def judge_together(
    verdicts: Mapping[str, Mapping[str, Any]],
    merged: Measurement,
    cell: dict[str, Any],
    server: dict[str, Any],
    clients: Sequence[Mapping[str, Any]],
    calibrations: Sequence[Mapping[str, Any] | None],
    spread_s: float,
    thresholds: dict[str, Any],
) -> dict[str, Any]:
    """The verdict on a load of several clients: void where one of theirs is, where they filled the
    server's link together, or where they did not begin together.

    ``verdicts``: judge() of each client by its name, with which its reasons and findings begin;
    what all say in the same words, of the server, stands once. ``merged`` is of all of them, and
    ``cell`` the whole. ``clients`` and ``calibrations`` are as for judge(), of each.
    ``spread_s``: seconds between the first and the last start.
    """
    reasons = _told({name: verdict["reasons"] for name, verdict in verdicts.items()})
    if measured := [calibration for calibration in calibrations if calibration is not None]:
        reasons += _link_reasons(clients, measured, thresholds)
    if spread_s > thresholds["start_spread_max_s"]:
        reasons.append(
            f"start_spread: {spread_s:.3f} s between the first and the last client's start, limit "
            f"{thresholds['start_spread_max_s']}"
        )
    own = {
        name: [said for said in verdict["findings"] if said.partition(":")[0] not in _COUNTED]
        for name, verdict in verdicts.items()
    }
    # That the rate was missed voids, and a client's own verdict has said so.
    _, said = _rate(merged, cell["load"], server, thresholds)
    findings = [*_told(own), *said, *_count_findings(merged, cell["load"], thresholds)]
    return {"valid": not reasons, "reasons": reasons, "findings": findings}


def _told(said: Mapping[str, Sequence[str]]) -> list[str]:
    first, *rest = said.values()
    common = [words for words in first if all(words in other for other in rest)]
    own = [
        f"{name}: {words}"
        for name, several in said.items()
        for words in several
        if words not in common
    ]
    return common + own


def _generator(
    mode: str, server: float, client: float, limit: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """Return (reasons, findings) on a client whose CPU was full; both: busy fractions.

    A schedule is not kept by a full client. A closed loop may fill it, where the server was full
    too: with room left there, what was measured is what the client can do, and not the server.
    """
    if mode == "batch" or client <= limit["generator_cpu_max"]:
        return [], []
    words = f"generator_cpu: client {client:.2f} busy, limit {limit['generator_cpu_max']}"
    if mode == "constant":
        return [words], []
    words += f", server {server:.2f} busy, full from {limit['server_cpu_full']}"
    if server < limit["server_cpu_full"]:
        return [f"{words}: the generator was the limit"], []
    return [], [f"{words}: both were full"]


def _host_reasons(name: str, host: dict[str, Any], span: float, limit: dict[str, Any]) -> list[str]:
    reasons = []
    if host["cpu"]["steal"] > limit["steal_max"]:
        reasons.append(f"steal: {host['cpu']['steal']:.3f} on {name}, limit {limit['steal_max']}")
    if host["clock_step_s"] > limit["clock_step_max_s"]:
        reasons.append(
            f"clock_jump: {host['clock_step_s']:.3f} s on {name}, limit {limit['clock_step_max_s']}"
        )
    if host["swap_pages"] > limit["swap_pages_max"]:
        reasons.append(
            f"swapping: {host['swap_pages']} pages on {name}, limit {limit['swap_pages_max']}"
        )
    if host["samples"] < limit["samples_min"] * span:
        reasons.append(
            f"telemetry_gap: {host['samples']} scrapes of {name} in {span:.1f} s, limit "
            f"{limit['samples_min']} a second"
        )
    return reasons


def _link_reasons(
    clients: Sequence[Mapping[str, Any]],
    calibrations: Sequence[Mapping[str, Any]],
    limit: dict[str, Any],
) -> list[str]:
    """Return where the clients together used more of the server's link than is left to be its own
    limit. How much it takes is not known beyond the most that one of them measured."""
    reasons = []
    of = f" of {len(clients)} clients" if len(clients) > 1 else ""
    for direction, way in (("client_to_server", "tx"), ("server_to_client", "rx")):
        used = sum(client["network"][f"{way}_bits_per_second"] for client in clients)
        measured = max(found["iperf3"][direction]["bits_per_second"] for found in calibrations)
        if used > limit["link_max"] * measured:
            reasons.append(
                f"link: {used:.3g} bits/s{of} {direction} of {measured:.3g} measured by iperf3, "
                f"limit {limit['link_max']}"
            )
    return reasons


def concurrency(measurement: Measurement, timeout_s: float) -> float:
    """Return the mean number of connections in use, by Little's law: throughput times time held.

    Time held is from the actual start, so waiting for a free connection is not in it. A request
    that timed out held its connection for timeout_s and is in no latency.
    """
    answered = measurement.rate_achieved * (measurement.mean_service_us or 0.0) / 1e6
    # wrk's late answers did come, but their time is not known: at least they add nothing false.
    timed_out = measurement.errors["timeout"] if measurement.latency_from == "intended" else 0
    return answered + timed_out * timeout_s / measurement.duration_s


def all_in_use(measurement: Measurement, load: Mapping[str, Any]) -> float:
    """Return the mean number of connections in use where all of them were as soon and as long as
    they could be: they fill by what is due and not answered, and at the end the last answers come.
    """
    connections, span = int(load["connections"]), measurement.duration_s
    duration = min(float(load["duration_s"]), span)
    growth = float(load["rate"]) - measurement.rate_achieved
    filling = min(connections / growth, duration) if growth > 0 else duration
    return connections * (duration - filling / 2 + (span - duration) / 2) / span


def _rate(
    measurement: Measurement, load: dict[str, Any], server: dict[str, Any], limit: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """Return (reasons, findings) on a schedule that was not kept.

    Who was the limit? A server whose CPU is full was. One with CPU to spare was too, if it merely
    waits (a sleeping handler, a slow upstream): then every connection of the generator waits for
    an answer, and by Little's law answers/s times mean service time ≈ connections, less while they
    filled and at the end. Where neither holds, connections stood idle while requests were due, so
    the generator did not keep up, and the repetition says nothing of the server. Kept is what was
    sent: answers in the pipe at the deadline, or errors, are not the schedule's fault.
    """
    if not measurement.scheduled or measurement.unsent is None:
        return [], []
    # Not by requests: wrk2's are attempts, several of which may be for one place in the schedule.
    kept = (measurement.scheduled - measurement.unsent) / measurement.scheduled
    if kept >= limit["rate_min"]:
        return [], []
    asked, rate = int(load["connections"]), float(load["rate"])
    used, most = concurrency(measurement, limit["timeout_s"]), all_in_use(measurement, load)
    words = (
        f"{measurement.rate_achieved:.1f}/s achieved of {rate:g}/s asked, {measurement.unsent} of "
        f"{measurement.scheduled} requests never sent, limit {limit['rate_min']} sent; server "
        f"{server['cpu_busy']:.2f} busy, {used:.1f} of {asked} connections in use on average, "
        f"{most:.1f} if all were as soon as they could be"
    )
    if server["cpu_busy"] >= limit["server_cpu_full"]:
        return [], [f"saturated: {words}: the server's CPU was the limit"]
    if used >= limit["connections_busy_min"] * most:
        return [], [f"saturated: {words}: all waited for the server"]
    return [f"rate_missed: {words}: the generator did not keep up"], []


def _count_findings(
    measurement: Measurement, load: dict[str, Any], limit: dict[str, Any]
) -> list[str]:
    findings = []
    if measurement.unsent and measurement.unsent > float(load["rate"]) * limit["pacer_tail_s"]:
        findings.append(
            f"unsent: {measurement.unsent} of {measurement.scheduled} scheduled requests were "
            "never sent and are in no percentile"
        )
    if measurement.aborted:
        findings.append(
            f"aborted: {measurement.aborted} of {measurement.requests} requests were cut off at "
            "the deadline"
        )
    for name, count in measurement.errors.items():
        if count:
            findings.append(f"errors: {name} {count} of {measurement.requests} requests")
    late = (measurement.jitter_us or {}).get("p99")
    if late is not None and late > limit["pacer_p99_max_us"]:
        findings.append(
            f"pacer: p99 of {late:.0f} µs late, limit {limit['pacer_p99_max_us']}: what the "
            "generator was late itself is in no latency"
        )
    if load["mode"] == "closed":
        used, asked = concurrency(measurement, limit["timeout_s"]), int(load["connections"])
        if used > limit["littles_law_max"] * asked:
            findings.append(
                f"littles_law: {used:.1f} requests under way on average, {asked} connections, "
                f"limit {limit['littles_law_max']}: rate and latency do not agree"
            )
    return findings


def _client_findings(
    measurement: Measurement, client: dict[str, Any], load: dict[str, Any]
) -> list[str]:
    """Return which of the client's own limits it ran into, and what helps."""
    findings = []
    granted, asked = client["open_files"], int(load["open_files"])
    if granted < asked:
        findings.append(
            f"open_files: {granted:,} granted of {asked:,} asked, the hard limit of the client's "
            "process"
        )
    if count := client["failures"].get("EMFILE"):
        findings.append(
            f"open_files: {count:,} of {measurement.requests:,} requests found no free file "
            f"descriptor (EMFILE): each connection is an open file, and the client may have "
            f"{granted:,}. Raise its limit (-e open_files=, ulimit -n), or have fewer requests "
            "under way (-e generator=python-bounded -e connections=)"
        )
    if count := client["failures"].get("EADDRNOTAVAIL"):
        low, high = client["local_ports"]
        why, remedy = "each connection under way needs one", "Have fewer under way"
        if not load["reuse"]:
            why = "a closed connection keeps its own for 60 s more (TIME-WAIT)"
            remedy = "Reuse the connections (-e reuse=true)"
        findings.append(
            f"local_ports: {count:,} of {measurement.requests:,} requests found no free local port "
            f"(EADDRNOTAVAIL): net.ipv4.ip_local_port_range gives {high - low + 1:,}, {low} to "
            f"{high}, and {why}. {remedy}, or widen the range"
        )
    return findings
