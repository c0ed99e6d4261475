"""Figures of sweeps and searches as SVG; see loadlab/report/plots/curves_plot.py."""

from collections.abc import Sequence

from matplotlib.ticker import FixedLocator, MaxNLocator

from loadlab.model import SearchStep, SweepLevel
from loadlab.report.plots import svg
from loadlab.report.plots.curves_plot import LINE

DOTS, RING, CROSS, STROKE = "●", "○", "✕", "┆"
LEVELS = {"connections": "Connections", "rate": "Requests per second asked for"}


# px around the axes: room for five digits beside the y axis' label.
FRAME, LABEL = (77.0, *svg.FRAME[1:]), 56.0


def _plot(name: str, label: str, x: str, y: str) -> svg.Plot:
    plot = svg.Plot(name, label, x, y, frame=FRAME)
    plot.axes.yaxis.set_label_coords(-LABEL / plot.across, 0.5)
    return plot


def _levels(axes: svg.Axes, values: Sequence[float], by: str) -> None:
    """Set up the x axis: base-2 logarithmic for connections, linear for rates."""
    if by == "connections":
        axes.set_xscale("log", base=2)
        axes.set_xlim(min(values) / 1.2, max(values) * 1.2)
        svg.ticks(axes.xaxis, FixedLocator(values))
    else:
        axes.set_xlim(0, 1.05 * max(values))
        svg.ticks(axes.xaxis, MaxNLocator(6))


def _stopped(axes: svg.Axes, at: float | None) -> list[tuple[str, str, str]]:
    """Mark where the sweep stopped; return the key for the legend."""
    if at is None:
        return []
    axes.axvline(at, color=svg.VERMILION, linewidth=1.2, linestyle=(0, (4, 3)))
    return [(STROKE, svg.VERMILION, "saturated")]


def throughput(
    name: str,
    label: str,
    levels: Sequence[SweepLevel],
    by: str,
    stopped: float | None,
    best: float | None,
) -> str:
    """Return the plot of verified answers per second at each level, with intervals.

    ``levels`` have a valid repetition. ``by``: "connections" or "rate". ``stopped``, ``best``:
    levels or None.
    """
    plot = _plot(name, label, LEVELS[by], "Verified answers per second")
    axes = plot.axes
    x = [level.value for level in levels]
    y = [level.goodput.median or 0.0 for level in levels]
    keys = [(LINE, svg.BLUE, "median")]
    if by == "rate":
        # The rate asked for: a server that keeps it stays on this line.
        axes.plot([0, max(x)], [0, max(x)], color=svg.ASKED, linewidth=4)
        keys.append((LINE, svg.ASKED, "asked"))
    for level in levels:
        low, high = level.goodput.low, level.goodput.high
        if low is not None and high is not None:
            axes.plot([level.value] * 2, [low, high], color=svg.SKY, linewidth=4)
    axes.plot(x, y, color=svg.BLUE, linewidth=1.8, marker="o", markersize=5)
    keys += _stopped(axes, stopped)
    if best is not None:
        svg.dots(axes, [best], [y[x.index(best)]], svg.GREEN, "o", 9)
        keys.append((DOTS, svg.GREEN, "most"))
    axes.set_ylim(0, 1.12 * max([*y, 1]))
    svg.ticks(axes.yaxis, MaxNLocator(5))
    _levels(axes, x, by)
    return plot.svg(keys)


def latency(
    name: str, label: str, levels: Sequence[SweepLevel], by: str, stopped: float | None
) -> str:
    """Return the plot of the p99 at each level; the arguments are as for throughput."""
    plot = _plot(name, label, LEVELS[by], "p99, ms")
    points = [(level.value, level.p99_us / 1000) for level in levels if level.p99_us is not None]
    x, y = [value for value, _ in points], [ms for _, ms in points]
    plot.axes.plot(x, y, color=svg.ORANGE, linewidth=1.8, marker="o", markersize=5)
    svg.latency_axis(plot.axes, y)
    keys = [(LINE, svg.ORANGE, "p99"), *_stopped(plot.axes, stopped)]
    _levels(plot.axes, x, by)
    return plot.svg(keys)


def trace(name: str, label: str, steps: Sequence[SearchStep], result: float | None) -> str:
    """Return the plot of each measurement's rate in a search, in order, and whether it met the
    objective.

    ``result``: the rate found in requests/s, or None.
    """
    plot = _plot(name, label, "Measurement", "Requests per second asked for")
    axes = plot.axes
    numbers = list(range(1, len(steps) + 1))
    rates = [step.rate for step in steps]
    axes.plot(numbers, rates, color=svg.ASKED, linewidth=1.0)
    keys = []
    for met, sign, colour, marker, text in (
        (True, DOTS, svg.BLUE, "o", "met"),
        (False, CROSS, svg.VERMILION, "x", "not met"),
        (None, RING, svg.GREY, "o", "inconclusive"),
    ):
        tried = [
            (number, rate)
            for number, rate, step in zip(numbers, rates, steps, strict=True)
            if step.met is met
        ]
        if tried:
            x, y = zip(*tried, strict=True)
            inside = svg.PAPER if met is None else colour
            svg.dots(axes, x, y, colour, marker, 7, markeredgewidth=2, markerfacecolor=inside)
            keys.append((sign, colour, text))
    if result is not None:
        axes.axhline(result, color=svg.GREEN, linewidth=1.2, linestyle=(0, (4, 3)))
        keys.append((LINE, svg.GREEN, "found"))
    # The search's steps are ratios, so a logarithmic axis suits its rates.
    svg.latency_axis(axes, rates)
    if axes.get_yscale() == "linear":
        axes.set_ylim(0, 1.12 * max(rates))
    axes.set_xlim(0.5, len(steps) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    return plot.svg(keys)
