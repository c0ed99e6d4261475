"""Ramps: from a text and from a file, their stages, and what is refused of a file."""

import os
from pathlib import Path

import pytest

from loadlab.model import Arrivals, ramp_mean, ramp_text
from loadlab.plan.load_options import arrivals
from loadlab.run.errors import PlanError
from tests.unit import builders

# Seconds of a clock, which the ramp counts from its begin.
STEPS = b"seconds,rate\r\n100,50\r\n110,50\n110,200\n\n115,200\n115,50\n130,50\n"


def written(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "day.csv"
    path.write_bytes(content)
    return str(path)


def test_a_file_has_the_points_of_a_ramp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = arrivals.points(written(tmp_path, STEPS))
    assert ramp_text(points) == "0:50,10:50,10:200,15:200,15:50,30:50"
    assert arrivals.points(ramp_text(points)) == points
    assert ramp_mean(points) == 75
    monkeypatch.setenv("HOME", str(tmp_path))
    assert arrivals.points("~/day.csv") == points
    # A spreadsheet marks its text as UTF-8.
    assert arrivals.points(written(tmp_path, b"\xef\xbb\xbf" + STEPS)) == points


def test_a_ramp_with_seconds_has_its_duration(tmp_path: Path) -> None:
    steps = written(tmp_path, STEPS)
    options = builders.plan(framework="aiohttp", endpoint="index", ramp=steps).options
    assert (options.rate, options.duration) == ([75], 30)
    # A day in ten minutes.
    shorter = builders.plan(framework="aiohttp", endpoint="index", ramp=steps, duration=6).options
    assert (shorter.rate, shorter.duration, shorter.ramp) == ([75], 6, options.ramp)
    # Its seconds are no other form.
    each_second = written(tmp_path, b"0,10\n1,20\n2,10\n")
    assert builders.plan(framework="aiohttp", endpoint="index", ramp=each_second).options == (
        builders.plan(framework="aiohttp", endpoint="index", ramp="10..20..10", duration=2).options
    )


def test_level_parts_of_a_ramp_are_its_stages() -> None:
    ramp = Arrivals(ramp=arrivals.points("0:50,10:50,10:200,15:200,20:50,30:50"))
    mean = (500 + 1000 + 625 + 500) / 30
    rounded = [tuple(round(number, 9) for number in stage) for stage in ramp.stages(mean, 30)]
    assert rounded == [(0, 10, 50), (10, 15, 200), (20, 30, 50)]
    # Of a load that is shorter and faster.
    rounded = [tuple(round(number, 9) for number in stage) for stage in ramp.stages(2 * mean, 3)]
    assert rounded == [(0, 1, 100), (1, 1.5, 400), (2, 3, 100)]
    # A row in the middle of a level part, as a file with a row for each hour has it, ends no stage.
    rows = Arrivals(ramp=arrivals.points("0:50,5:50,10:50,10:200,15:200,15:50,20:50,30:50"))
    mean = (500 + 1000 + 750) / 30
    rounded = [tuple(round(number, 9) for number in stage) for stage in rows.stages(mean, 30)]
    assert rounded == [(0, 10, 50), (10, 15, 200), (15, 30, 50)]
    assert Arrivals(ramp=arrivals.points("1..2..1")).stages(1.5, 30) == []
    assert Arrivals(burst=5).stages(10, 30) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "is no text. Give a file of 2 to 1,000 rows of seconds,rate."),
        (b"0,1\0\n5,2\n", "is no text."),
        (b"", "is no text."),
        (b"seconds,rate\n", "is no ramp, as it has no rates. Give 2 to 1,000 rates from 0 to 1,"),
        (b"0,1\n-5,2\n", "is no ramp: row 2 is '-5,2'. Give 2 to 1,000 rates"),
        (b"0,1\n5,-2\n", "is no ramp: row 2 is '5,-2'."),
        (b"0,1\n5\n", "is no ramp: row 2 is '5'."),
        (b"0;1\n5;2\n", "is no ramp: row 1 is '0;1'."),
        (b"".join(b"%d,1\n" % row for row in range(1001)), "is no ramp, as it has 1,001 rates."),
        (b"0,1\n" * 20_000, "has more than 65,536 bytes. Give a file of 2 to 1,000 rows"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(PlanError, match=r"^ramp: '.*/day\.csv' ") as refused:
        arrivals.points(written(tmp_path, content))
    assert words in str(refused.value)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "day.csv")
    with pytest.raises(PlanError, match=r"^ramp: '.*/day\.csv' is a pipe\. Give a file of"):
        arrivals.points(str(tmp_path / "day.csv"))
