"""Runs for the page: results of simulated stacks, written as a run's documents.

Each repetition's figures are computed from the latency of every simulated request, by the functions
that the lab uses; its host is that of the recorded run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from loadlab.model import (
    CellSummary,
    Confirmation,
    EncodedHistogram,
    Facts,
    HostSeries,
    HostTelemetry,
    Latency,
    PerSecond,
    Processes,
    Reason,
    Result,
    SearchSummary,
    ServiceProcesses,
    Summary,
    Telemetry,
    Validity,
)
from loadlab.results.summaries import summarize as summaries
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from loadlab.stats import histograms, latency_bins
from tests.unit import builders
from tests.unit.builders import present


@dataclass(frozen=True)
class Stack:
    """A simulated stack: its service time in µs, and how many requests/s it answers at most."""

    framework: str
    server: str
    service_us: float
    capacity: float
    transport: str = "unix"


STACKS = [
    Stack("aiohttp", "gunicorn", 420, 5200),
    Stack("flask", "gunicorn", 900, 2100),
    Stack("flask", "uwsgi", 780, 2600),
    Stack("django", "gunicorn", 1900, 1150),
    Stack("django", "uwsgi", 1700, 1300, "tcp"),
    Stack("bottle", "gunicorn", 700, 2900),
    Stack("tornado", "native", 600, 3100, "tcp"),
    Stack("granian", "native", 300, 9000, "tcp"),
    Stack("golang", "native", 120, 24000, "tcp"),
    Stack("nginx", "native", 60, 60000),
]


def latencies(stack: Stack, rate: float, seconds: int, seed: int) -> list[npt.NDArray[np.int64]]:
    """Return the latencies in µs of each second's requests: a queue, and a stall."""
    random = np.random.default_rng(seed)
    count = int(min(rate, stack.capacity))
    use = min(rate / stack.capacity, 0.97)
    found = []
    for second in range(seconds):
        service = stack.service_us * random.lognormal(0, 0.35, count)
        waited = stack.service_us * random.exponential(use / (1 - use), count)
        if rate > stack.capacity:
            waited += second * 1e6 * (1 - stack.capacity / rate)
        if second == seconds // 2:
            phase = np.arange(count) / count
            waited += np.maximum(stack.service_us * 150 - phase * 1e6, 0)
        found.append(np.rint(service + waited).astype(np.int64))
    return found


def host(busy: float, seconds: int, seed: int, server: bool) -> HostTelemetry:
    """Return the telemetry of a host that is busy for that fraction."""
    noise = np.random.default_rng(seed).uniform(0.85, 1.1, seconds)
    used = np.minimum(busy * noise, 1.0)

    def part(share: float) -> list[float]:
        return [round(float(value * share), 4) for value in used]

    series = HostSeries(
        t=[float(second) for second in range(1, seconds + 1)],
        cpu_busy=part(1.0), cpu_user=part(0.6), cpu_system=part(0.25), cpu_softirq=part(0.13),
        cpu_iowait=[0.0] * seconds, cpu_steal=part(0.02), cpu_busiest_core=part(1.0),
        softirq_busiest_core=part(0.13), foreign_cpu=part(0.04),
        disturbed=[second == 4 for second in range(seconds)],
        rx_bits=[1e6] * seconds, tx_bits=[1e7] * seconds,
    )  # fmt: skip
    spent = Processes(
        cpu_s=busy * seconds, cpu=busy / 2, rss_max_bytes=int(60e6 + 90e6 * busy), threads_max=8,
        processes_max=4, voluntary_switches=10_000, involuntary_switches=900, run_queue_wait_s=0.4,
    )  # fmt: skip
    services = ServiceProcesses(
        reverse_proxy=replace(spent, cpu_s=0.2), application=spent, postgresql=None
    )
    return builders.telemetry(
        cpu_busy=float(used.mean()), per_second=series, processes=services if server else None,
        foreign_cpu=0.03, cores=2,
    )  # fmt: skip


