"""The options arrivals and ramp: read them, and refuse them where they do not fit the load."""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.model import Arrivals, GivenOptions, Options, OptionValue, Point, ramp_mean
from loadlab.plan.load_options import request_records
from loadlab.run.catalog import with_home
from loadlab.run.errors import PlanError
from loadlab.run.formatting import one_line, plain, plural
from loadlab.run.methods import ROOT

OPTION, RAMP = "arrivals", "ramp"
# Requests whose due times a generator holds in memory.
REQUESTS_MAX = 20_000_000
RAMP_MIN, RAMP_MAX, RATE_MAX = 2, 1_000, 1_000_000
# Of a file with a ramp, bytes.
CSV, _FILE_MAX = ".csv", 65_536
_ROWS = f"{RAMP_MIN} to {RAMP_MAX:,} rows of seconds,rate"
_REMEDY = (
    f"Give {RAMP_MIN} to {RAMP_MAX:,} rates from 0 to {RATE_MAX:,} requests per second, for "
    f"example -e {RAMP}=100..2000, with seconds -e {RAMP}=0:100,60:2000, or a file of such rows, "
    f"-e {RAMP}=day{CSV}."
)
_CONSTANT, _POISSON, _SWITCHING = "constant", "poisson", "mmpp"
# Word before the colon: field of Arrivals, type of its number and the limits in words.
_NUMBERED: dict[str, tuple[str, type[float | int], str]] = {
    "gamma": ("smoothness", float, "a smoothness from 0.25 to 100"),
    "bursts": ("burst", int, "a number of requests from 2 to 10000"),
}


def parse(text: str) -> Arrivals | None:
    """Return arrivals such as poisson, gamma:0.5 or bursts:20; None of constant ones.

    Raises PlanError for other words, and for a number out of range.
    """
    if text in (_CONSTANT, _POISSON):
        return Arrivals(smoothness=1) if text == _POISSON else None
    word, _, number = text.partition(":")
    if word == _SWITCHING:
        return _switching(text, number)
    if word not in _NUMBERED:
        raise PlanError(
            f"{OPTION}: '{text}' is none of {_CONSTANT}, {_POISSON}, gamma:<smoothness>, "
            f"bursts:<requests> and {_SWITCHING}:<ratio>:<calm>:<busy>. Give one, or leave "
            f"{OPTION} out."
        )
    field, kind, limits = _NUMBERED[word]
    try:
        value = kind(number)
        # Which is not a number would be within any limits.
        if math.isnan(value):
            raise ValueError
        return msgspec.convert({field: value}, Arrivals)
    except (ValueError, OverflowError):
        raise PlanError(
            f"{OPTION}: '{text}' has no number, or one out of range. Give {limits}, for example "
            f"-e {OPTION}={word}:{'0.5' if word == 'gamma' else '20'}."
        ) from None


def _switching(text: str, numbers: str) -> Arrivals:
    try:
        ratio, calm, busy = map(float, numbers.split(":"))
        if not all(map(math.isfinite, (ratio, calm, busy))):
            raise ValueError
        values = {"ratio": ratio, "calm_s": calm, "busy_s": busy}
        return msgspec.convert({"switching": values}, Arrivals)
    except ValueError:
        raise PlanError(
            f"{OPTION}: '{text}' has other numbers than these three: busy rate / calm rate from 1 "
            f"to 1000, and the mean seconds of calm and of busy times, each from 0.01 to 86400. "
            f"Give them, for example -e {OPTION}={_SWITCHING}:9:2:0.5."
        ) from None


def points(text: str) -> list[Point]:
    """Return the points of a ramp: 100..2000 at equal distances, 0:100,60:2000 or a CSV file.

    The first is at second 0. Raises PlanError for another text or file.
    """
    if text.endswith(CSV):
        return _checked(text, _rows(Path(with_home(text))))
    separated = text.split("," if ":" in text else "..")
    if ":" in text:
        pairs = [tuple(word.partition(":")[::2]) for word in separated]
    else:
        pairs = [(str(time), rate) for time, rate in enumerate(separated)]
    return _checked(text, pairs)


def _rows(path: Path) -> list[tuple[str, ...]]:
    """Return the rows of a file, without its heading. Raises PlanError where it has none."""
    try:
        # Who opens a pipe waits for its writer.
        if (ROOT / path).is_fifo():
            raise PlanError(f"{RAMP}: '{path}' is a pipe. Give a file of {_ROWS}.")
        with (ROOT / path).open("rb") as file:
            raw = file.read(_FILE_MAX + 1)
        # Spreadsheets write a mark before the first row.
        text = raw.decode("utf-8-sig")
    except OSError as problem:
        raise PlanError(
            f"{RAMP}: '{path}' cannot be read: {problem.strerror}. Give a file of {_ROWS}."
        ) from None
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or "\0" in text:
        raise PlanError(f"{RAMP}: '{path}' is no text. Give a file of {_ROWS}.")
    if len(raw) > _FILE_MAX:
        raise PlanError(
            f"{RAMP}: '{path}' has more than {_FILE_MAX:,} bytes. Give a file of {_ROWS}."
        )
    rows = [tuple(cell.strip() for cell in line.split(",")) for line in text.split("\n")]
    rows = [row for row in rows if row != ("",)]
    return rows[1:] if rows[0] == ("seconds", "rate") else rows


