"""Every reason that voids a repetition is brought about for real, and what is no reason does not.

One deployed application is loaded over and over; while a repetition is under way, one thing is
done to one host. What no test may do to a machine (step its clock, let it swap, take its CPU away)
is put into the recorded telemetry of a repetition that was disturbed by nothing.
"""

import gzip
import re
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import pytest

from loadlab.model import Calibration
from loadlab.reasons.validity_reasons import THRESHOLDS
from loadlab.results.repetitions import derive_result
from loadlab.run import documents

from .conftest import CLIENT, ROOT, SERVER, STATE, playbook, run, ssh, stages
from .figures import Measured, figures

pytestmark = pytest.mark.lab

RUN_ID = "test-verdicts"
FOLDER = ROOT / "results" / RUN_ID
CALM = {
    "framework": "aiohttp",
    "endpoint": "hello",
    "rate": 500,
    "connections": 64,
    "duration": 3,
    "warmup": 1,
    # What hangs is given up soon.
    "request_timeout": 2,
    "run_id": RUN_ID,
}
# More than the application can answer; of the book, half a megabyte, more than the link carries.
STORM = {
    **CALM,
    "endpoint": "lookup,book",
    "rate": 2000,
    "connections": 100,
    "duration": 4,
    "request_timeout": 5,
}
# What begins a page of recorded telemetry.
HEAD = "# scrape "
# What another's work on the machine that these hosts share brings about.
NOT_OURS = {"steal", "foreign_cpu", "generator_cpu"}

WORK = "/opt/loadlab/python/work.py"
SWAP = f"cp {WORK} /root/work.py; sed -i 's/Hello, World!/Hello, you!/' {WORK}"
SWAP_BACK = f"cat /root/work.py >{WORK}"


@dataclass(frozen=True)
class Lever:
    """What is done to a host at a stage of the load script or, without one, during the repetition
    before; and after the repetition."""

    name: str
    stage: str
    host: str
    command: str
    after: str = ""


METRONOME = [
    Lever("plain", "measuring", CLIENT, "true"),
    Lever(
        "generator_cpu", "warming up", CLIENT,
        "systemd-run --quiet --collect --property=RuntimeMaxSec=6 sh -c "
        "'for each in 1 2 3 4 5 6; do while :; do :; done & done; wait'",
    ),
    Lever(
        "generator_stopped", "measuring", CLIENT,
        "sleep 0.5; pkill -STOP -x metronome; sleep 0.5; pkill -CONT -x metronome",
    ),
    Lever(
        "nothing_answered", "warming up", SERVER,
        "systemctl kill --signal=STOP loadlab-app",
        "systemctl kill --signal=CONT loadlab-app",
    ),
    Lever("dead_server", "measuring", SERVER, "sleep 0.5; systemctl stop loadlab-app"),
    # The worker reads its code after the service is said to have started.
    Lever(
        "wrong_body", "measuring", SERVER,
        f"sleep 0.2; {SWAP}; systemctl restart loadlab-app; sleep 1; {SWAP_BACK}",
    ),
]  # fmt: skip
WRK = [
    Lever("wrk_plain", "measuring", CLIENT, "true"),
    Lever("killed", "measuring", CLIENT, "sleep 0.5; pkill -KILL -x wrk"),
    Lever("short", "measuring", CLIENT, "sleep 1.5; pkill -INT -x wrk"),
    # nginx listens anew with a short queue; its worker dies with its connections, and for a while
    # nobody takes the new ones.
    Lever(
        "listen_overflows", "measuring", SERVER,
        "cd /etc/nginx; cp nginx.conf /root/; sed -i 's/ backlog=[0-9]*/ backlog=4/' nginx.conf; "
        "systemctl reload nginx; sleep 0.3; main=$(cat /run/nginx.pid); kill -STOP $main; "
        "pkill -KILL -P $main; sleep 0.7; kill -CONT $main; cat /root/nginx.conf >nginx.conf",
        "systemctl reload nginx",
    ),
    Lever(
        "connections", "warming up", CLIENT,
        "was=$(sysctl -n net.ipv4.ip_local_port_range); "
        "sysctl -q -w net.ipv4.ip_local_port_range='50000 50030'; sleep 3.5; "
        'sysctl -q -w net.ipv4.ip_local_port_range="$was"',
    ),
    Lever("refused", "", SERVER, SWAP, SWAP_BACK),
]  # fmt: skip


