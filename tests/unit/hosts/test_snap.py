from __future__ import annotations

from pathlib import Path

import pytest

from loadlab.hosts import snap
from loadlab.hosts.snap import SnapRelease

FIXTURES = Path(__file__).parents[2] / "fixtures" / "snap"


def told(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("strict", SnapRelease("latest/stable", "3.9.9", "24", "strict")),
        ("classic", SnapRelease("latest/stable", "7.3.2", "229", "classic")),
        ("undated", SnapRelease("latest/stable", "3.1.0", "22", "strict")),
        ("absent", None),
    ],
)
def test_the_first_release_is_taken(name: str, release: SnapRelease | None) -> None:
    assert snap.release(told(name)) == release


@pytest.mark.parametrize("none", ["\N{EN DASH}", "--"])
def test_a_snap_without_a_stable_release_has_that_of_another_channel(none: str) -> None:
    lines = told("undated").splitlines()
    closed = [f"  latest/{risk}: {none}" for risk in ("stable", "candidate", "beta")]
    edge = "\n".join([*lines[:-4], *closed, lines[-1].replace("27MB -", "27MB devmode")])
    assert snap.release(edge) == SnapRelease("latest/edge", "master", "5", "devmode")
    # What is installed is in no channel.
    nowhere = "\n".join([*lines[:-4], *closed, "installed: master (5) 27MB -"])
    assert snap.release(nowhere) is None


def test_a_description_is_no_channel() -> None:
    text = told("classic").replace("PowerShell is", "latest/stable: 1 2020-01-01 (1) 1MB -\n  is")
    assert snap.release(text) == snap.release(told("classic"))
