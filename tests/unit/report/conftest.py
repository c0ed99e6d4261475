"""The browser that the tests of the pages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import Browser, browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        found.size(1300)
        yield found
