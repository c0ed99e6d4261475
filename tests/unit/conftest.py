"""What all unit tests share."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.browser import Browser, browser

# How long an example takes is the machine's affair: others may be at work beside it. `make
# test-all` takes many examples of each property.
settings.register_profile("few", deadline=None, max_examples=10)
settings.register_profile("many", deadline=None, max_examples=100)
settings.load_profile("few")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        opened.size(1300)
        yield opened
