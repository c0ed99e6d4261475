from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loadlab.generators import access_log
from loadlab.generators.access_log import Log
from loadlab.model import Replay
from loadlab.run.errors import PlanError
from loadlab.stacks.contract import Contract
from tests.unit.builders import present

CONTRACTS = {
    "index": Contract(path="/index?page=1", status=200),
    "add": Contract(path="/notes", method="POST", body="x", status=201),
}
TIME = "10/Oct/2025:13:55:{:02} +0200"


def line(second: int, request: str, status: int = 200) -> str:
    return (
        f'203.0.113.7 - alice [{TIME.format(second)}] "{request} HTTP/1.1" {status} 5 '
        '"https://shop.example/" "Agent \\x22 1.0"\n'
    )


def log(path: Path, text: str, *, own: bool = True, speed: float = 1, query: bool = False) -> Log:
    path.write_text(text)
    return Log(path, access_log.endpoints_of(CONTRACTS), own, speed, query)


def written(log: Log) -> tuple[Replay, dict[str, object], list[tuple[int, int]]]:
    """Return what is said of a log, and the header and entries of its schedule."""
    replay = present(access_log.survey(log).replay)
    path = log.path.with_suffix(".schedule")
    path.unlink(missing_ok=True)
    assert access_log.write(log, replay, path)
    header, _, entries = path.read_bytes().partition(b"\n")
    read = np.frombuffer(entries, [("due", "<u8"), ("request", "<u4")])
    return replay, json.loads(header), [(int(due), int(number)) for due, number in read]


LINES = [
    line(1, "GET /index?token=secret"),
    line(1, "GET /items/7?token=secret", 404),
    line(1, "POST /notes", 201),
    line(1, "POST /orders", 201),
    line(3, "GET http://shop.example/items/7", 404),
    line(3, "HEAD /", 304),
    "\\x16\\x03\\x01\n",
    line(3, "GET /slow", 499),
]


def test_each_line_is_an_entry_in_order_at_its_time_and_nothing_else_of_it_is_kept(
    tmp_path: Path,
) -> None:
    replay, header, entries = written(log(tmp_path / "log", "".join(LINES), speed=2))
    assert (replay.lines, replay.requests) == (8, 6)
    assert replay.left_out == {"POST": 1, "malformed": 1}
    # The four lines of the first second are at quarters of it, and speed is 2.
    assert [due for due, _ in entries] == [
        *(0, 125_000_000, 250_000_000),
        *(1_000_000_000, 1_166_666_666, 1_333_333_333),
    ]
    assert [number for _, number in entries] == [0, 1, 2, 1, 3, 4]
    assert header["entries"] == 6
    # 1 and 2 are the contract's own; of the others the status class, 0 where it is not repeated.
    assert [request[1:] for request in header["requests"]] == [  # type: ignore[attr-defined]
        [1],
        [0, "GET", "/items/7", 4],
        [2],
        [0, "HEAD", "/", 0],
        [0, "GET", "/slow", 0],
    ]
    kept = (tmp_path / "log.schedule").read_bytes() + repr(replay).encode()
    for word in (b"secret", b"shop.example", b"alice", b"203.0.113", b"Agent"):
        assert word not in kept


def test_a_load_begins_and_ends_with_what_it_can_send(tmp_path: Path) -> None:
    """A warm-up of 5 s, which sends the begin of the log, would have nothing to send."""
    lines = [line(second, "POST /orders") for second in range(10)]
    lines += [line(12, "GET /a"), line(13, "GET /b"), line(30, "POST /orders")]
    text = log(tmp_path / "access.log", "".join(lines))
    replay, _, entries = written(text)
    assert (replay.lines, replay.requests, replay.left_out) == (13, 2, {"POST": 11})
    assert [due for due, _ in entries] == [0, 10**9]
    assert access_log.survey(text).span_s == 2


def test_a_time_that_is_none_is_malformed(tmp_path: Path) -> None:
    text = LINES[0] + line(2, "GET /").replace("Oct", "Okt") + line(61, "GET /")
    replay, _, _ = written(log(tmp_path / "log", text))
    assert (replay.requests, replay.left_out) == (1, {"malformed": 2})


def test_bytes_that_nginx_escapes_are_sent_encoded(tmp_path: Path) -> None:
    replay, _, _ = written(log(tmp_path / "log", line(1, r"GET /caf\xC3\xA9")))
    assert replay.kinds == [("/caf%C3%A9", 1)]


def test_queries_are_sent_where_they_are_asked_for(tmp_path: Path) -> None:
    text = line(1, "GET /index?page=1") + line(1, "GET /index?page=2")
    _, header, _ = written(log(tmp_path / "log", text, query=True))
    assert [request[1:] for request in header["requests"]] == [  # type: ignore[attr-defined]
        [1],
        [0, "GET", "/index?page=2", 2],
    ]


def test_an_application_of_the_lab_is_asked_for_its_endpoints_alone(tmp_path: Path) -> None:
    replay, _, _ = written(log(tmp_path / "log", "".join(LINES), own=False))
    assert replay.requests == 2
    assert replay.left_out == {"no endpoint": 4, "POST": 1, "malformed": 1}


