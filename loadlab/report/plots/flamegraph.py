"""Draw stacks as a flame graph: a static SVG element without external files."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

from loadlab.run.formatting import plural
from loadlab.telemetry.pyspy import Stack, is_idle, is_python, name

WIDTH, ROW = 1100, 17  # px
LETTER = 7  # px: width of a letter, approximately
LEAST = 0.001  # fraction of all samples: narrower frames are not drawn
# Colours of Python frames, native frames and waiting: light, for dark text.
PYTHON, NATIVE, WAITING = ("#F6C36B", "#F2B04A", "#F8D08C"), ("#9CCBE8", "#86BCDF"), ("#D9D9D9",)
ROOT = "all"


@dataclass
class Node:
    """A frame with the frames it called."""

    frame: str
    samples: int = 0  #: Of this frame and those above it.
    idle: int = 0  #: How many of these waited.
    above: dict[str, Node] = field(default_factory=dict)  #: Frame -> Node.


def tree(stacks: Sequence[Stack]) -> Node:
    """Return the stacks merged into a tree; its root is a frame named ROOT."""
    root = Node(ROOT)
    for frames, count in stacks:
        nodes = [root]
        for frame in frames:
            nodes.append(nodes[-1].above.setdefault(frame, Node(frame)))
        for node in nodes:
            node.samples += count
            node.idle += count if is_idle(frames) else 0
    return root


def svg(stacks: Sequence[Stack], label: str) -> str:
    """Return the <svg> element: outermost frames at the bottom, widths proportional to samples.

    ``label`` describes the figure in words and may be any text. A frame's title, shown when the
    pointer is over it, has its full name.
    """
    root = tree(stacks)
    drawn = []
    waiting = [(root, 0, 0.0)]
    while waiting:
        node, depth, left = waiting.pop()
        drawn.append((node, depth, left))
        for child in sorted(node.above.values(), key=lambda called: called.frame):
            if child.samples >= LEAST * root.samples:
                waiting.append((child, depth + 1, left))
            left += child.samples / root.samples * WIDTH
    height = (max(depth for _, depth, _ in drawn) + 1) * ROW
    body = "".join(
        _rectangle(node, left, height - (depth + 1) * ROW, root.samples)
        for node, depth, left in drawn
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="plot flame" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(label)}" '
        f'font-size="11" fill="#222">{body}</svg>'
    )


def _rectangle(node: Node, left: float, top: float, samples: int) -> str:
    width = node.samples / samples * WIDTH
    letters = int((width - 6) / LETTER)
    text = ""
    if letters >= 3:
        shown = name(node.frame)
        words = shown if len(shown) <= letters else f"{shown[: letters - 1]}…"
        text = f'<text x="{left + 3:.1f}" y="{top + 12:.1f}">{html.escape(words)}</text>'
    share = 100 * node.samples / samples
    title = html.escape(f"{node.frame}: {plural(node.samples, 'sample')}, {share:.1f} %")
    return (
        f'<g><title>{title}</title><rect x="{left:.1f}" y="{top:.1f}" '
        f'width="{max(width - 0.5, 0.3):.1f}" height="{ROW - 1}" fill="{_colour(node)}"/>{text}</g>'
    )


def _colour(node: Node) -> str:
    colours: Sequence[str] = PYTHON if node.frame == ROOT or is_python(node.frame) else NATIVE
    if not node.above and node.idle == node.samples:
        colours = WAITING
    # The colour depends on the name: neighbours usually differ, and a function always has the same.
    return colours[crc32(node.frame.encode()) % len(colours)]
