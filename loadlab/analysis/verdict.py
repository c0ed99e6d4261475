"""Decide whether a repetition is valid. Limits come from files/verdict.yml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadlab.generators.measurement import Measurement

# Findings that consist of counts; for several clients they are reported for the whole load.
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
    """Return {valid, reasons, findings}; every reason and finding is "code: value and limit".

    ``cell``: with its load. ``server``, ``client``: node_exporter.summarise of each host.
    ``calibration``: calibration.json or None. ``exit_code``: the generator's. ``thresholds``:
    files/verdict.yml. A reason voids the repetition; a finding does not. In a batch the client is
    the subject, so what it uses and its failures are findings. Raises KeyError for a threshold that
    the file lacks.
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
    # Telemetry covers the duration asked, not the wait for the last answers.
    watched = span if asked is None else min(span, float(asked))
    for name, host in hosts.items():
        reasons += _host_reasons(name, host, watched, limit)
    if server["tcp"]["listen_overflows"] > limit["listen_overflows_max"]:
        reasons.append(
            f"listen_overflows: {server['tcp']['listen_overflows']} on the server, limit "
            f"{limit['listen_overflows_max']}"
        )
    # A generator opens a connection only when it has a request for it. More than asked are fine, as
    # the control connection is counted too.
    wanted = min(int(load["connections"]), measurement.requests)
    # A connection for a single request may close before it is counted.
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
    # The subject of a study does not void its cells.
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
    """Return the verdict on a load of several clients: {valid, reasons, findings}.

    It is void where one client's verdict is, where the clients together filled the server's link,
    or where they did not start together. ``verdicts``: client -> judge(). Each of its texts gets
    the client's name, except a text that all clients share, which appears once. ``merged``: all
    measurements merged. ``cell``: with the whole load. ``clients``, ``calibrations``: as for
    judge(), for each client. ``spread_s``: seconds between the first and the last start.
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
    # A missed rate voids, and the client's own verdict already says so.
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
    """Return (reasons, findings) about a client whose CPU was full; ``server``, ``client``: busy 0
    to 1.

    A client with a full CPU does not keep a schedule. A closed loop may fill the client's CPU if
    the server's is full too: if the server had room left, the measurement shows the client's limit.
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
    """Return reasons where the clients together came too close to the limit of the server's link.

    The link's capacity is taken to be the highest that one client measured.
    """
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
    """Return the mean number of connections in use, as throughput times time held.

    This is Little's law (Little 1961, A Proof for the Queuing Formula: L = λW). The time held
    counts from the actual start, so it excludes waiting for a free connection. A request that timed
    out held its connection for ``timeout_s`` and is in no latency.
    """
    answered = measurement.rate_achieved * (measurement.mean_service_us or 0.0) / 1e6
    # wrk's late answers arrived, but after an unknown time, so they are left out.
    timed_out = measurement.errors["timeout"] if measurement.latency_from == "intended" else 0
    return answered + timed_out * timeout_s / measurement.duration_s


def all_in_use(measurement: Measurement, load: Mapping[str, Any]) -> float:
    """Return the highest mean number of connections that the load could have used.

    All connections are in use as soon and as long as possible. They fill up with the requests that
    are due and not answered, at the rate asked minus the rate achieved; after the deadline they
    empty as the last answers arrive. Both are taken as linear in time.
    """
    connections, span = int(load["connections"]), measurement.duration_s
    duration = min(float(load["duration_s"]), span)
    growth = float(load["rate"]) - measurement.rate_achieved
    filling = min(connections / growth, duration) if growth > 0 else duration
    return connections * (duration - filling / 2 + (span - duration) / 2) / span


def _rate(
    measurement: Measurement, load: dict[str, Any], server: dict[str, Any], limit: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """Return (reasons, findings) about a schedule that was not kept.

    The server was the limit if its CPU was full. It was also the limit if it only waits (a sleeping
    handler, a slow backend): then every connection of the generator waits for an answer, and by
    Little's law answers/s times mean service time is about the number of connections, less while
    they fill up and at the end. Otherwise connections were idle while requests were due: the
    generator did not keep up, and the repetition says nothing about the server. The schedule counts
    as kept by what was sent: requests unanswered at the deadline and errors do not count against
    it.
    """
    if not measurement.scheduled or measurement.unsent is None:
        return [], []
    # Not by `requests`, which for wrk2 are attempts: several may belong to one place in the
    # schedule.
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
    """Return findings on which of its own limits the client reached, with a remedy."""
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
