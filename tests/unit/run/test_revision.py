from pathlib import Path

import pytest

from loadlab.model import LabRevision
from loadlab.run import revision


def test_a_lab_from_an_archive_has_a_version_alone_also_without_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2"\n')
    alone = LabRevision(version="1.2", revision=None, dirty=None)
    assert revision.of(tmp_path) == alone
    monkeypatch.setenv("PATH", str(tmp_path))
    assert revision.of(tmp_path) == alone
