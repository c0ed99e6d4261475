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


def _neighbour(why: Reason) -> str:
    host, wait = why.facts["host"], why.facts.get("wait_us")
    if why.facts["cause"] == "steal":
        return f"another machine on the hardware of the {host}: its hypervisor took CPU time"
    mean = (
        f"{formatting.percent(value(why))} of the {host}'s CPU" if why.value is not None else "CPU"
    )
    waited = (
        f"; a request's threads waited {formatting.ms(number(wait))} ms for a core"
        if wait is not None and host == "server"
        else ""
    )
    worst = why.facts.get("worst")
    most = f", {formatting.percent(number(worst))} in the worst second" if worst is not None else ""
    return f"somebody else's programs: they used {mean}{most}{waited}"


def _client(why: Reason) -> str:
    failed = why.facts.get("failed")
    failures = f" for {int(number(failed)):,} requests" if failed is not None else ""
    return (
        f"the client: {_CLIENT[str(why.facts['cause'])]}{failures}; its cores were "
        f"{formatting.percent(value(why))} busy"
    )


def _none(why: Reason) -> str:
    p99 = formatting.ms(value(why))
    return (
        f"{fact(why, 'rate'):,g} requests/s came back right with p99 {p99} ms, within "
        f"{formatting.ms(number(why.limit))} ms; the server's cores were "
        f"{formatting.percent(fact(why, 'busy'))} busy"
    )


def _link(why: Reason) -> str:
    if why.facts["cause"] == "full":
        used = formatting.bits(fact(why, "bits_per_second"))
        return f"the link: {used}, {formatting.percent(value(why))} of what iperf3 measured"
    if why.facts["cause"] == "lost":
        return "the link: segments were lost, and sent again after 200 ms or more"
    if why.facts["cause"] == "queue":
        rtt, fastest = (formatting.ms(fact(why, name)) for name in ("rtt_us", "fastest_us"))
        return (
            f"the link: packets waited in a queue before it, for a round trip took {rtt} ms, and "
            f"the fastest request {fastest} ms"
        )
    rtt, least = (formatting.ms(fact(why, name)) for name in ("rtt_us", "least_rtt_us"))
    return (
        f"the link: its round trip of {rtt} ms (at least {least} ms), "
        f"{formatting.significant(fact(why, 'trips'), 2)} times with windows of "
        f"{fact(why, 'window'):.0f} segments, is {formatting.percent(value(why))} of a request"
    )


def _connections(why: Reason) -> str:
    number = int(fact(why, "connections"))
    idle = f"{formatting.percent(1 - fact(why, 'busy'))} of the server's CPU"
    if "rate" in why.facts:
        return (
            f"the load: all of its {formatting.plural(number, 'connection')} waited for answers "
            f"while requests of {fact(why, 'rate'):,g}/s were due, and {idle} was idle"
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
        lambda why: {
            "open_files": "-e open_files=<more>",
            "local_ports": "-e python_keepalive=true",
        }.get(str(why.facts["cause"]), "a lower rate, or several clients"),
        lambda why: {"open_files": "file_descriptors", "local_ports": "ephemeral_ports"}.get(
            str(why.facts["cause"]), ""
        ),
    ),
    "none": Limit(
        _none, lambda why: "the objective was missed",
        "The rate came back within the objective, without a failed request.",
        always("-e slo=p99_ms=100,errors=0 finds the highest rate"),
    ),
    "link": Limit(
        _link, part("round trip"),
        "The link was full, far away, had a long queue, or lost segments.",
        lambda why: {"full": _QUEUE, "queue": _QUEUE, "far": "-e network=lan"}.get(
            str(why.facts["cause"]), "ping and iperf3 over the link"
        ),
        lambda why: {
            "full": "bufferbloat",
            "queue": "bufferbloat",
            "far": "slow_start_after_idle",
        }.get(str(why.facts["cause"]), ""),
    ),
    "connections": Limit(
        _connections, always(""),
        "The load had too few connections to use the server up.",
        lambda why: f"-e connections={2 * int(fact(why, 'connections'))}",
        always("knee"),
    ),
    "unknown": Limit(
        always("not known"), always(""),
        "No check found the limit; the report names what was ruled out.",
        always("-e profile=true shows what a worker waits for"),
    ),
}  # fmt: skip