def _checked(text: str, rows: Sequence[tuple[str, ...]]) -> list[Point]:
    """Return rows of seconds and rate as points. Raises PlanError for the first that is wrong."""
    checked: list[Point] = []
    for number, row in enumerate(rows, start=1):
        try:
            time, rate = map(float, row)
            if not (0 <= time < math.inf and 0 <= rate <= RATE_MAX):
                raise ValueError
        except ValueError:
            shown = f": row {number} is '{','.join(row)}'" if text.endswith(CSV) else ""
            raise PlanError(f"{RAMP}: '{text}' is no ramp{shown}. {_REMEDY}") from None
        if checked and time < checked[-1][0]:
            raise PlanError(
                f"{RAMP}: '{text}' goes back from second {plain(checked[-1][0])} to "
                f"{plain(time)}. Give the seconds in ascending order."
            )
        checked.append((time, rate))
    if not RAMP_MIN <= len(checked) <= RAMP_MAX:
        rates = plural(len(checked), "rate")
        raise PlanError(f"{RAMP}: '{text}' is no ramp, as it has {rates}. {_REMEDY}")
    begin = checked[0][0]
    if checked[-1][0] == begin or ramp_mean(checked) == 0:
        raise PlanError(
            f"{RAMP}: '{text}' asks for no request: its rates are 0, or it has no length. {_REMEDY}"
        )
    return [(time - begin, rate) for time, rate in checked]


def of_ramp(ramp: str, values: GivenOptions) -> tuple[float, OptionValue]:
    """Return the mean rate of a ramp, and the duration of one with seconds; else that given.

    Raises PlanError where a rate was given that is not the mean.
    """
    rates = points(ramp)
    mean, duration = ramp_mean(rates), values.get("duration")
    # A run that is repeated has the mean as its rate.
    if values.get("rate") not in (None, [mean]):
        raise PlanError(
            f"rate: the {RAMP} {one_line(ramp, 100)} has a mean rate. Leave rate or {RAMP} out."
        )
    timed = ":" in ramp or ramp.endswith(CSV)
    return mean, rates[-1][0] if timed and duration in (None, "") else duration


def asked(options: Options) -> Arrivals | None:
    """Return how the requests of a load come; None where evenly at one rate."""
    arrivals = parse(options.arrivals)
    if options.ramp is None:
        return arrivals
    ramp = points(options.ramp)
    return replace(arrivals, ramp=ramp) if arrivals else Arrivals(ramp=ramp)


def refuse(options: Options) -> None:
    """Raise PlanError for arrivals that the generator, its clients or its memory cannot keep."""
    arrivals, generator = asked(options), registry.get(options.generator)
    if arrivals is None or generator.mode != "constant":
        return
    option = RAMP if options.ramp else OPTION
    if options.ramp and options.slo:
        raise PlanError(
            f"{RAMP}: an slo searches one rate, and a ramp has many. Leave one of the two out."
        )
    request_records.refuse_unread(options, option, "sends at a constant rate alone")
    adds_up = not (arrivals.burst or arrivals.switching) and arrivals.smoothness in (None, 1)
    if options.clients > 1 and not adds_up:
        raise PlanError(
            f"{OPTION}: {options.clients} clients offer the load, and {options.arrivals} of each "
            f"would not be {options.arrivals} together; {_POISSON} would. Give "
            f"-e {OPTION}={_POISSON}, or take `serves` from clients in the inventory."
        )
    fewest = min(options.rate, default=math.inf) * options.duration
    if arrivals.burst and fewest < arrivals.burst:
        raise PlanError(
            f"{OPTION}: {options.arrivals}, and the load has {plain(fewest)} requests, less than a "
            f"burst. Give at least -e duration={math.ceil(arrivals.burst / min(options.rate))}, a "
            "higher rate, or smaller bursts."
        )
    requests = request_records.requests_due(options)
    if requests > REQUESTS_MAX * options.clients:
        raise PlanError(
            f"{option}: {arrivals} of {plain(requests)} requests, and a client holds the "
            f"due times of {REQUESTS_MAX:,} at most. Give a lower rate or duration, or leave "
            f"{option} out."
        )
