import gzip
import subprocess
import sys
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.model import Database, Processes, ServiceProcesses
from loadlab.run import documents, run_dir
from loadlab.telemetry import processes, services
from loadlab.telemetry.processes import Process, Reading, Recording, busiest
from loadlab.telemetry.recordings import TelemetryError, Window
from tests.unit.builders import present
from tests.unit.telemetry import recorder

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "server"


def window(name: str) -> Window:
    started = documents.load(FIXTURES / name / "run.json")["started"]
    return Window(started, started + {"pool": 5, "connect": 6}[name], warmed=True)


def found(name: str) -> tuple[ServiceProcesses, Database]:
    server, database = services.server(FIXTURES / name, window(name), 1)
    return present(server), present(database)


def test_processes_of_a_saturated_stack_with_a_pool_use_the_whole_cpu() -> None:
    """aiohttp, whose one worker has a pool of ten, as fast as it goes."""
    server, database = found("pool")
    nginx, application, postgresql = (
        present(used) for used in (server.reverse_proxy, server.application, server.postgresql)
    )
    parts = [present(used.cpu) for used in (nginx, application, postgresql)]
    assert 0.95 < sum(parts) <= 1.02
    assert parts[1] > parts[2] > parts[0] > 0.03
    assert (application.processes_max, nginx.processes_max) == (2, 3)
    # The master, its five helpers and the pool; not what the statistics were read by.
    assert postgresql.processes_max == postgresql.threads_max == 16
    assert application.rss_max_bytes > 50e6
    for each in (nginx, application, postgresql):
        assert present(each.voluntary_switches) > 100
    assert database.connections_max == 10
    assert database.sessions == 0
    query = database.statements[0]
    assert query.query.startswith("SELECT a.id, a.first_name, a.last_name")
    assert "ORDER BY" in query.query
    assert 30 < query.mean_us < 500
    assert database.transactions > query.calls
    times = [statement.total_s for statement in database.statements]
    assert times == sorted(times, reverse=True)


def test_a_connection_for_each_request() -> None:
    """Flask connects for each: processes that ended are in the CPU time alone."""
    server, database = found("connect")
    postgresql = present(server.postgresql)
    assert present(postgresql.cpu) > 0.2
    assert postgresql.voluntary_switches is postgresql.involuntary_switches is None
    assert present(server.reverse_proxy).voluntary_switches
    assert database.sessions == pytest.approx(database.statements[0].calls, rel=0.2)
    assert database.sessions > 100


def test_what_was_not_recorded_is_not_there(tmp_path: Path) -> None:
    assert services.server(tmp_path, window("pool"), 1) == (None, None)
    assert processes.raw(tmp_path) == set()
    (tmp_path / run_dir.PROCESSES).write_bytes((FIXTURES / "pool" / run_dir.PROCESSES).read_bytes())
    server, database = services.server(tmp_path, window("pool"), 1)
    assert server
    assert database is None
    assert processes.raw(tmp_path) == {run_dir.PROCESSES}


