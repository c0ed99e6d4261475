"""The controller's part while a load is under way, by a clock of its own."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.lab.bench.plugins.action import watch


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds


class Watched:
    """A watch whose scrapes take no time, and whose host answers as told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, dest: Path, answers: list[Any]) -> None:
        self.clock, self.dest = Clock(), dest
        self.asked: list[float] = []
        self.told: list[str] = []
        self.answers = answers
        monkeypatch.setattr(watch, "time", self.clock)
        monkeypatch.setattr(watch, "page", lambda url: f"# scrape {self.clock.now:.1f}\n")
        monkeypatch.setattr(watch, "tell", self.told.append)
        self.action = watch.ActionModule.__new__(watch.ActionModule)
        monkeypatch.setattr(self.action, "_low_level_execute_command", self.answer)

    def answer(self, command: str) -> dict[str, Any]:
        assert command == "over?"
        self.asked.append(self.clock.now)
        said = self.answers.pop(0)
        if isinstance(said, Exception):
            self.clock.now += 3.2
            raise said
        return {"rc": said[0], "stdout": f"{said[1]}\n"}

    def run(self, seconds: float, until: str | None) -> list[float]:
        """Return when it scraped."""
        scraped = {"telemetry-server": "http://s", "clients/one/telemetry-client": "http://c"}
        args = {"seconds": seconds, "until": until, "dest": str(self.dest), "scrape": scraped}
        assert self.action.work(args) == {"changed": True}
        texts = [
            gzip.decompress((self.dest / f"{name}.prom.gz").read_bytes()).decode()
            for name in scraped
        ]
        assert texts[0] == texts[1]
        return [float(line.split()[2]) for line in texts[0].splitlines()]


def test_a_load_of_known_length(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    watched = Watched(monkeypatch, tmp_path, [])
    assert watched.run(11.5, None) == [*range(13), 12.6]
    assert watched.told == ["    10 s done, 2 s to go"]
    assert watched.asked == []


def test_a_batch_is_watched_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    going = [(1, f"{n} of 9 requests over") for n in range(7)]
    watched = Watched(monkeypatch, tmp_path, [*going, (0, "finished")])
    # The last scrape comes after the end.
    assert watched.run(3000, "over?") == [*range(15), 14.5]
    assert watched.asked == [0, 2, 4, 6, 8, 10, 12, 14]
    assert watched.told == ["    10 s done, 5 of 9 requests over"]


def test_a_batch_is_not_watched_for_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    watched = Watched(monkeypatch, tmp_path, [(1, "stuck")] * 3)
    assert watched.run(4, "over?") == [*range(5), 4.5]


def test_a_host_out_of_reach_does_not_end_the_watch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lost = AnsibleConnectionFailure("unreachable")
    watched = Watched(monkeypatch, tmp_path, [(1, ""), lost, (1, ""), (0, "")])
    # 2 s and what waited for the answer: 3 and 4 are left out, 5 is late by little.
    assert watched.run(3000, "over?") == [0, 1, 2, 5.2, 6, 7, 8, 8.5]


def test_a_recording_that_is_there_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "telemetry-server.prom.gz").write_bytes(b"somebody's")
    with pytest.raises(FileExistsError):
        Watched(monkeypatch, tmp_path, []).run(1, None)
