"""Generate the page of the endpoint /book: made-up text, the same on every host.

``python book_text.py`` prints it.
"""

import random
import sys

SEED = 1
CHAPTERS = 27

WORDS = {
    kind: words.split()
    for kind, words in {
        "determiner": """
            a every one that the the the the this
        """,
        "noun": """
            anchor apple attic autumn barn basket bell bird boat bottle bridge brook candle
            carpet cellar chair chimney clock cloud coat corner cottage cup desk dog door drawer
            evening farmer fence field fire fisherman flower forest garden gate glass
            grandmother harbour hat hill horse house island kettle key kitchen ladder lamp
            letter lighthouse map market meadow miller mirror moon morning mountain neighbour
            night oar orchard oven painter path pear piano picture pond postman rain river road
            roof room rope sailor schoolhouse shadow shelf shore shovel smoke snow spoon stable
            staircase stone storm stove summer table teacher thunder tower train valley village
            wagon wall water wheel wind window winter wood
        """,
        "verb": """
            answered asked awaited began borrowed brought called carried caught closed counted
            covered crossed drew felt filled followed forgot found gathered guarded heard held
            hid kept knew lacked left lifted liked lost loved made measured mended met missed
            moved noticed opened painted passed praised pulled pushed reached remembered
            repaired returned saw sought sold stopped surprised took touched turned understood
            used visited wanted warmed washed watched
        """,
        "adjective": """
            ancient bare bitter bright broad broken brown busy calm careful clean clear cold
            crooked dark deep distant dry dusty early empty faint familiar famous friendly
            gentle golden great green grey happy heavy hidden high hollow honest hungry idle
            large late light little lonely long loud low merry mild narrow new noisy old open
            pale patient plain proud quick quiet red rough round rusty sharp short silent silver
            slow small soft steep still strange strong sudden sweet tall thin tired warm weary
            white wide wild wooden young
        """,
        "adverb": """
            again almost already always barely briefly calmly carefully early easily finally
            gladly hardly kindly lately mostly nearly never often once patiently perhaps quickly
            quietly rarely seldom slowly softly sometimes soon suddenly twice usually
        """,
        "preposition": """
            above across against along around behind below beneath beside beyond inside near
            opposite outside past under without
        """,
        "conjunction": """
            and because before but for until when where while yet
        """,
    }.items()
}


class _Writer:
    """Generates sentences from a seeded random generator.

    Only random.random() returns the same numbers on every version of Python, so nothing else of the
    module is used.
    """

    def __init__(self) -> None:
        self._random = random.Random(SEED)

    def number(self, least: int, most: int) -> int:
        return least + int(self._random.random() * (most - least + 1))

    def one(self, kind: str) -> str:
        words = WORDS[kind]
        return words[self.number(0, len(words) - 1)]

    def thing(self) -> str:
        words = [self.one("determiner"), self.one("noun")]
        if self.number(1, 5) <= 3:
            words.insert(1, self.one("adjective"))
        if words[0] == "a" and words[1][0] in "aeiou":
            words[0] = "an"
        return " ".join(words)

    def clause(self) -> str:
        words = [self.thing(), self.one("verb"), self.thing()]
        if self.number(1, 3) == 1:
            words.insert(1, self.one("adverb"))
        if self.number(1, 2) == 1:
            words += [self.one("preposition"), self.thing()]
        return " ".join(words)

    def sentence(self) -> str:
        text = self.clause()
        for _ in range(self.number(0, 2)):
            text += f", {self.one('conjunction')} {self.clause()}"
        return text[0].upper() + text[1:] + "."

    def paragraph(self) -> str:
        return "<p>" + "\n".join(self.sentence() for _ in range(self.number(3, 9))) + "</p>"

    def chapter(self, number: int) -> str:
        title = f"<h2>Chapter {number}: {self.thing().capitalize()}</h2>"
        return "\n".join([title, *(self.paragraph() for _ in range(self.number(22, 30)))])


def text() -> bytes:
    """Return the page as HTML in ASCII, about 450,000 bytes."""
    writer = _Writer()
    title = "The Book of the Lab"
    return "\n".join(
        [
            f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body>",
            f"<h1>{title}</h1>",
            *(writer.chapter(number) for number in range(1, CHAPTERS + 1)),
            "</body></html>",
        ]
    ).encode("ascii")


if __name__ == "__main__":
    sys.stdout.buffer.write(text())
