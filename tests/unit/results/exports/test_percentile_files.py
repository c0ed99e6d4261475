import itertools
import re
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from loadlab.model import EncodedHistogram, Latency, Result
from loadlab.results.exports import percentile_files
from loadlab.results.summaries import summarize
from loadlab.run.run_dir import RunDir
from loadlab.stats import histograms
from tests.unit import builders
from tests.unit.builders import present

PUBLISHED = builders.ROOT / "tests" / "fixtures" / "wrk2"


@dataclass(frozen=True)
class Line:
    """A line of percentiles; ``beyond``: 1/(1-percentile), None in the last."""

    value: float
    percentile: float
    count: int
    beyond: float | None


def read(text: str) -> tuple[list[Line], dict[str, float]]:
    """Read the lines and the footer; any other line is refused."""
    head, lines = text.index("\n\n"), []
    footer: dict[str, float] = {}
    assert text[:head].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    for line in text[head:].strip().splitlines():
        if line.startswith("#"):
            pairs = re.fullmatch(r"#\[(.+?) += +([0-9.]+), (.+?) += +([0-9.]+)\]", line)
            assert pairs, line
            footer |= {pairs[1]: float(pairs[2]), pairs[3]: float(pairs[4])}
        else:
            value, percentile, count, *rest = line.split()
            beyond = float(rest[0]) if rest else None
            lines.append(Line(float(value), float(percentile), int(count), beyond))
    return lines, footer


def plotted(text: str) -> list[tuple[float, float]]:
    """Return the points that HdrHistogram's plotter draws: of each line with four numbers the last
    and the first."""
    fields = [re.split(" +", line.strip()) for line in text.split("\n") if line[:1] != "#"]
    four = [line for line in fields if len(line) == 4 and line[0] != "Value"]
    return [(float(line[3]), float(line[0])) for line in four]


def result(values_us: np.ndarray[tuple[int], np.dtype[np.int64]], censored: int = 0) -> Result:
    histogram = histograms.from_values(values_us)
    found = histograms.document(histogram)
    latency = msgspec.convert({**histograms.summary(histogram), "censored": censored}, Latency)
    encoded = EncodedHistogram(format="HdrHistogram V2 base64", unit="us", data=found["data"])
    return builders.result(histogram=encoded, latency_us=latency)


def drawn(size: int, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    values = np.random.default_rng(seed).lognormal(7, 1.5, size)
    return np.maximum(values, 1).astype(np.int64)


def present_text(*results: Result) -> str:
    return present(percentile_files.text(results))


def test_percentiles_are_those_of_the_summary() -> None:
    run = {cell.cell_id: cell for cell in builders.summary().cells}
    found = summarize.by_cell(RunDir(builders.RUN))
    assert found.keys() == run.keys()
    for cell_id, results in found.items():
        lines, footer = read(present_text(*results))
        us, responses = run[cell_id].statistics.latency_us, run[cell_id].statistics.responses
        at = {line.percentile: line.value for line in lines}
        assert at[0.5] == pytest.approx(present(us.p50) / 1000, abs=0.0005)
        assert at[0.75] == pytest.approx(present(us.p75) / 1000, abs=0.0005)
        below = max(line.value for line in lines if line.percentile <= 0.99)
        above = min(line.value for line in lines if line.percentile >= 0.99)
        assert below <= present(us.p99) / 1000 <= above
        assert footer["Total count"] == lines[-1].count == responses
        # The maximum is the upper edge of its bucket.
        assert at[1] == footer["Max"] == pytest.approx(present(us.max) / 1000, rel=0.001)
        assert footer["Mean"] == pytest.approx(present(us.mean) / 1000, rel=0.001)
        assert footer["StdDeviation"] == pytest.approx(present(us.stdev) / 1000, rel=0.001)


def test_every_line_counts_the_values_up_to_its_own() -> None:
    several = [drawn(4000, seed) for seed in (1, 2)]
    values = np.concatenate(several)
    lines, footer = read(present_text(*map(result, several)))
    for line in lines:
        assert line.count == int((values <= round(line.value * 1000)).sum())
        assert line.count >= line.percentile * values.size - 1e-6
        if line.beyond is not None:
            assert line.beyond == pytest.approx(1 / (1 - line.percentile), abs=0.01)
    assert all(a.value <= b.value for a, b in itertools.pairwise(lines))
    assert footer["Mean"] == pytest.approx(values.mean() / 1000, rel=0.001)
    assert footer["StdDeviation"] == pytest.approx(values.std() / 1000, rel=0.002)


def test_lines_have_the_percentiles_of_hdrhistograms_own_programs() -> None:
    """The plotter takes a line's percentile from its number, by the first of several files."""
    published = (PUBLISHED / "normal.txt").read_text()
    theirs = re.findall(r"^ +[0-9.]+ +([01]\.[0-9]{6}) +\d+ +([0-9.]+)$", published, re.MULTILINE)
    lines, _ = read(present_text(result(drawn(100_000))))
    assert len(theirs) > 50
    own = [(f"{line.percentile:.6f}", f"{line.beyond:.2f}") for line in lines if line.beyond]
    both = min(len(theirs), len(own))
    assert own[:both] == theirs[:both]
    short = plotted(present_text(result(drawn(50))))
    long = plotted(present_text(result(drawn(5000))))
    assert [x for x, _ in short] == [x for x, _ in long][: len(short)]


def test_lines_end_where_requests_without_an_answer_begin() -> None:
    values = drawn(900)
    lines, footer = read(present_text(result(values, censored=100)))
    whole, _ = read(present_text(result(values)))
    assert lines[-1].percentile <= 0.9 < 0.95
    assert lines[-1].beyond is not None
    assert footer["Total count"] == 1000
    median = next(line for line in lines if line.percentile == 0.5)
    assert median.count >= 500
    assert median.value > next(line.value for line in whole if line.percentile == 0.5)


def test_void_repetitions_and_those_without_an_answer_have_no_percentiles() -> None:
    valid = result(drawn(100))
    void = replace(result(drawn(900)), validity=builders.void("steal"))
    assert percentile_files.text([valid, void]) == percentile_files.text([valid])
    assert percentile_files.text([void]) is None
    assert percentile_files.text([result(np.zeros(0, np.int64))]) is None
