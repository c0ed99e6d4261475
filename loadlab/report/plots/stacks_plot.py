"""Figures of all stacks as SVG: p99 by offered rate, one plot a stack; percentiles on one axis;
one value of each, in a row each; goodput against a cost.

Times come in µs and are drawn in ms. The name and label arguments are as for svg.Plot.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.ticker import LogLocator

from loadlab.report.plots import svg
from loadlab.report.plots.curves_plot import READ, Curve, carried, percentile_axis, position
from loadlab.results.tail import Bound
from loadlab.stats.inference import Estimate

SIZE = (264, 190)  # px: of the plot of one stack
LARGE = (528, 260)  # px: of the same where the page has room
FRAME = (44.0, 10.0, 10.0, 40.0)
ROW, LETTER, LONGEST = 22, 6.4, 32  # px of a row, px of a letter, letters of a stack's name
WIDE, TALL = 1080, 400  # px: of the plot of all percentiles
TRADE = (460, 280)  # px: of goodput against a cost
COLOURS = (svg.BLUE, svg.VERMILION, svg.GREEN, svg.PURPLE, svg.ORANGE, svg.SKY, svg.INK)
DASHES = ("", "6 2", "2 2", "8 2 2 2")
READ_RATE = ("at {} requests/s", "p99 {} ms")

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Point:
    """A measured rate in requests/s and its p99 with its interval, µs; None where unknown."""

    rate: float
    p99_us: float | None
    low_us: float | None = None
    high_us: float | None = None
    best: bool = False  #: Whether it is the highest within the objective, or held.
    void: bool = False  #: No repetition is valid.
    bound: Bound = ""  #: Whether the p99 is only a bound.


@dataclass(frozen=True)
class Limits:
    """The axes that all plots share: requests/s and ms."""

    rate: Bounds
    ms: Bounds


@dataclass(frozen=True)
class StackValues:
    """A stack's values, one of each valid repetition, with the median as the page shows it."""

    name: str
    values: Sequence[float]
    median: float
    shown: str


@dataclass(frozen=True)
class Percentiles:
    """A stack's latency by percentile; ``band``: (percentile, low, high in µs) of its intervals."""

    name: str
    curve: Curve
    band: Sequence[tuple[float, float, float]]


@dataclass(frozen=True)
class Traded:
    """A stack's goodput in requests/s and its cost in the unit of the axis; ``number``: its number
    on the front, from 1; None: off it."""

    goodput: Estimate
    cost: Estimate
    number: int | None
    chosen: bool


def limits(curves: Sequence[Sequence[Point]], objectives_ms: Sequence[float]) -> Limits | None:
    """Return axes that hold all points and objectives; None where nothing has a p99."""
    points = [point for curve in curves for point in curve]
    ms = [
        us / 1000
        for point in points
        for us in (point.p99_us, point.low_us, point.high_us)
        if us is not None
    ]
    if not ms:
        return None
    ms += objectives_ms
    rates = [point.rate for point in points]
    return Limits((min(rates) / 1.25, max(rates) * 1.25), (min(ms) / 1.5, max(ms) * 1.6))


