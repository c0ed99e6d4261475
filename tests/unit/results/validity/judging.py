"""Measurements of a load, and what is judged of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from loadlab.generators.measurement import ERROR_CLASSES, Measurement
from loadlab.model import Calibration, Cell, HostTelemetry, Load, PerSecond, Reason, Validity
from loadlab.results.repetitions.latencies_due import DueRequests
from loadlab.results.validity.judge_validity import judge
from loadlab.results.validity.validity_evidence import ClientEvidence
from loadlab.stats import histograms
from tests.unit import builders
from tests.unit.builders import telemetry as host

HISTOGRAM = histograms.from_values(np.array([1000]))

NONE = dict.fromkeys(ERROR_CLASSES, 0)

GOOD = Measurement(
    generator="oha",
    requests=30_000,
    responses=30_000,
    ok=30_000,
    errors=NONE,
    aborted=0,
    scheduled=30_000,
    unsent=0,
    duration_s=30.0,
    rate_achieved=1000.0,
    goodput=1000.0,
    mean_service_us=2000.0,
    histogram=HISTOGRAM,
    latency_us=histograms.summary(HISTOGRAM),
    latency_from="intended",
    send_delay_us={"p99": 1500.0},
)

# A quarter of the schedule sent, because every one of the 64 connections waits for an answer.
OVERLOADED = replace(
    GOOD, requests=7_500, responses=7_500, ok=7_500, unsent=22_500,
    rate_achieved=250.0, goodput=250.0, mean_service_us=64 / 250 * 1e6,
)  # fmt: skip

CLOSED = replace(
    GOOD, generator="wrk", scheduled=None, unsent=None, send_delay_us=None, latency_from="sent",
    rate_achieved=32_000.0,
)  # fmt: skip

BATCH = replace(
    CLOSED, generator="python-async", requests=10_000, responses=1_015, ok=1_015,
    errors={**NONE, "connect": 8_985}, duration_s=4.2, rate_achieved=240.0, goodput=240.0,
    client=builders.client(EMFILE=8_985),
)  # fmt: skip

CONSTANT = builders.load(rate=1000.0, connections=64, duration_s=30.0)

CLOSED_LOOP = msgspec.structs.replace(CONSTANT, generator="wrk", mode="closed", rate=None)

BATCH_LOAD = builders.batch(requests=10_000, connections=10_000, keepalive=None)


def judged(
    measurement: Measurement = GOOD,
    server: HostTelemetry | None = None,
    client: HostTelemetry | None = None,
    calibration: Calibration | None = builders.calibration_at(1e9),  # noqa: B008
    exit_code: int = 0,
    emulated: Sequence[str] = (),
    load: Load = CONSTANT,
    cell: Cell | None = None,
    nginx: int | None = None,
) -> Validity:
    return judge(
        ClientEvidence(
            requests=DueRequests(measurement, histograms.empty(), builders.thresholds()),
            cell=msgspec.structs.replace(cell or builders.cell(), load=load),
            server=server or host(),
            client=client or host(),
            calibration=calibration,
            exit_code=exit_code,
            emulated=emulated,
            reverse_proxy_requests=nginx,
        )
    )


def by_host(role: str, host: HostTelemetry) -> Validity:
    """What is judged where the host of a role has this telemetry."""
    return judged(server=host) if role == "server" else judged(client=host)


def per_second(count: int, **fields: Any) -> PerSecond:
    """A series of so many seconds, without latencies."""
    none: list[int | None] = [None] * count
    counted = [1000] * count
    return PerSecond(
        second=[*range(count)], scheduled=counted, responses=counted, ok=counted,
        p50_us=none, p99_us=none, max_us=none, **fields,
    )  # fmt: skip


def codes(reasons: list[Reason]) -> list[str]:
    return [reason.code for reason in reasons]


def batch(failures: dict[str, int], load: dict[str, Any] | None = None, **hosts: Any) -> Validity:
    measurement = replace(BATCH, client=builders.client(**failures))
    return judged(measurement, load=msgspec.structs.replace(BATCH_LOAD, **(load or {})), **hosts)
