"""Figures of all stacks."""

import warnings

import pytest

from loadlab.report.plots import stacks_plot
from loadlab.report.plots.stacks_plot import StackValues


@pytest.mark.parametrize("values", [[0.0, 0.0], [3.0, 3.0], [0.0, 2.0]])
def test_values_have_an_axis_even_where_all_are_0(values: list[float]) -> None:
    stack = StackValues("flask", values, values[0], "median")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = stacks_plot.values("errors", "Errors", "Errors/s", [stack])
    assert "flask" in figure
    # From 0, so that a value of 0 is at the left edge.
    assert ">0<" in figure
