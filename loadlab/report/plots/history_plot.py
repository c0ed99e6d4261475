"""The figure of a cell over several runs as SVG: panels on one axis of runs, in their order."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from loadlab.report.plots import svg
from loadlab.report.plots.curves_plot import AREA, LINE
from loadlab.report.plots.levels_plot import CROSS, STROKE

LEFT, LABEL = 77.0, 56.0  # px left of the panels, and from them to their labels
FIRST, FURTHER, GAP = 140.0, 80.0, 26.0  # px: heights of the panels, and between them
GRASP = 8.0  # px: how near to a line the pointer reads it
COLOURS = {"slower": svg.VERMILION, "faster": svg.GREEN}


@dataclass(frozen=True)
class Value:
    """A value of a run with its interval; None where unknown."""

    value: float | None
    low: float | None = None
    high: float | None = None
    is_bound: bool = False  #: Whether only a lower bound of it is known.


@dataclass(frozen=True)
class Panel:
    """One quantity in each run; ``is_latency``: in ms, on the axis of latencies."""

    name: str
    values: Sequence[Value]
    is_latency: bool = False


@dataclass(frozen=True)
class Band:
    """Runs, by their numbers from 1, that differ from those before; ``kind``: a key of COLOURS."""

    first: int
    last: int
    kind: str


def over_runs(
    name: str,
    label: str,
    panels: Sequence[Panel],
    runs: Sequence[str],
    void: Sequence[int],
    changes: Mapping[int, str],
    bands: Sequence[Band],
) -> str:
    """Return the figure; name and label are as for svg.Plot.

    - runs: what to tell of each run, numbered from 1. void: numbers of those without a value
    - changes: the number of a run -> what changed in the environment before it
    """
    heights = [FIRST, *([FURTHER] * (len(panels) - 1))]
    plot, every = svg.stacked(
        name, label, "Run, in the order of time", panels[0].name, heights, GAP, LEFT
    )
    for axes, panel in zip(every[1:], panels[1:], strict=True):
        svg.title(axes, panel.name)
    for axes, panel in zip(every, panels, strict=True):
        axes.yaxis.set_label_coords(-LABEL / plot.across, 0.5)
        axes.grid(visible=False, axis="x")
        axes.set_xlim(0.5, len(runs) + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
        _scale(axes, panel)
        for band in bands:
            axes.axvspan(
                band.first - 0.5, band.last + 0.5, color=COLOURS[band.kind], alpha=0.2, linewidth=0
            )
        for number in changes:
            axes.axvline(number - 0.5, color=svg.GREY, linewidth=1.4, linestyle=(0, (4, 3)))
        _values(axes, panel.values)
    svg.dots(
        every[0], void, [0.06] * len(void), svg.VERMILION, "x", 6, markeredgewidth=2,
        transform=every[0].get_xaxis_transform(),
    )  # fmt: skip
    keys = [(LINE, svg.BLUE, "each run")]
    keys += [(STROKE, svg.GREY, "environment changed")] if changes else []
    kinds = {band.kind for band in bands}
    keys += [(AREA, colour, kind) for kind, colour in COLOURS.items() if kind in kinds]
    keys += [(CROSS, svg.VERMILION, "void")] if void else []
    step = plot.across / len(runs)
    high = sum(heights) + (len(heights) - 1) * GAP
    areas = [
        _area(LEFT + (number - 1) * step, step, high, text)
        for number, text in enumerate(runs, start=1)
    ]
    areas += [
        _area(LEFT + (number - 1) * step - GRASP / 2, GRASP, high, text)
        for number, text in changes.items()
    ]
    return plot.svg(keys, over=f'<g fill="none" pointer-events="all">{"".join(areas)}</g>')


def _values(axes: svg.Axes, values: Sequence[Value]) -> None:
    """Draw the values and their intervals; a run without a value interrupts the line."""
    numbered = list(enumerate(values, start=1))
    spans = [(x, v.low, v.high) for x, v in numbered if v.low is not None and v.high is not None]
    if spans:
        axes.vlines(*zip(*spans, strict=True), color=svg.SKY, linewidth=4)
    drawn = [math.nan if v.value is None else v.value for v in values]
    axes.plot(
        [x for x, _ in numbered], drawn, color=svg.BLUE, linewidth=1.4, marker="o", markersize=4.5
    )


def _scale(axes: svg.Axes, panel: Panel) -> None:
    numbers = [
        number
        for panel_value in panel.values
        for number in (panel_value.value, panel_value.low, panel_value.high)
        if number is not None
    ]
    if panel.is_latency:
        svg.latency_axis(axes, numbers)
        return
    axes.set_ylim(0, 1.12 * max(numbers, default=0.0) or 1.0)
    svg.ticks(axes.yaxis, MaxNLocator(4))


def _area(left: float, width: float, height: float, text: str) -> str:
    """Return an area that tells its text when the pointer is over it."""
    return (
        f'<rect x="{left:.1f}" y="{svg.FRAME[1]:g}" width="{width:.1f}" height="{height:g}">'
        f"<title>{html.escape(text)}</title></rect>"
    )
