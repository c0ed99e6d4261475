"""Aligned columns of the terminal."""

from __future__ import annotations

from loadlab.report.terminal.text_columns import TextColumn, columns, heads


def test_numbers_are_aligned_right_and_texts_left_with_two_spaces_between() -> None:
    table: list[TextColumn[float]] = [
        TextColumn("name", -6, lambda number: f"n{number:g}"),
        TextColumn("rate", 6, lambda number: f"{number:.1f}"),
        TextColumn("note", -6, lambda number: "high" if number > 9 else ""),
        TextColumn("", 0, lambda number: "end" if number > 9 else ""),
    ]
    assert [heads(table), *columns(table, [1, 10.5])] == [
        "name    rate  note",
        "n1       1.0",
        "n10.5   10.5  high  end",
    ]