@pytest.mark.parametrize("aside", [-100.0, 100.0])
def test_a_load_outside_of_the_recording_is_not_told(aside: float) -> None:
    load = window("pool")
    outside = Window(load.start + aside, load.end + aside, True)
    nothing = ServiceProcesses(reverse_proxy=None, application=None, postgresql=None)
    assert services.server(FIXTURES / "pool", outside, 1) == (nothing, None)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (run_dir.PROCESSES, ("# ticks", "# tocks"), "does not begin with the ticks"),
        (run_dir.PROCESSES, ("# reading 1", "# reading x"), "line 2 not understood"),
        (run_dir.PROCESSES, ("ctxt_switches:\t", "ctxt_switches "), "not understood"),
        (run_dir.PROCESSES, ("(nginx) S", "(nginx)"), "not understood"),
        (run_dir.PROCESSES, ("(nginx) S ", "(nginx) S 1.5 "), "not understood"),
        (run_dir.DATABASE, ('{"', '{x"'), "line 1 not understood"),
        (run_dir.DATABASE, ('"pid"', '"pit"'), "line 1 not understood: .*required field `pid`"),
    ],
)
def test_what_is_not_understood_is_refused(
    tmp_path: Path, name: str, change: tuple[str, str], words: str
) -> None:
    for path in (FIXTURES / "pool").glob("*.gz"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    text = gzip.decompress((tmp_path / name).read_bytes()).decode()
    assert change[0] in text
    (tmp_path / name).write_bytes(gzip.compress(text.replace(*change).encode()))
    with pytest.raises(TelemetryError, match=words):
        services.server(tmp_path, window("pool"), 1)
    (tmp_path / name).write_bytes(gzip.compress(text.encode())[:-20])
    with pytest.raises(TelemetryError, match="truncated"):
        services.server(tmp_path, window("pool"), 1)


def recording(groups: list[dict[int, Process]]) -> Recording:
    """Readings of nginx alone, once a second from 0 on."""
    return Recording(100, 4096, [Reading(float(t), {"nginx": g}) for t, g in enumerate(groups)])


def process(own: int, ended: int = 0, started: int = 1, switches: int = 0) -> Process:
    return Process(started, own, ended, 1, 10, {1: (switches, 2 * switches)})


def nginx(groups: list[dict[int, Process]], load: Window, cores: int = 1) -> Any:
    return processes.summarise(recording(groups), load, cores, ()).reverse_proxy


def test_the_beginning_lies_between_two_readings_of_the_same_load() -> None:
    steady = [{1: process(50 * t, switches=10 * t)} for t in range(8)]
    used = nginx(steady, Window(2.5, 5.5, warmed=True))
    assert used.cpu_s == pytest.approx(1.75)  # to the reading at 6
    assert (used.voluntary_switches, used.involuntary_switches) == (35, 70)
    # Without a warm-up nothing was under way before: the reading before has it all.
    assert nginx(steady, Window(2.5, 5.5, warmed=False)).cpu_s == pytest.approx(2.0)
    assert nginx(steady, Window(2.5, 5.5, True), 2).cpu == pytest.approx(1.75 / 6)


def test_a_process_that_nobody_waited_for_makes_the_time_unknown() -> None:
    """A service that is restarted: its main process goes, and its counters with it."""
    groups = [{1: process(500)}, {1: process(600)}, {2: process(90, started=2)}]
    used = nginx(groups, Window(0, 2, False))
    assert used.cpu_s is used.cpu is used.voluntary_switches is None
    assert used.processes_max == 1


def test_the_same_number_may_be_another_process() -> None:
    groups = [
        {1: process(10), 2: process(40)},
        {1: process(10, ended=45), 2: process(7, started=9, switches=3)},
    ]
    assert nginx(groups, Window(0, 1, False)).cpu_s == pytest.approx(0.12)
    assert nginx([{}, {}], Window(0, 1, False)) is None


def test_the_recordings_own_processes_are_left_out() -> None:
    groups = [{1: process(0), 2: process(0)}, {1: process(10), 2: process(70)}]
    every = processes.summarise(recording(groups), Window(0, 1, False), 1, {2})
    used = present(every.reverse_proxy)
    assert (used.cpu_s, used.processes_max) == (0.1, 1)


# What each of a master's workers does in each second, and how many seconds it lives.
lives = st.lists(
    st.tuples(st.integers(0, 5), st.lists(st.integers(0, 200), min_size=1)), max_size=6
)


@given(lives, st.lists(st.integers(0, 20), min_size=9, max_size=9))
def test_what_ended_processes_used_is_counted_once(
    workers: list[tuple[int, list[int]]], master: list[int]
) -> None:
    groups, true = [], 0
    for t in range(9):
        ended = sum(sum(work) for begin, work in workers if begin + len(work) <= t)
        group = {1: process(sum(master[: t + 1]), ended)}
        for number, (begin, work) in enumerate(workers, 2):
            if begin <= t < begin + len(work):
                group[number] = process(sum(work[: t - begin]), started=begin)
        groups.append(group)
    for begin, work in workers:
        true += sum(spent for at, spent in enumerate(work, begin) if at < 8)
    # A worker's last second is in its parent's count at its end only.
    true += sum(master[1:])
    used = nginx(groups, Window(0, 8, warmed=False))
    assert used.cpu_s == pytest.approx(true / 100)


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=9), st.floats(0, 0.99), st.booleans())
def test_no_more_than_all_and_no_less_than_the_seconds_inside(
    work: list[int], begin: float, warmed: bool
) -> None:
    """Whatever a process does: between the readings just inside and those just outside."""
    total, groups = 0, [{1: process(0)}]
    for spent in work:
        total += spent
        groups.append({1: process(total)})
    used = nginx(groups, Window(begin, float(len(work)), warmed)).cpu_s * 100
    assert sum(work[1:]) - 0.01 <= used <= total + 0.01


def waiting(*threads: int, started: int = 1) -> Process:
    """A process whose threads have waited for these seconds."""
    waited = {n: int(1e9 * seconds) for n, seconds in enumerate(threads)}
    return Process(started, 0, 0, len(threads), 10, waited=waited)


