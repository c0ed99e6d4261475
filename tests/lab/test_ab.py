"""A comparison of two variants on the hosts, to its verdict and exit status."""

from __future__ import annotations

import json

import pytest

from .conftest import ROOT, playbook

pytestmark = pytest.mark.lab


def test_slower_head_is_found_and_ends_with_status_3(run_id: str) -> None:
    """With a connection for each request, far fewer are answered."""
    process = playbook(
        "playbooks/ab.yml",
        framework="aiohttp",
        endpoint="hello",
        base="keepalive=true",
        head="keepalive=false",
        duration=1,
        warmup=0,
        rate=1000,
        budget="5m",
        run_id=run_id,
    )
    output, _ = process.communicate(timeout=900)
    assert process.returncode == 3, output[-6000:]
    folder = ROOT / "results" / run_id
    verdict = json.loads((folder / "verdict.json").read_text())
    rows = {row["metric"]: row for row in verdict["heads"][0]["rows"]}
    assert verdict["answer"] == "slower"
    assert rows["goodput"]["answer"] == "slower"
    assert rows["memory"]["answer"] == "no difference"
    assert "After block 6: " in output
    comment = (folder / "comment.md").read_text()
    assert "| CPU per request |" in comment
    assert "Environment: " in comment
