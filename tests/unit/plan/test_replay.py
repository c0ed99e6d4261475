from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.generators.access_log import Survey
from loadlab.model import OptionValue, Replay
from loadlab.plan.load_options import replay as replays
from loadlab.plan.plan_document import Plan, items
from loadlab.report.words import planned_words
from loadlab.run.errors import PlanError
from tests.unit import builders

LOG = "tests/fixtures/access.csv"


def _plan(options: Mapping[str, OptionValue]) -> Plan:
    return builders.plan(**{"curve": None, "cross_check": None, **options})


def _replay() -> Replay:
    [item] = items(_plan({"framework": "aiohttp", "replay": LOG}).experiments)
    return builders.present(item.cell.load.replay)


def test_a_log_gives_the_load_its_rate_its_time_and_its_kinds() -> None:
    values: dict[str, OptionValue] = {"framework": "aiohttp", "replay": LOG, "speed": 2}
    planned = _plan(values)
    [item] = items(planned.experiments)
    load = item.cell.load
    assert (load.duration_s, load.warmup_s, load.rate) == (5.5, 5.5, 2 / 5.5)
    assert item.cell.endpoint == "index:1,hello:1"
    assert item.cell.kinds == {"/hello": 1, "/index": 1}
    assert load.replay is not None
    assert load.replay.left_out == {"POST": 1}
    assert load.replay.log_sha256[:8] in item.cell_id
    assert planned.no_curve is not None
    assert planned_words.replay(planned) == (
        "Replay at speed 2: 0.4 requests/s on average for 5.5 s, 2 in the busiest second. Of 3 "
        "lines of the log 2 are sent, without queries; left out: 1 POST without a body."
    )


def test_a_replay_is_planned_again_as_it_was() -> None:
    values = {"framework": "aiohttp", "replay": LOG}
    before = _plan(values).options
    again: dict[str, OptionValue] = {**values, "rate": [*before.rate], "duration": before.duration}
    assert _plan(again).options == before


def test_more_than_can_be_sent_in_a_second_of_the_log_is_refused() -> None:
    planned = _plan({"framework": "aiohttp", "replay": LOG})
    options = replace(planned.options, speed=50)
    busy = replace(_replay(), busiest=1_000_050)
    log = Survey(replay=busy, span_s=11 / 50)
    refusal = "at speed 50 a second of the log has 1,000,050 requests, and 1,000,000 per second is"
    with pytest.raises(PlanError, match=refusal):
        replays.with_times(options, log, {})
    replays.refuse(planned.options)
    with pytest.raises(PlanError, match="replay: 2 clients offer the load"):
        replays.refuse(replace(planned.options, clients=2))


def test_a_log_that_no_speed_makes_short_enough_asks_for_a_duration() -> None:
    options = _plan({"framework": "aiohttp", "replay": LOG}).options
    remedies = {59_000: "-e speed=1000 or more", 86_400: "-e speed=1000 -e duration=87"}
    for seconds, remedy in remedies.items():
        log = Survey(replay=_replay(), span_s=seconds)
        with pytest.raises(PlanError, match=f"Give {remedy}, or a part of the log"):
            replays.with_times(replace(options, duration=60), log, {"duration": 60})


def test_a_log_that_names_no_endpoint_of_an_own_application_is_replayed_by_its_paths(
    tmp_path: Path,
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "app.py").write_text("from flask import Flask\napp = Flask(__name__)\n")
    (tmp_path / "app" / "requirements.txt").write_text("flask\n")
    log = tmp_path / "log"
    log.write_text("1,GET,/a?b=c\n2,HEAD,/d\n")
    options = {"app": str(tmp_path / "app"), "replay": str(log)}
    [item] = items(_plan(options).experiments)
    assert item.cell.endpoint == "root"
    assert item.cell.kinds == {"/a": 1, "HEAD /d": 1}