def test_a_csv_has_its_own_times(tmp_path: Path) -> None:
    text = "seconds,method,path\n5.25,GET,/a\n5.25,GET,/b,c\n7.000000001, GET, /a\nx,GET,/a\n"
    replay, header, entries = written(log(tmp_path / "log", text, speed=0.5))
    assert replay.left_out == {"malformed": 1}
    assert entries == [(500_000_000, 0), (500_000_000, 1), (4_000_000_002, 0)]
    assert header["kinds"] == ["/a", "/b,c"]


def test_a_csv_of_a_spreadsheet_begins_with_a_mark(tmp_path: Path) -> None:
    text = "\ufeffseconds,method,path\r\n0,GET,/a\r\n1,GET,/b\r\n"
    assert written(log(tmp_path / "log", text))[0].requests == 2
    assert written(log(tmp_path / "log", "\ufeff0,GET,/a\n"))[0].requests == 1
    assert written(log(tmp_path / "log", "\ufeff\n0,GET,/a\n"))[0].left_out == {"malformed": 1}


def test_the_most_frequent_paths_have_figures_of_their_own(tmp_path: Path) -> None:
    text = "".join(f"1,GET,/{path:02}\n" * (40 - path) for path in range(20))
    survey = access_log.survey(log(tmp_path / "log", text))
    kinds = present(survey.replay).kinds
    assert [name for name, _ in kinds] == [*(f"/{path:02}" for path in range(15)), "other paths"]
    assert kinds[-1][1] == sum(40 - path for path in range(15, 20))
    assert (survey.span_s, present(survey.replay).busiest) == (1, len(text.splitlines()))


def test_an_endpoint_with_another_path_has_another_schedule(tmp_path: Path) -> None:
    """What is said of the log is the same: each path is sent once."""
    before = log(tmp_path / "log", line(1, "GET /a") + line(1, "GET /b"))
    moved = [replace(before, endpoints=(("one", "GET", path),)) for path in ("/a", "/b")]
    first, second = (present(access_log.survey(asked).replay) for asked in moved)
    assert first == second
    assert access_log.schedule_name(moved[0], first) != access_log.schedule_name(moved[1], second)


def test_a_log_that_changes_after_the_plan_is_refused(tmp_path: Path) -> None:
    before = log(tmp_path / "log", LINES[0])
    replay = present(access_log.survey(before).replay)
    (tmp_path / "log").write_text(LINES[0] * 2)
    with pytest.raises(PlanError, match=r"log has changed since the run was planned\. Begin a"):
        access_log.write(before, replay, tmp_path / "schedule")
    assert not (tmp_path / "schedule").exists()


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", "replay: LOG is empty. Give a log with requests."),
        (
            line(5, "GET /") + line(3, "GET /"),
            "replay: line 2 of LOG is 2 s before the line above it. Sort the log by time.",
        ),
        ("1.5,GET,/\n1.25,GET,/\n", "replay: line 2 of LOG is 0.25 s before the line above it."),
        (line(5, "GET /") + "\x1f\x00", "replay: line 2 of LOG is binary. Give the log as text;"),
        (
            line(5, "POST /orders") * 2 + "no log\n",
            "replay: LOG has no line that can be replayed: of 3 lines, 2 POST, 1 malformed. A line "
            "needs nginx's combined format or seconds,method,path,",
        ),
    ],
    ids=["empty", "back", "back-csv", "binary", "nothing"],
)
def test_a_log_that_cannot_be_replayed_is_refused(tmp_path: Path, text: str, refusal: str) -> None:
    path = tmp_path / "log"
    with pytest.raises(PlanError, match=re.escape(refusal.replace("LOG", str(path)))):
        access_log.survey(log(path, text))


def test_a_log_beyond_the_limits_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    with pytest.raises(PlanError, match=r"is no file\. Give an access log in nginx's combined for"):
        access_log.survey(Log(path, (), True, 1, False))
    with path.open("wb") as file:
        file.truncate(10_000_000_000)
    with pytest.raises(PlanError, match=r"log has 10 GB, and 2 GB is the limit\. Give a part of"):
        access_log.survey(Log(path, (), True, 1, False))
    monkeypatch.setattr(access_log, "LINES_MAX", 2)
    with pytest.raises(PlanError, match=r"log has more than 2 lines\. Give a part of it, such as"):
        access_log.survey(log(path, line(1, "GET /") * 3))
    monkeypatch.setattr(access_log, "REQUESTS_MAX", 1)
    two = line(1, "GET /index") + line(1, "POST /notes")
    with pytest.raises(PlanError, match=r"log has more than 1 different requests, or 30 MB of th"):
        access_log.survey(log(path, two))
    monkeypatch.setattr(access_log, "REQUESTS_MAX", 2)
    monkeypatch.setattr(access_log, "PATHS_BYTES_MAX", 11)
    with pytest.raises(PlanError, match=r"log has more than 2 different requests, or 1\.1e-05 MB"):
        access_log.survey(log(path, two))
    monkeypatch.setattr(access_log, "PATHS_BYTES_MAX", 12)
    monkeypatch.setattr(access_log, "ENDPOINTS_MAX", 1)
    with pytest.raises(PlanError, match=r"log names 2 endpoints, and a load has at most 1\. Give"):
        access_log.survey(log(path, two))