def p99_by_rate(
    name: str,
    label: str,
    points: Sequence[Point],
    shared: Limits,
    objective_ms: float | None,
    large: bool,
) -> str:
    """Return the plot of one stack; ``points`` are ascending.

    A diamond marks the best rate. Rates without a valid repetition are hatched.
    ``large``: whether the page has room, as there are few plots.
    """
    width, height = LARGE if large else SIZE
    plot = svg.Plot(name, label, "Requests/s offered", "p99, ms", height, FRAME, width)
    axes = plot.axes
    axes.xaxis.set_label_coords(0.5, -30 / plot.down)
    axes.yaxis.set_label_coords(-32 / plot.across, 0.5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*shared.rate)
    axes.set_ylim(*shared.ms)
    for axis, (low, high) in ((axes.xaxis, shared.rate), (axes.yaxis, shared.ms)):
        svg.ticks(axis, LogLocator(subs=(1, 2, 5) if high < 60 * low else (1,)), _short)
    for begin, end in _void(points, shared.rate):
        axes.axvspan(
            begin, end, facecolor="none", edgecolor=svg.GREY, hatch="////", linewidth=0, zorder=0
        )
    band = [(p.rate, p.low_us / 1000, p.high_us / 1000) for p in points if p.low_us and p.high_us]
    if len(band) > 1:
        x, low_ms, high_ms = zip(*band, strict=True)
        axes.fill_between(x, low_ms, high_ms, color=svg.BLUE, alpha=0.22, linewidth=0)
    else:
        for rate, lowest, highest in band:
            axes.plot([rate, rate], [lowest, highest], color=svg.SKY, linewidth=4)
    if objective_ms is not None:
        axes.axhline(objective_ms, color=svg.VERMILION, linewidth=1.2, linestyle=(0, (4, 3)))
    measured = [(point.rate, point.p99_us / 1000) for point in points if point.p99_us is not None]
    if measured:
        x, y = zip(*measured, strict=True)
        (line,) = axes.plot(x, y, color=svg.BLUE, linewidth=1.8, marker="o", markersize=4)
        plot.curve(line, "")
    for bound, marker in (("at_least", "^"), ("at_most", "v")):
        own = [(p.rate, p.p99_us / 1000) for p in points if p.bound == bound and p.p99_us]
        if own:
            x, y = zip(*own, strict=True)
            svg.dots(axes, x, y, svg.BLUE, marker, 8)
    for rate, ms in ((p.rate, p.p99_us / 1000) for p in points if p.best and p.p99_us is not None):
        svg.dots(
            axes, [rate], [ms], svg.INK, "D", 8, markerfacecolor=svg.PAPER, markeredgewidth=1.6
        )
    return plot.svg(read=READ_RATE)


def _void(points: Sequence[Point], bounds: Bounds) -> list[Bounds]:
    """Return the spans of rates without a valid repetition, to half-way to their neighbours."""
    edges = [bounds[0]]
    for left, other in pairwise(points):
        edges.append((left.rate * other.rate) ** 0.5)
    edges.append(bounds[1])
    return [(edges[index], edges[index + 1]) for index, point in enumerate(points) if point.void]


def _short(value: float) -> str:
    """Format a tick: 20k for 20,000."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def percentiles(name: str, label: str, stacks: Sequence[Percentiles]) -> str | None:
    """Return the plot of all stacks' latency by percentile; None where none is supported."""
    drawn = [
        (index, stack_curve, carried(stack_curve.curve)) for index, stack_curve in enumerate(stacks)
    ]
    drawn = [triple for triple in drawn if len(triple[2]) > 1]
    if not drawn:
        return None
    frame = (59.4, 10.0, 13.8, 45.0)
    plot = svg.Plot(name, label, "Answers within, %", "Latency, ms", TALL, frame, WIDE)
    for index, stack, points in drawn:
        colour, dashes = _style(index)
        x, y = zip(*points, strict=True)
        style = (0, [float(part) for part in dashes.split()]) if dashes else "-"
        plot.line(x, y, colour, stack.name, width=1.8, style=style)
        right = x[-1]
        band = [(position(p), low, high) for p, low, high in stack.band if position(p) <= right]
        if band:
            # A bar at each percentile: between two of them no interval is known.
            at, low_us, high_us = zip(*band, strict=True)
            bars = plot.axes.vlines(
                at, [us / 1000 for us in low_us], [us / 1000 for us in high_us],
                color=colour, alpha=0.35, linewidth=7,
            )  # fmt: skip
            plot.curve(bars, stack.name, svg.HIDDEN)
    percentile_axis(plot.axes, max(points[-1][0] for *_, points in drawn))
    svg.latency_axis(plot.axes, [y for *_, points in drawn for _, y in points])
    return plot.svg(read=READ)


