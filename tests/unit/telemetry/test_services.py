"""The CPU time of services, from the readings of their control groups."""

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from loadlab.model import Processes, ServiceProcesses
from loadlab.run import run_dir
from loadlab.telemetry import host_recording, services
from loadlab.telemetry import processes as recorded_processes
from loadlab.telemetry.host_recording import Reading
from loadlab.telemetry.recordings import Served, Window
from tests.unit import builders
from tests.unit.builders import present
from tests.unit.telemetry import recorder
from tests.unit.telemetry.recorder import group, spent, stat

APPLICATION = "/sys/fs/cgroup/system.slice/loadlab-app.service"


def readings(spent_s: Callable[[float], float], begin: float = -1.05) -> list[Reading]:
    """Readings five times a second to 2 s after the end of a load of 3 s."""
    times = [begin + 0.2 * number for number in range(int((5 - begin) / 0.2) + 1)]
    return [Reading(t, own={APPLICATION: round(1e6 * spent_s(t))}) for t in times]


def application(spent_s: Callable[[float], float], load: Window, begin: float = -1.05) -> float:
    return services.spent_s(readings(spent_s, begin), load)["application"]


def busy(*spans: tuple[float, float]) -> Callable[[float], float]:
    """A service that uses a whole core from the first to the second moment of each span."""
    return lambda t: sum(min(max(t - begin, 0.0), end - begin) for begin, end in spans)


def test_an_application_that_still_begins_is_left_out() -> None:
    begins_then_serves = busy((-0.7, -0.3), (0.0, 3.0))
    assert application(begins_then_serves, Window(0, 3, warmed=False)) == pytest.approx(3.0)


def test_a_recording_that_begins_with_the_load_counts_all_of_it() -> None:
    assert application(busy((0.02, 3.0)), Window(0, 3, False), -0.1) == pytest.approx(2.98)


def test_the_warm_up_before_a_load_is_left_out() -> None:
    """Its counter is linear over the 0.2 s in which the warm-up ends and the load begins."""
    found = application(busy((-1.0, -0.02), (0.02, 3.0)), Window(0, 3, warmed=True))
    assert found == pytest.approx(2.98, abs=0.02)


def test_answers_after_the_end_of_the_load_count() -> None:
    late = busy((0.0, 4.1))
    assert application(late, Window(0, 3, False, finished=4.1)) == pytest.approx(4.1)
    assert application(late, Window(0, 3, False)) == pytest.approx(3.0)


def test_a_service_that_starts_again_counts_from_0() -> None:
    def spent_s(t: float) -> float:
        return busy((0.0, 3.0))(t) - (1.5 if t >= 1.5 else 0.0)

    # What it used between the last reading before and the restart is lost.
    assert 2.8 <= application(spent_s, Window(0, 3, False)) <= 3.0


def test_a_control_group_that_is_not_there_all_the_time_says_nothing() -> None:
    recorded = readings(busy((0.0, 3.0)))
    recorded[9].own.clear()
    assert services.spent_s(recorded, Window(0, 3, False)) == {}
    assert services.spent_s(readings(busy())[:5], Window(0, 3, False)) == {}


def record(folder: Path, **by_second: Sequence[Sequence[str]]) -> None:
    """Write the lines of each second of the processes, and perhaps of their control groups."""
    files = {"processes": (run_dir.PROCESSES, " page 4096"), "groups": (run_dir.CORES, "")}
    for kind, seconds in by_second.items():
        name, page = files[kind]
        readings = ([f"# reading {t}.0", *lines] for t, lines in enumerate(seconds))
        recorder.pack(folder / name, [f"# ticks 100{page}", *itertools.chain(*readings)])


def read_database(t: int, **changes: object) -> str:
    nothing = {"sessions": 0, "transactions": 0, "connections": 1, "statements": []}
    rest = {"pid": 8, "connections_limit": 97, "activity": []}
    return json.dumps({"t": t, **nothing, **rest, **changes})


def used(folder: Path, service: str, load: Window, cpus: int = 1, *of: Served) -> Processes:
    """The figures of a service from the folder's recordings."""
    every, _ = services.server(folder, load, cpus, *of)
    figures: Processes | None = getattr(present(every), service)
    return present(figures)


def test_the_connection_that_reads_the_statistics_is_no_part_of_the_database(
    tmp_path: Path,
) -> None:
    """PostgreSQL uses 0.5 s each second by its control group, 0.2 s of it for the recording."""
    record(
        tmp_path,
        processes=[
            ["# postgresql 7 8", stat(7, "postgres", 20 * t, 10 * t), spent(7, 30 * t * 10**7),
             stat(8, "postgres", 20 * t), spent(8, 20 * t * 10**7)]
            for t in range(5)
        ],
        groups=[[group("system-postgresql.slice", 500_000 * t, 100_000 * t)] for t in range(5)],
    )  # fmt: skip
    recorder.pack(tmp_path / run_dir.DATABASE, map(read_database, range(5)))
    found = used(tmp_path, "postgresql", Window(1, 3, True), 2)
    assert found.cpu_s == pytest.approx(2 * (0.5 - 0.2))
    assert found.cpu == pytest.approx(0.3 / 2)
    assert found.system_share == pytest.approx(1 / 3)