def wait(what: Callable[[], bool], loading: Any, seconds: float, words: str) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        if loading.poll() is not None or time.monotonic() > deadline:
            loading.kill()
            pytest.fail(f"{words}: {loading.communicate()[0][-3000:]}")
        time.sleep(0.02)


def stage_is(progress: Path, stage: str) -> bool:
    try:
        return progress.read_text().strip() == stage
    except FileNotFoundError:
        return False


def pull(levers: dict[str, list[Lever]]) -> dict[str, Path]:
    """Offer the calm load once for each lever; return the folder of each one's repetition.

    What fails is measured again, so there are some without a lever.
    """
    repetitions = max(map(len, levers.values()))
    loading = playbook("playbooks/load.yml", **CALM, repetitions=repetitions)
    left = {generator: list(several) for generator, several in levers.items()}
    seen: set[Path] = set()
    where = {}

    def begun() -> set[Path]:
        return set(FOLDER.glob("cells/*/rep-*/cell.json")) - seen

    while any(left.values()):
        wait(lambda: bool(begun()), loading, 60, f"no repetition after {len(seen)}")
        (cell,) = begun()
        seen.add(cell)
        waiting = left["wrk" if "-wrk-" in cell.parts[-3] else "metronome"]
        if not waiting:
            continue
        lever, place = waiting.pop(0), cell.parent
        if lever.stage:
            raw = STATE / f"hosts/client/root/var/lib/loadlab-runs/{RUN_ID}"
            progress = raw / place.relative_to(FOLDER) / "progress.txt"
            reached = partial(stage_is, progress, lever.stage)
            wait(reached, loading, 30, f"{lever.name} was never {lever.stage}")
            ssh(lever.host, lever.command)
        else:
            # The application reads its code when this measurement ends, for the next one.
            ssh(lever.host, lever.command)
            wait(lambda: bool(begun()), loading, 60, f"nothing began after {lever.name}")
            (cell,) = begun()
            seen.add(cell)
            place = cell.parent
        where[lever.name] = place
        wait((place / "result.json").exists, loading, 60, f"{lever.name} never ended")
        if lever.after:
            ssh(lever.host, lever.after)
    output, _ = loading.communicate(timeout=120)
    # Two repetitions fail, as they should, and are kept; the load itself goes on to its end.
    assert not re.search(r"(failed|unreachable)=[1-9]", output), output[-3000:]
    return where


def shapes() -> list[str]:
    """The queueing disciplines of both hosts that are not the kernel's own."""
    lines = [line for host in (SERVER, CLIENT) for line in ssh(host, "tc qdisc show").splitlines()]
    return [line for line in lines if " tbf " in line or " netem " in line]