@pytest.mark.parametrize(
    ("ended_ticks", "cpu_s"), [(0, 0.4567891), (1, 0.4567891), (30, 0.75)], ids=str
)
def test_cpu_time_is_exact_unless_a_thread_ended(ended_ticks: int, cpu_s: float) -> None:
    begun = Process(1, 100, 0, 2, 10, ran={1: 600_000_000, 2: 400_000_000})
    later = Process(1, 145 + ended_ticks, 0, 2, 10, ran={1: 856_789_100, 2: 600_000_000})
    used = nginx([{1: begun}, {1: later}], Window(0, 1, False))
    assert used.cpu_s == pytest.approx(cpu_s)


def test_the_wait_for_a_core_counts_threads_that_come_and_go() -> None:
    groups = [
        {1: waiting(5, 1)},
        {1: waiting(6, 1, 2)},  # a third thread began
        {1: waiting(7), 2: waiting(3)},  # two ended, and a process began
        {2: waiting(4)},
    ]
    assert nginx(groups, Window(0, 3, False)).run_queue_wait_s == pytest.approx(3 + 4 + 1)
    assert nginx(groups, Window(0.5, 3, True)).run_queue_wait_s == pytest.approx(1.5 + 4 + 1)
    # Another process under the same number has waited for nothing before.
    again = [{1: waiting(5)}, {1: waiting(2, started=9)}]
    assert nginx(again, Window(0, 1, False)).run_queue_wait_s == pytest.approx(2)
    assert nginx([{1: process(0)}] * 2, Window(0, 1, False)).run_queue_wait_s is None


def test_the_hardware_of_the_hosts_own_cores() -> None:
    readings = [
        Reading(float(t), {}, {0: 2_000_000_000 + t, 1: 3_000_000_000}, {0: 4 + t, 1: 100})
        for t in range(4)
    ]
    hz, throttled = processes.hardware(Recording(100, 4096, readings), Window(1, 2, True), [0])
    found = present(hz)
    assert (found.min_hz, found.mean_hz, found.max_hz) == (2000000001, 2000000001.5, 2000000002)
    assert throttled == 1
    silent = Recording(100, 4096, [Reading(1.5, {})])
    assert processes.hardware(silent, Window(1, 2, True), [0]) == (None, None)


def test_a_clients_recording_tells_its_generator(tmp_path: Path) -> None:
    lines = ["# ticks 100 page 4096"]
    for t in range(4):
        lines += [
            *(f"# reading {t}.0", "# generator 7", recorder.stat(7, "oha", 50 * t)),
            "/proc/7/task/7/status:voluntary_ctxt_switches:\t1",
            "/proc/7/task/7/status:nonvoluntary_ctxt_switches:\t2",
            recorder.spent(7, 1, 250_000_000 * t),
            "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq:2400000",
            "/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count:5",
        ]
    path = recorder.pack(tmp_path / run_dir.of_client(run_dir.PROCESSES), lines)
    recording = processes.read(path)
    used = present(processes.generator(recording, Window(1, 3, True), 1))
    assert (used.cpu_s, used.cpu, used.run_queue_wait_s) == (1.0, 0.5, 0.5)
    assert processes.generator(recording, Window(1, 9, True), 1) is None
    assert recording.readings[0].frequencies == {1: 2_400_000_000}
    assert recording.readings[0].throttled == {1: 5}


def test_a_reading_that_busy_cores_delay_is_left_out_and_the_next_takes_its_share(
    tmp_path: Path,
) -> None:
    """The recorder's own function. Each reading is the scheduling policy that it has; the first
    takes too long."""
    function = recorder.function("read_each_second() {").replace("-t 1 ", "-t 0.1 ")
    readings = """
    reading() {
        chrt --pid "$BASHPID" | sed -n "s/.*policy: //p" | tee -a policies
        case $(wc -l <policies) in 1) sleep 0.2 ;; 3) kill "$recorder" ;; esac
    }
    exec 4<> <(:)
    over='' recorder=$BASHPID
    read_each_second
    """
    said = recorder.printed(f"cd {tmp_path}\n{function}{readings}")
    others = ["SCHED_OTHER", "SCHED_OTHER"]
    assert (tmp_path / "policies").read_text().split() == ["SCHED_IDLE", *others]
    assert said == others


# Prints once the file is in its memory, and ends with its input.
HOLDS_FILE = """
import mmap, sys
source = open(sys.argv[1], "rb")
file = mmap.mmap(source.fileno(), 0, prot=mmap.PROT_READ)
print(sum(file[::4096]), flush=True)
sys.stdin.read()
"""


