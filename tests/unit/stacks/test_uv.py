"""What a failure of uv says; the uv is the real one."""

import pytest

from loadlab.run.errors import PlanError
from loadlab.stacks import uv

PURPOSE, REMEDY = "python: the download of 3.14", "Leave python out."


def test_command_that_lasts_too_long_names_its_purpose_limit_and_remedy() -> None:
    with pytest.raises(PlanError) as refused:
        uv.failure(["--version"], 1e-9, PURPOSE, REMEDY)
    assert str(refused.value) == f"{PURPOSE} took longer than 0 s, the limit. {REMEDY}"


def test_command_that_fails_is_told_in_uvs_words() -> None:
    assert uv.failure(["--version"], 60, PURPOSE, REMEDY) == ""
    assert "nosuch" in uv.failure(["nosuch"], 60, PURPOSE, REMEDY)
