"""Reduce py-spy's stacks of one worker of the application to figures.

profile.txt has one line for each stack: its frames from the outermost on, separated by semicolons,
a space, and its number of samples. A Python frame is "function (file:line)", a native one "function
(library)" or "function (file.c:line)". A stack may be empty: the thread was outside Python. gil.txt
has the same of the thread that held Python's global lock.
"""

import re
import statistics
from collections import Counter
from pathlib import Path

from msgspec.structs import replace

from loadlab.model import FunctionFraction, PySpyProfile
from loadlab.run import documents
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import LOCK_PROFILE, PROFILE, PROFILE_LOG
from loadlab.stats import inference

UNNAMED = "?"
TOP = 10  # the functions with the most samples
_FRAME = re.compile(r"(.*) \((.*?)(?::\d+)?\)")
# Functions that only wait for sockets, a lock or time: native ones, and Python's for stacks without
# native frames. Reading and writing count as work, as an event loop reads available data.
_WAITS = re.compile(
    r"_{0,2}(epoll_p?wait2?|p?poll|p?select|futex\w*|sem_\w*wait\w*|pthread_cond_\w*wait\w*"
    r"|(clock_)?nanosleep|sigwait\w*|wait(4|id|pid)?)"
)
_COUNT = re.compile(r"[1-9][0-9]{0,6}")  # at 100 a second, a day
_PYTHON_WAITS = ("select", "poll", "wait")

Stack = tuple[list[str], int]


def read(text: str) -> list[Stack]:
    """Return (frames, samples) of each line. Raises ResultError for a malformed line.

    Innermost frames without a name, such as those of libc's internals, are left out.
    """
    stacks = []
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if not _COUNT.fullmatch(count):
            raise ResultError(f"{PROFILE} has a line that is no stack: {line[:120]!r}")
        frames = stack.split(";") if stack.strip() else []
        while len(frames) > 1 and name(frames[-1]) == UNNAMED:
            frames.pop()
        stacks.append((frames, int(count)))
    return stacks


def name(frame: str) -> str:
    """Return the function of a frame; UNNAMED where it is only an address."""
    match = _FRAME.fullmatch(frame)
    function = match[1] if match else frame
    return UNNAMED if function.startswith("0x") else function


def is_python(frame: str) -> bool:
    """Return whether a frame is a Python function."""
    match = _FRAME.fullmatch(frame)
    return match is not None and (match[2].endswith(".py") or match[2].startswith("<"))


def is_idle(stack: list[str]) -> bool:
    """Return whether the thread waited: outside Python, or in a function that only waits."""
    if not stack:
        return True
    if is_python(stack[-1]):
        return name(stack[-1]).rpartition(".")[2] in _PYTHON_WAITS
    return _WAITS.fullmatch(name(stack[-1])) is not None


def figures(stacks: list[Stack]) -> PySpyProfile:
    """Return the figures of all threads of the process.

    Raises ResultError where there are no samples.
    """
    samples = sum(count for _, count in stacks)
    if not samples:
        raise ResultError(f"{PROFILE} holds no samples")
    busy = [(stack, count) for stack, count in stacks if not is_idle(stack)]
    total = sum(count for _, count in busy)
    depths = sorted(depth for s, n in busy for depth in [sum(map(is_python, s))] * n)
    low, high = inference.quantile_interval(total, 0.5) if depths else (None, None)
    leaves: Counter[str] = Counter()
    for stack, count in busy:
        leaves[stack[-1]] += count
    return PySpyProfile(
        samples=samples,
        idle_fraction=1 - total / samples,
        depth_median=float(statistics.median(depths)) if depths else None,
        depth_interval=[depths[low - 1], depths[high - 1]] if low and high else None,
        native=any(not is_python(frame) for stack, _ in stacks for frame in stack),
        top=[
            FunctionFraction(function=frame, fraction=count / total)
            for frame, count in sorted(leaves.items(), key=lambda leaf: (-leaf[1], leaf[0]))[:TOP]
        ],
    )


def reduce(rep_dir: Path) -> PySpyProfile:
    """Return the figures of a repetition's py-spy profile. Raises ResultError where there
    is none."""
    if not (rep_dir / PROFILE).exists():
        log = rep_dir / PROFILE_LOG
        said = documents.text(log).strip()[-300:] if log.exists() else "and nothing says why"
        raise ResultError(f"{PROFILE} is not there: {said}")
    profile = figures(read(documents.text(rep_dir / PROFILE)))
    held = rep_dir / LOCK_PROFILE
    return (
        replace(profile, gil_fraction=lock_fraction(documents.text(held)))
        if held.exists()
        else profile
    )


def lock_fraction(text: str) -> float:
    """Return the fraction of the looks in which a thread held the GIL.

    The last line of the text is "#" and the number of looks. Raises ResultError without it.
    """
    stacks, _, last = text.rstrip().rpartition("# ")
    if not last.isdecimal() or not int(last):
        raise ResultError(f"{LOCK_PROFILE} does not end with the number of looks: {text[-60:]!r}")
    return min(1.0, sum(count for _, count in read(stacks)) / int(last))
