"""Turn a matplotlib figure into a small SVG element for a page, without pyplot.

Importing matplotlib takes a second of CPU, so import this module only where something is drawn.
"""

import base64
import html
import io
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator, LogLocator, MaxNLocator, NullLocator
from PIL import Image

# matplotlib ships no type information.
Axes: TypeAlias = Any
Axis: TypeAlias = Any
Artist: TypeAlias = Any
Values: TypeAlias = Sequence[float] | npt.NDArray[np.float64]
# Red, green, blue and alpha of each colour, 0 to 255.
Palette: TypeAlias = Sequence[tuple[int, int, int, int]]

# Okabe and Ito's palette, which colour-blind people can distinguish too.
BLUE, SKY, GREEN = "#0072B2", "#56B4E9", "#009E73"
ORANGE, VERMILION, PURPLE = "#E69F00", "#D55E00", "#CC79A7"
GREY, INK, PAPER = "#909090", "#333333", "#FFFFFF"
BAND, ASKED, _AXIS, _GRID = "#DDDDDD", "#C8C8C8", "#777777", "#E4E4E4"
# These depend on the theme: the page's style sheet has their values.
_THEME = {
    INK.lower(): "currentColor",
    PAPER.lower(): "var(--paper)",
    BAND.lower(): "var(--band)",
    ASKED.lower(): "var(--asked)",
    _AXIS.lower(): "var(--axis)",
    _GRID.lower(): "var(--grid)",
}

WIDTH, HEIGHT = 530, 290  # px: two plots side by side on a page of 1100
FRAME = (59.4, 29.9, 13.8, 45.0)  # px left of, above, right of and below the axes
FONT = 11  # px
HIDDEN = -1  # the panel of what belongs to a curve
DIGITS = 2  # decimals of a position, px: a value read from it is true to 0.1 %
LOG_FROM = 20  # ratio of highest to lowest value from which a latency axis is logarithmic

# Where numbers are rounded: in no label and in no transform.
_ROUNDED = re.compile(r' (?:d|x|y|points)="[^"]*"')

# Every point can be read from the page. A path takes this setting when it is made.
matplotlib.rcParams["path.simplify"] = False

_STYLE = {
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": FONT,
    "text.parse_math": False,
    "axes.edgecolor": _AXIS,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "axes.labelcolor": INK,
    "xtick.color": _AXIS,
    "ytick.color": _AXIS,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}


def title(axes: Axes, text: str) -> None:
    """Write a panel's title above it: a low panel has no room for one beside it."""
    axes.text(0, 1.05, text, transform=axes.transAxes, va="bottom", fontsize=FONT, color=INK)


