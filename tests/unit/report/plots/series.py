"""Series of three seconds, for the tests of figures."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from loadlab.core.model import HostSeries, PerSecond
from loadlab.report.plots.timeline import Host
from loadlab.stats import latency_bins

SERIES = PerSecond(
    second=[0, 1, 2],
    scheduled=[100, 100, 100],
    responses=[100, 40, 0],
    ok=[100, 30, 0],
    p50_us=[400, 500, None],
    p99_us=[900, 1200, None],
    max_us=[1500, 90_000, None],
)
CPU = HostSeries(
    t=[0.5, 1.5, 2.5],
    cpu_busy=[0.3, 0.5, 0.51],
    cpu_user=[0.2, 0.3, 0.4],
    cpu_system=[0.1, 0.1, 0.1],
    cpu_softirq=[0.0, 0.1, 0.0],
    cpu_iowait=[0.0, 0.0, 0.0],
    cpu_steal=[0.0, 0.0, 0.01],
    rx_bits=[1e6, 1e6, 1e6],
    tx_bits=[1e6, 1e6, 1e6],
)
SERVER = Host("server", CPU, 2)
# 70 answers of 400 µs and 30 of 900 µs, then 40 of 500 µs, then none.
BINNED = replace(
    SERIES,
    latency_bins=latency_bins.record(
        latency_bins.counted(np.array(us, np.int64))
        for us in ([400] * 70 + [900] * 30, [500] * 40, [])
    ),
)
