"""The CPU time of services, from the readings of their control groups."""

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from loadlab.model import ServiceProcesses
from loadlab.run import run_dir
from loadlab.telemetry import host_recording, services
from loadlab.telemetry import processes as recorded_processes
from loadlab.telemetry.host_recording import Reading
from loadlab.telemetry.recordings import Served, Window
from tests.unit import builders

ROOT = Path(__file__).parents[3]
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
    used = application(busy((-1.0, -0.02), (0.02, 3.0)), Window(0, 3, warmed=True))
    assert used == pytest.approx(2.98, abs=0.02)


def test_answers_after_the_end_of_the_load_count() -> None:
    late = busy((0.0, 4.1))
    assert application(late, Window(0, 3, False, finished=4.1)) == pytest.approx(4.1)
    assert application(late, Window(0, 3, False)) == pytest.approx(3.0)


def test_a_service_that_starts_again_counts_from_0() -> None:
    def spent_s(t: float) -> float:
        return busy((0.0, 3.0))(t) - (1.5 if t >= 1.5 else 0.0)

    # What it used between the last reading before and the restart is lost.
    used = application(spent_s, Window(0, 3, False))
    assert 2.8 <= used <= 3.0


def test_a_control_group_that_is_not_there_all_the_time_says_nothing() -> None:
    recorded = readings(busy((0.0, 3.0)))
    recorded[9].own.clear()
    assert services.spent_s(recorded, Window(0, 3, False)) == {}
    assert services.spent_s(readings(busy())[:5], Window(0, 3, False)) == {}


def test_the_connection_that_reads_the_statistics_is_no_part_of_the_database(
    tmp_path: Path,
) -> None:
    """PostgreSQL uses 0.5 s each second by its control group, 0.2 s of it for the recording."""
    stat = "S 1 7 7 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 1 0 9 100 10 0"
    processes, groups, database = ["# ticks 100 page 4096"], ["# ticks 100"], []
    for t in range(5):
        processes += [f"# reading {t}.0", "# postgresql 7 8"]
        for number, user, system in ((7, 20 * t, 10 * t), (8, 20 * t, 0)):
            spent = f"/proc/{number}/task/{number}/schedstat:{(user + system) * 10**7} 0 3"
            line = stat.format(user=user, system=system)
            processes += [f"/proc/{number}/stat:{number} (postgres) {line}", spent]
        groups += [
            f"# reading {t}.0",
            f"own /sys/fs/cgroup/system.slice/system-postgresql.slice {500_000 * t} {100_000 * t}",
        ]
        database.append(
            f'{{"t": {t}.0, "sessions": 0, "transactions": 0, "pid": 8, "connections": 1, '
            '"statements": [], "connections_limit": 97, "activity": []}'
        )
    for name, lines in (
        (run_dir.PROCESSES, processes),
        (run_dir.CORES, groups),
        (run_dir.DATABASE, database),
    ):
        (tmp_path / name).write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    found, _ = services.server(tmp_path, Window(1, 3, True), 2)
    assert found
    used = found.postgresql
    assert used
    assert used.cpu_s == pytest.approx(2 * (0.5 - 0.2))
    assert used.cpu == pytest.approx(0.3 / 2)
    assert used.system_share == pytest.approx(1 / 3)


def test_a_request_that_hangs_does_not_make_a_service_busier(tmp_path: Path) -> None:
    """nginx uses half a core for 3 s of load, and from then on to the last answer; it waits for the
    core for a quarter of that time."""
    stat = "S 1 7 7 0 -1 0 0 0 0 0 {user} 0 0 0 20 0 1 0 9 100 10 0"
    processes, groups = ["# ticks 100 page 4096"], ["# ticks 100"]
    for t in range(14):
        line = f"/proc/7/stat:7 (nginx) {stat.format(user=50 * t)}"
        processes += [f"# reading {t}.0", "# nginx 7", line]
        processes += [f"/proc/7/task/7/schedstat:{50 * t * 10**7} {25 * t * 10**7} 3"]
        groups += [
            f"# reading {t}.0",
            f"own /sys/fs/cgroup/system.slice/nginx.service {500_000 * t} 0",
        ]
    for name, lines in ((run_dir.PROCESSES, processes), (run_dir.CORES, groups)):
        (tmp_path / name).write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    load = Window(1, 4, warmed=True, finished=12)
    alone = recorded_processes.summarise(
        recorded_processes.read(tmp_path / run_dir.PROCESSES), load, 1, ()
    )
    for found in (services.server(tmp_path, load, 1)[0], alone):
        used = builders.present(builders.present(found).reverse_proxy)
        # The time of all requests, and the part of the cores during the load.
        assert used.cpu_s == pytest.approx(5.5)
        assert used.cpu == pytest.approx(0.5)
        assert used.busiest_process == used.busiest_thread == pytest.approx(0.5)
        assert used.longest_wait == pytest.approx(0.25)


