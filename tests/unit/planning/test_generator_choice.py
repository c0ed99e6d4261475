from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.core.errors import PlanError
from loadlab.core.run_dir import RunDir
from loadlab.planning import generator_choice
from loadlab.planning.generator_choice import Alternatives
from loadlab.planning.request import Request
from loadlab.report.words import generators
from loadlab.scheduling.plan import Plan
from tests.unit import builders

from .test_client_programs import client

OFFERED = "the snap wrk2 3.9.9 of latest/stable, confinement strict"
NO_SNAPD = (
    "the generator wrk2 is not there, and neither is snapd, which could install the snap wrk2"
)


def ask(*user: str, root: Path = builders.ROOT, begin: bool = True, **given: Any) -> Request:
    return Request(
        root=root,
        specs=builders.SPECS,
        given={"framework": "aiohttp", "endpoint": "index", **given},
        user=user,
        begin=begin,
        now=datetime.datetime(2026, 11, 20, 17, 16, 47),
    )


def alternatives(
    *user: str, wrk2: str = "", can_have_snaps: bool = True, **given: Any
) -> Alternatives:
    binaries = {"wrk2_binary": wrk2, "oha_binary": ""}
    return generator_choice.alternatives(ask(*user, **given), binaries, can_have_snaps)


def told(found: Plan) -> str:
    return generators.choice(builders.present(found.choice))


def test_the_clients_decide_where_no_generator_is_named() -> None:
    found = alternatives()
    assert (found.plan.generators, builders.present(found.instead).generators) == (["wrk"], ["wrk"])
    assert told(found.plan).startswith("wrk2 if every client has it or can get it, else oha. ")
    offered, without = client(snap="strict"), client()
    settled = generator_choice.settle(found, {"client": offered}, {"client": None})
    assert settled.generators == ["wrk", "wrk2"]
    assert told(settled) == f"wrk2 (client: {OFFERED})"
    assert all("-wrk" in one.items[0].cell_id for one in settled.experiments)
    settled = generator_choice.settle(found, {"client": without}, {"client": None})
    assert settled.generators == ["oha", "wrk"]
    assert told(settled) == f"oha, not wrk2 (client: {NO_SNAPD})"
    assert "-oha-" in settled.experiments[0].items[0].cell_id


def test_several_clients_have_the_same_generator() -> None:
    both = {"client": client(snap="strict"), "clientb": client()}
    settled = generator_choice.settle(alternatives(), both, dict.fromkeys(both))
    assert (settled.generators, told(settled)) == (
        ["oha", "wrk"],
        f"oha, not wrk2 (clientb: {NO_SNAPD})",
    )
    both["clientb"] = client(wrk2="/opt/wrk2")
    settled = generator_choice.settle(alternatives(), both, dict.fromkeys(both))
    assert told(settled) == f"wrk2 (client: {OFFERED}; clientb: it is there, /opt/wrk2)"
    settled = generator_choice.settle(alternatives(), both, {"client": [], "clientb": None})
    assert "without internet" in told(settled)


def test_a_generator_that_is_named_stays() -> None:
    named: tuple[dict[str, Any], ...]
    named = ({"generator": "oha"}, {"generator": "wrk"}, {"default_generator": "wrk"})
    for given in named:
        found = alternatives(**given)
        assert (found.plan.choice, found.instead) == (None, None)
        assert generator_choice.settle(found, {}, {}) == found.plan
    # Of a study, each cell of which has its own.
    assert alternatives(framework="", endpoint="", study="quick").plan.choice is None


def test_options_that_do_not_fit_decide_when_the_run_is_planned() -> None:
    found = alternatives(duration=5)
    assert (found.plan.generators, found.instead) == (["oha", "wrk"], None)
    assert told(found.plan) == (
        "oha, not wrk2 (the options do not fit wrk2: duration: 5 s is too short for "
        "generator=wrk2, which calibrates for 10 s and throws their latencies away)"
    )
    assert alternatives(rate=0.5).plan.generators == ["oha", "wrk"]
    assert alternatives(tls=True, http2=True).plan.generators == ["oha", "wrk"]
    with pytest.raises(PlanError, match="duration: 0 is out of range"):
        alternatives(duration=0)


def test_local_hosts_have_no_snap() -> None:
    found = alternatives(can_have_snaps=False)
    assert (found.plan.generators, found.instead) == (["oha", "wrk"], None)
    assert told(found.plan) == (
        "oha, not wrk2 (local hosts are containers, which cannot run the snap wrk2)"
    )


def test_the_users_executable_decides() -> None:
    found = alternatives("wrk2_binary", wrk2="/opt/wrk2", can_have_snaps=False)
    assert (found.plan.generators, found.instead) == (["wrk", "wrk2"], None)
    assert told(found.plan) == "wrk2 (you named an executable of it)"
    with pytest.raises(PlanError, match="duration: 5 s is too short for generator=wrk2"):
        alternatives("wrk2_binary", wrk2="/opt/wrk2", duration=5)
    # From the inventory, it is for the runs that it fits.
    assert alternatives(wrk2="/opt/wrk2", duration=5).plan.generators == ["oha", "wrk"]
    assert alternatives(wrk2="/opt/wrk2", generator="oha").plan.choice is None


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab without runs."""
    for name in ("apps", "files", "roles"):
        (tmp_path / name).symlink_to(builders.ROOT / name)
    (tmp_path / "results").mkdir()
    return tmp_path


def test_a_run_keeps_its_generator(lab: Path) -> None:
    begun = generator_choice.alternatives(ask(root=lab, run_id="one"), {}, True)
    run_dir = lab / "results" / "one"

    def again(**given: Any) -> Alternatives:
        resumed = replace(ask(root=lab, begin=False), given={"run_id": "one", **given})
        return generator_choice.alternatives(resumed, {}, True)

    # Nothing was settled: no host was reached.
    builders.write_plan(run_dir, begun.plan)
    assert again().instead is not None
    oha = generator_choice.settle(begun, {"client": client()}, {"client": None})
    wrk2 = generator_choice.settle(begun, {"client": client(snap="strict")}, {"client": None})
    for settled in (oha, wrk2):
        builders.write_plan(run_dir, settled)
        for found in (again(), again(framework="aiohttp", endpoint="index")):
            assert (found.plan.generators, found.instead) == (settled.generators, None)
            assert told(found.plan) == told(settled)
    # One that an older lab began has no choice.
    builders.write_plan(run_dir, replace(oha, choice=None))
    assert again().plan.generators == ["oha", "wrk"]
    assert RunDir(run_dir).plan.exists()
