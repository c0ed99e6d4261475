"""The figure of one repetition over time as SVG: panels on one axis of seconds.

Latencies as a heat map, or as lines where the generator keeps no record of each request; requests
asked for, verified and not verified; the server's accept queues; the CPU of each host by mode.
Times come in µs and are drawn in ms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import FixedLocator, MaxNLocator

from loadlab.model import AcceptQueue, HostSeries, LatencyBins, PerSecond
from loadlab.report.plots import svg
from loadlab.report.plots.curves_plot import AREA, LINE
from loadlab.stats import latency_bins

MODES = {
    "user": svg.BLUE,
    "system": svg.ORANGE,
    "softirq": svg.GREEN,
    "iowait": svg.PURPLE,
    "steal": svg.VERMILION,
}
# Of the line of a service's accept queue.
STYLES = {"reverse_proxy": "dotted", "application": "solid", "postgresql": "dashed"}
LATENCY, STRIP, GAP = 170.0, 46.0, 20.0  # px: heights of the panels, and between them
COLUMNS = 150  # most columns of the figure; a longer load has several seconds in each
LEVELS = 50  # rows of an image of CPU
_LEAST_S = 0.1  # part of a load's last second that has a rate, at least
# From few answers to many: light enough and dark enough for both themes, and safe for colour-blind
# eyes. The last is the fullest bin of the load.
HEAT = ("#8CC8EC", "#56B4E9", "#2A93D0", "#0072B2", "#4A6FA8", "#8A7A6A", "#C98A2B", "#F0A818",
        "#F7C948")  # fmt: skip
READ = ("second {}", "{}")

Floats = npt.NDArray[np.float64]
# Disturbed parts of a load: (begin, end), seconds since its start.
Spans = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Host:
    """A host: its name, series, number of cores, and the accept queues of its services."""

    name: str
    series: HostSeries
    cores: int
    queues: Sequence[AcceptQueue] = ()


def timeline(
    name: str,
    label: str,
    series: PerSecond | None,
    hosts: Sequence[Host],
    end: float,
    disturbed: Spans = (),
    batch: bool = False,
) -> str:
    """Return the figure of a load of ``end`` seconds; a ``batch`` has no schedule.

    ``series`` is None where the generator has none. The name and label are as for svg.Plot.
    """
    # The axis has all of the last second, as its columns do.
    whole = max(end, len(series.second)) if series else end
    queueing = [host for host in hosts if host.queues]
    strips = len(queueing) + len(hosts)
    heights = [*([LATENCY, STRIP] if series else []), *([STRIP] * strips)]
    plot, panels = svg.stacked(
        name, label, "Second of the load", "Latency, ms" if series else "", heights, GAP
    )
    for axes in panels:
        axes.grid(visible=False)
        for begin, until in disturbed:
            axes.axvspan(begin, until, color=svg.BAND, linewidth=0, zorder=0)
        axes.set_xlim(0, whole)
        svg.ticks(axes.xaxis, MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
    keys, more = [(AREA, svg.BAND, "disturbed")] if disturbed else [], ""
    if series:
        own_keys, more = _latency(plot, series, whole)
        keys = [*own_keys, *keys]
        _rates(plot, panels[1], series, end, batch)
    for index, host in enumerate(queueing, start=len(panels) - strips):
        _queues(plot, panels[index], index, host)
    for index, host in enumerate(hosts, start=len(panels) - len(hosts)):
        more += _cpu(plot, panels[index], index, host, whole)
    return plot.svg(keys, more, READ)


def group(seconds: int) -> int:
    """Return how many seconds are in a column of the figure."""
    return max(1, math.ceil(seconds / COLUMNS))


def _largest(values: Sequence[float | None], group: int) -> list[float]:
    """Return the largest of each group; NaN where none is known."""
    numbers = [math.nan if value is None else float(value) for value in values]
    return [
        max(
            (number for number in numbers[at : at + group] if not math.isnan(number)),
            default=math.nan,
        )
        for at in range(0, len(numbers), group)
    ]


def _middles(count: int, group: int, seconds: int) -> list[float]:
    """Return the middle of each column, in seconds."""
    return [(at * group + min((at + 1) * group, seconds)) / 2 for at in range(count)]


def _latency(
    plot: svg.Plot, series: PerSecond, end: float
) -> tuple[list[tuple[str, str, str]], str]:
    """Draw the latencies; return the legend's keys, and the heat map as SVG text."""
    seconds = len(series.second)
    wide = group(seconds)
    heat = series.latency_bins if series.latency_bins and any(series.latency_bins.counts) else None
    drawn: list[float] = []
    keys: list[tuple[str, str, str]] = []
    for text, values, colour, width in (
        ("max", series.max_us, svg.VERMILION, 1.0),
        ("p99", series.p99_us, svg.ORANGE if not heat else svg.INK, 1.4),
        ("p50", series.p50_us, svg.BLUE if not heat else svg.INK, 1.4),
    ):
        ms = [value / 1000 for value in _largest(values, wide)]
        numbers = [value for value in ms if not math.isnan(value)]
        # A second's percentiles are unknown for several clients.
        if not numbers:
            continue
        drawn += numbers
        x = _middles(len(ms), wide, seconds)
        style = (0, (4, 2)) if heat and text == "p99" else "-"
        plot.line(x, ms, colour, text, width=width, style=style)
        keys.append(("╍╍" if style != "-" else LINE, colour, text))
    if not heat:
        svg.latency_axis(plot.axes, drawn)
        return keys, ""
    low, high = _scale(plot.axes, heat)
    return [(AREA, HEAT[3], "few answers"), (AREA, HEAT[-2], "many"), *keys], plot.image(
        _heat(heat, low, high, wide, end), [(0, 0, 0, 0), *(svg.rgba(shade) for shade in HEAT)]
    )


