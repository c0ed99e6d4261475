"""Words for limits outside of the stack, and for none or an unknown one."""

from __future__ import annotations

from loadlab.model import Reason
from loadlab.report.words.limits.wording import (
    Limit,
    Limits,
    always,
    fact,
    number,
    part,
    value,
)
from loadlab.run import formatting

_CLIENT = {
    "generator_cpu": "its CPU was full",
    "generator_stopped": "the generator stood still",
    "generator_stops": "the generator stood still for a part of the load",
    "own_median": "the generator sent requests late",
    "generator_late": "the generator sent requests late",
    "rate_missed": "the generator did not keep its schedule",
    "open_files": "it had no free file descriptor (EMFILE)",
    "local_ports": "it had no free local port (EADDRNOTAVAIL)",
}


def _neighbour(reason: Reason) -> str:
    host, wait = reason.facts["host"], reason.facts.get("wait_us")
    if reason.facts["cause"] == "steal":
        return f"another machine on the hardware of the {host}: its hypervisor took CPU time"
    mean = (
        f"{formatting.percent(value(reason))} of the {host}'s CPU"
        if reason.value is not None
        else "CPU"
    )
    waited = (
        f"; a request's threads waited {formatting.ms(number(wait))} ms for a core"
        if wait is not None and host == "server"
        else ""
    )
    worst = reason.facts.get("worst")
    most = f", {formatting.percent(number(worst))} in the worst second" if worst is not None else ""
    return f"somebody else's programs: they used {mean}{most}{waited}"


def _client(reason: Reason) -> str:
    failed = reason.facts.get("failed")
    failures = f" for {int(number(failed)):,} requests" if failed is not None else ""
    return (
        f"the client: {_CLIENT[str(reason.facts['cause'])]}{failures}; its cores were "
        f"{formatting.percent(value(reason))} busy"
    )


def _none(reason: Reason) -> str:
    p99 = formatting.ms(value(reason))
    return (
        f"{fact(reason, 'rate'):,g} requests/s came back right with p99 {p99} ms, within "
        f"{formatting.ms(number(reason.limit))} ms; the server's cores were "
        f"{formatting.percent(fact(reason, 'busy'))} busy"
    )


def _link(reason: Reason) -> str:
    if reason.facts["cause"] == "full":
        used = formatting.bits(fact(reason, "bits_per_second"))
        return f"the link: {used}, {formatting.percent(value(reason))} of what iperf3 measured"
    if reason.facts["cause"] == "lost":
        return "the link: segments were lost, and sent again after 200 ms or more"
    if reason.facts["cause"] == "queue":
        rtt, fastest = (formatting.ms(fact(reason, name)) for name in ("rtt_us", "fastest_us"))
        return (
            f"the link: packets waited in a queue before it, for a round trip took {rtt} ms, and "
            f"the fastest request {fastest} ms"
        )
    rtt, least = (formatting.ms(fact(reason, name)) for name in ("rtt_us", "least_rtt_us"))
    return (
        f"the link: its round trip of {rtt} ms (at least {least} ms), "
        f"{formatting.significant(fact(reason, 'trips'), 2)} times with windows of "
        f"{fact(reason, 'window'):.0f} segments, is {formatting.percent(value(reason))} of a "
        "request"
    )


def _connections(reason: Reason) -> str:
    number = int(fact(reason, "connections"))
    idle = f"{formatting.percent(1 - fact(reason, 'busy'))} of the server's CPU"
    if "rate" in reason.facts:
        return (
            f"the load: all of its {formatting.plural(number, 'connection')} waited for answers "
            f"while requests of {fact(reason, 'rate'):,g}/s were due, and {idle} was idle"
        )
    return (
        f"the load: a closed loop of {number:,} connections leaves {idle} idle, and nothing waited"
    )


_QUEUE = "a shorter queue or smaller answers; ping during the load shows the queue"

LIMITS: Limits = {
    "neighbour": Limit(
        _neighbour, part("others' CPU"),
        "Programs that are not the lab's, or another machine on the same hardware, took CPU time.",
        always("the same cell after stopping them"),
        always("noisy_neighbour"),
    ),
    "client": Limit(
        _client, part("client's CPU"),
        "The generator or the Python client could not do more: its CPU, its files or its ports.",
        lambda reason: {
            "open_files": "-e open_files=<more>",
            "local_ports": "-e python_keepalive=true",
        }.get(str(reason.facts["cause"]), "a lower rate, or several clients"),
        lambda reason: {"open_files": "file_descriptors", "local_ports": "ephemeral_ports"}.get(
            str(reason.facts["cause"]), ""
        ),
    ),
    "none": Limit(
        _none, lambda reason: "the objective was missed",
        "The rate came back within the objective, without a failed request.",
        always("-e slo=p99_ms=100,errors=0 finds the highest rate"),
    ),
    "link": Limit(
        _link, part("round trip"),
        "The link was full, far away, had a long queue, or lost segments.",
        lambda reason: {"full": _QUEUE, "queue": _QUEUE, "far": "-e network=lan"}.get(
            str(reason.facts["cause"]), "ping and iperf3 over the link"
        ),
        lambda reason: {
            "full": "bufferbloat",
            "queue": "bufferbloat",
            "far": "slow_start_after_idle",
        }.get(str(reason.facts["cause"]), ""),
    ),
    "connections": Limit(
        _connections, always(""),
        "The load had too few connections to use the server up.",
        lambda reason: f"-e connections={2 * int(fact(reason, 'connections'))}",
        always("knee"),
    ),
    "unknown": Limit(
        always("not known"), always(""),
        "No check found the limit; the report names what was ruled out.",
        always("-e profile=true shows what a worker waits for"),
    ),
}  # fmt: skip
