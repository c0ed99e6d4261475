"""Read the text that wrk 4.1 and wrk2 print: the same lines, apart from the latencies."""

import re
from dataclasses import dataclass

from loadlab.generators.generator import Request
from loadlab.generators.measurement import GeneratorError

NUMBER = r"\d+(?:\.\d+)?"
TIME = rf"{NUMBER}(?:us|ms|s|m|h)"
# Of no values wrk prints -nan.
METRIC = rf"(?:{NUMBER}[kMGTP]?|-?nan)"
UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_UNIT_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
# Numbers are printed with two decimals, so they are off by up to half of the last.
HALF_DIGIT = 0.0051
# How lines on standard error start where the program did not run at all.
_FATAL = ("unable to ", "invalid URL", "number of connections must", "Throughput MUST", "Usage:")


class Lines:
    """The lines of the output without indentation; empty lines are skipped.

    ``program``: wrk or wrk2; ``options``: without which its text is shorter.
    """

    def __init__(self, text: str, program: str, options: str) -> None:
        numbered = enumerate((line.strip() for line in text.splitlines()), 1)
        self._left = [(number, line) for number, line in numbered if line]
        self._last = ""
        self._program, self._options = program, options

    def optional(self, pattern: str) -> re.Match[str] | None:
        """Take the next line and return its match; None, taking nothing, where it does
        not match."""
        match = re.fullmatch(pattern, self._left[0][1]) if self._left else None
        if match:
            self._last = self._left.pop(0)[1]
        return match

    def take(self, name: str, pattern: str) -> re.Match[str]:
        """Take the next line and return its match; raise GeneratorError where it is not line
        ``name``."""
        match = self.optional(pattern)
        if match:
            return match
        if not self._left:
            raise GeneratorError(
                f"{self._program}'s text is truncated: no {name!r} line after "
                f"{self._last[-80:]!r}; was it run with {self._options}?"
            )
        number, line = self._left[0]
        place = f"{self._program} line {number}"
        if line.startswith(_FATAL):
            raise GeneratorError(f"{place}, it did not run: {line[:120]!r}")
        if "nan" in line:
            raise GeneratorError(f"{place} has no number: {line[:120]!r}")
        raise GeneratorError(f"{place} not understood: {line[:120]!r}; expected {name!r}")

    def end(self) -> None:
        """Raise GeneratorError where a line is left."""
        if self._left:
            number, line = self._left[0]
            raise GeneratorError(
                f"{self._program} line {number} stands after the end: {line[:120]!r}"
            )


@dataclass(frozen=True)
class Totals:
    """The lines after the latencies."""

    requests: int
    #: Run time, and half_s, by how much it may be off; read_bytes and half_bytes likewise.
    printed_s: float
    half_s: float
    read_bytes: float
    half_bytes: float
    errors: dict[str, int]  #: connect, read, write and timeout -> their number.
    refused: int  #: Answers of 400 and above.
    per_second: float  #: Requests a second.


def head(lines: Lines) -> tuple[int, int]:
    """Take the lines before the latencies; return the numbers of threads and connections."""
    lines.take("running", r"Running \d+[smh] test @ \S+")
    match = lines.take("threads", r"(\d+) threads and (\d+) connections")
    return int(match[1]), int(match[2])


def totals(lines: Lines) -> Totals:
    """Take the lines after the latencies. Raises GeneratorError where a line is missing."""
    requests = lines.take(
        "requests", rf"(\d+) requests in ({NUMBER})(us|ms|s|m|h), ({NUMBER})([KMGTP]?)B read"
    )
    names = ("connect", "read", "write", "timeout")
    socket = lines.optional(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
    status = lines.optional(r"Non-2xx or 3xx responses: (\d+)")
    per_second = lines.take("Requests/sec", rf"Requests/sec: +({NUMBER})")
    lines.take("Transfer/sec", rf"Transfer/sec: +{NUMBER}[KMGTP]?B")
    unit_us, unit_bytes = UNIT_US[requests[3]], _UNIT_BYTES[requests[5]]
    return Totals(
        requests=int(requests[1]),
        printed_s=float(requests[2]) * unit_us / 1e6,
        half_s=HALF_DIGIT * unit_us / 1e6,
        read_bytes=float(requests[4]) * unit_bytes,
        half_bytes=HALF_DIGIT * unit_bytes,
        errors=dict(zip(names, map(int, socket.groups() if socket else "0000"), strict=True)),
        refused=int(status[1]) if status else 0,
        per_second=float(per_second[1]),
    )


def threads(request: Request) -> int:
    """Return how many threads to ask for; each gets as many connections, the remainder is dropped.

    Of at least half of the threads, and two, it is the number that drops fewest: a prime number has
    no divisor.
    """
    least = min(request.threads, max(2, (request.threads + 1) // 2))
    return max(
        range(least, request.threads + 1),
        key=lambda number: (-(request.connections % number), number),
    )


def env(request: Request) -> list[str]:
    """Return the command that gives its variables to a script of wrk or wrk2; [] for none.

    Arguments of the script would stand behind the URL and be taken for headers.
    """
    variables = []
    if request.burst_every_s:
        variables.append(f"LAB_BURST_EVERY_MS={request.burst_every_s * 1000:.0f}")
    if request.method != "GET":
        variables += [f"LAB_METHOD={request.method}", f"LAB_BODY={request.body}"]
    return ["env", *variables] if variables else []
