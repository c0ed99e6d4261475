"""The pages for people: what they link to and name is there."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadlab import __main__
from loadlab.plan import check_options, user_options
from tests.unit import builders

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# Files of the lab that a page names in backquotes, from the top directory.
NAMED = re.compile(r"`((?:files|loadlab|playbooks|roles|tests)/[\w./-]+\.\w+)`")

MAKEFILE = (ROOT / "Makefile").read_text()
# Option of a command -> folder that has what it names.
CATALOGUES = {
    "framework": "apps",
    "lesson": "files/lessons",
    "load": "files/loads",
    "network": "files/network",
    "study": "files/studies",
    "tuning": "files/tuning",
}


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and GitLab make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_relative_link_resolves(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_named_file_exists(page: Path) -> None:
    for name in NAMED.findall(page.read_text()):
        assert (ROOT / name).exists(), name


def test_readme_is_short_and_shows_its_pictures() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") <= 120
    pictures = re.findall(r"!\[[^\]]+\]\((.+)\)", text)
    assert pictures == ["docs/images/report.png", "docs/images/terminal.png"]
    for name in pictures:
        content = (ROOT / name).read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n"), name
        assert len(content) <= 200_000, name


# What a page leaves open in a command, and what ends the command in its line.
OPEN = re.compile(r"<[^>]+>|\$\{\{[^}]+\}\}")
END = re.compile(r" # | && | \[")


def commands() -> Iterator[tuple[str, str]]:
    """(page, command) of each command in an indented line of a page, without its comment."""
    typed = re.compile(r"^ {4,}((?:ansible-playbook|python -m loadlab|make) .*)$", re.MULTILINE)
    for page in PAGES:
        for line in typed.findall(page.read_text().replace("\\\n", " ")):
            yield str(page.relative_to(ROOT)), END.split(OPEN.sub("<>", line))[0].strip()


def refuse(command: str) -> None:
    """Raise what a command would be refused with for its names; values such as <key> are free."""
    first, *words = shlex.split(command)
    if first == "python":
        __main__.parser().parse_args(words[2:])
        return
    options: dict[str, Any] = dict(
        word.split("=", 1) for word in words if "=" in word and first == "make"
    )
    if first == "make":
        targets = [word for word in words if "=" not in word]
        assert set(targets) <= {*re.findall(r"^([\w-]+):", MAKEFILE, re.M)}, targets
        if targets != ["lab"]:
            return
    else:
        reader = argparse.ArgumentParser(exit_on_error=False)
        reader.add_argument("playbook", type=Path)
        reader.add_argument("-e", action="append", default=[])
        reader.add_argument("-i", type=Path)
        for flag in ("--check", "--diff", "-K", "--ask-vault-pass"):
            reader.add_argument(flag, action="store_true")
        read = reader.parse_args(words)
        assert (ROOT / read.playbook).is_file()
        own = read.i is None or read.i.parts[:1] != ("inventory",) or read.i.name == "mine"
        assert own or (ROOT / read.i).is_dir()
        options = dict(option.split("=", 1) for option in read.e)
    user_options.refuse_names(ROOT, list(builders.SPECS), options, [], [])
    fixed = {name: value for name, value in options.items() if "<" not in value}
    check_options.options(builders.SPECS, {n: v for n, v in fixed.items() if n in builders.SPECS})
    for name in CATALOGUES.keys() & fixed.keys():
        for value in fixed[name].split(","):
            assert list((ROOT / CATALOGUES[name]).glob(f"{value}*")), value


@pytest.mark.parametrize(("page", "command"), [*commands()])
def test_every_command_is_accepted(page: str, command: str) -> None:
    refuse(command)


@pytest.mark.parametrize(
    "command",
    ["ansible-playbook lab.yml -e framwork=flask", "make lab framework=nosuch", "make nothing",
     "ansible-playbook playbooks/nosuch.yml", "ansible-playbook lab.yml -e rate=fast"],
)  # fmt: skip
def test_a_wrong_command_is_found(command: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        refuse(command)


@pytest.mark.parametrize("page", ["README.md", "docs/guides.md"])
def test_the_first_pages_are_easy_to_read(page: str) -> None:
    assert reading_ease((ROOT / page).read_text()) >= 55


def reading_ease(markdown: str) -> float:
    """Return Flesch's reading ease of the sentences of a page, without its code, tables, headings
    and the targets of its links."""
    prose = re.sub(r"^```.*?^```|^(?: {4}|\||#).*?$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"!\[[^\]]*\]\([^)]*\)|`[^`]*`|\]\([^)]*\)", " ", prose)
    sentences = re.split(r"[.!?][\s*)]|\n\s*\n|^- ", prose, flags=re.MULTILINE)
    words = [
        words for sentence in sentences if (words := re.findall(r"[A-Za-z][A-Za-z'-]*", sentence))
    ]
    counts = [
        # A last e is silent, but that of "-le" is not.
        max(1, len(re.findall(r"[aeiouy]+", re.sub(r"(?<!l)e$", "", word.lower()))))
        for sentence in words
        for word in sentence
    ]
    return 206.835 - 1.015 * len(counts) / len(words) - 84.6 * sum(counts) / len(counts)


def test_reading_ease_is_of_sentences_and_not_of_code_and_tables() -> None:
    easy = "The cat sat on [the mat](administrative/difficulty.md) by a door."
    rest = "\n\n| considerable |\n\n    administrative.difficulty\n\n`considerable`\n"
    assert reading_ease(easy + rest) == pytest.approx(206.835 - 1.015 * 9 - 84.6)
    assert reading_ease("Considerable administrative difficulty.") < 0
