"""Figures of all stacks."""

import warnings

import pytest

from loadlab.report.plots import stacks_plot, svg
from loadlab.report.plots.stacks_plot import StackValues, Traded
from loadlab.stats.inference import Estimate


@pytest.mark.parametrize("values", [[0.0, 0.0], [3.0, 3.0], [0.0, 2.0]])
def test_values_have_an_axis_even_where_all_are_0(values: list[float]) -> None:
    stack = StackValues("flask", values, values[0], "median")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = stacks_plot.values("errors", "Errors", "Errors/s", [stack])
    assert "flask" in figure
    # From 0, so that a value of 0 is at the left edge.
    assert ">0<" in figure


def test_trade_has_each_stack_at_its_values_with_its_interval() -> None:
    stacks = [
        Traded(Estimate(900.0, 800.0, 1000.0), Estimate(40.0, None, None), 1, chosen=True),
        Traded(Estimate(100.0, None, None), Estimate(80.0, 60.0, 90.0), None, chosen=False),
    ]
    figure = stacks_plot.trade("front", "two of them", "p99, ms", stacks)
    assert svg.themed(svg.BLUE).lower() in figure.lower()
    assert figure.lower().count(svg.GREY.lower()) >= 2
    # The number of the one on the front; the other has none.
    assert figure.count(">1</text>") == 1
    assert ">2</text>" not in figure
