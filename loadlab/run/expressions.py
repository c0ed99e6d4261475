"""Expressions over the figures of a run, which the files of lessons write.

An expression has numbers, figures, + - * / and parentheses. A figure is <cell>.<metric>: the name
of a cell, and the path of a metric in its repetitions, such as short.latency_us.max; or the name of
a fit, and the path of a figure in Scalability, such as law.sigma. A condition
also has < <= > >= and `and`. A text has expressions in braces, {long.goodput / short.goodput}, and
may name a form of FORMS after a bar: {short.telemetry.server.cpu_busy | percent}.
"""

import ast
import operator
import re
import types
import typing
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import msgspec

from loadlab.model import Load, Repetition, Scalability

# How a value is printed: a count without decimals, a fraction as percent, µs as ms, a number as it
# is needed to write it, a number with three significant digits.
FORMS = ("count", "percent", "ms", "plain", "number")

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_PLACE = re.compile(r"\{([^{}]*)\}")

# Metrics that a repetition does not hold, but that follow from it; see analysis/metrics.py.
DERIVED = ("failed_fraction", "under_way")

# (cell, metric) -> its value, None where it was not measured.
Lookup = Callable[[str, str], float | None]


@dataclass(frozen=True)
class Place:
    """An expression in a text; ``form``: one of FORMS, "" where the metric decides."""

    expression: str
    form: str


def figures(expression: str) -> list[tuple[str, str]]:
    """Return the (cell, metric) of each figure, in order. Raises ValueError for any other text."""
    return list(_figures(_parsed(expression)))


def number(expression: str, lookup: Lookup) -> float | None:
    """Return the value of an expression; None where a figure has none or a divisor is 0."""
    return _number(_parsed(expression), lookup)


def holds(condition: str, lookup: Lookup) -> bool | None:
    """Return whether a condition holds; None where a figure in it has no value."""
    return _holds(_parsed(condition), lookup)


def is_condition(expression: str) -> bool:
    """Return whether the expression is a condition: a comparison, or several joined by and, or."""
    return isinstance(_parsed(expression), ast.Compare | ast.BoolOp)


def places(text: str) -> list[Place]:
    """Return the expressions in a text, in order."""
    return [part for part in parts(text) if isinstance(part, Place)]


def parts(text: str) -> list[str | Place]:
    """Return the words of a text and the expressions between them, in order."""
    text_parts: list[str | Place] = []
    for index, part in enumerate(_PLACE.split(text)):
        if index % 2 == 0:
            text_parts += [part] if part else []
        else:
            expression, _, form = part.partition("|")
            text_parts.append(Place(expression.strip(), form.strip()))
    return text_parts


def check(expression: str, cells: Collection[str], fits: Collection[str] = ()) -> None:
    """Raise ValueError where a figure of the expression names no cell or fit, or no metric."""
    for cell, metric in figures(expression):
        if cell in fits:
            _check_path(metric, metric, "a fit", Scalability)
            continue
        if cell not in cells:
            raise ValueError(
                f"'{expression}' names the cell '{cell}'. There are: {', '.join([*cells, *fits])}"
            )
        check_metric(metric)


def check_text(text: str, cells: Collection[str], fits: Collection[str] = ()) -> None:
    """Raise ValueError where an expression of the text or its form is not known."""
    for place in places(text):
        check_form(place.form)
        if is_condition(place.expression):
            raise ValueError(f"'{place.expression}' is a condition and not a number")
        check(place.expression, cells, fits)


def check_form(form: str) -> None:
    """Raise ValueError where the form of a figure is neither empty nor one of FORMS."""
    if form and form not in FORMS:
        raise ValueError(f"'{form}' is no form of a figure. There are: {', '.join(FORMS)}")