def measure() -> dict[str, dict[str, Any]]:
    """Every repetition's result by its lever's name; of the storm by generator and endpoint. The
    link is Fast Ethernet meanwhile, and what it was before at the end."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    run("playbooks/hosts.yml", **CALM)
    for host in (SERVER, CLIENT):
        ssh(host, f"rm -rf /var/lib/loadlab-runs/{RUN_ID}")
    # iperf3 long enough for the burst that the shape lets through not to count.
    closed = {**STORM, "endpoint": "hello,lookup,book", "generator": "wrk"}
    del closed["rate"]
    run(*stages("tune", "deploy", "calibrate"), **closed, network="fast_ethernet", iperf3_seconds=3)
    shaped = shapes()
    where = pull({"metronome": METRONOME, "wrk": WRK})
    run(*stages("load", "collect", "tune"), **STORM)
    results = {name: documents.load(path / "result.json") for name, path in where.items()}
    for path in FOLDER.glob("cells/*/rep-*/result.json"):
        one = documents.load(path)
        load = one["cell"]["load"]
        if load["connections"] == STORM["connections"]:
            results[f"{load['generator']} {one['cell']['endpoint']}"] = one
    results["folder"] = {name: str(path) for name, path in where.items()}
    results["shapes"] = {"shaped": shaped, "left": shapes()}
    return results


Levers = Measured[dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def measured() -> Levers:
    return Measured(measure)


def codes(one: dict[str, Any], kind: str = "reasons") -> set[str]:
    return {reason["code"] for reason in one["validity"][kind]}


@pytest.mark.parametrize("name", ["plain", "wrk_plain"])
def test_what_nothing_disturbs_is_valid(measured: Levers, name: str) -> None:
    one = measured.found[name]
    assert one["error"] is None
    with figures():
        assert codes(one) <= NOT_OURS, one["validity"]
    # Rate and latency agree in a real closed loop, but for the generator's own time.
    laws = [reason for reason in one["validity"]["findings"] if reason["code"] == "littles_law"]
    assert all(law["facts"]["by_latency"] < law["facts"]["counted"] for law in laws)


def test_the_calm_load_is_what_its_clients_wait_for(measured: Levers) -> None:
    one = measured.found["plain"]
    assert one["response_time"]["failed"] == 0
    assert one["response_time"]["mean_us"] == pytest.approx(one["latency_us"]["mean"])
    assert measured.found["wrk_plain"].get("response_time") is None


@pytest.mark.parametrize("reason", ["generator_cpu", "generator_stopped", "short", "connections"])
def test_each_reason_voids_for_real(measured: Levers, reason: str) -> None:
    one = measured.found[reason]
    with figures():
        assert reason in codes(one), one["validity"]
    assert not one["validity"]["valid"]


def test_accept_queue_that_overflows_is_a_finding(measured: Levers) -> None:
    with figures():
        found = measured.found["listen_overflows"]
        assert "listen_overflows" in codes(found, "findings")
        queues = found["telemetry"]["server"]["accept_queues"]
        (queue,) = (one for one in queues if one["socket"].endswith(":80"))
        assert queue["service"] == "reverse_proxy"
        # nginx listens with 4 from then on, and the kernel lets one more in.
        assert queue["limit"] == 4
        assert max(depth for depth in queue["depth"] if depth is not None) == 5


def test_a_slower_link_is_what_iperf_finds(measured: Levers) -> None:
    shapes = measured.found["shapes"]
    assert len(shapes["shaped"]) == 2
    assert all("dev test0" in line for line in shapes["shaped"])
    assert shapes["left"] == []
    link = documents.load(FOLDER / "calibration.json")["iperf3"]
    for direction in ("client_to_server", "server_to_client"):
        with figures():
            assert 90e6 < link[direction]["bits_per_second"] < 100e6


def test_a_link_that_is_full_voids(measured: Levers) -> None:
    """As much as iperf3 measured of Fast Ethernet."""
    one = measured.found["wrk book"]
    with figures():
        assert "link" in codes(one), one["validity"]
    assert not one["validity"]["valid"]


def test_a_server_at_its_limit_is_a_finding(measured: Levers) -> None:
    one = measured.found["metronome lookup"]
    with figures():
        assert codes(one) <= NOT_OURS, one["validity"]
        assert "saturated" in codes(one, "findings")
        # What was never sent is in no latency, and in the time that clients wait.
        assert one["response_time"]["failed"] > 0.1 * one["scheduled"]
    assert one["response_time"]["mean_us"] > one["latency_us"]["mean"]


def test_nobody_answers(measured: Levers) -> None:
    one = measured.found["nothing_answered"]
    assert (one["responses"], one["goodput"]) == (0, 0)
    assert one["errors"]["timeout"] > 0
    assert one["latency_us"]["censored"] > 0
    with figures():
        assert codes(one) <= NOT_OURS, one["validity"]
    wait = one["response_time"]
    assert wait["failed"] == wait["requests"]
    assert wait["p50_us"] >= 1e6 * THRESHOLDS.timeout_s


def test_a_dead_server_is_told_by_its_errors(measured: Levers) -> None:
    """nginx goes on answering, with 502; each is a request that got nothing."""
    one = measured.found["dead_server"]
    with figures():
        assert one["errors"]["status_5xx"] > 0.3 * one["requests"]
        assert one["goodput"] < 0.7 * one["rate_achieved"]
    assert one["response_time"]["failed"] >= one["errors"]["status_5xx"]
    assert one["response_time"]["mean_us"] > 100 * one["latency_us"]["mean"]


def test_another_body_than_verified_is_an_error(measured: Levers) -> None:
    one = measured.found["wrong_body"]
    assert one["errors"]["body"] > 0
    classes = [one["facts"].get("class") for one in one["validity"]["findings"] if "facts" in one]
    assert "body" in classes
    assert one["ok"] == one["responses"] - one["errors"]["body"] - one["errors"]["status_5xx"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("killed", "wrk ended with 137"),
        ("refused", "/hello answers otherwise than when it was verified: status 200, sha256 "),
    ],
)
def test_what_did_not_run_is_a_record_with_its_error(
    measured: Levers, name: str, words: str
) -> None:
    one = measured.found[name]
    assert words in one["error"]
    assert one["validity"]["reasons"] == [{"code": "failed", "value": one["error"]}]
    assert one["goodput"] is None


def added(pages: list[str], what: str, amounts: Iterable[float]) -> list[str]:
    """The pages with an amount each added to the values whose names match."""
    changed = []
    for page, amount in zip(pages, amounts, strict=False):
        lines = page.splitlines()
        for index, line in enumerate(lines):
            name, _, value = line.rpartition(" ")
            if re.fullmatch(what, name):
                lines[index] = f"{name} {float(value) + amount!r}"
        changed.append("\n".join(lines) + "\n")
    assert changed != pages
    return changed


def stolen(readings: list[str]) -> list[str]:
    """The readings of the cores, with two ticks of 20 in each that are another machine's."""
    changed = []
    for number, reading in enumerate(readings):
        lines = [line.split(" ") for line in reading.split("\n")]
        for fields in lines:
            if fields[0].startswith("cpu"):
                fields[8] = str(int(fields[8]) + 2 * number)
        changed.append("\n".join(" ".join(fields) for fields in lines))
    return changed


