"""The figure of a repetition over time."""

import base64
import io
import json
import re
import xml.etree.ElementTree as ET
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace
from PIL import Image

from loadlab.model import AcceptQueue, HostSeries, PerSecond
from loadlab.report.plots import svg, timeline_plot
from loadlab.stats import latency_bins
from tests.unit.builders import present
from tests.unit.report.plots.series import BINNED, CPU, QUEUES, SERIES, SERVER

S = TypeVar("S", PerSecond, HostSeries)
SVG = "{http://www.w3.org/2000/svg}"


def images(page: str) -> list[npt.NDArray[np.uint8]]:
    """The pixels of every image of a figure, as indexes of its palette."""
    found = re.findall(r'href="data:image/png;base64,([^"]+)"', page)
    return [np.array(Image.open(io.BytesIO(base64.b64decode(text)))) for text in found]


class Drawn(NamedTuple):
    """The values of a curve."""

    x: list[float]
    y: list[float]


def curves(page: str) -> dict[str, Drawn]:
    """The values of every named curve, read from its points by the scales that the page has."""
    root = ET.fromstring(page)
    axes = json.loads(str(root.get("data-axes")))
    found = {}
    for group in root.iter(f"{SVG}g"):
        if name := group.get("data-s"):
            left, top, width, height, *scales = axes[int(str(group.get("data-p")))]
            path = next(path for path in group.iter(f"{SVG}path") if path.get("fill") == "none")
            numbers = [float(one) for one in re.findall(r"-?[\d.]+", str(path.get("d")))]
            found[name] = Drawn(
                [value((x - left) / width, *scales[:3]) for x in numbers[::2]],
                [value(1 - (y - top) / height, *scales[3:]) for y in numbers[1::2]],
            )
    return found


def value(part: float, scale: str, low: float, high: float) -> float:
    return low * (high / low) ** part if scale == "log" else low + part * (high - low)


def first_seconds(series: S, times: int = 1) -> S:
    """The first second of a series, so many times."""
    each = {name: getattr(series, name) for name in series.__struct_fields__}
    seconds = {name: own[:1] * times for name, own in each.items() if isinstance(own, list)}
    return msgspec.structs.replace(series, **seconds)


def test_lines_have_the_values_of_the_seconds_and_a_gap_without_answers() -> None:
    found = curves(timeline_plot.timeline("a", "A", SERIES, [SERVER], 3.0))
    assert found["p99"].y == pytest.approx([0.9, 1.2], rel=1e-3)
    assert found["max"].x == pytest.approx([0.5, 1.5], abs=0.01)
    assert found["verified, requests/s"].y == pytest.approx([100, 30, 0], abs=0.1)
    # The recorded intervals end at 0.5, 1.5 and 2.5 s; a column is a second of the load.
    assert found["busy of the server, %"].y == pytest.approx([40, 50.5, 51], abs=0.2)


def test_the_last_second_of_a_load_may_be_a_part_of_one() -> None:
    steady = replace(SERIES, scheduled=[100, 100, 40], ok=[100, 100, 40], came=[100, 90, 50])
    found = curves(timeline_plot.timeline("a", "A", steady, [], 2.4))
    assert found["asked, requests/s"].y == pytest.approx([100, 100, 100], abs=0.1)
    assert found["verified, requests/s"].y == pytest.approx([100, 100, 100], abs=0.1)
    assert found["came, requests/s"].y == pytest.approx([100, 90, 50], abs=0.1)


def test_the_heat_map_has_the_counts_of_the_bins() -> None:
    (heat,) = images(timeline_plot.timeline("a", "A", BINNED, [], 3.0))
    table = latency_bins.table(present(BINNED.latency_bins))
    low, high = np.flatnonzero(table.sum(axis=0))[[0, -1]]
    assert heat.shape == (high - low + 1 + (0 if high - low >= 4 else 4), 3)
    # The fullest bin has the last colour, none the first; the smallest latency is at the bottom.
    assert heat.max() == len(timeline_plot.HEAT)
    assert sorted(map(int, (heat > 0).sum(axis=0))) == [0, 1, 2]
    rows = np.flatnonzero(heat[:, 0])
    assert heat[rows[-1], 0] > heat[rows[0], 0]


