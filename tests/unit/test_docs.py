"""The pages for people: what they link to and name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# Files of the lab that a page names in backquotes, from the top directory.
NAMED = re.compile(r"`((?:files|loadlab|playbooks|roles|tests)/[\w./-]+\.\w+)`")


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