def values(name: str, label: str, x: str, stacks: Sequence[StackValues]) -> str:
    """Return the plot of one value: a row a stack, a dot a repetition, the median in figures.

    ``x``: the axis label with the unit.
    """
    most = max(len(stack_values.name) for stack_values in stacks)
    left = min(LONGEST, most) * LETTER + 12
    plot = svg.Plot(
        name, label, x, "", ROW * len(stacks) + 50, (left, 6.0, 66.0, 44.0), LARGE[0]
    )  # fmt: skip
    axes = plot.axes
    every = [value for values_of_stack in stacks for value in values_of_stack.values]
    if svg.rate_axis(axes, every, _short):
        axes.set_xlim(min(every) / 1.3, max(every) * 1.3)
    else:
        axes.set_xlim(0, 1.05 * max(every) or 1.0)  # an axis of no width is none
    axes.set_ylim(len(stacks) - 0.5, -0.5)
    axes.set_yticks(range(len(stacks)), [_cut(named_stack.name) for named_stack in stacks])
    axes.tick_params(axis="y", length=0)
    for row, stack in enumerate(stacks):
        svg.dots(axes, stack.values, [row] * len(stack.values), svg.SKY, "o", 6)
        svg.dots(axes, [stack.median], [row], svg.BLUE, "|", 13, markeredgewidth=2.4)
        axes.annotate(
            stack.shown, (1, row), xycoords=("axes fraction", "data"), xytext=(8, 0),
            textcoords="offset points", va="center", color=svg.INK,
        )  # fmt: skip
    return plot.svg()


def trade(name: str, label: str, y: str, stacks: Sequence[Traded]) -> str:
    """Return the plot of goodput against a cost: the front numbered and in colours, others grey.

    ``y``: the label of the cost with its unit. Each stack has both values. A diamond marks the
    chosen one.
    """
    width, height = TRADE
    frame = (svg.FRAME[0], 12.0, *svg.FRAME[2:])
    plot = svg.Plot(name, label, "Goodput, requests/s", y, height, frame, width)
    axes = plot.axes
    # Those of the front are drawn over the others.
    for stack in sorted(stacks, key=lambda stack: stack.number or 0):
        colour = svg.GREY if stack.number is None else _style(stack.number - 1)[0]
        goodput, cost = stack.goodput, stack.cost
        for ends in (
            ([goodput.low or goodput.value, goodput.high or goodput.value], [cost.value] * 2),
            ([goodput.value] * 2, [cost.low or cost.value, cost.high or cost.value]),
        ):
            axes.plot(*ends, color=colour, linewidth=2, alpha=0.6)
        size = 9 if stack.chosen else 7 if stack.number else 5
        mark = "D" if stack.chosen else "o"
        svg.dots(axes, [goodput.value], [cost.value], colour, mark, size)
        if stack.number is not None:
            # Neighbours on the front have their names above and below in turn.
            up = 7 if stack.number % 2 else -17
            axes.annotate(
                str(stack.number), (goodput.value, cost.value), xytext=(5, up),
                textcoords="offset points", color=svg.INK,
            )  # fmt: skip
    goodputs = [x for stack in stacks for x in _known(stack.goodput)]
    svg.latency_axis(axes, [x for stack in stacks for x in _known(stack.cost)])
    svg.rate_axis(axes, goodputs)
    axes.set_xlim(min(goodputs) / 1.1, 1.1 * max(goodputs) or 1.0)
    return plot.svg()


def _known(estimate: Estimate) -> list[float]:
    bounds = (estimate.low, estimate.value, estimate.high)
    return [bound for bound in bounds if bound is not None]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _style(index: int) -> tuple[str, str]:
    """Return the colour and the dashes of a stack's curve."""
    return COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]


def dot(number: int) -> str:
    """Return a sample of the dot of a stack on the front, for the legend beside the figure."""
    return (
        '<svg width="12" height="10" aria-hidden="true"><circle cx="6" cy="5" r="4.5" '
        f'fill="{_style(number - 1)[0]}"/></svg>'
    )


def sample(index: int) -> str:
    """Return a sample of the line of a stack, for the legend beside the figure."""
    colour, dashes = _style(index)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        '<svg width="26" height="8" aria-hidden="true"><path d="M0 4H26" stroke-width="3" '
        f'stroke="{svg.themed(colour)}"{dashed}/></svg>'
    )
