"""A profile of a worker of the application: py-spy's stacks, reduced to figures. Pure.

profile.txt has a line for each stack: its frames from the outermost on, semicolons between them, a
space, and how many samples had it. A frame is "function (file:line)" where it is Python's, or
"function (library)" and "function (file.c:line)" where it is native. A stack may be empty: the
thread was outside of Python.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from loadlab.core import documents
from loadlab.core.errors import ResultError
from loadlab.stats import inference

STACKS, LOG = "profile.txt", "profile.log"
UNNAMED = "?"
TOP = 10  # functions that are told, those that most samples were in
_FRAME = re.compile(r"(.*) \((.*?)(?::\d+)?\)")
# Functions that do nothing but wait for sockets, a lock or time: native ones, and Python's where no
# native frames were had. Reading and writing are work: what an event loop reads is there.
_WAITS = re.compile(
    r"_{0,2}(epoll_p?wait2?|p?poll|p?select|futex\w*|sem_\w*wait\w*|pthread_cond_\w*wait\w*"
    r"|(clock_)?nanosleep|sigwait\w*|wait(4|id|pid)?)"
)
_PYTHON_WAITS = ("select", "poll", "wait")

Stack = tuple[list[str], int]


def read(text: str) -> list[Stack]:
    """Frames and samples of each line. Raises ResultError on one that is not understood.

    Innermost frames without a name, such as the last of libc's own, are left out.
    """
    found = []
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if not count.isdecimal():
            raise ResultError(f"{STACKS} has a line that is no stack: {line[:120]!r}")
        frames = stack.split(";") if stack.strip() else []
        while len(frames) > 1 and name(frames[-1]) == UNNAMED:
            frames.pop()
        found.append((frames, int(count)))
    return found


def name(frame: str) -> str:
    """The function of a frame; an address without a name is only told to be one."""
    match = _FRAME.fullmatch(frame)
    function = match[1] if match else frame
    return UNNAMED if function.startswith("0x") else function


def is_python(frame: str) -> bool:
    match = _FRAME.fullmatch(frame)
    return match is not None and (match[2].endswith(".py") or match[2].startswith("<"))


def is_idle(stack: list[str]) -> bool:
    """Whether the thread waited: outside of Python, or in a function that does nothing else."""
    if not stack:
        return True
    if is_python(stack[-1]):
        return name(stack[-1]).rpartition(".")[2] in _PYTHON_WAITS
    return _WAITS.fullmatch(name(stack[-1])) is not None


def figures(stacks: list[Stack]) -> dict[str, Any]:
    """result.json's `profile`.

    samples     of all threads of the process
    idle_share  fraction of them in which the thread waited
    depth_median  Python frames of the others, the median; None where all waited
    depth_interval  [low, high] of that median; None where they are too few for one
    native      whether native frames were had
    top         [{function, share}] of the others, by innermost function
    """
    samples = sum(count for _, count in stacks)
    if not samples:
        raise ResultError(f"{STACKS} holds no samples")
    busy = [(stack, count) for stack, count in stacks if not is_idle(stack)]
    total = sum(count for _, count in busy)
    depths = sorted(depth for s, n in busy for depth in [sum(map(is_python, s))] * n)
    low, high = inference.quantile_interval(total, 0.5) if depths else (None, None)
    leaves: Counter[str] = Counter()
    for stack, count in busy:
        leaves[stack[-1]] += count
    return {
        "samples": samples,
        "idle_share": 1 - total / samples,
        "depth_median": float(statistics.median(depths)) if depths else None,
        "depth_interval": [depths[low - 1], depths[high - 1]] if low and high else None,
        "native": any(not is_python(frame) for stack, _ in stacks for frame in stack),
        "top": [
            {"function": frame, "share": count / total}
            for frame, count in sorted(leaves.items(), key=lambda one: (-one[1], one[0]))[:TOP]
        ],
    }


def reduce(rep_dir: Path) -> dict[str, Any]:
    """The figures of a repetition's profile. Raises ResultError where there is none."""
    if not (rep_dir / STACKS).exists():
        log = rep_dir / LOG
        said = documents.text(log).strip()[-300:] if log.exists() else "and nothing says why"
        raise ResultError(f"{STACKS} is not there: {said}")
    return figures(read(documents.text(rep_dir / STACKS)))
