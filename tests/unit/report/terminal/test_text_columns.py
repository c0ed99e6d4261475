"""Aligned columns of the terminal."""

from loadlab.report.html import Column, Number
from loadlab.report.terminal.text_columns import table


def test_columns_are_as_wide_as_their_texts_and_those_without_any_are_left_out() -> None:
    columns: list[Column[float]] = [
        Column("name", lambda number: f"n{number:g}"),
        Number("rate", lambda number: f"{number:.2f}"),
        Number("absent", lambda number: "-" if number > 9 else ""),
        Column("note", lambda number: "high" if number > 9 else ""),
    ]
    assert table(columns, [1, 10.5]) == ["name    rate  note", "n1      1.00", "n10.5  10.50  high"]
    assert table(columns, []) == []