def check_metric(metric: str) -> None:
    """Raise ValueError where no repetition can have this metric; see analysis/metrics.py."""
    if metric in DERIVED:
        return
    first, _, rest = metric.partition(".")
    is_load = first == "load" and rest != ""
    _check_path(
        metric, rest if is_load else metric, "a repetition", Load if is_load else Repetition
    )


def _check_path(metric: str, path: str, of: str, kind: object) -> None:
    """Raise ValueError where a path does not lead from a type to a number."""
    kinds = [kind]
    for name in path.split("."):
        kinds = [inner for kind in kinds for inner in _inner(kind, name)]
        if not kinds:
            raise ValueError(f"'{metric}': {of} has no '{name}' there")
    if not any(_is_number(kind) for kind in kinds):
        raise ValueError(f"'{metric}' is no number")


def _inner(kind: object, name: str) -> Iterator[object]:
    """Yield the types that a type has at a name; none where it has no such name."""
    if typing.get_origin(kind) is dict:
        yield from _alternatives(typing.get_args(kind)[1])
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hint = typing.get_type_hints(kind).get(name)
        yield from () if hint is None else _alternatives(hint)


def _alternatives(hint: object) -> Iterator[object]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        for alternative in typing.get_args(hint):
            yield from _alternatives(alternative)
    else:
        yield hint


def _is_number(kind: object) -> bool:
    """Return whether a type is a number, or holds several whose sum is meant."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind).values()
        return all(
            alternative in (int, float) for hint in hints for alternative in _alternatives(hint)
        )
    if typing.get_origin(kind) is dict:
        return typing.get_args(kind)[1] in (int, float)
    return kind in (int, float)


def _parsed(expression: str) -> ast.expr:
    try:
        node = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"'{expression}' is no expression of figures") from None
    _refuse_other(node, expression)
    return node


def _refuse_other(node: ast.expr, expression: str, condition: bool = True) -> None:
    """Raise ValueError for anything that the description above does not name."""
    operands: list[ast.expr] = []
    match node:
        case ast.BoolOp(op=ast.And(), values=operands) if condition and all(
            isinstance(operand, ast.Compare) for operand in operands
        ):
            pass
        case ast.Compare() if condition and all(type(sign) in _COMPARISONS for sign in node.ops):
            operands = [node.left, *node.comparators]
        case ast.BinOp() if type(node.op) in _OPERATORS:
            operands = [node.left, node.right]
        case ast.Constant() if type(node.value) in (int, float):
            pass
        case ast.Attribute() if _figure(node) is not None:
            pass
        case _:
            raise ValueError(
                f"'{expression}': '{ast.unparse(node)}' is no part of an expression of figures"
            )
    for operand in operands:
        _refuse_other(operand, expression, isinstance(node, ast.BoolOp))


def _figure(node: ast.expr) -> tuple[str, str] | None:
    """Return (cell, metric) of names joined by dots; None for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return (node.id, ".".join(names)) if isinstance(node, ast.Name) and names else None


def _figures(node: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Attribute) and (figure := _figure(node)) is not None:
        yield figure
        return
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.expr):
            yield from _figures(inner)


def _number(node: ast.expr, lookup: Lookup) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, lookup), _number(node.right, lookup)
        if left is None or right is None or (isinstance(node.op, ast.Div) and right == 0):
            return None
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Attribute) and (figure := _figure(node)) is not None:
        return lookup(*figure)
    raise ValueError(f"'{ast.unparse(node)}' is no number")


def _holds(node: ast.expr, lookup: Lookup) -> bool | None:
    if isinstance(node, ast.BoolOp):
        truths = [_holds(operand, lookup) for operand in node.values]
        return None if None in truths else all(truths)
    if not isinstance(node, ast.Compare):
        raise ValueError(f"'{ast.unparse(node)}' is no condition")
    values = [_number(operand, lookup) for operand in (node.left, *node.comparators)]
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    steps = zip(numbers, node.ops, numbers[1:], strict=False)
    return all(_COMPARISONS[type(sign)](left, right) for left, sign, right in steps)
