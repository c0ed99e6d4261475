from typing import Any

from loadlab.generators.load import calibration


def plan(name: str, seconds: int = 5, **changed: Any) -> calibration.CalibrationPlan:
    asked = {"rate": 1000, "connections": 64, "seconds": seconds, "tls": False}
    named = {"tuning": "production", "network": "lan", "repetition": 1}
    return calibration.plan(name, **{**asked, **named, **changed})


def loads(found: calibration.CalibrationPlan) -> dict[str, Any]:
    cells: dict[str, Any] = {str(one["cell_id"]): one["cell"] for one in found.measurements}
    return {name: cell["load"] for name, cell in cells.items()}


def test_a_constant_rate_has_a_ceiling_and_a_floor() -> None:
    found = plan("oha", tls=True)
    common = {"connections": 64, "warmup_s": 1, "duration_s": 5, "tls": True}
    assert loads(found) == {
        "ceiling": {**common, "generator": "wrk", "mode": "closed", "rate": None},
        "floor": {**common, "generator": "oha", "mode": "constant", "rate": 1000},
    }
    left = [(one["position"], one["total"], one["seconds_left"]) for one in found.measurements]
    assert left == [(1, 2, 12), (2, 2, 6)]
    assert (found.constant, found.about_s) == (True, 20)
    assert (found.programs, found.snaps) == (["wrk", "oha"], [])
    assert "tls" not in loads(plan("oha"))["floor"]


def test_the_floor_is_as_long_as_its_generator_needs() -> None:
    found = plan("wrk2")
    assert [load["duration_s"] for load in loads(found).values()] == [5, 30]
    assert found.measurements[0]["seconds_left"] == 37
    assert found.about_s == 45
    assert found.snaps == ["wrk2"]
    assert [load["duration_s"] for load in loads(plan("wrk2", seconds=60)).values()] == [60, 60]


def test_a_closed_loop_has_no_floor() -> None:
    found = plan("wrk")
    assert list(loads(found)) == ["ceiling"]
    assert found.measurements[0]["seconds_left"] == 6
    assert (found.constant, found.programs, found.about_s) == (False, ["wrk"], 15)


def test_only_the_ceiling_expects_a_busy_generator() -> None:
    cells: list[Any] = [one["cell"] for one in plan("oha").measurements]
    assert [cell.get("expected_void") for cell in cells] == [["generator_cpu"], None]
