"""Rules about the requests of a load: whether they were made, counted and answered.

loadlab/reasons/validity_reasons.py has the words of the reasons.
"""

from collections.abc import Iterator

import msgspec

from loadlab.model import PythonClient, Reason
from loadlab.reasons.row import over
from loadlab.results.validity.validity_evidence import ClientEvidence, ClientRule, LoadEvidence


def generator_failed(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason where the generator ended with an error."""
    if client.exit_code != 0:
        yield Reason(code="generator_failed", value=client.exit_code, limit=0)


def nothing_sent(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason where the generator made no request."""
    if client.measurement.requests == 0:
        yield Reason(code="nothing_sent", value=0, limit=1)


def short(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason where the load lasted too little of the time asked.

    Closed loops in lanes end with their last whole round.
    """
    span, planned_s = client.measurement.duration_s, client.cell.load.duration_s
    if client.cell.load.mode == "closed" and client.cell.load.lanes is not None:
        return
    if planned_s is not None and span < client.thresholds.duration_min * planned_s:
        yield Reason(
            code="short",
            value=span / planned_s,
            limit=client.thresholds.duration_min,
            facts={"measured_s": span, "asked_s": planned_s},
        )


def listen_overflows(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a finding where an accept queue of the server overflowed."""
    limit = client.thresholds.listen_overflows_max
    yield from over("listen_overflows", client.server.tcp.listen_overflows, limit)


def connections(client: ClientEvidence) -> Iterator[Reason]:
    """Yield a reason where fewer connections were open than a closed loop needs.

    A connection for a single request may close before it is counted, and one that the server broke
    off is the stack's doing. More than asked are fine, as the control connection is counted too.
    Where each request is recorded, nothing is inferred from connections: oha opens one when it has
    a request for it.
    """
    if client.measurement.lateness is not None or client.errors.read or client.errors.write:
        return
    cell, load = client.cell, client.cell.load
    kept = load.keepalive is not False and (cell.upstream_keepalive or not cell.direct)
    needed = min(load.connections, client.measurement.requests)
    established = client.client.sockets.established_max
    if load.mode != "batch" and kept and established < needed:
        yield Reason(code="connections", value=established, limit=needed)


def counts_differ(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where the reverse proxy counted other requests than the generator.

    It counts a request once it has read its head. So it counts each that was answered, and may
    count one that failed. When the load begins and ends, each connection may have one request under
    way that only it counts. A background load passes it too.
    """
    counted, measurement = evidence.reverse_proxy_requests, evidence.measurement
    if counted is None or evidence.cell.load.background_endpoint:
        return
    off = max(measurement.responses - counted, counted - measurement.requests)
    opened = measurement.opened
    connections = opened.most if opened else evidence.cell.load.connections
    yield from over(
        "counts_differ", off, connections, reverse_proxy=counted, generator=measurement.requests
    )


def aborted(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding where requests were under way when the load ended."""
    if evidence.measurement.aborted:
        yield Reason(
            code="aborted",
            value=evidence.measurement.aborted,
            facts={"requests": evidence.measurement.requests},
        )


def errors(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield a finding for each class of failed requests."""
    for name, count in msgspec.structs.asdict(evidence.errors).items():
        if count:
            yield Reason(
                code="errors",
                value=count,
                facts={"class": name, "requests": evidence.measurement.requests},
            )


def client_limits(evidence: LoadEvidence) -> Iterator[Reason]:
    """Yield which of its own limits a Python client reached."""
    measurement, load = evidence.measurement, evidence.cell.load
    if measurement.client is None:
        return
    client = msgspec.convert(measurement.client, PythonClient)
    if load.open_files is not None and client.open_files < load.open_files:
        yield Reason(code="open_files_granted", value=client.open_files, limit=load.open_files)
    if count := client.failures.get("EMFILE"):
        yield Reason(
            code="open_files",
            value=count,
            facts={"requests": measurement.requests, "open_files": client.open_files},
        )
    if count := client.failures.get("EADDRNOTAVAIL"):
        first, last = client.local_ports
        yield Reason(
            code="local_ports",
            value=count,
            facts={
                "requests": measurement.requests,
                "first": first,
                "last": last,
                "reuse": load.reuse,
            },
        )


# Their reasons void a repetition.
VOIDING: tuple[ClientRule, ...] = (generator_failed, nothing_sent, short, connections)