class Plot:
    """A plot: draw on ``axes``, ``across`` by ``down`` px, then call ``svg``."""

    def __init__(
        self,
        name: str,
        label: str,
        x: str,
        y: str,
        height: float = HEIGHT,
        frame: tuple[float, float, float, float] = FRAME,
        width: float = WIDTH,
    ) -> None:
        """Create the figure and its axes, with ``x`` and ``y`` as axis labels.

        ``name`` is unique on the page; ``label`` describes the figure in words and may be any text.
        ``width``, ``height`` and ``frame`` (left, above, right, below the axes) are in px.
        """
        self._name, self._label, self._size = name, label, (width, height)
        self._left, above, right, below = frame
        self.across, self.down = width - self._left - right, height - above - below
        self._panels: list[tuple[Axes, float, float]] = []
        self._curves: list[tuple[str, int]] = []
        with matplotlib.rc_context(_STYLE):
            # At 72 dpi a point of matplotlib is a pixel.
            self._figure = Figure(figsize=(width / 72, height / 72), dpi=72)
            self._figure.patch.set_visible(False)
        self.axes = self.panel(above, self.down, y)
        self.axes.set_xlabel(x)
        # Fixed positions; otherwise matplotlib lays out the tick labels twice to find them.
        self.axes.xaxis.set_label_coords(0.5, -26.9 / self.down)

    def panel(self, top: float, height: float, y: str) -> Axes:
        """Add axes as wide as the first, ``top`` px from the figure's top, ``height`` px high."""
        width, whole = self._size
        below = 1 - (top + height) / whole
        with matplotlib.rc_context(_STYLE):
            axes = self._figure.add_axes(
                (self._left / width, below, self.across / width, height / whole)
            )
            axes.patch.set_visible(False)
            axes.set_ylabel(y)
            axes.yaxis.set_label_coords(-38.8 / self.across, 0.5)
        self._panels.append((axes, top, height))
        return axes

    def curve(self, artist: Artist, name: str, panel: int = 0) -> None:
        """Name a curve, which may be any text: the page's script reads its values by position.

        In panel HIDDEN it is hidden with the curve of that name, and not read.
        """
        artist.set_gid(f"curve{len(self._curves)}")
        self._curves.append((name, panel))

    def line(
        self,
        x: Values,
        y: Values,
        colour: str,
        name: str,
        panel: int = 0,
        *,
        width: float = 1.2,
        style: object = "-",
    ) -> None:
        """Draw a curve that the script reads; a single known value is a dot, NaN a gap."""
        is_dot = np.count_nonzero(~np.isnan(y)) == 1
        axes = self._panels[panel][0]
        (line,) = axes.plot(
            x, y, color=colour, linewidth=width, linestyle=style,
            marker="o" if is_dot else None, markersize=3 if panel else 4,
        )  # fmt: skip
        self.curve(line, name, panel)

    def image(self, pixels: npt.NDArray[np.uint8], palette: Palette, panel: int = 0) -> str:
        """Return an image that fills a panel, as SVG text for ``svg``.

        ``pixels``: indexes of colours, the first row at the top. Colour 0 is transparent.
        """
        _, top, height = self._panels[panel]
        return (
            f'<image x="{self._left:g}" y="{top:g}" width="{self.across:g}" height="{height:g}" '
            f'preserveAspectRatio="none" image-rendering="pixelated" href="{png(pixels, palette)}" '
            f'clip-path="url(#{self._name}-{panel})" data-i="{panel}"/>'
            f'<clipPath id="{self._name}-{panel}"><rect x="{self._left:g}" y="{top:g}" '
            f'width="{self.across:g}" height="{height:g}"/></clipPath>'
        )

    def svg(
        self,
        keys: Sequence[tuple[str, str, str]] = (),
        more: str = "",
        read: tuple[str, str] = ("", ""),
        over: str = "",
    ) -> str:
        """Return the <svg> element.

        - keys: the legend's entries, (symbol, colour, text) each
        - more: SVG text behind the curves; over: in front of them
        - read: how the script words a value, by its x and its y: "{} requests/s", "{} ms"
        """
        with matplotlib.rc_context({**_STYLE, "svg.hashsalt": self._name}):
            page = io.StringIO()
            FigureCanvasSVG(self._figure).print_svg(page, metadata={"Date": None})
        body = clean(page.getvalue())
        for index, (name, panel) in enumerate(self._curves):
            body = body.replace(
                f'<g id="curve{index}">', f'<g data-s="{html.escape(name)}" data-p="{panel}">', 1
            )
        width, height = self._size
        axes = json.dumps([self._scales(*panel) for panel in self._panels], separators=(",", ":"))
        scales = f" data-axes='{axes}' data-x='{read[0]}' data-y='{read[1]}'" if read[0] else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 {width:g} '
            f'{height:g}" role="img" aria-label="{html.escape(self._label)}"{scales}>'
            f"{legend(keys, self._left) if keys else ''}{more}{body}{over}</svg>"
        )

    def _scales(self, axes: Axes, top: float, height: float) -> list[float | str]:
        """Return where axes are, in px, and the scale of x and y with its ends."""
        return [
            *(round(value, 2) for value in (self._left, top, self.across, height)),
            *(axes.get_xscale(), *(float(f"{value:.7g}") for value in axes.get_xlim())),
            *(axes.get_yscale(), *(float(f"{value:.7g}") for value in axes.get_ylim())),
        ]


def png(pixels: npt.NDArray[np.uint8], palette: Palette) -> str:
    """Return indexes of colours as a PNG in a data: address. Colour 0 is transparent."""
    image = Image.fromarray(pixels, mode="P")
    image.putpalette([part for colour in palette for part in colour[:3]])
    alphas = bytes([0, *(colour[3] for colour in palette[1:])])
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True, transparency=alphas)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def rgba(colour: str, alpha: int = 255) -> tuple[int, int, int, int]:
    """Return #RRGGBB as numbers of a palette."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue, alpha


def legend(keys: Sequence[tuple[str, str, str]], left: float = 59) -> str:
    """Return the legend: one line of text above the plot, which the browser lays out in
    any font."""
    parts = [
        f'<tspan fill="{themed(colour)}">{sign}</tspan><tspan dx="5">{html.escape(text)}</tspan>'
        for sign, colour, text in keys
    ]
    return (
        f'<text x="{left:g}" y="18" font-size="{FONT}" fill="currentColor">'
        + '<tspan dx="16"> </tspan>'.join(parts)
        + "</text>"
    )


def themed(colour: str) -> str:
    """Return the colour of the page's theme in place of one that depends on it."""
    return _THEME.get(colour.lower(), colour)


def clean(page: str) -> str:
    """Return what is inside matplotlib's SVG document, small and without style attributes.

    The page's policy allows no style attribute. Parts that draw nothing and surplus digits are
    removed; colours that depend on the theme are left to the page.
    """
    body = page[page.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.S)
    body = body[body.index(">") + 1 :].replace("xlink:href", "href")
    used = set(re.findall(r"#([\w.-]+)", body))
    body = re.sub(r"<[^>]+>", lambda match: _tag(match[0], used), body)
    body = re.sub(r"<defs></defs>", "", re.sub(r">\s+<", "><", body))
    # A group that only wraps one other is of no use.
    body = re.sub(r"<g>(<(?:path|use|text)[^>]*?(?:/>|>[^<]*</text>))</g>", r"\1", body)
    return body.replace("</svg>", "").strip()