def test_memory_is_what_it_is_alone_whoever_else_has_the_same_files(tmp_path: Path) -> None:
    """The recorder's own function reads a running program, and passes over one that has ended."""
    memory = recorder.function("memory() {")
    held, mib = tmp_path / "held", 8
    held.write_bytes(b"x" * (mib << 20))

    def start() -> subprocess.Popen[bytes]:
        program = subprocess.Popen(
            [sys.executable, "-c", HOLDS_FILE, held], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert present(program.stdout).readline()
        return program

    with start() as first:
        readings = [recorder.printed(f'{memory}recorded=" {first.pid} 4194305"; memory; true')]
        with start() as second:
            readings.append(recorder.printed(f'{memory}recorded=" {first.pid}"; memory; true'))
            second.communicate()
        first.communicate()
    lines = ["# ticks 100 page 4096"]
    for t in range(4):
        said = {0: readings[0], 3: readings[1]}.get(t, [])
        lines += [
            f"# reading {t}.0",
            f"# nginx {first.pid}",
            recorder.stat(first.pid, "nginx", 1),
            *said,
        ]

    def used(lines: Iterable[str]) -> Processes:
        path = recorder.pack(tmp_path / run_dir.PROCESSES, lines)
        every = processes.summarise(processes.read(path), Window(1, 2.5, True), 1, ())
        return present(every.reverse_proxy)

    found = used(lines)
    assert mib << 20 < present(found.pss_before_bytes) < 100_000_000
    assert found.pss_bytes == pytest.approx(found.pss_before_bytes, abs=1 << 20)
    # A process that ended while it was read.
    found = used(line for line in lines if "smaps_rollup" not in line)
    assert found.pss_bytes is found.pss_before_bytes is None


def test_memory_of_workers_counts_what_they_share_once(tmp_path: Path) -> None:
    def sizes(number: int, **kib: int) -> list[str]:
        return [f"/proc/{number}/smaps_rollup:{name}: {size} kB" for name, size in kib.items()]

    def bytes_of(*lines: str) -> int:
        path = recorder.pack(
            tmp_path / run_dir.PROCESSES,
            [
                "# ticks 100 page 4096",
                *(
                    line
                    for t in range(4)
                    for line in (
                        f"# reading {t}.0",
                        "# application 7 8",
                        recorder.stat(7, "first", 1),
                        recorder.stat(8, "second", 1),
                        *lines,
                    )
                ),
            ],
        )
        every = processes.summarise(processes.read(path), Window(1, 2.5, True), 1, ())
        return present(present(every.application).pss_bytes)

    first = sizes(7, Rss=30_000, Pss_Anon=9_000, Anonymous=12_000)
    second = sizes(8, Rss=28_000, Pss_Anon=8_000, Anonymous=11_000)
    assert bytes_of(*first, *second) == 1024 * (9_000 + 8_000 + 18_000)
    # A recording of an earlier version.
    assert bytes_of(*sizes(7, Pss=20_000), *sizes(8, Pss=15_000)) == 1024 * 35_000


def running(started: int, **ran: float) -> Process:
    """A process whose threads t1, t2 … were on a core for these seconds."""
    ns = {int(name[1:]): round(seconds * 1e9) for name, seconds in ran.items()}
    return Process(started, own=0, ended=0, threads=len(ran), pages=1, ran=ns)


@pytest.mark.parametrize(
    ("readings", "far", "expected"),
    [
        # Process and thread may be of two processes.
        ([{1: running(5, t1=1.0, t2=1.0), 2: running(5, t3=4.0)},
          {1: running(5, t1=1.6, t2=1.7), 2: running(5, t3=4.9)}], 0.0, (1.3, 0.9)),
        # The load began when half of the time between the first two readings was over.
        ([{1: running(5, t1=seconds)} for seconds in (1.0, 2.0, 3.0)], 0.5, (1.5, 1.5)),
        # A new process with an old number counts from nothing.
        ([{1: running(5, t1=9.0)}, {1: running(8, t1=0.25)}], 0.0, (0.25, 0.25)),
        # Without the times of threads.
        ([{1: running(5)}, {1: running(5)}], 0.0, (None, None)),
    ],
)  # fmt: skip
def test_busiest_process_and_thread(
    readings: list[dict[int, Process]], far: float, expected: tuple[float | None, float | None]
) -> None:
    assert busiest(readings, far, attrgetter("ran")) == pytest.approx(expected)
