"""Reduce py-spy's stacks of one worker of the application to figures.

profile.txt has one line for each stack: its frames from the outermost on, separated by semicolons,
a space, and its number of samples. A Python frame is "function (file:line)", a native one "function
(library)" or "function (file.c:line)". A stack may be empty: the thread was outside Python. gil.txt
has the same of the thread that held Python's global lock. profile.log has a line for each Python
file of the application: "own: ", a slash and its path in the application's folder.

A sample is of the kind of request after which a function or class of the application is named:
index, Index.get or make.<locals>.index for index. The outermost frame of such a name decides.
"""

import re
import statistics
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec.structs import replace

from loadlab.model import FunctionFraction, KindCpu, PySpyProfile
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
_OWN_FILE = re.compile(r"^own: (/.+)$", re.MULTILINE)

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


def figures(
    stacks: list[Stack], kinds: Collection[str] = (), own: Collection[str] = ()
) -> PySpyProfile:
    """Return the figures of all threads of the process.

    ``kinds``: of request, by name; ``own``: the application's files, as profile.log has them.
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
        kinds=_kinds(stacks, kinds, own, total) if len(kinds) > 1 and own and total else None,
    )


def _kinds(
    stacks: list[Stack], kinds: Collection[str], own: Collection[str], total: int
) -> list[KindCpu]:
    """Return what each kind has of the ``total`` samples that did not wait, and the rest."""
    names = {plain: kind for kind in kinds if (plain := _plain(kind))}
    kind_of = {
        frame: _kind(frame, names, own)
        for frame in {frame for stack, _ in stacks for frame in stack}
    }
    counts: Counter[str | None] = Counter({None: 0})
    for stack, count in stacks:
        kind = next(filter(None, map(kind_of.get, stack)), None)
        counts[kind] += 0 if is_idle(stack) else count
    return [_share(kind, counts.get(kind), total) for kind in (*kinds, None)]


def _kind(frame: str, names: Mapping[str, str], own: Collection[str]) -> str | None:
    """Return the kind after which a frame of the application is named; None of others."""
    match = _FRAME.fullmatch(frame)
    parts = reversed(match[1].split(".")) if match else ()
    kind = next((names[part] for part in map(_plain, parts) if part in names), None)
    is_own = kind and match and any(path.endswith(f"/{match[2]}") for path in own)
    return kind if is_own else None


def _plain(word: str) -> str:
    """Return a name as functions and classes have it alike: rendername of RenderName. Of a path
    without a name, such as /, it is empty."""
    return re.sub(r"[-_/]", "", word).lower()


def _share(kind: str | None, count: int | None, total: int) -> KindCpu:
    if count is None:
        return KindCpu(name=kind, fraction=None)
    part = inference.proportion(count, total)
    return KindCpu(name=kind, fraction=part.value, interval=[part.low or 0.0, part.high or 0.0])


def reduce(rep_dir: Path, kinds: Collection[str] = ()) -> PySpyProfile:
    """Return the figures of a repetition's py-spy profile. Raises ResultError where there
    is none. ``kinds``: of request, by name."""
    log = rep_dir / PROFILE_LOG
    # A file of the application may have any name.
    said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if not (rep_dir / PROFILE).exists():
        raise ResultError(
            f"{PROFILE} is not there: {said.strip()[-300:] or 'and nothing says why'}"
        )
    stacks = read(documents.text(rep_dir / PROFILE))
    profile = figures(stacks, kinds, _OWN_FILE.findall(said))
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
