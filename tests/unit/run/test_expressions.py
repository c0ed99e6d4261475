import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.run import expressions

FIGURES = {("a", "goodput"): 200.0, ("b", "latency_us.p99"): 5.0, ("b", "errors"): 0.0}


def lookup(cell: str, metric: str) -> float | None:
    return FIGURES.get((cell, metric))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("a.goodput", 200),
        ("a.goodput / (b.latency_us.p99 - 1) * 2 + 0.5", 100.5),
        ("a.goodput / b.errors", None),
        ("a.goodput + a.unsent", None),
    ],
)
def test_an_expression_has_a_value(text: str, value: float | None) -> None:
    assert expressions.number(text, lookup) == value


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("a.goodput > 199", True),
        ("1 < b.latency_us.p99 <= 4", False),
        ("a.goodput > 1 and b.errors < 1", True),
        ("a.goodput > 1 and b.errors >= 1", False),
        ("a.unsent < 1", None),
        ("a.goodput > 1 and a.unsent < 1", None),
    ],
)
def test_a_condition_holds_or_not(text: str, held: bool | None) -> None:
    assert expressions.is_condition(text)
    assert expressions.holds(text, lookup) is held


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "a.", "a.goodput +", "__import__('os')", "a.goodput()", "a['goodput']",
        "-a.goodput", "a.goodput ** 2", "a.goodput == 1", "not a.goodput > 1", "lambda: 1",
        "a.goodput > 1 or a.goodput < 1", "(a.goodput > 1) + 1", "True", "'a'", "1j",
        "a.goodput and a.goodput > 1",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no (part of an )?expression of figures"):
        expressions.figures(text)


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        expressions.figures(text)
    except ValueError:
        return
    expressions.is_condition(text)


@given(st.floats(0.01, 1e6), st.floats(0.01, 1e6), st.sampled_from("+-*/"))
def test_the_arithmetic_is_that_of_numbers(left: float, right: float, sign: str) -> None:
    text = f"a.goodput {sign} b.goodput"
    wanted = {"+": left + right, "-": left - right, "*": left * right, "/": left / right}[sign]
    assert expressions.number(text, lambda cell, _: left if cell == "a" else right) == wanted


@pytest.mark.parametrize(
    "metric",
    [
        "goodput", "errors", "errors.timeout", "latency_us.p99_9", "load.connections",
        "client.failures.EMFILE", "client.cpu_s", "telemetry.server.tcp.listen_overflows",
        "failed_fraction", "under_way", "response_time.p99_us",
    ],
)  # fmt: skip
def test_a_metric_of_a_repetition_is_known(metric: str) -> None:
    expressions.check_metric(metric)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("goodputt", "has no 'goodputt'"),
        ("telemetry.server.tcp.listen_overflow", "has no 'listen_overflow'"),
        ("load.speed", "has no 'speed'"),
        ("goodput.p50", "has no 'p50'"),
        ("latency_us", "is no number"),
        ("validity.valid", "is no number"),
        ("latency_us.at_least", "is no number"),
    ],
)
def test_a_metric_that_no_repetition_has_is_refused(metric: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        expressions.check_metric(metric)


def test_a_text_has_expressions_in_braces() -> None:
    text = "of {a.goodput | count} and {b.latency_us.p99}."
    parts = expressions.parts(text)
    assert [part for part in parts if isinstance(part, str)] == ["of ", " and ", "."]
    assert [(one.expression, one.form) for one in expressions.places(text)] == [
        ("a.goodput", "count"),
        ("b.latency_us.p99", ""),
    ]
    expressions.check_text(text, ["a", "b"])


def test_a_fit_has_the_figures_of_scalability() -> None:
    expressions.check("a.goodput / law.most + law.sigma_low", ["a"], ["law"])
    with pytest.raises(ValueError, match=r"'sigma_width': a fit has no 'sigma_width' there"):
        expressions.check("law.sigma_width", ["a"], ["law"])
    with pytest.raises(ValueError, match=r"names the cell 'low'. There are: a, law"):
        expressions.check("low.sigma", ["a"], ["law"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{c.goodput}", "names the cell 'c'. There are: a, b"),
        ("{a.goodput | furlongs}", "'furlongs' is no form of a figure"),
        ("{a.goodput > 1}", "is a condition and not a number"),
        ("{a.speed}", "has no 'speed'"),
    ],
)
def test_a_text_with_an_unknown_figure_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        expressions.check_text(text, ["a", "b"])
