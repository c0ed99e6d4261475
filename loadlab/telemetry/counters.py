"""Counters of a host's cores and link over time, and their use between two moments.

They come from the scrapes of node_exporter, once a second, or from the recording of the host
itself, five times a second. Between two readings a counter is taken as linear in time. At the edge
of a load, where its rate may change at once, the rates before and after the two readings decide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from loadlab.model import CpuModes
from loadlab.telemetry.recordings import TelemetryError

MODES = ("user", "nice", "system", "iowait", "irq", "softirq", "steal", "idle")
# Time in these modes is time in which no process had the core.
_NO_PROCESS = ("iowait", "irq", "softirq", "steal", "idle")
# A shorter piece belongs to the interval before it: of a second at the end of a load, and between a
# scrape and the edge of the load.
SHORTEST_S = 0.5
SHORTEST_SCRAPED_S = 0.1

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Counters:
    """Counters of one host."""

    t: Floats  #: Unix seconds of the host's clock, ascending, 2 or more.
    cores: Mapping[int, Mapping[str, Floats]]  #: Core -> mode -> seconds.
    #: rx, tx: bytes, all at each t.
    rx: Floats
    tx: Floats
    own: Floats | None = None  #: Seconds of CPU of the lab's own processes; None where unknown.
    #: Seconds in which a process waited for a core (PSI, some); None where unknown.
    pressure: Floats | None = None
    #: Whether the readings are close enough to tell each second of a load.
    whole_seconds: bool = False
    #: Counter of the network card -> packets above an allowance of the instance type, from the
    #: first to the last reading; None where the card has no such counters.
    exceeded: Mapping[str, int] | None = None

    def covers(self, start: float, end: float) -> bool:
        """Return whether there are readings at or before ``start`` and at or after ``end``."""
        return len(self.t) > 1 and bool(self.t[0] <= start < end <= self.t[-1])


@dataclass(frozen=True)
class Use:
    """The use of a host's cores and link, in each interval between two edges."""

    seconds: Floats  #: Length of each interval.
    modes: Mapping[str, Floats]  #: Mode -> fraction of the time in all modes.
    busy: Floats  #: Fraction of the time that passed in which a core was not idle, without iowait.
    #: busiest, softirq_busiest: busy and softirq of the core that has most of it.
    busiest: Floats
    softirq_busiest: Floats
    #: rx, tx: bytes.
    rx: Floats
    tx: Floats
    #: Fraction of the cores' time that other processes than the lab's had; None if unknown.
    foreign: Floats | None
    #: Fraction of the time in which a process waited for a core; None if unknown.
    pressure: Floats | None


def edges(counters: Counters, start: float, end: float) -> list[float]:
    """Return the moments that divide a load: each second, or each reading where they are rarer."""
    if counters.whole_seconds:
        inner = [start + second for second in range(1, int(end - start) + 1)]
        shortest_s = SHORTEST_S
    else:
        inner = [float(t) for t in counters.t]
        shortest_s = SHORTEST_SCRAPED_S
    moments = [start]
    for t in inner:
        if t - moments[-1] >= shortest_s and end - t >= shortest_s:
            moments.append(t)
    return [*moments, end]


def use(counters: Counters, at: Sequence[float]) -> Use:
    """Return the use between each two neighbours of ``at``, unix seconds of the host's clock.

    Before the first and after the last reading nothing is known, and nothing is counted. Raises
    TelemetryError where no CPU time passed.
    """
    moments = np.clip(np.asarray(at, dtype=np.float64), counters.t[0], counters.t[-1])
    seconds = np.diff(moments)

    # The readings, with the two ends of the load among them.
    ends = [float(moments[0]), float(moments[-1])]
    places = np.searchsorted(counters.t, ends)
    t = np.insert(counters.t, places, ends)

    def spent(values: Floats) -> Floats:
        at_ends = [at_edge(counters.t, values, end) for end in ends]
        return np.diff(np.interp(moments, t, np.insert(values, places, at_ends)))

    by_core = {
        core: {mode: spent(values) for mode, values in modes.items()}
        for core, modes in counters.cores.items()
    }
    totals = {core: sum(modes.values(), np.zeros(len(seconds))) for core, modes in by_core.items()}
    if any((total <= 0).any() for total in totals.values()):
        raise TelemetryError(f"no CPU time passed on cpus {list(by_core)}; scrapes are too close")
    total = sum(totals.values(), np.zeros(len(seconds)))
    modes = {mode: sum(core[mode] for core in by_core.values()) / total for mode in MODES}

    # Of the time that passed: the kernel measures idle time, but samples the other modes and misses
    # short bursts of work between its ticks.
    busy = {
        core: np.clip(1 - (own["idle"] + own["iowait"]) / seconds, 0, 1)
        for core, own in by_core.items()
    }
    return Use(
        seconds=seconds,
        modes=modes,
        busy=np.mean(list(busy.values()), axis=0),
        busiest=np.max(list(busy.values()), axis=0),
        softirq_busiest=np.max(
            [modes["softirq"] / totals[core] for core, modes in by_core.items()], axis=0
        ),
        rx=spent(counters.rx),
        tx=spent(counters.tx),
        foreign=None if counters.own is None else _foreign(seconds, by_core, spent(counters.own)),
        pressure=None
        if counters.pressure is None
        else np.clip(spent(counters.pressure) / seconds, 0, 1),
    )


def at_edge(t: Floats, values: Floats, moment: float) -> float:
    """Return a counter at an edge of the load, from the rates before and after the two readings
    around it; linear where there is no further reading on one side."""
    after = int(np.searchsorted(t, moment))
    if not 2 <= after < len(t) - 1:
        return float(np.interp(moment, t, values))
    rates = np.diff(values[after - 2 : after + 2]) / np.diff(t[after - 2 : after + 2])
    early, late = (moment - t[after - 1]) * rates[0], (t[after] - moment) * rates[2]
    if early + late <= 0:
        return float(np.interp(moment, t, values))
    rise = values[after] - values[after - 1]
    return float(values[after - 1] + rise * early / (early + late))


def _foreign(seconds: Floats, by_core: Mapping[int, Mapping[str, Floats]], own: Floats) -> Floats:
    """Return the fraction of the cores' time that processes had, less that of the lab's.

    From the time that passed and not from user and system, which the kernel samples: idle time it
    measures. Interrupts count as the lab's own. A kernel that charges them to the process that they
    interrupt counts them twice here, so the fraction is never too high for that reason.
    """
    available = seconds * len(by_core)
    without = sum(core[mode] for core in by_core.values() for mode in _NO_PROCESS)
    return np.clip((available - without - own) / available, 0, 1)


def mean_modes(use: Use) -> CpuModes:
    """Return the modes over all intervals. Their sum is 1."""
    weights = use.seconds / use.seconds.sum()
    return CpuModes(**{mode: float(values @ weights) for mode, values in use.modes.items()})
