import hashlib
import re
import subprocess
import sys
from html.parser import HTMLParser

from loadlab.stacks import book_text

# Another text is another load: results before and after it do not compare.
SHA256 = "6ee536bec5673683aae3a0026ae994ea855b5399284606a9642cf91c13c461d1"


class Page(HTMLParser):
    """Counts elements, and wants each one closed in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.declared = ""

    def handle_decl(self, decl: str) -> None:
        self.declared = decl

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert not set("<>&") & set(data)
        assert not data.strip() or self.open[-1] in ("title", "h1", "h2", "p")


def test_it_is_the_same_text_everywhere() -> None:
    assert hashlib.sha256(book_text.text()).hexdigest() == SHA256
    assert book_text.text() == book_text.text()


def test_it_is_large_and_plain() -> None:
    text = book_text.text()
    assert 440_000 < len(text) < 460_000
    assert re.fullmatch(rb"[ -~\n]+", text)


def test_it_is_well_formed() -> None:
    page = Page()
    page.feed(book_text.text().decode("ascii"))
    page.close()
    assert page.open == []
    assert page.declared == "DOCTYPE html"
    assert page.count["h1"] == 1
    assert page.count["h2"] == book_text.CHAPTERS
    assert page.count["p"] > 20 * book_text.CHAPTERS


def test_its_words_follow_their_grammar() -> None:
    text = book_text.text().decode("ascii")
    assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", text)
    for paragraph in re.findall(r"<p>(.*?)</p>", text, re.DOTALL):
        for sentence in paragraph.split("\n"):
            assert re.fullmatch(r"[A-Z][a-z]*(,? [a-z]+)+\.", sentence)


def test_book_text_run_as_a_script_prints_its_text() -> None:
    run = subprocess.run(
        [sys.executable, "-I", book_text.__file__], stdout=subprocess.PIPE, check=True
    )
    assert run.stdout == book_text.text()
