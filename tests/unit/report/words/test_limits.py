"""The sentence on a cell's limit, with its evidence, the next measurement and the lesson."""

from typing import Any

import pytest

from loadlab.model import CellLimit, Reason
from loadlab.reasons.limit_reasons import LIMITS
from loadlab.reasons.row import words_of
from loadlab.report.words import limits_words as limits
from loadlab.run.catalog import names
from loadlab.run.errors import ResultError
from tests.unit.builders import ROOT


def limit(code: str, value: float | None = None, most: float | None = None, **facts: Any) -> str:
    why = Reason(code=code, value=value, limit=most, facts=facts)
    return limits.whole(judged(why))


def judged(why: Reason, *ruled_out: Reason) -> CellLimit:
    return CellLimit(
        limit=why, agree=3, of=3, ruled_out=list(ruled_out), unrecorded=[], mean_us=None, account=[]
    )


FILLED = {"part": 0.3, "process": 0.98, "thread": 0.98, "idle_cores": 2.6, "processes": 1}


NGINX = {**FILLED, "process": 0.7, "thread": 0.7, "part": 0.71, "cores": 1}
FULL = {"cores": 1, "opened": "http", "reverse_proxy": 0.48, "application": 0.5, "postgresql": 0.0}
LESSON = "Lesson: ansible-playbook playbooks/lesson.yml -e lesson="


@pytest.mark.parametrize(
    ("told", "parts", "end", "absent"),
    [
        (limit("worker_cpu", 0.98, 0.9, **FILLED, cores=4, waiting=63.2, loop=True),
         ["Limited by one process of the application: its thread was on CPU 98 % of the time, 2.6 "
          "cores were idle, 63 requests waited in the accept queue. Next: -e workers=2. "],
         f"{LESSON}event_loop_blocked", "no other core"),
        (limit("worker_cpu", 0.97, 0.9, **{**FILLED, "part": 0.95, "idle_cores": 0.0}, cores=1),
         ["its thread was on CPU 98 % of the time, the server has no other core"], "", "workers="),
        (limit("cores_busy", 0.99, 0.9, **FULL),
         ["the server's core: 99 % busy; of that the application 50 %, the reverse proxy 48 %"],
         f"{LESSON}keepalive", "PostgreSQL"),
        (limit("reverse_proxy_cpu", 0.7, 0.9, **NGINX), [],
         "reverse_proxy=none shows what it costs.", "lesson="),
        (limit("reverse_proxy_cpu", 0.7, 0.9, **NGINX, opened="uwsgi"),
         ["71 % of what the server's full core gave; each request opened a connection",
          "-e transport=unix"], f"{LESSON}unix_or_tcp", "shows what it costs"),
        (limit("memory", 0.02, 0.1, killed=3),
         ["Limited by memory: the kernel killed a process 3 times because none"], "", "core"),
        (limit("none", 1900.0, 100_000.0, busy=0.21, rate=1000.0, failed=2),
         ["Nothing was at its limit: 1,000 requests/s came back with p99 1.90 ms, within 100 ms, "
          "and 2 failed requests;"], "", "Limited by"),
    ],
)  # fmt: skip
def test_a_limit_is_told_with_its_evidence_and_its_cure(
    told: str, parts: list[str], end: str, absent: str
) -> None:
    assert all(part in told for part in parts), told
    assert told.endswith(end)
    assert absent not in told


def test_limit_that_is_not_known_names_what_was_ruled_out() -> None:
    out = Reason(code="cores_busy", value=0.31, limit=0.9, facts={"cores": 1})
    none = Reason(code="none", value=117_000.0, limit=100_000.0)
    told = limits.sentence(judged(Reason(code="unknown", value=0.1), out, none))
    assert told == "What limited it is not known. Ruled out: CPU 31 %."


def test_lessons_and_options_that_words_name_exist() -> None:
    lessons = names(ROOT / "files" / "lessons", "*.yml")
    facts: dict[str, Any] = {
        "cause": "full",
        "opened": "http",
        "loop": True,
        "sessions": 1.0,
        "cores": 1,
        "connections": 8,
    }
    named = {
        name
        for code, one in LIMITS.items()
        for cause in ("full", "queue", "far", "open_files", "local_ports")
        if (name := words_of(one.lesson, Reason(code=code, facts={**facts, "cause": cause})))
    }
    assert len(named) >= 14
    assert named <= set(lessons)
    assert (ROOT / "files/tuning/unflushed-commits.yml").exists()


def test_limit_without_words_or_evidence_is_refused() -> None:
    for why in (Reason(code="moon"), Reason(code="cores_busy", value=0.9)):
        with pytest.raises(ResultError, match=why.code):
            limits.whole(judged(why))
