"""Turn a matplotlib figure into a small SVG element for a page, without pyplot.

Importing matplotlib takes a second of CPU, so import this module only where something is drawn.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

# matplotlib ships no type information.
Axes: TypeAlias = Any

# Okabe and Ito's palette, which colour-blind people can distinguish too.
BLUE, SKY, GREEN, ORANGE, VERMILION, PURPLE = (
    "#0072B2",
    "#56B4E9",
    "#009E73",
    "#E69F00",
    "#D55E00",
    "#CC79A7",
)
GREY, INK = "#A0A0A0", "#333333"

WIDTH, HEIGHT = 530, 290  # px: two plots side by side on a page of 1100
FRAME = (59.4, 29.9, 13.8, 45.0)  # px left of, above, right of and below the axes
FONT = 11  # px
LOG_FROM = 20  # ratio of highest to lowest value from which a latency axis is logarithmic

_STYLE = {
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": FONT,
    "text.parse_math": False,
    "axes.edgecolor": "#777777",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.8,
    "axes.labelcolor": INK,
    "xtick.color": "#777777",
    "ytick.color": "#777777",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}


class Plot:
    """A plot, WIDTH px wide: draw on ``axes``, then call ``svg``.

    ``across`` and ``down`` are the size of the axes in px.
    """

    def __init__(
        self,
        name: str,
        label: str,
        x: str,
        y: str,
        height: float = HEIGHT,
        frame: tuple[float, float, float, float] = FRAME,
    ) -> None:
        """Create the figure and its axes, with ``x`` and ``y`` as axis labels.

        ``name`` is unique on the page; ``label`` describes the figure in words and may be any text.
        ``height`` and ``frame`` (left, above, right, below the axes) are in px.
        """
        self._name, self._label, self._height = name, label, height
        left, above, right, below = frame
        self.across, self.down = WIDTH - left - right, height - above - below
        with matplotlib.rc_context(_STYLE):
            # At 72 dpi a point of matplotlib is a pixel.
            self._figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
            self._figure.patch.set_visible(False)
            self.axes: Axes = self._figure.add_axes(
                (left / WIDTH, below / height, self.across / WIDTH, self.down / height)
            )
            self.axes.patch.set_visible(False)
            self.axes.set_xlabel(x)
            self.axes.set_ylabel(y)
            # Fixed positions; otherwise matplotlib lays out the tick labels twice to find them.
            self.axes.xaxis.set_label_coords(0.5, -26.9 / self.down)
            self.axes.yaxis.set_label_coords(-38.8 / self.across, 0.5)

    def svg(self, keys: Sequence[tuple[str, str, str]]) -> str:
        """Return the <svg> element; ``keys`` are the legend's entries, (symbol, colour,
        text) each."""
        with matplotlib.rc_context({**_STYLE, "svg.hashsalt": self._name}):
            page = io.StringIO()
            FigureCanvasSVG(self._figure).print_svg(page, metadata={"Date": None})
        return clean(page.getvalue(), self._label, legend(keys), self._height)


def legend(keys: Sequence[tuple[str, str, str]]) -> str:
    """Return the legend: one line of text above the plot, which the browser lays out in
    any font."""
    parts = [
        f'<tspan fill="{colour}">{sign}</tspan><tspan dx="5">{html.escape(text)}</tspan>'
        for sign, colour, text in keys
    ]
    return (
        f'<text x="59" y="18" font-size="{FONT}" fill="{INK}">'
        + '<tspan dx="16"> </tspan>'.join(parts)
        + "</text>"
    )


def clean(page: str, label: str, more: str, height: float = HEIGHT) -> str:
    """Return matplotlib's SVG document as an element with ``more`` (SVG text) inserted.

    Parts that draw nothing and surplus digits are removed.
    """
    body = page[page.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.S)
    body = body[body.index(">") + 1 :].replace("xlink:href", "href")
    used = set(re.findall(r"#([\w.-]+)", body))
    body = re.sub(r"<[^>]+>", lambda match: _tag(match[0], used), body)
    body = re.sub(r"<defs></defs>", "", re.sub(r">\s+<", "><", body))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 {WIDTH} {height:g}" '
        f'role="img" aria-label="{html.escape(label)}">{more}{body.strip()}'
    )


def _tag(tag: str, used: set[str]) -> str:
    """Return one tag on one line, without unused ids, font names and surplus digits."""
    tag = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", tag)
    tag = re.sub(r" font-family: [^;\"]*;| transform=\"rotate\(-0 [^\"]*\"", "", tag)
    tag = re.sub(
        r"-?\d+\.\d+(?:e-?\d+)?", lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), tag
    )
    return re.sub(r"\s+", " ", tag).replace(' "/>', '"/>')


def number(value: float) -> str:
    """Format a tick's number without exponent and with thousands separators."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def latency_axis(axes: Axes, values_ms: Sequence[float]) -> None:
    """Scale the y axis for latencies in ms: logarithmic where they span a factor of LOG_FROM."""
    positive = [value for value in values_ms if value > 0]
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    if not positive or max(positive) < LOG_FROM * min(positive):
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_ylim(0, 1.08 * max(positive, default=1))
        return
    axes.set_yscale("log")
    # Ticks at 1, 2 and 5 while there are few.
    subs = (1, 2, 5) if max(positive) < 1000 * min(positive) else (1,)
    axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.set_ylim(0.8 * min(positive), 1.3 * max(positive))


def seconds_axis(axes: Axes, end: float) -> None:
    """Scale the x axis from 0 to ``end`` seconds."""
    axes.set_xlim(0, end)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
