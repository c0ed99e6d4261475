"""The README's pictures, made from a real run: its report, and its end in a terminal."""

import html
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from tests.browser import Browser, browser
from tests.terminal import ROOT, left, seen

IMAGES = ROOT / "docs/images"
WIDTH = 1280
# Of the terminal; it shows the last rows.
COLUMNS, ROWS = 120, 34
# The colours of a dark terminal, by the last digit of an escape sequence.
COLOURS = ("#6e7681", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#e6edf3")
STYLED = re.compile(r"\x1b\[([\d;]*)m")
PAGE = f"""<!DOCTYPE html><meta charset="utf-8"><style>
body {{ margin: 0; background: #0d1117; color: #e6edf3 }}
pre {{
  width: {COLUMNS}ch; max-height: {ROWS}lh; margin: 16px 20px; font: 15px/1.4 monospace;
  display: flex; align-items: end; overflow: hidden; white-space: pre-wrap; word-break: break-all;
}}
</style><pre><span>"""


class NoPictureError(Exception):
    """The run gives no picture."""


def taken(chromium: Browser, width: float, height: float, picture: Path) -> None:
    """Write that part of the page, px, with a palette: a third of the size."""
    chromium.size(round(width), round(height))
    chromium.screenshot(picture)
    with Image.open(picture) as shot:
        colours = shot.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    colours.save(picture, optimize=True)


def report(chromium: Browser, page: Path, picture: Path) -> None:
    """Write the first screen of a report: from its top to the end of its first figures."""
    chromium.size(WIDTH)
    chromium.open(page)
    bottom = chromium.run(
        "document.querySelector('section:has(h2):has(svg)')?.getBoundingClientRect().bottom"
    )
    if bottom is None:
        raise NoPictureError(f"{page} has no figure")
    taken(chromium, WIDTH, bottom, picture)


def coloured(line: str) -> str:
    """Return a line of a terminal as HTML, with its colours."""
    text, *styled = STYLED.split(line)
    parts = [html.escape(text)]
    for codes, after in zip(styled[::2], styled[1::2], strict=True):
        found = [code for code in codes.split(";") if re.fullmatch(r"[39][0-7]", code)]
        style = f"color: {COLOURS[int(found[-1][-1])]}" if found else ""
        parts.append(f'<span style="{style}">{html.escape(after)}</span>')
    return "".join(parts)


def end(run_id: str) -> list[str]:
    """Return the command that shows the end of a run, and the lines that a terminal has of it."""
    command = ["python", "-m", "loadlab", "show", run_id]
    shown = seen(command, COLUMNS, {})
    lines = left(shown.stdout.rstrip())
    if shown.returncode:
        raise NoPictureError("\n".join(lines))
    return [f"$ {' '.join(command)}", *lines]


def terminal(chromium: Browser, lines: Sequence[str], picture: Path) -> None:
    """Write the last lines as a terminal shows them."""
    with tempfile.NamedTemporaryFile("w", suffix=".html") as page:
        page.write(PAGE + "\n".join(map(coloured, lines)))
        page.flush()
        chromium.size(WIDTH)
        chromium.open(Path(page.name))
        box = chromium.run("document.querySelector('pre').getBoundingClientRect().toJSON()")
        taken(chromium, box["right"] + box["left"], box["bottom"] + box["top"], picture)


def finished(run_id: str) -> Path:
    """Return the directory of a run in results/ that has a report."""
    run = (ROOT / "results" / run_id).resolve()
    if not (run / "report.html").exists():
        raise NoPictureError(f"{run} has no report.html: name a finished run with run_id=")
    return run


def main(report_id: str, terminal_id: str) -> None:
    """Make both pictures, each of a run in results/."""
    reported, ended = finished(report_id), finished(terminal_id)
    IMAGES.mkdir(exist_ok=True)
    with browser() as chromium:
        report(chromium, reported / "report.html", IMAGES / "report.png")
        terminal(chromium, end(ended.name), IMAGES / "terminal.png")
    print(f"Made docs/images/report.png of {reported.name}, terminal.png of {ended.name}.")
    print(f"terminal.png shows the path of this clone, {ROOT}.")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except NoPictureError as problem:
        sys.exit(str(problem))