INJECTED: dict[str, Callable[[list[str]], list[str]]] = {
    # Half a second forward between the third page and the second.
    "clock_jump": lambda pages: added(pages, "node_time_seconds", chain([0, 0], repeat(0.5))),
    "swapping": lambda pages: added(pages, "node_vmstat_pswpin", count(0, 100)),
    "steal": stolen,
    # A first and a last page, none in between.
    "telemetry_gap": lambda pages: [pages[0], pages[-1]],
}


@pytest.mark.parametrize("reason", INJECTED)
@pytest.mark.parametrize("host", ["server", "client"])
def test_what_is_put_into_recorded_telemetry_voids(
    measured: Levers, reason: str, host: str, tmp_path: Path
) -> None:
    copy = tmp_path / "rep-1"
    shutil.copytree(measured.found["folder"]["plain"], copy)
    calibration = documents.read(FOLDER / "calibration.json", Calibration)
    before = derive_result.build(copy, THRESHOLDS, calibration)
    assert documents.encode(before) == (copy / "result.json").read_bytes()
    # The host's own recording has its cores.
    own = "cores.txt.gz" if host == "server" else f"cores-{host}.txt.gz"
    name, head = (own, "# reading ") if reason == "steal" else (f"telemetry-{host}.prom.gz", HEAD)
    path = copy / name
    first, *pages = gzip.decompress(path.read_bytes()).decode().split(head)
    changed = INJECTED[reason]([f"{head}{page}" for page in pages])
    path.write_bytes(gzip.compress("".join([first, *changed]).encode()))
    after = derive_result.build(copy, THRESHOLDS, calibration)
    assert after.error is None
    # A stack may need more memory than its server has, which is a finding.
    by_stack = (reason, host) == ("swapping", "server")
    told = after.validity.findings if by_stack else after.validity.reasons
    assert host in [one.facts["host"] for one in told if one.code == reason], after.validity
    assert by_stack or not after.validity.valid
