"""Figures as SVG: latency by percentile, and differences between cells.

Times come in µs and are drawn in ms. The caller chooses the repetitions, and must leave out void
ones. The name and label arguments are as for svg.Plot.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from loadlab.report.plots import svg
from loadlab.run import formatting
from loadlab.stats.inference import ABOVE

TICKS = (0, 50, 90, 99, 99.9, 99.99, 99.999)
LINE, AREA = "━━", "■"  # symbols in legends
# How the page's script words a point of a figure of percentiles.
READ = ("{} % are within", "{} ms")

# px: height of a row of differences, and the margins around them
ROW, ASIDE = 19, (66.0, 28.0, 112.0, 45.0)
SMALLEST = 1 / 64  # smallest ratio of head to base that is drawn

Points = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Curve:
    """Latency by percentile: points (percentile 0 to 100, µs), and the number of values behind
    them."""

    points: Points
    count: int


@dataclass(frozen=True)
class DifferenceRow:
    """A row of the figure of differences: fractions of the base, None where unknown, and a
    conclusion."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    floor: float | None
    conclusion: str


def position(percentile: float) -> float:
    """Return a percentile's position on the axis, 1/(1-p): 10 for 90 %, 100 for 99 %.

    ``percentile`` is below 100.
    """
    return 1 / (1 - percentile / 100)


def highest(count: int) -> float | None:
    """Return the highest percentile that ``count`` values support; None where there is none."""
    return 100 * (1 - ABOVE / count) if count > ABOVE else None


def carried(curve: Curve) -> list[tuple[float, float]]:
    """Return the points that may be drawn: (position on the axis, ms)."""
    limit = highest(curve.count)
    if limit is None:
        return []
    # Percentiles are binary fractions, so allow for rounding.
    return [(position(p), us / 1000) for p, us in curve.points if p <= limit + 1e-9]


def latency_by_percentile(
    name: str, label: str, merged: Curve, repetitions: Sequence[Curve], floor: Curve | None
) -> str | None:
    """Return the plot of latency over percentile, log 1/(1-p); None where no percentile is
    supported.

    ``repetitions`` are those merged, or empty for a single one. ``floor`` is the baseline latency.
    """
    main = carried(merged)
    if len(main) < 2:
        return None
    plot = svg.Plot(name, label, "Answers within, %", "Latency, ms")
    lines = [("baseline latency", [carried(floor)], svg.GREY, 1.2)] if floor else []
    if repetitions:
        own_curves = [carried(curve) for curve in repetitions]
        lines.append(("each repetition", own_curves, svg.SKY, 1.0))
        lines.append((f"all {len(own_curves)} added", [main], svg.BLUE, 2.2))
    else:
        lines.append(("this stack", [main], svg.BLUE, 2.2))
    for text, curves, colour, width in lines:
        for points in curves:
            if points:
                x, y = zip(*points, strict=True)
                if len(curves) == 1:
                    plot.line(x, y, colour, text, width=width)
                else:
                    plot.axes.plot(x, y, color=colour, linewidth=width)
    drawn = [point for _, curves, *_ in lines for points in curves for point in points]
    percentile_axis(plot.axes, max(x for x, _ in drawn))
    svg.latency_axis(plot.axes, [y for _, y in drawn])
    return plot.svg([(LINE, colour, text) for text, _, colour, _ in lines], read=READ)


def percentile_axis(axes: svg.Axes, right: float) -> None:
    """Scale the x axis for percentiles, up to the position ``right`` and to 99 % at least."""
    right = max(right, 100)
    axes.set_xscale("log")
    axes.set_xlim(1, 1.1 * right)
    axes.xaxis.set_minor_locator(NullLocator())
    ticks = [tick for tick in TICKS if position(tick) <= 1.1 * right]
    axes.set_xticks([position(tick) for tick in ticks], [f"{tick:g}" for tick in ticks])


