"""Series of three seconds, for the tests of figures."""

import numpy as np
from msgspec.structs import replace

from loadlab.model import AcceptQueue, HostSeries, PerSecond
from loadlab.report.plots.timeline_plot import Host
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
    cpu_busiest_core=[0.4, 0.7, 0.8],
    softirq_busiest_core=[0.0, 0.1, 0.0],
    rx_bits=[1e6, 1e6, 1e6],
    tx_bits=[1e6, 1e6, 1e6],
)
SERVER = Host("server", CPU, 2)
# The second queue was full; the third has connections in no second.
QUEUES = [
    AcceptQueue(
        service="application", socket="/run/app.sock", limit=2048, depth=[0, 63, 7], mean_depth=9
    ),
    AcceptQueue(
        service="nginx", socket="10.0.0.1:80", limit=128, depth=[3, 129, None], mean_depth=20
    ),
    AcceptQueue(
        service="postgresql", socket="127.0.0.1:5432", limit=200, depth=[0, 0, 0], mean_depth=0
    ),
]
# 70 answers of 400 µs and 30 of 900 µs, then 40 of 500 µs, then none.
BINNED = replace(
    SERIES,
    latency_bins=latency_bins.record(
        latency_bins.counted(np.array(us, np.int64))
        for us in ([400] * 70 + [900] * 30, [500] * 40, [])
    ),
)
