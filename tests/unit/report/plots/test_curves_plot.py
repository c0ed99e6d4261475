import re
import xml.etree.ElementTree as ET

import pytest

from loadlab.report.plots import curves_plot, svg, timeline_plot
from loadlab.report.plots.curves_plot import Curve, DifferenceRow
from tests.unit.report.plots.series import BINNED, SERIES, SERVER

NEAR = [DifferenceRow("goodput", 0.41, 0.35, 0.48, 0.03, "higher"),
        DifferenceRow("p50", 0.01, -0.02, 0.04, 0.05, "no difference"),
        DifferenceRow("p99", None, None, None, None, "inconclusive")]  # fmt: skip
FAR = [DifferenceRow("goodput", 1.0, 0.9, 3.0, 0.5, "higher"),
       DifferenceRow("p99", -0.5, -1.0, -0.4, None, "lower")]  # fmt: skip


def curve(count: int, levels: tuple[float, ...] = (0, 50, 90, 99, 99.9, 99.99, 100)) -> Curve:
    return Curve([(level, 1000.0 * (1 + index)) for index, level in enumerate(levels)], count)


def draw_all() -> list[str | None]:
    return [
        curves_plot.latency_by_percentile("a", "A", curve(200_000), [], curve(5000)),
        timeline_plot.timeline("b", "B", SERIES, [SERVER], 3.0),
        timeline_plot.timeline("c", "C", BINNED, [], 3.0),
        curves_plot.differences(
            "e", "E", [("one against other", NEAR), ("one <against> two", FAR)]
        ),
    ]


def parse(page: str | None) -> ET.Element:
    assert page is not None
    return ET.fromstring(page)


def texts(page: str | None) -> dict[str, float]:
    """Every text of an SVG with its x."""
    found = parse(page).iter("{http://www.w3.org/2000/svg}text")
    at: dict[str, float] = {}
    for text in found:
        # The x axis is drawn before the y axis.
        at.setdefault("".join(text.itertext()), float(text.get("x", "nan")))
    return at


def lines(page: str | None, colour: str) -> list[list[tuple[float, float]]]:
    """The points of every line of a colour that is not the legend's."""
    found = []
    for path in parse(page).iter("{http://www.w3.org/2000/svg}path"):
        if path.get("stroke") == colour.lower() and "clip-path" in path.attrib:
            numbers = [float(n) for n in re.findall(r"-?[\d.]+", path.get("d", ""))]
            found.append(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return found


@pytest.mark.parametrize(
    ("percentile", "at"), [(0, 1), (50, 2), (90, 10), (99, 100), (99.9, 1000), (99.99, 10_000)]
)
def test_percentiles_lie_at_one_over_what_is_left(percentile: float, at: float) -> None:
    assert curves_plot.position(percentile) == pytest.approx(at)


def test_ticks_and_points_lie_where_the_logarithm_puts_them() -> None:
    page = curves_plot.latency_by_percentile("a", "A", curve(200_000), [], None)
    at = texts(page)
    decade = at["99"] - at["90"]
    assert at["99.9"] - at["99"] == pytest.approx(decade, abs=0.2)
    assert at["99.99"] - at["99.9"] == pytest.approx(decade, abs=0.2)
    assert at["50"] - at["0"] == pytest.approx(0.30103 * decade, abs=0.2)
    drawn = [x for x, _ in lines(page, svg.BLUE)[0]]
    wanted = [at[name] for name in ("0", "50", "90", "99", "99.9", "99.99")]
    assert drawn == pytest.approx(wanted, abs=0.2)


@pytest.mark.parametrize(
    ("count", "last"), [(200_000, 99.99), (100_000, 99.99), (99_999, 99.9), (1000, 99), (999, 90)]
)
def test_nothing_is_drawn_beyond_what_the_sample_carries(count: int, last: float) -> None:
    points = curves_plot.carried(curve(count))
    assert points[-1][0] == pytest.approx(curves_plot.position(last))
    drawn = lines(curves_plot.latency_by_percentile("a", "A", curve(count), [], None), svg.BLUE)
    assert len(drawn[0]) == len(points)


def test_too_few_values_give_no_figure() -> None:
    assert curves_plot.highest(10) is None
    assert curves_plot.latency_by_percentile("a", "A", curve(10), [], None) is None
    assert curves_plot.latency_by_percentile("a", "A", Curve([], 0), [], None) is None


def test_each_repetition_has_a_line_beside_the_sum() -> None:
    page = curves_plot.latency_by_percentile("a", "A", curve(6000), [curve(3000)] * 3, curve(3000))
    assert [len(lines(page, c)) for c in (svg.SKY, svg.BLUE, svg.GREY)] == [3, 1, 1]
    assert any("baseline latency" in text for text in texts(page))


def test_the_same_input_gives_the_same_bytes_and_well_formed_elements() -> None:
    first, second = draw_all(), draw_all()
    assert first == second
    for page in first:
        root = parse(page)
        assert root.get("role") == "img"
        assert root.get("aria-label")
        assert "<text" in str(page)
        assert "matplotlib" not in str(page)
        assert len(str(page)) < 20_000


def test_references_stay_and_differ_between_figures() -> None:
    ids: list[str] = []
    for page in map(str, draw_all()):
        own = re.findall(r' id="([^"]+)"', page)
        assert own
        assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page)) == {
            (name, "") if name.startswith("m") else ("", name) for name in own
        }
        ids += own
    assert len(ids) == len(set(ids))