def _tag(tag: str, used: set[str]) -> str:
    """Return one tag on one line: attributes in place of its style, and few digits."""
    tag = re.sub(r' id="([^"]*)"', lambda match: _id(match[1], used), tag)
    tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
    tag = re.sub(r' style="([^"]*)"', lambda match: _attributes(match[1]), tag)
    if tag.startswith("<use") and "var(--axis)" in tag:
        # A tick, whose own path has the colour.
        tag = re.sub(r' (?:fill|stroke|stroke-width)="[^"]*"', "", tag)
    return re.sub(r"\s+", " ", _ROUNDED.sub(_digits, tag)).replace(' "/>', '"/>')


def _id(name: str, used: set[str]) -> str:
    """Return the attribute of an id: of what is referred to, of curves, and a class of ticks."""
    if tick := re.fullmatch(r"([xy])tick_\d+", name):
        return f' class="{tick[1]}t"'
    return f' id="{name}"' if name in used or name.startswith("curve") else ""


def _attributes(style: str) -> str:
    """Return a style's declarations as attributes of SVG."""
    attributes = ""
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        # The page's style sheet has the rest.
        if name and name not in ("font-family", "stroke-linecap") and value != f"{FONT}px":
            attributes += f' {name}="{themed(value)}"'
    return attributes


def _digits(match: re.Match[str]) -> str:
    def short(number: re.Match[str]) -> str:
        return f"{float(number[0]):.{DIGITS}f}".rstrip("0").rstrip(".")

    return re.sub(r"-?\d+\.\d+(?:e-?\d+)?", short, match[0])


def stacked(
    name: str,
    label: str,
    x: str,
    y: str,
    heights: Sequence[float],
    gap: float,
    left: float = FRAME[0],
) -> tuple[Plot, list[Axes]]:
    """Return a plot of panels, one below the other on one x axis, and their axes; lengths in px.

    ``y``: the label of the first; the others have a title(). The rest is as for Plot.
    """
    _, above, right, below = FRAME
    tops = [above + sum(heights[:index]) + index * gap for index in range(len(heights))]
    whole = tops[-1] + heights[-1] + below
    plot = Plot(name, label, "", y, whole, (left, above, right, whole - above - heights[0]))
    places = list(zip(tops, heights, strict=True))
    panels = [plot.axes, *(plot.panel(*place, "") for place in places[1:])]
    for axes in panels:
        last = axes is panels[-1]
        axes.tick_params(axis="x", bottom=last, labelbottom=last)
    panels[-1].set_xlabel(x)
    panels[-1].xaxis.set_label_coords(0.5, -26.9 / heights[-1])
    return plot, panels


def dots(
    axes: Axes,
    x: Sequence[float | None],
    y: Sequence[float | None],
    colour: str,
    marker: str,
    size: float,
    **style: object,
) -> None:
    """Draw marks of ``size`` px without a line."""
    axes.plot(x, y, color=colour, marker=marker, markersize=size, linestyle="", **style)


def number(value: float) -> str:
    """Format a tick's number without exponent and with thousands separators."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def ticks(axis: Axis, locator: Locator, text: Callable[[float], str] = number) -> None:
    """Set where an axis has ticks, and how it writes their numbers."""
    axis.set_major_locator(locator)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def latency_axis(axes: Axes, values_ms: Sequence[float]) -> None:
    """Scale the y axis for latencies in ms: logarithmic where they span a factor of LOG_FROM."""
    positive = [value for value in values_ms if value > 0]
    if not positive or max(positive) < LOG_FROM * min(positive):
        ticks(axes.yaxis, MaxNLocator(5))
        axes.set_ylim(0, 1.08 * max(positive, default=1))
        return
    axes.set_yscale("log")
    # Ticks at 1, 2 and 5 while there are few.
    subs = (1, 2, 5) if max(positive) < 1000 * min(positive) else (1,)
    ticks(axes.yaxis, LogLocator(subs=subs, numticks=20))
    axes.set_ylim(0.8 * min(positive), 1.3 * max(positive))


def rate_axis(axes: Axes, values: Sequence[float], text: Callable[[float], str] = number) -> bool:
    """Give the x axis ticks; return whether it is logarithmic, as where values span LOG_FROM."""
    is_log = max(values) > LOG_FROM * min(values) > 0
    if is_log:
        axes.set_xscale("log")
    ticks(axes.xaxis, LogLocator(subs=(1, 2, 5)) if is_log else MaxNLocator(5), text)
    return is_log
