import hashlib
import subprocess
import sys

from loadlab.stacks import book_text

# Another text is another load: results before and after it do not compare.
SHA256 = "6ee536bec5673683aae3a0026ae994ea855b5399284606a9642cf91c13c461d1"


def test_it_is_the_same_text_everywhere() -> None:
    assert hashlib.sha256(book_text.text()).hexdigest() == SHA256
    assert book_text.text() == book_text.text()


def test_book_text_run_as_a_script_prints_its_text() -> None:
    run = subprocess.run(
        [sys.executable, "-I", book_text.__file__], stdout=subprocess.PIPE, check=True
    )
    assert run.stdout == book_text.text()