def test_a_request_that_hangs_does_not_make_a_service_busier(tmp_path: Path) -> None:
    """nginx uses half a core for 3 s of load, and from then on to the last answer; it waits for the
    core for a quarter of that time."""
    record(
        tmp_path,
        processes=[
            ["# nginx 7", stat(7, "nginx", 50 * t), spent(7, 50 * t * 10**7, 25 * t * 10**7)]
            for t in range(14)
        ],
        groups=[[group("nginx.service", 500_000 * t)] for t in range(14)],
    )
    load = Window(1, 4, warmed=True, finished=12)
    alone = recorded_processes.summarise(
        recorded_processes.read(tmp_path / run_dir.PROCESSES), load, 1, ()
    )
    for found in (used(tmp_path, "reverse_proxy", load), present(alone.reverse_proxy)):
        # The time of all requests, and the part of the cores during the load.
        assert found.cpu_s == pytest.approx(5.5)
        assert found.cpu == pytest.approx(0.5)
        assert found.busiest_process == found.busiest_thread == pytest.approx(0.5)
        assert found.longest_wait == pytest.approx(0.25)


def test_a_service_that_ends_right_after_the_load_has_its_cpu_time(tmp_path: Path) -> None:
    ended: list[list[str]] = [[]] * 3
    record(
        tmp_path,
        processes=[*(["# nginx 7", stat(7, "nginx", 50 * t)] for t in range(5)), *ended],
        groups=[*([group("nginx.service", 500_000 * t)] for t in range(5)), *ended],
    )
    found = used(tmp_path, "reverse_proxy", Window(1, 4, warmed=True, finished=4))
    assert (found.cpu_s, found.cpu) == pytest.approx((1.5, 0.5))


def test_the_kernels_share_is_that_of_the_control_group_where_it_was_recorded() -> None:
    recorded = readings(busy((0.0, 3.0)))
    for reading in recorded:
        reading.system[APPLICATION] = reading.own[APPLICATION] // 4
    load = Window(0, 3, False)
    spent_s = services.spent_s(recorded, load)
    system = services.spent_s(recorded, load, usage=lambda reading: reading.system)
    assert system["application"] == pytest.approx(0.75)
    sampled = builders.processes(cpu_s=9.0, system_share=0.9)
    services_used = ServiceProcesses(reverse_proxy=None, application=sampled, postgresql=None)
    found = services._with(services_used, spent_s, system, {"application": 1.0})
    assert present(found.application).system_share == pytest.approx(0.25)


def test_the_recorder_tells_what_a_control_group_spent_in_the_kernel(tmp_path: Path) -> None:
    folder = tmp_path / "system.slice" / "nginx.service"
    folder.mkdir(parents=True)
    (folder / "cpu.stat").write_text("usage_usec 900\nuser_usec 600\nsystem_usec 300\nnice 0\n")
    loop = recorder.function('    for group in "${own[@]}"', "    done\n")
    given = f"tree={tmp_path}; own=({folder}/cpu.stat {tmp_path}/gone/cpu.stat)"
    (line,) = recorder.printed(f"{given}\n{loop}true")
    assert line == f"own {folder} 900 300"
    reading = Reading(0.0)
    assert host_recording._take(reading, line)
    assert (reading.own[str(folder)], reading.system[str(folder)]) == (900, 300)


def test_a_stack_at_a_place_has_its_own_control_groups() -> None:
    alone = busy((0.0, 1.0))
    both = readings(busy((0.0, 3.0)))
    for reading in both:
        for place, spent_s in ((1, alone), (2, busy((0.0, 2.0)))):
            name = f"/system.slice/loadlab-nginx-{place}.service"
            reading.own[name] = round(1e6 * spent_s(reading.t))
    first = services.spent_s(both, Window(0, 3, False), Served("nginx", 1))
    assert first == {"reverse_proxy": pytest.approx(1.0)}
    second = services.spent_s(both, Window(0, 3, False), Served("nginx", 2))
    assert second == {"reverse_proxy": pytest.approx(2.0)}


# Process -> ms of CPU time each second.
SPENT_MS = {1: 5, 10: 100, 11: 200, 20: 100, 30: 50}


def test_sessions_of_a_place_have_their_part_of_the_database(tmp_path: Path) -> None:
    """Two processes of a place and one of another, by their own time; the rest in proportion."""
    processes = [
        [
            *("# application-1 1", "# postgresql 10 11 20 30"),
            *(stat(pid, "x", ms * t // 10) for pid, ms in SPENT_MS.items()),
            *(spent(pid, 1_000_000 * ms * t) for pid, ms in SPENT_MS.items()),
        ]
        for t in range(5)
    ]
    record(tmp_path, processes=processes)
    places = {"loadlab-1": [10, 11], "loadlab-2": [20]}
    lines = [read_database(t, pid=99, places=places) for t in range(5)]
    recorder.pack(tmp_path / run_dir.DATABASE, lines)

    def cpu_s(*place: int) -> float | None:
        return used(tmp_path, "postgresql", Window(0, 3, False), 1, Served("nginx", *place)).cpu_s

    assert [cpu_s(place) for place in (1, 2, 3)] == pytest.approx([1.35 * 3 / 4, 1.35 / 4, 0])
    # An endpoint that does not ask the database: its own work belongs to all alike.
    (tmp_path / run_dir.DATABASE).unlink()
    assert cpu_s(2, 3) == pytest.approx(1.35 / 3)
