"""The metrics that cells are compared by and what a request costs: one row for each.

CONTRIBUTING.md says how to add one. results/metrics.py reads the values that a row names.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Better = Literal["lower", "higher"]
LatencyOf = Literal["due", "answers"]


class Unit(Struct, kw_only=True, frozen=True):
    """The unit that a metric is shown in."""

    name: str  #: In the head of a table.
    after: str = ""  #: Behind a number on the terminal.
    stored: str = ""  #: That of the documents, so many of which (``size``) are one of it.
    size: float = 1


PER_SECOND = Unit(name="requests/s", after="/s", stored="requests/s")
MS = Unit(name="ms", after="ms", stored="µs", size=1000)
US_PER_REQUEST = Unit(name="µs/request", after="µs", stored="µs")
PER_REQUEST = Unit(name="per request")
MIB = Unit(name="MiB", after="MiB", stored="bytes", size=2**20)
MJ_PER_REQUEST = Unit(name="mJ/request", after="mJ", stored="joules", size=1e-3)
FRACTION = Unit(name="fraction", stored="fraction")
CONNECTIONS = Unit(name="connections", stored="connections")
RATIO = Unit(name="ratio", stored="ratio")


class Reading(Struct, kw_only=True, frozen=True):
    """Where a repetition has a metric."""

    path: str  #: As results/metrics.py reads it.
    needs: str = ""  #: The path that every valid repetition needs for this reading; empty: none.
    #: latency_of, form: what a percentile is of, and which memory it is.
    latency_of: LatencyOf | None = None
    form: Literal["pss", "rss"] | None = None
    #: column, meaning: its column in cells.csv, memory in MiB; empty: it has another there.
    column: str = ""
    meaning: str = ""


class GateRow(Struct, kw_only=True, frozen=True):
    """How a comparison of variants judges a metric."""

    load: Literal["constant", "saturated"] = "constant"  #: Which of the two loads it is of.
    label: str  #: Its name there.
    meaning: str  #: For the schema.
    relative: bool = True  #: Whether the difference is a fraction of the base.
    #: slower, faster: the words for these answers.
    slower: str = "slower"
    faster: str = "faster"
    #: Its reading where one load measures both side by side; the metric's if empty.
    side_by_side: str = ""
    #: Whether lanes_margin is its margin where one load measures both side by side.
    fine: bool = False


class MetricRow(Struct, kw_only=True, frozen=True):
    """A metric."""

    name: str  #: In the documents.
    #: label, short: in reports and on the terminal, the name if empty.
    label: str = ""
    short: str = ""
    meaning: str = ""  #: For the schema.
    unit: Unit
    better: Better = "lower"
    #: speed and cost are compared, their p values corrected apart; part: of the cost, which has a
    #: noise floor only; None: neither.
    kind: Literal["speed", "cost", "part"] | None = None
    #: The first that every valid repetition has is used, else the last.
    readings: tuple[Reading, ...]
    #: Name and meaning of its median in metrics.prom; None: only its differences are there.
    gauge: tuple[str, str] | None = None
    #: How a comparison of variants judges it; each row takes a share of the error rate.
    gate: GateRow | None = None
    ranks: int = 0  #: Its turn as a key of the ranking, from 1.
    beside_rank: bool = False  #: Whether tables of it show it.


def _percentile(name: str, order: str, *, fine: bool = False) -> MetricRow:
    """Return the row of a percentile: of every request due where that is known."""
    return MetricRow(
        name=name,
        meaning=f"{order} percentile of the latency, µs.",
        unit=MS,
        kind="speed",
        readings=(
            Reading(path=f"response_time.{name}_us", needs="response_time", latency_of="due"),
            Reading(path=f"latency_us.{name}", latency_of="answers"),
        ),
        gate=GateRow(
            label=name,
            meaning="at the constant rate, µs; of variants side by side that of lane_times.",
            side_by_side=f"lane_times.{name}_us",
            fine=fine,
        ),
    )


def _by_request(path: str, meaning: str) -> tuple[Reading]:
    """Return the reading of a cost that has the column of its path."""
    return (Reading(path=path, column=path, meaning=meaning),)


def _cpu_of(service: str, label: str) -> MetricRow:
    return MetricRow(
        name=f"cpu_{service}",
        label=f"CPU of {label}",
        meaning=f"That of {label}, µs.",
        unit=US_PER_REQUEST,
        kind="part",
        readings=_by_request(f"{service}_cpu_us_per_request", f"The part of {label}, µs."),
    )


_APPLICATION = "telemetry.server.processes.application"

# Tables have this order.
_ROWS = (
    MetricRow(
        name="cpu",
        label="CPU",
        short="CPU",
        meaning="CPU time of the reverse proxy, the application and PostgreSQL by request, µs.",
        unit=US_PER_REQUEST,
        kind="cost",
        readings=_by_request(
            "cpu_us_per_request",
            "CPU time of the reverse proxy, application and PostgreSQL for each request to the "
            "reverse proxy, µs; without one for each answer.",
        ),
        gate=GateRow(
            label="CPU per request",
            meaning="CPU time of the server's services per request, µs.",
            slower="more",
            faster="less",
            fine=True,
        ),
        beside_rank=True,
    ),
    MetricRow(
        name="goodput",
        meaning="Verified answers per second.",
        unit=PER_SECOND,
        better="higher",
        kind="speed",
        readings=(Reading(path="goodput"),),
        gauge=("lab_goodput_requests_per_second", "Median of verified 2xx answers a second"),
        gate=GateRow(
            load="saturated",
            label="goodput at saturation",
            meaning="of the closed loop, requests/s.",
            slower="lower",
            faster="higher",
            side_by_side="saturated.goodput",
        ),
        ranks=1,
    ),
    _percentile("p50", "50th", fine=True),
    _percentile("p99", "99th"),
    MetricRow(
        name="response_time",
        label="response time",
        unit=MS,
        readings=(Reading(path="response_time.mean_us"),),
        ranks=2,
    ),
    _cpu_of("reverse_proxy", "the reverse proxy"),
    _cpu_of("application", "the application"),
    _cpu_of("postgresql", "PostgreSQL"),
    MetricRow(
        name="cpu_relative",
        label="CPU of the application relative to the others",
        short="relative CPU",
        meaning="CPU time of the application divided by that of the reverse proxy and PostgreSQL. "
        "What slows the machine slows all of them, and is not in it.",
        unit=RATIO,
        kind="cost",
        readings=_by_request(
            "application_cpu_relative",
            "CPU time of the application divided by that of the reverse proxy and PostgreSQL.",
        ),
    ),
    MetricRow(
        name="cpu_kernel",
        label="CPU in the kernel",
        meaning="The part of cpu that was spent in the kernel on behalf of the services, µs.",
        unit=US_PER_REQUEST,
        kind="part",
        readings=_by_request(
            "kernel_cpu_us_per_request",
            "The part that the three spent in the kernel, µs, as it samples it at its ticks.",
        ),
        beside_rank=True,
    ),
    MetricRow(
        name="cpu_interrupts",
        label="interrupts",
        meaning="Time of the server's cores in interrupts and softirq by request, µs. A kernel "
        "without CONFIG_IRQ_TIME_ACCOUNTING charges it to the process that they interrupt as well.",
        unit=US_PER_REQUEST,
        kind="part",
        readings=_by_request(
            "interrupts_us_per_request",
            "Time of the server's cores in interrupts and softirq for each request, µs.",
        ),
    ),
    MetricRow(
        name="switches",
        label="context switches",
        meaning="Context switches of the services by request.",
        unit=PER_REQUEST,
        kind="cost",
        readings=_by_request(
            "switches_per_request", "Context switches of the three for each request."
        ),
        beside_rank=True,
    ),
    MetricRow(
        name="energy",
        meaning="Energy of the server's processors and memory by request, joules (RAPL).",
        unit=MJ_PER_REQUEST,
        kind="cost",
        readings=_by_request(
            "joules_per_request",
            "Energy of the server's processors and memory for each request, joules (RAPL).",
        ),
        beside_rank=True,
    ),
    MetricRow(
        name="memory",
        meaning="Memory of the application, bytes: its proportional set size after the load, or "
        "where a repetition lacks it its largest resident memory.",
        unit=MIB,
        kind="cost",
        readings=(
            Reading(
                path=f"{_APPLICATION}.pss_bytes",
                needs=f"{_APPLICATION}.pss_bytes",
                form="pss",
                column="memory_pss_mib",
                meaning="Proportional set size of the application after the load, MiB.",
            ),
            Reading(
                path=f"{_APPLICATION}.rss_max_bytes",
                form="rss",
                column="memory_mib",
                meaning="Largest resident memory of the application, MiB.",
            ),
        ),
        gate=GateRow(
            label="memory", meaning="most of the application, bytes.", slower="more", faster="less"
        ),
        beside_rank=True,
    ),
    MetricRow(
        name="memory_before",
        label="memory before the load",
        meaning="Proportional set size of the application before the load, bytes.",
        unit=MIB,
        kind="part",
        readings=(
            Reading(
                path=f"{_APPLICATION}.pss_before_bytes",
                column="memory_before_pss_mib",
                meaning="The same before the load, MiB.",
            ),
        ),
    ),
    MetricRow(
        name="opened",
        label="connections opened",
        unit=CONNECTIONS,
        readings=(
            Reading(
                path="opened.count",
                column="connections_opened",
                meaning="Connections that were opened on demand.",
            ),
        ),
    ),
    MetricRow(
        name="most_open",
        label="most connections at once",
        unit=CONNECTIONS,
        readings=(
            Reading(
                path="opened.most", column="connections_most", meaning="Most of these at once."
            ),
        ),
    ),
    MetricRow(
        name="errors",
        label="failed requests",
        unit=FRACTION,
        readings=(Reading(path="failed_fraction"),),
        gate=GateRow(
            label="failed requests",
            meaning="fraction of the requests due without a right answer.",
            relative=False,
            slower="more",
            faster="fewer",
        ),
    ),
)
ROWS = {row.name: row for row in _ROWS}


def _names(*kinds: str) -> tuple[str, ...]:
    return tuple(row.name for kind in kinds for row in ROWS.values() if row.kind == kind)


SPEEDS = _names("speed")
# What two cells are compared by; what a cell costs, with the parts.
COMPARED = _names("speed", "cost")
COST_METRICS = tuple(row.name for row in ROWS.values() if row.kind in ("cost", "part"))
GATES: dict[str, GateRow] = {row.name: row.gate for row in ROWS.values() if row.gate}


def meanings(names: Iterable[str]) -> str:
    """Return the meaning of each metric, for the schema."""
    return " ".join(f"{name}: {ROWS[name].meaning}" for name in names)