def test_a_service_that_ends_right_after_the_load_has_its_cpu_time(tmp_path: Path) -> None:
    stat = "S 1 7 7 0 -1 0 0 0 0 0 {user} 0 0 0 20 0 1 0 9 100 10 0"
    processes, groups = ["# ticks 100 page 4096"], ["# ticks 100"]
    for t in range(8):
        processes.append(f"# reading {t}.0")
        groups.append(f"# reading {t}.0")
        if t <= 4:
            processes += ["# nginx 7", f"/proc/7/stat:7 (nginx) {stat.format(user=50 * t)}"]
            groups.append(f"own /sys/fs/cgroup/system.slice/nginx.service {500_000 * t} 0")
    for name, lines in ((run_dir.PROCESSES, processes), (run_dir.CORES, groups)):
        (tmp_path / name).write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    services_used, _ = services.server(tmp_path, Window(1, 4, warmed=True, finished=4), 1)
    used = builders.present(builders.present(services_used).reverse_proxy)
    assert (used.cpu_s, used.cpu) == pytest.approx((1.5, 0.5))


def test_the_kernels_share_is_that_of_the_control_group_where_it_was_recorded() -> None:
    recorded = readings(busy((0.0, 3.0)))
    for reading in recorded:
        reading.system[APPLICATION] = reading.own[APPLICATION] // 4
    load = Window(0, 3, False)
    spent = services.spent_s(recorded, load)
    system = services.spent_s(recorded, load, usage=lambda reading: reading.system)
    assert system["application"] == pytest.approx(0.75)
    used = builders.processes(cpu_s=9.0, system_share=0.9)
    found = services._with(ServiceProcesses(reverse_proxy=None, application=used, postgresql=None),
                           spent, system, {"application": 1.0})  # fmt: skip
    assert found.application
    assert found.application.system_share == pytest.approx(0.25)


def test_the_recorder_tells_what_a_control_group_spent_in_the_kernel(tmp_path: Path) -> None:
    group = tmp_path / "system.slice" / "nginx.service"
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text("usage_usec 900\nuser_usec 600\nsystem_usec 300\nnice 0\n")
    script = (ROOT / "roles" / "telemetry" / "files" / "record-host.sh").read_text()
    begin = script.index('    for group in "${own[@]}"')
    loop = script[begin : script.index("    done\n", begin) + 9]
    given = f"tree={tmp_path}; own=({group}/cpu.stat {tmp_path}/gone/cpu.stat)"
    done = subprocess.run(
        ["bash", "-c", f"set -u; shopt -s nullglob; {given}\n{loop}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"own {group} 900 300\n", "")
    reading = Reading(0.0)
    assert host_recording._take(reading, done.stdout.strip())
    assert (reading.own[str(group)], reading.system[str(group)]) == (900, 300)


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


def test_sessions_of_a_place_have_their_part_of_the_database(tmp_path: Path) -> None:
    """Two processes of a place and one of another, by their own time; the rest in proportion."""
    lines = ["# ticks 100 page 4096"]
    for t in range(5):
        lines += [f"# reading {t}.0", "# application-1 1", "# postgresql 10 11 20 30"]
        for pid, ms in ((1, 5), (10, 100), (11, 200), (20, 100), (30, 50)):
            ns, ticks = 1_000_000 * ms * t, ms * t // 10
            zeros = " ".join(["0"] * 4)
            lines.append(
                f"/proc/{pid}/stat:{pid} (x) S 1 1 1 0 -1 0 {zeros} {ticks} 0 0 0 20 0 1 0 7 0 1 0"
            )
            lines.append(f"/proc/{pid}/task/{pid}/schedstat:{ns} 0 0")
    recorded = [
        {
            "t": t,
            "sessions": 1,
            "transactions": 1,
            "pid": 99,
            "connections": 4,
            "statements": [],
            "connections_limit": 97,
            "activity": [],
            "places": {"loadlab-1": [10, 11], "loadlab-2": [20]},
        }
        for t in range(5)
    ]
    texts = {
        run_dir.PROCESSES: "\n".join(lines) + "\n",
        run_dir.DATABASE: "".join(json.dumps(line) + "\n" for line in recorded),
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    cpu_s = {}
    for place in (1, 2, 3):
        used, _ = services.server(tmp_path, Window(0, 3, False), 1, Served("nginx", place))
        assert used is not None
        assert used.postgresql is not None
        cpu_s[place] = used.postgresql.cpu_s
    assert cpu_s == {1: pytest.approx(1.35 * 3 / 4), 2: pytest.approx(1.35 / 4), 3: 0}
    # An endpoint that does not ask the database: its own work belongs to all alike.
    (tmp_path / run_dir.DATABASE).unlink()
    used, _ = services.server(tmp_path, Window(0, 3, False), 1, Served("nginx", 2, 3))
    assert used is not None
    assert used.postgresql is not None
    assert used.postgresql.cpu_s == pytest.approx(1.35 / 3)