def differences(
    name: str, label: str, groups: Sequence[tuple[str, Sequence[DifferenceRow]]]
) -> str:
    """Return the plot of differences, with their intervals and noise floors, in titled groups.

    Where one is a factor in words too, the axis shows factors: half and double are equally far
    from 1.
    """
    rows = [row for _, group in groups for row in group]
    bounds = [
        number
        for row in rows
        for number in (row.value, row.low, row.high, row.floor, row.floor and -row.floor)
        if number is not None
    ]
    ratios = any(map(formatting.is_factor, bounds))

    def place(fraction: float) -> float:
        return math.log2(max(1 + fraction, SMALLEST)) if ratios else 100 * fraction

    height = ROW * (len(rows) + 1.3 * len(groups)) + ASIDE[1] + ASIDE[3]
    across = "Times the base" if ratios else "Difference from the base, %"
    plot = svg.Plot(name, label, across, "", round(height), ASIDE)
    axes = plot.axes
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.axvline(0, color=svg.INK, linewidth=1.0)
    at: dict[float, str] = {}
    marks: dict[str, tuple[str, str, str]] = {}
    y = 0.0
    for title, members in groups:
        axes.text(
            4 / plot.across - ASIDE[0] / plot.across, y + 0.75, title,
            transform=axes.get_yaxis_transform(), va="center", fontsize=svg.FONT, color=svg.INK,
            fontweight="bold", bbox={"facecolor": svg.PAPER, "edgecolor": "none", "pad": 1},
        )  # fmt: skip
        y += 1.3
        for row in members:
            at[y + 0.5] = row.name
            key = _difference(axes, y + 0.5, row, place)
            marks[key[-1]] = key
            y += 1
    axes.set_ylim(y, 0)
    axes.set_yticks(list(at), list(at.values()))
    axes.tick_params(axis="y", length=0)
    edges = [place(number) for number in bounds] or [0.0]
    low, high = min(0.0, *edges), max(0.0, *edges)
    pad = max(0.04 * (high - low), 0.05 if ratios else 0.5)
    axes.set_xlim(low - pad, high + pad)
    if ratios:
        step = round((high - low) / 7)
        between = [octave + math.log2(1.5) for octave in range(-7, 8)] if high - low < 3 else []
        whole = [float(octave) for octave in range(-7, 30, max(1, step))]
        svg.ticks(axes.xaxis, FixedLocator([*whole, *between]), lambda x: f"{2**x:,.4g}")
    else:
        svg.ticks(axes.xaxis, MaxNLocator(7, steps=[1, 2, 5, 10]), _percent)
    band = [(AREA, svg.BAND, "noise floor")] if any(row.floor is not None for row in rows) else []
    return plot.svg([*marks.values(), *band])


def _percent(value: float) -> str:
    return "0" if abs(value) < 1e-9 else f"{value:+,.3g}"


def _difference(
    axes: svg.Axes, y: float, row: DifferenceRow, place: Callable[[float], float]
) -> tuple[str, str, str]:
    """Draw one difference; return its key for the legend."""
    sign, colour, text = {
        "no difference": ("●", svg.INK, "no difference"),
        "inconclusive": ("○", svg.GREY, "inconclusive"),
        "undecided": ("○", svg.GREY, "undecided"),
    }.get(row.conclusion, ("●", svg.BLUE, "a difference"))
    if row.floor is not None:
        ends = [place(-row.floor), place(row.floor)]
        axes.fill_between(ends, y - 0.5, y + 0.5, color=svg.BAND, linewidth=0)
    if row.low is not None and row.high is not None:
        axes.plot([place(row.low), place(row.high)], [y, y], color=colour, linewidth=2.2)
    if row.value is not None:
        inside = svg.PAPER if sign == "○" else colour
        svg.dots(axes, [place(row.value)], [y], colour, "o", 6, markerfacecolor=inside)
    axes.text(
        1.02, y, row.conclusion, transform=axes.get_yaxis_transform(), va="center",
        fontsize=svg.FONT, color=svg.INK,
    )  # fmt: skip
    return sign, colour, text