def test_labels_of_any_origin_are_escaped() -> None:
    label = '<script>alert("1")</script> & $x$'
    page = timeline_plot.timeline("b", label, SERIES, [], 3.0)
    assert "<script" not in page
    assert parse(page).get("aria-label") == label


def test_latency_axis_is_logarithmic_only_where_the_span_is_large() -> None:
    narrow = curves_plot.latency_by_percentile("a", "A", curve(200_000), [], None)
    assert "0" in [text for text in texts(narrow) if text == "0"]
    wide = timeline_plot.timeline("c", "C", SERIES, [], 3.0)
    assert {"1", "10"} <= set(texts(wide))


def test_differences_lie_on_the_axis_of_percent() -> None:
    page = curves_plot.differences("e", "E", [("production against stock", NEAR)])
    at = texts(page)
    assert {"production against stock", "goodput", "p99", "no difference"} <= set(at)
    assert "noise floor" in page
    each = (at["+40"] - at["0"]) / 40
    ((low, _), (high, _)) = lines(page, svg.BLUE)[0]
    assert (low, high) == pytest.approx((at["0"] + 35 * each, at["0"] + 48 * each), abs=0.3)
    # What is unknown has no line, but its row.
    assert [len(lines(page, colour)) for colour in (svg.BLUE, svg.GREY)] == [1, 0]


def test_large_differences_lie_on_an_axis_of_ratios() -> None:
    page = curves_plot.differences("e", "E", [("a", FAR), ("b", NEAR)])
    at = texts(page)
    assert at["1"] - at["0.5"] == pytest.approx(at["2"] - at["1"], abs=0.2)
    assert at["4"] - at["2"] == pytest.approx(at["2"] - at["1"], abs=0.2)
    # Nothing at all left is no ratio, and is drawn at the end.
    assert len(lines(page, svg.BLUE)) == 3


def test_the_figure_grows_with_its_rows() -> None:
    one, two = (parse(curves_plot.differences("e", "E", [("a", NEAR)] * n)) for n in (1, 2))
    heights = [int(str(root.get("viewBox")).split()[3]) for root in (one, two)]
    assert heights[1] - heights[0] == pytest.approx(curves_plot.ROW * (len(NEAR) + 1.3), abs=1)


def test_nothing_known_is_drawn_too() -> None:
    assert "inconclusive" in curves_plot.differences("e", "E", [("a", NEAR[2:])])