def _scale(axes: svg.Axes, heat: LatencyBins) -> tuple[int, int]:
    """Scale the y axis to the bins with answers; return the first and the last of them."""
    used = np.flatnonzero(latency_bins.table(heat).sum(axis=0))
    # An open bin at an end is drawn as wide as its neighbour.
    low, high = max(int(used[0]), 1), min(int(used[-1]), len(heat.edges_us) - 1)
    low, high = min(low, high), max(low, high)
    if high - low < 4:
        low, high = max(1, low - 2), min(len(heat.edges_us) - 1, high + 2)
    axes.set_yscale("log")
    axes.set_ylim(heat.edges_us[low - 1] / 1000, heat.edges_us[high] / 1000)
    # More of them where few decades are shown.
    bases = (1, 2, 5) if high - low < 2.5 * latency_bins.PER_DECADE else (1,)
    ticks = [base * 10**power for power in range(-2, 6) for base in bases]
    svg.ticks(axes.yaxis, FixedLocator(ticks))
    return low, high


def _heat(heat: LatencyBins, low: int, high: int, group: int, end: float) -> npt.NDArray[np.uint8]:
    """Return the heat map's pixels: a column for each group of seconds, the largest bin first."""
    counts = latency_bins.table(heat)
    counts[:, low] += counts[:, :low].sum(axis=1)
    counts[:, high] += counts[:, high + 1 :].sum(axis=1)
    counts = counts[:, low : high + 1]
    whole = math.ceil(max(end, len(counts)) / group) * group
    counts = np.vstack([counts, np.zeros((whole - len(counts), counts.shape[1]), np.int64)])
    columns = counts.reshape(-1, group, counts.shape[1]).sum(axis=1)
    # Logarithmic, so that the few slow answers are seen beside the many fast ones.
    share = np.log1p(columns) / np.log1p(columns.max())
    pixels = np.where(columns > 0, 1 + np.rint(share * (len(HEAT) - 1)), 0)
    values: npt.NDArray[np.uint8] = pixels.T[::-1].astype(np.uint8)
    return values


def _rates(plot: svg.Plot, axes: svg.Axes, series: PerSecond, end: float, batch: bool) -> None:
    """Draw the mean rates of the columns: asked for or begun, verified, and not verified."""
    seconds = len(series.second)
    wide = group(seconds)
    x = _middles(math.ceil(seconds / wide), wide, seconds)

    def means(values: Sequence[int], missing: float = 0) -> list[float]:
        parts = [values[at : at + wide] for at in range(0, len(values), wide)]
        return [sum(part) / (len(part) - (missing if part is parts[-1] else 0)) for part in parts]

    # The load may end within its last second, in the rest of which answers come.
    missing = min(seconds - end, 1 - _LEAST_S) if 0 < seconds - end < 1 else 0
    scheduled, ok = means(series.scheduled, missing), means(series.ok, missing)
    came = means(series.came or ())
    top = 1.15 * max([*scheduled, *ok, *came, 1])
    for text, values, colour, width, style in (
        ("begun" if batch else "asked", scheduled, svg.ASKED, 4.0, "-"),
        ("verified", ok, svg.INK, 1.2, "-"),
        *([("came", came, svg.BLUE, 1.2, (0, (1, 1)))] if came else []),
    ):
        plot.line(x, values, colour, f"{text}, requests/s", 1, width=width, style=style)
    if not batch:
        lost = [(at, a - b) for at, a, b in zip(x, scheduled, ok, strict=True) if a > b]
        if lost:
            at, height = zip(*lost, strict=True)
            axes.vlines(at, 0, height, color=svg.VERMILION, linewidth=max(1.0, 300 / len(x)))
    axes.set_ylim(0, top)
    svg.ticks(axes.yaxis, MaxNLocator(2))
    svg.title(axes, "Requests/s")