def result(
    stack: Stack, endpoint: str, rate: float, number: int, seconds: int = 20, **changes: object
) -> Result:
    """Return a repetition of a stack at a rate; void where the client would be the limit."""
    seed = int(rate) * 100 + number * 7 + len(stack.framework)
    each = latencies(stack, rate, seconds, seed)
    every = np.concatenate(each)
    histogram = histograms.from_values(every)
    summed = histograms.summary(histogram, histograms.count_values(every))
    found = msgspec.convert(summed, Latency)
    answered, due = len(every), int(rate * seconds)
    use = min(rate / stack.capacity, 1.0)
    void = rate > 20_000
    reasons = [Reason(code="generator_cpu", value=0.93, limit=0.8, facts={"host": "client"})]
    facts: Facts = {
        "resource": "cpu", "rate_achieved": answered / seconds, "rate": rate,
        "unsent": due - answered, "scheduled": due, "server_cpu_busy": 0.99,
        "connections_used": 64.0, "connections": 64, "connections_usable": 64.0,
    }  # fmt: skip
    findings = [Reason(code="saturated", value=0.99, limit=0.95, facts=facts)]
    whole = builders.result()
    cell = builders.cell(
        framework=stack.framework,
        server=stack.server,
        transport=stack.transport,
        endpoint=endpoint,
        load=builders.load(rate=rate, duration_s=float(seconds), connections=64),
    )
    counts = [len(second) for second in each]

    def at(level: float) -> list[int | None]:
        return [int(np.percentile(second, level, method="inverted_cdf")) for second in each]

    series = PerSecond(
        second=list(range(seconds)),
        scheduled=[int(rate)] * seconds,
        responses=counts,
        ok=counts,
        p50_us=at(50),
        p99_us=at(99),
        max_us=at(100),
        latency_bins=latency_bins.record(map(latency_bins.counted, each)),
    )
    made = replace(
        whole,
        cell_id=f"{stack.framework}-{stack.server}-{endpoint}-{rate:g}rps",
        repetition=number,
        block=number,
        cell=cell,
        requests=answered,
        responses=answered,
        ok=answered,
        scheduled=due,
        unsent=due - answered,
        reverse_proxy_requests=answered,
        rate_achieved=answered / seconds,
        goodput=answered / seconds,
        errors=replace(present(whole.errors), **dict.fromkeys(("timeout", "read"), 0)),
        latency_us=found,
        histogram=msgspec.convert(histograms.document(histogram), EncodedHistogram),
        censored=None,
        response_time=None,
        per_second=series,
        telemetry=Telemetry(
            server=host(use, seconds, seed, True), client=host(use / 3, seconds, seed + 1, False)
        ),
        validity=Validity(
            valid=not void, reasons=reasons if void else [], findings=findings if use == 1.0 else []
        ),
    )
    return replace(made, **changes)


def voided(found: Result) -> Result:
    """Return a repetition that the hypervisor disturbed."""
    reason = Reason(code="steal", value=0.05, limit=0.01, facts={"host": "server"})
    return replace(found, validity=Validity(valid=False, reasons=[reason], findings=[]))


def write(run: Path, results: list[Result]) -> Summary:
    """Write the results and their summary beside the other documents of the recorded run."""
    for name in ("manifest.json", "calibration.json", "tuning.json"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes((builders.RUN / name).read_bytes())
    builders.store(run, *results)
    found = summaries.summary(run)
    documents.write(RunDir(run).summary, documents.dump(found))
    return documents.read(RunDir(run).summary, Summary)


def many(run: Path, cells: int = 50, repetitions: int = 3, seconds: int = 20) -> Summary:
    """Write a run of stacks, each at one rate on several endpoints."""
    chosen = [*product(("index", "agents", "hello", "cpu", "book"), STACKS)][:cells]
    results = [
        result(stack, endpoint, 1000.0, number, seconds)
        for endpoint, stack in chosen
        for number in range(1, repetitions + 1)
    ]
    return write(run, results)


def at_rates(run: Path, stacks: Sequence[Stack], steps: Sequence[float]) -> Summary:
    """Write a run of stacks at rates up to twice their capacity, with a p99 of up to 100 ms."""
    results = [
        result(stack, "index", rate, number, 10)
        for stack in stacks
        for rate in steps
        if rate < 2.2 * stack.capacity
        for number in range(1, 4)
    ]
    found = write(run, results)
    by_stack: dict[str, list[CellSummary]] = {}
    for cell in found.cells:
        by_stack.setdefault(cell.cell_id.rpartition("-")[0], []).append(cell)
    searches = [searched(own) for own in by_stack.values()]
    found = replace(found, searches=searches)
    documents.write(RunDir(run).summary, documents.encode(found))
    return found


def searched(cells: list[CellSummary]) -> SearchSummary:
    """Return the search whose rates were these cells'."""
    ordered = sorted(cells, key=lambda one: one.cell.load.rate or 0.0)
    met = [one for one in ordered if (one.statistics.latency_us.p99 or 1e9) <= 100_000]
    best = met[-1] if met else None
    return SearchSummary(
        cell=ordered[0].cell,
        slo={"p99_ms": 100.0, "errors": 0},
        trace=[],
        highest_rate=best.cell.load.rate if best else None,
        cell_id=best.cell_id if best else None,
        confirmed=Confirmation(of=3, met=3) if best else None,
        reasons=[Reason(code="search_unfinished", value=ordered[-1].cell.load.rate)],
    )
