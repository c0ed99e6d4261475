import msgspec
import pytest

from loadlab.kinds.lesson import words
from loadlab.model import CheckResult, Claim, Prediction, Reason, UnmeasuredCell
from tests.unit import builders

CHOICE, NUMBER = msgspec.convert(builders.lesson("one")["predictions"], list[Prediction])


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{one.goodput}", "1,234"),
        ("{one.latency_us.p99}", "1.23 ms"),
        ("{one.goodput / 1000}", "1.23"),
        ("{one.goodput | plain}", "1234"),
        ("{one.goodput | ms} on average", "1.23 ms on average"),
        ("{one.goodput / 10000 | percent}", "12 %"),
        ("{two.goodput}", "-"),
    ],
)
def test_a_text_has_the_figures_with_their_units(template: str, text: str) -> None:
    assert words.text(template, lambda cell, _: 1234.0 if cell == "one" else None) == text


def test_a_question_is_asked_with_its_answers() -> None:
    assert words.ask(CHOICE, 1, 2).splitlines() == [
        "Question 1 of 2: More than one?",
        "  a) yes",
        "  b) no",
        "Your answer (a, b; Enter for none)",
    ]
    assert words.ask(NUMBER, 2, 2).endswith("\nYour answer, in answers/s (Enter for none)")


def test_a_login_is_a_command_for_the_shell() -> None:
    host = {"address": "10.0.0.1", "user": "root", "port": "", "key": "/a b", "arguments": "-o X=y"}
    assert words.login(host) == "ssh -o X=y -i '/a b' root@10.0.0.1"
    bare = {"address": "web", "user": "", "port": "2222", "key": "", "arguments": ""}
    assert words.login(bare) == "ssh -p 2222 web"


def test_hints_come_one_at_a_time() -> None:
    assert words.hint(builders.exercise(), 1) == "Hint 1 of 2: look"
    assert words.hint(builders.exercise(), 3).startswith("There is no other hint.")


def claim(outcome: str, value: float, **statement: object) -> Claim:
    part = {
        "statement": {"metric": "goodput", **statement},
        "figures": [],
        "value": value,
        "interval": None,
        "published": None,
        "outcome": outcome,
    }
    given = {"statement": "as many are answered", "outcome": outcome, "parts": [part]}
    return msgspec.convert(given, Claim)


def test_a_check_tells_each_figure_beside_its_goal() -> None:
    found = CheckResult(
        check=1,
        verdict="not_yet",
        cured=[claim("refuted", 0.45, ratio=["check", "long"], at_least=0.7)],
        price=[claim("confirmed", 0, cell="check", at_most=0)],
    )
    assert words.check(found, []) == [
        "Check 1: not cured yet",
        "  not reached: as many are answered: measured 0.450, goal at least 0.7 (check / long)",
        "  price: reached: as many are answered: measured 0, goal at most 0",
    ]
    assert words.red(found, "").endswith("playbooks/lesson.yml -e stage=hint")


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        ("cured", ""),
        ("at_a_price", ""),
        ("not_measured", "lesson.yml -e stage=check -i inventory/aws"),
    ],
)
def test_only_a_check_that_is_not_cured_says_how_to_go_on(verdict: str, told: str) -> None:
    found = CheckResult(check=1, verdict=verdict, cured=[], price=[])  # type: ignore[arg-type]
    assert words.red(found, "-i inventory/aws").endswith(told)
    assert bool(told) == bool(words.red(found, "-i inventory/aws"))


def test_a_check_without_a_measurement_says_why() -> None:
    found = CheckResult(check=2, verdict="not_measured", cured=[], price=[])
    reasons = [Reason(code="cell_not_measured")]
    unmeasured = [UnmeasuredCell(cell=name, reasons=reasons) for name in ("check1", "check2")]
    told = words.check(found, unmeasured)
    assert told[0] == "Check 2: not measured"
    assert len(told) == 2