def _queues(plot: svg.Plot, axes: svg.Axes, panel: int, host: Host) -> None:
    """Draw the accept queues in which connections waited: the most of each column.

    With a queue's limit, where it was reached. Where none waited, the first queue is drawn.
    """
    ends = host.series.t
    wide = group(len(ends))
    edges = [0.0, *ends[wide - 1 : -1 : wide], ends[-1]]
    x = [(begin + end) / 2 for begin, end in pairwise(edges)]
    drawn = [queue for queue in host.queues if deepest(queue)] or host.queues[:1]
    for queue in drawn:
        name = f"{queue.service.replace('_', ' ')}, {queue.socket}"
        if full(queue):
            limit = axes.axhline(queue.limit, color=svg.VERMILION, linewidth=1.0)
            plot.curve(limit, f"limit of {name}", panel)
        style = STYLES.get(queue.service, "solid")
        depths = _largest(queue.depth, wide)
        plot.line(x, depths, svg.INK, f"accept queue of {name}", panel, style=style)
    axes.set_ylim(0, 1.15 * max(1, *(deepest(queue) for queue in drawn)))
    svg.ticks(axes.yaxis, MaxNLocator(2, integer=True))
    svg.title(axes, f"Accept queues of the {host.name}, connections")


def deepest(queue: AcceptQueue) -> int:
    """Return the most connections that waited in an accept queue; 0 without a reading."""
    return max((depth or 0 for depth in queue.depth), default=0)


def full(queue: AcceptQueue) -> bool:
    """Return whether an accept queue reached its limit."""
    return deepest(queue) >= max(1, queue.limit)


def _cpu(plot: svg.Plot, axes: svg.Axes, panel: int, host: Host, end: float) -> str:
    """Draw a host's CPU; return its modes, stacked, as SVG text."""
    columns = max(1, min(COLUMNS, math.ceil(end)))
    edges = np.linspace(0, end, columns + 1)
    shares = np.array(
        [_mean(host.series.t, getattr(host.series, f"cpu_{mode}"), edges) for mode in MODES]
    )
    tops = np.cumsum(shares, axis=0)
    levels = (np.arange(LEVELS)[::-1] + 0.5) / LEVELS
    pixels = np.zeros((LEVELS, columns), np.uint8)
    for index in reversed(range(len(MODES))):
        pixels[levels[:, None] < tops[index][None, :]] = index + 1
    middles = (edges[1:] + edges[:-1]) / 2
    busy = _mean(host.series.t, host.series.cpu_busy, edges)
    lines = [("busy", busy, "solid")]
    if host.series.foreign_cpu:
        foreign = _mean(host.series.t, host.series.foreign_cpu, edges)
        lines.append(("foreign CPU", foreign, "dotted"))
    for text, values, style in lines:
        named = f"{text} of the {host.name}, %"
        plot.line(middles, 100 * values, svg.INK, named, panel, width=1.0, style=style)
    axes.set_ylim(0, 100)
    axes.yaxis.set_major_locator(FixedLocator([0, 50, 100]))
    share = f"% of {host.cores} cores" if host.cores > 1 else "% of its core"
    svg.title(axes, f"CPU of the {host.name}, {share}")
    return plot.image(
        pixels, [(0, 0, 0, 0), *(svg.rgba(colour, 210) for colour in MODES.values())], panel
    )


def _mean(t: Sequence[float], values: Sequence[float], edges: Floats) -> Floats:
    """Return the means of a series in the columns. Entry k is of the time that ends at t[k]."""
    begin = min(0.0, t[0] - 1)
    ends = np.array([begin, *t])
    total = np.concatenate([[0.0], np.cumsum(np.diff(ends) * np.array(values))])
    changes: Floats = np.diff(np.interp(edges, ends, total))
    covered = np.diff(np.interp(edges, ends, ends))
    np.divide(changes, covered, out=changes, where=covered > 1e-9)
    return changes
