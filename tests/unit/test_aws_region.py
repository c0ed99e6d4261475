"""The region that the inventory of EC2 uses."""

from pathlib import Path

import pytest
from ansible_collections.lab.bench.plugins.lookup import aws_region

CONFIG = "[default]\nregion = eu-west-1\n[profile mine]\nregion = eu-north-1\n"


@pytest.mark.parametrize(
    ("environment", "region"),
    [
        ({}, "eu-west-1"),
        ({"AWS_PROFILE": "mine"}, "eu-north-1"),
        ({"AWS_PROFILE": "mine", "AWS_DEFAULT_REGION": "us-west-2"}, "us-west-2"),
        ({"AWS_DEFAULT_REGION": "us-west-2", "AWS_REGION": "us-west-1"}, "us-west-1"),
        # A later refusal tells that there is no such profile, or no region.
        ({"AWS_PROFILE": "other"}, "us-east-1"),
        ({"AWS_CONFIG_FILE": "/nonexistent"}, "us-east-1"),
    ],
)
def test_the_environment_counts_before_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], region: str
) -> None:
    (tmp_path / "config").write_text(CONFIG)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"AWS_CONFIG_FILE": str(tmp_path / "config"), **environment}.items():
        monkeypatch.setenv(name, value)
    assert aws_region.region.__wrapped__() == region
