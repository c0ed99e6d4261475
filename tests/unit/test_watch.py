"""The controller's part while a load is under way, by a clock of its own."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.lab.bench.plugins.action import watch
from ansible_collections.lab.bench.plugins.plugin_utils.controller import for_ansible
from msgspec.structs import asdict, replace

from loadlab.plan.schedule import NextMeasurement, Switch
from tests.unit import builders

ITEM = NextMeasurement(
    **asdict(builders.item(cell=builders.cell(framework="flask"))),
    repetition=1,
    switch=Switch(stack=None, tuning=None, network=None),
    position=2,
    total=5,
    seconds_left=40,
    seed=1,
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds


class Recorded:
    """In place of a recording, of which tests/unit/telemetry/test_recording.py has the real one."""

    urls: ClassVar[dict[str, str]] = {}
    ended: ClassVar[list[str]] = []
    ends: ClassVar[list[float]] = []

    def __init__(
        self,
        path: Path,
        url: str,
        over: threading.Event,
        reconnect: Callable[[], object] | None,
        ends_s: float,
    ) -> None:
        if path.exists():
            raise FileExistsError(path)
        self.urls[path.name] = url
        self.name, self.over, self.reconnect = path.name, over, reconnect
        self.ends.append(ends_s)

    def end(self) -> None:
        assert self.over.is_set(), "all end at once"
        assert self.reconnect is None, "an exporter that is read without SSH"
        self.ended.append(self.name)


class Watched:
    """A watch whose host answers as told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, dest: Path, answers: list[Any]) -> None:
        self.clock, self.dest, self.item = Clock(), dest, ITEM
        self.asked_at: list[float] = []
        self.shown: list[str] = []
        self.answers = answers
        monkeypatch.setattr(Recorded, "urls", {})
        monkeypatch.setattr(Recorded, "ended", [])
        monkeypatch.setattr(Recorded, "ends", [])
        monkeypatch.setattr(watch, "time", self.clock)
        monkeypatch.setattr(watch, "Recording", Recorded)
        monkeypatch.setattr(watch, "under_way", lambda status: self.shown.append(status.words))
        self.action = watch.ActionModule.__new__(watch.ActionModule)
        self.action.variables = {"inventory_hostname": "client"}
        monkeypatch.setattr(self.action, "_low_level_execute_command", self.answer)

    def answer(self, command: str) -> dict[str, Any]:
        assert command == "over?"
        self.asked_at.append(self.clock.now)
        said = self.answers.pop(0)
        if isinstance(said, Exception):
            self.clock.now += 3.2
            raise said
        return {"rc": said[0], "stdout": f"{said[1]}\n"}

    def run(self, seconds: float, most: float) -> float:
        """Return when it ended."""
        urls = {"server.gz": "http://10.0.0.1:9/m", "client.gz": "http://10.0.0.2:9/m"}
        scraped = {
            str(self.dest / path): {"name": path, "exporter": url} for path, url in urls.items()
        }
        args = {"seconds": seconds, "most": most, "until": "over?", "scrape": scraped}
        args |= {"item": for_ansible(self.item), "path": "/agents", "server": ""}
        args["dir"] = str(self.dest / "a-run/cells/a-cell/rep-3")
        assert self.action.act(args) == {"changed": True}
        assert Recorded.urls == urls
        assert sorted(Recorded.ended) == sorted(urls)
        return self.clock.now


def test_a_load_of_known_length(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    watched = Watched(monkeypatch, tmp_path, [(0, "finished")])
    assert watched.run(11.5, 100) == 12
    clock = time.strftime("%H:%M:%S", time.localtime(40))
    title = "[2/5] flask /agents, oha 1,000/s"
    assert watched.shown[10] == f"{title}: 10 of 12 s; all over in 30 s, at {clock}"
    assert watched.asked_at == [12]
    assert Recorded.ends == [12, 12], "no scrape then, as the last one follows at once"


def test_a_mix_is_not_shown_as_the_first_of_its_requests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    watched = Watched(monkeypatch, tmp_path, [(0, "finished")])
    watched.item = replace(ITEM, cell=builders.cell(endpoint="agents:9,write:1"))
    watched.run(4, 100)
    assert "] aiohttp with a mix of 2 requests, oha 1,000/s: 0 of 4 s; " in watched.shown[0]


@pytest.mark.parametrize(
    ("answers", "seconds", "most", "ended", "asked_at", "shown"),
    [
        # The last answers are late.
        ([*[(1, "measuring")] * 7, (0, "finished")], 4, 100, 11, range(4, 12),
         {3: "/s: 3 of 4 s; all over in 37 s", 4: "/s: measuring; all over in 36 s"}),
        # A batch is watched until it is over.
        ([*[(1, f"{n} of 9 requests over") for n in range(7)], (0, "finished")], 0, 3000, 14,
         range(0, 15, 2), {10: "/s: 5 of 9 requests over; "}),
        # No load is watched for ever.
        ([(1, "stuck")] * 3, 0, 5, 5, None, {}),
        # A host out of reach does not end the watch.
        ([(1, ""), AnsibleConnectionFailure("unreachable"), (1, ""), (0, "")], 0, 3000, 8, None,
         {0: ": the host is out of reach; "}),
    ],
)  # fmt: skip
def test_a_load_is_watched_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    answers: list[Any],
    seconds: float,
    most: float,
    ended: float,
    asked_at: range | None,
    shown: dict[int, str],
) -> None:
    watched = Watched(monkeypatch, tmp_path, [*answers])
    assert watched.run(seconds, most) == ended
    assert asked_at is None or watched.asked_at == [*asked_at]
    for at, words in shown.items():
        assert words in (watched.shown[at] if at else "\n".join(watched.shown))


def test_what_is_recorded_ends_where_a_later_recording_cannot_begin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "client.gz").write_bytes(b"somebody's")
    watched = Watched(monkeypatch, tmp_path, [])
    with pytest.raises(FileExistsError):
        watched.run(1, 2)
    assert Recorded.ended == ["server.gz"]
