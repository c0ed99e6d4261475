"""The pages for people: what they link to and name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# Files of the lab that a page names in backquotes, from the top directory.
NAMED = re.compile(r"`((?:files|loadlab|playbooks|roles|tests)/[\w./-]+\.\w+)`")

# Option of a command -> folder that has what it names.
OPTIONS = {
    "framework": "apps",
    "lesson": "files/lessons",
    "network": "files/network",
    "study": "files/studies",
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


def test_every_command_of_the_readme_names_a_playbook_and_framework_that_exist() -> None:
    commands = re.findall(r"^    ansible-playbook (.+)$", (ROOT / "README.md").read_text(), re.M)
    assert len(commands) > 20
    for command in commands:
        assert (ROOT / command.split()[0]).exists(), command
        for option, folder in OPTIONS.items():
            for name in re.findall(rf"-e {option}=(\w+)", command):
                assert list((ROOT / folder).glob(f"{name}*")), command
        for inventory in re.findall(r"-i (\S+)", command):
            assert (ROOT / inventory).is_dir(), command