def test_a_long_load_has_several_seconds_in_a_column() -> None:
    long = PerSecond(**{name: getattr(SERIES, name) * 300 for name in
                        ("scheduled", "responses", "ok", "p50_us", "p99_us", "max_us")},
                     second=list(range(900)))  # fmt: skip
    assert timeline_plot.group(900) == 6
    found = curves(timeline_plot.timeline("a", "A", long, [], 900.0))
    assert len(found["max"].y) == timeline_plot.COLUMNS
    # The largest of six seconds: no stall is averaged away.
    assert {round(y, 1) for y in found["max"].y} == {90.0}


def test_modes_are_stacked_as_high_as_their_shares() -> None:
    (cpu,) = images(timeline_plot.timeline("a", "A", None, [SERVER], 3.0))
    # 0.25 to 0.5 s of 0.2 and half a second of 0.3: user is 25 % of the first second.
    colours = {int(colour): int(n) for colour, n in zip(*np.unique(cpu[:, 1], return_counts=True),
                                                         strict=True)}  # fmt: skip
    assert colours[1] == pytest.approx(0.35 * timeline_plot.LEVELS, abs=1)
    assert colours[2] == pytest.approx(0.1 * timeline_plot.LEVELS, abs=1)
    assert sum(colours.values()) == timeline_plot.LEVELS


def drawn(page: str) -> list[str]:
    return [name for name in curves(page) if name.startswith(("accept queue", "limit"))]


def test_accept_queues_have_their_depths_and_a_limit_that_was_reached() -> None:
    host = timeline_plot.Host("server", CPU, 2, QUEUES)
    page = timeline_plot.timeline("a", "A", SERIES, [host], 3.0)
    found = curves(page)
    application = found["accept queue of application, /run/app.sock"]
    # At the middles of the recorded intervals, which end at 0.5, 1.5 and 2.5 s.
    assert application.x == pytest.approx([0.25, 1, 2], abs=0.01)
    assert application.y == pytest.approx([0, 63, 7], abs=0.2)
    # Nothing is drawn where there was no reading.
    assert found["accept queue of nginx, 10.0.0.1:80"].y == pytest.approx([3, 129], abs=0.2)
    assert found["limit of nginx, 10.0.0.1:80"].y == pytest.approx([128, 128], abs=0.2)
    # Neither the queue in which nothing waited, nor the limit that is far.
    assert len(drawn(page)) == 3
    assert "Accept queues of the server, connections" in page


def test_accept_queues_in_which_nothing_waited_are_drawn_once_and_unknown_ones_not() -> None:
    idle = [replace(one, depth=[0, 0, 0]) for one in QUEUES]
    host = timeline_plot.Host("server", CPU, 2, idle)
    page = timeline_plot.timeline("a", "A", None, [host], 3.0)
    assert drawn(page) == ["accept queue of application, /run/app.sock"]
    assert curves(page)[drawn(page)[0]].y == pytest.approx([0, 0, 0], abs=0.01)
    without = timeline_plot.timeline("a", "A", None, [SERVER], 3.0)
    assert drawn(without) == []
    assert "Accept queues" not in without


def test_accept_queues_of_a_long_load_have_the_most_of_each_column() -> None:
    seconds = 301
    series = replace(
        first_seconds(CPU, seconds), t=[float(second) for second in range(1, seconds + 1)]
    )
    depth: list[int | None] = [second % 3 for second in range(seconds)]
    queue = AcceptQueue(service="nginx", socket="a", limit=511, depth=depth, mean_depth=1)
    host = timeline_plot.Host("server", series, 1, [queue])
    found = curves(timeline_plot.timeline("a", "A", None, [host], float(seconds)))
    points = found["accept queue of nginx, a"]
    assert timeline_plot.group(seconds) == 3
    # The last column has the last second alone, which is number 300.
    assert [round(y) for y in points.y] == [2] * 100 + [0]
    assert points.x[-1] == pytest.approx(300.5, abs=0.5)


def test_without_series_and_hosts_of_one_second_is_drawn() -> None:
    one = first_seconds(SERIES)
    host = timeline_plot.Host("server", first_seconds(CPU), 1)
    page = timeline_plot.timeline("a", "A", one, [host], 1.0)
    assert "% of its core" in page
    assert curves(page)["p50"].y[0] == pytest.approx(0.4, rel=1e-3)


def test_disturbed_seconds_are_drawn_as_bands() -> None:
    quiet, one, two = (
        timeline_plot.timeline("a", "A", SERIES, [SERVER], 3.0, each)
        for each in ((), [(1.0, 2.0)], [(0.0, 1.0), (1.0, 2.0)])
    )
    band = svg.themed(svg.BAND)
    assert "disturbed" not in quiet
    assert ">disturbed<" in one
    assert two.count(band) > one.count(band)
