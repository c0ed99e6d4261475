import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadlab.kinds.lesson import definition
from loadlab.kinds.study import study_files
from loadlab.run.errors import PlanError
from tests.unit import builders

FILES = sorted((builders.ROOT / "files" / "lessons").glob("*.yml"))
SVG = "{http://www.w3.org/2000/svg}"
FILE = {
    "description": "d",
    "question": "q",
    "cells": [{"name": "one"}, {"name": "two"}],
    "lesson": builders.lesson("one", "two"),
}
CLAIM = {"statement": "s", "metric": "goodput", "cell": "check", "at_least": 1}
EXERCISE = {"cell": "one", "task": "t", "hints": [], "cured": [CLAIM], "solution": {"cell": "two"}}


def written(folder: Path, **changed: Any) -> Path:
    path = folder / "lessons" / "one.yml"
    path.parent.mkdir()
    definition.picture(path).touch()
    path.write_text(yaml.safe_dump({**FILE, **changed}))
    return path


def lesson(**changed: Any) -> dict[str, Any]:
    return {"lesson": builders.lesson("one", "two", **changed)}


def test_a_lesson_is_read_whole(tmp_path: Path) -> None:
    both = lesson(exercise=EXERCISE, transfer=TRANSFER)
    found = study_files.read(written(tmp_path, **both)).lesson
    exercise = builders.present(builders.present(found).exercise)
    assert [claim.statement for claim in exercise.cured] == ["s"]
    assert exercise.solution.cell == "two"


COLUMNS = [{"cell": name, "heading": name} for name in ("one", "two", "six")]
QUESTION = {"question": "?"}
NUMBER = {**QUESTION, "truth": "one.goodput", "unit": "x", "factor": 2}
OPTION = {"text": "t", "holds": "one.goodput > 1"}
WRONG = {**OPTION, "correction": "c"}
TRANSFER = {
    "text": "t",
    "cell": "one",
    "options": {"connections": 1},
    "predictions": [{**NUMBER, "truth": "transfer.goodput / one.goodput"}],
    "explanation": "{transfer.goodput}",
}
NO_CONDITION = {**WRONG, "holds": "1"}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"lesson": None}, "a lesson has the key `lesson`"),
        ({"question": None}, "a lesson needs a question"),
        (lesson(columns=COLUMNS[:1]), "columns: 'two' is no cell. There are: one"),
        (lesson(columns=COLUMNS), "columns: 'six' is no cell"),
        (lesson(table=[{"label": "x", "metric": "speed"}]), "table: 'speed': a repetition has no"),
        (lesson(table=[{"label": "x", "metric": "goodput", "form": "f"}]), "'f' is no form"),
        (lesson(explanation="{one.speed}"), "explanation: 'speed': a repetition has no 'speed'"),
        (lesson(explanation="{six.goodput}"), "names the cell 'six'. There are: one, two"),
        (lesson(predictions=[QUESTION]), "needs options, or truth, unit and factor"),
        (lesson(predictions=[{**NUMBER, "truth": "one.speed"}]), "prediction 1: 'speed'"),
        (lesson(predictions=[{**NUMBER, "factor": 1}]), "Expected `float` > 1"),
        (lesson(predictions=[{**NUMBER, "options": {"a": OPTION, "b": WRONG}}]), "no truth, unit"),
        (lesson(predictions=[{**QUESTION, "options": {"a": OPTION}}]), "give two or more"),
        (lesson(predictions=[{**QUESTION, "options": {"a": OPTION, "b": OPTION}}]), "all but one"),
        (
            lesson(predictions=[{**QUESTION, "options": {"a": OPTION, "b": NO_CONDITION}}]),
            "prediction 1: '1' is no condition",
        ),
        (lesson(exercise={**EXERCISE, "cell": "six"}), "exercise: 'six' is no cell"),
        (lesson(exercise={**EXERCISE, "solution": {}}), "a solution needs one of cell, commands"),
        (lesson(exercise={**EXERCISE, "solution": {"cell": "six"}}), "exercise: 'six' is no cell"),
        (
            lesson(exercise={**EXERCISE, "cured": [{**CLAIM, "metric": "speed"}]}),
            "exercise: 'speed': a repetition has no 'speed'",
        ),
        (lesson(exercise={**EXERCISE, "cured": [{**CLAIM, "cell": "six"}]}), "'six' is no cell"),
        (lesson(transfer={**TRANSFER, "cell": "six"}), "transfer: 'six' is no cell"),
        (
            lesson(transfer={**TRANSFER, "explanation": "{transfer.speed}"}),
            "transfer: 'speed': a repetition has no 'speed'",
        ),
        (lesson(fits={"law": ["one", "six"]}), "fits: 'six' is no cell"),
        (lesson(fits={"one": ["one"]}), "fits: 'one' is the name of a cell, or no name"),
        (lesson(fits={"the law": ["one"]}), "fits: 'the law' is the name of a cell, or no name"),
        (
            lesson(fits={"law": ["one"]}, explanation="{law.speed}"),
            "explanation: 'speed': a fit has no 'speed'",
        ),
        (lesson(colour="red"), "unknown field `colour`"),
    ],
)
def test_a_lesson_that_cannot_be_is_refused_with_the_place(
    tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(PlanError, match=re.escape(words)) as refused:
        study_files.read(written(tmp_path, **changed))
    assert str(refused.value).startswith("files/lessons/one.yml: ")


def test_a_lesson_without_its_picture_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    definition.picture(path).unlink()
    with pytest.raises(PlanError, match=re.escape("its picture one.svg is not there")):
        study_files.read(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_picture_has_a_title_a_description_and_the_text_colour(path: Path) -> None:
    text = definition.picture(path).read_text()
    picture = ET.fromstring(text)
    assert picture.get("role") == "img"
    named = (picture.get("aria-labelledby") or "").split()
    for tag, name in zip(("title", "desc"), named, strict=True):
        found = builders.present(picture.find(f"{SVG}{tag}"))
        assert found.get("id") == name
        assert found.text
    # Whatever the page's colours are, and nothing that its policy would refuse.
    assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', text)) <= {"none", "currentColor"}
    assert not re.search(r"<(script|style|image|a)|style=|href=", text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_lesson_asks_two_or_three_questions_about_misconceptions(path: Path) -> None:
    found = builders.present(study_files.read(path).lesson)
    assert 2 <= len(found.predictions) <= 3
    assert any(one.options for one in found.predictions)
    assert found.by_hand
