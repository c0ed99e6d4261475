"""Aligned columns of the terminal."""

from loadlab.report.terminal.text_columns import TextColumn, table


def test_columns_are_as_wide_as_their_texts_and_those_without_any_are_left_out() -> None:
    columns: list[TextColumn[float]] = [
        TextColumn("name", lambda number: f"n{number:g}", numeric=False),
        TextColumn("rate", lambda number: f"{number:.2f}"),
        TextColumn("absent", lambda number: "-" if number > 9 else ""),
        TextColumn("note", lambda number: "high" if number > 9 else "", numeric=False),
    ]
    assert table(columns, [1, 10.5]) == [
        "name    rate  note",
        "n1      1.00",
        "n10.5  10.50  high",
    ]
    assert table(columns, []) == []
