"""What a failure of uv says; the uv is the real one."""

import pytest

from loadlab.run.errors import PlanError
from loadlab.stacks import uv


def limit(seconds: float) -> uv.Limit:
    return uv.Limit(
        seconds=seconds, purpose="python: the download of 3.14", remedy="Leave python out."
    )


def test_command_that_lasts_too_long_names_its_purpose_limit_and_remedy() -> None:
    with pytest.raises(PlanError) as refused:
        uv.failure(["--version"], limit(1e-9))
    assert str(refused.value) == (
        "python: the download of 3.14 took longer than 0 s, the limit. Leave python out."
    )


def test_command_that_fails_is_told_in_uvs_words() -> None:
    assert uv.failure(["--version"], limit(60)) == ""
    assert "nosuch" in uv.failure(["nosuch"], limit(60))
