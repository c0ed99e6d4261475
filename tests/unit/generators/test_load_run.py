import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadlab.generators.load import load_run
from loadlab.generators.load.load_run import LoadRun, LoadRunInput, Offer
from loadlab.model import HostCpus, HostInterfaces, Load
from loadlab.reasons.validity_reasons import VOID
from loadlab.run import documents
from loadlab.run.errors import ResultError
from tests.unit import builders, stand_ins

HOST = {"cpus": [0, 1], "interface": "eth1"}
HOSTS = {
    name: {**HOST, "exporter": f"http://{name}:9109/metrics"}
    for name in ("server", "client", "clientb")
}
CONSTANT = {
    "generator": "oha",
    "mode": "constant",
    "rate": 401,
    "connections": 5,
    "duration_s": 30,
    "warmup_s": 10,
    "keepalive": True,
    "timeout_s": 2,
}
BATCH = {
    "generator": "python-async",
    "mode": "batch",
    "rate": None,
    "connections": 500,
    "requests": 500,
    "open_files": 1024,
    "reuse": True,
    "duration_s": None,
    "warmup_s": 0,
    "timeout_s": 2,
}
DIR = "/lab/results/one/cells/x/rep-2"
REMOTE = "/var/lib/loadlab-runs/one/cells/x/rep-2"


def run(load: dict[str, Any], **changed: Any) -> LoadRun:
    asked: dict[str, Any] = {
        "item": {
            "cell_id": "x",
            "repetition": 2,
            "purpose": "measure",
            "cell": {**msgspec.to_builtins(builders.cell()), "load": load},
            "seconds_left": 40,
        },
        "dir": DIR,
        "url": "http://10.0.0.1:80/index",
        "request": {},
        "answer": {"status": 200, "sha256": "ab", "body_bytes": 17, "wire_bytes": 180},
        "server": "server",
        "client": "client",
        "hosts": HOSTS,
        "keep_requests": True,
        "status": "http://10.0.0.1/lab/status",
        "beside": "",
        "clients": [],
        "started": [],
        "restart": ["loadlab-app"],
        "again": False,
        "units": {"nginx": "nginx.service", "application": "loadlab-app.service"},
        "requests_log": "/var/log/nginx/loadlab.log",
        "errors_log": "/var/log/nginx/error.log",
        "database": "loadlab",
        **changed,
    }
    return load_run.load_run(documents.decode(asked, LoadRunInput, "test"))


def words_of(command: str, unit: str, option: str) -> list[str]:
    """The values of an option of the systemd-run that starts a unit."""
    _, _, after = command.partition(f"--unit={unit} ")
    words = shlex.split(after.partition(" && systemd-run")[0])
    return [word.removeprefix(option) for word in words if word.startswith(option)]


def variables(offer: Offer) -> dict[str, str]:
    found = dict(word.split("=", 1) for word in words_of(offer.begin, "loadlab-load", "--setenv="))
    assert found.pop("BEGIN_AT") == "$BEGIN_AT"
    return found


def rights(offer: Offer) -> list[str]:
    return words_of(offer.begin, "loadlab-load", "--property=")


def test_a_load_may_have_a_request_timeout_of_its_own() -> None:
    labs, own = run({**CONSTANT, "timeout_s": None}), run({**CONSTANT, "timeout_s": 60})
    assert [variables(one.offers[0])["REQUEST_TIMEOUT"] for one in (labs, own)] == ["30", "60"]
    assert "-t 60s" in variables(own.offers[0])["MEASURE"]
    assert own.most_s - labs.most_s == 2 * (60 - 30)


def test_one_client_offers_the_whole_load() -> None:
    found = run(CONSTANT)
    (offer,) = found.offers
    assert (offer.name, found.remote) == ("client", REMOTE)
    assert offer.exporter == "http://client:9109/metrics"
    assert offer.begin.startswith(f"install -d -o loadlab -g loadlab {REMOTE} {REMOTE} && ")
    assert offer.end.startswith(f"cd {REMOTE} || exit 1; for try in $(seq 520); do ")
    given = variables(offer)
    assert given["MEASURE"] == (
        "timeout 62 oha --no-tui --no-color --output-format json -o oha.json --db-url oha.sqlite "
        "-z 30s -w -q 401 --latency-correction --redirect 0 -c 5 --worker-threads 2 -t 2s "
        "--connect-timeout 2s http://10.0.0.1:80/index"
    )
    assert given["WARM_UP"].startswith("timeout 42 oha ")
    assert "-o warmup.json --db-url warmup.sqlite -z 10s " in given["WARM_UP"]
    assert given | {"WARM_UP": "", "MEASURE": ""} == {
        "DIR": REMOTE,
        "GENERATOR": "oha",
        "WARM_UP": "",
        "MEASURE": "",
        "SATURATE": "",
        "PRINTS": "",
        "URL": "http://10.0.0.1:80/index",
        "MIX": "",
        "STATUS_URL": "http://10.0.0.1/lab/status",
        "LANES": "",
        "HTTP2": "false",
        "HEADERS": "",
        "CERTIFICATE": "",
        "METHOD": "GET",
        "BODY": "",
        "STATUS": "200",
        "BODY_SHA256": "ab",
        "BODY_BYTES": "17",
        "BODY_MOST": "17",
        "REQUEST_TIMEOUT": "2",
        "WARMUP": "10",
        "SETTLE": "2",
        "PAUSE_AFTER": "0.5",
        "PORTS": "",
        "PAUSE": "0",
        "BESIDE_URL": "",
    }
    assert (found.lead_s, found.expected_s, found.most_s) == (10, 40, 104)
    assert found.observer_most_s == 100
    assert {path: (host.name, host.exporter) for path, host in found.scrape.items()} == {
        f"{DIR}/telemetry-{name}.prom.gz": (name, f"http://{name}:9109/metrics")
        for name in ("server", "client")
    }
    assert found.record.clients is None


def test_each_kind_of_a_mix_is_verified_and_sent() -> None:
    answer = {"status": 200, "sha256": "cd", "body_bytes": 5, "wire_bytes": 99}
    kinds = [
        {"name": name, "weight": weight, "url": f"http://10.0.0.1:80/{name}", "answer": answer}
        for name, weight in (("index", 3), ("new", 1))
    ]
    requests: tuple[dict[str, Any], ...] = (
        {},
        {"method": "POST", "body": "a b", "headers": {"X-A": "1"}},
    )
    mix = [{**kind, "request": own} for kind, own in zip(kinds, requests, strict=True)]
    found = run({**CONSTANT, "generator": "metronome"}, mix=mix)
    given = variables(found.offers[0])
    first, second = given["MIX"].split("; verify answer-index.body; ")
    assert first.startswith("URL=http://10.0.0.1:80/index HEADERS='' METHOD=GET BODY='' STATUS=200")
    assert shlex.split(second)[1:4] == ["HEADERS=X-A: 1", "METHOD=POST", "BODY=a b"]
    plan = json.loads(shlex.split(given["MEASURE"])[3])
    assert [(kind["weight"], kind["answer"]["body"]) for kind in plan["kinds"]] == [
        (3, "answer-index.body"),
        (1, "answer-new.body"),
    ]
    # The answers differ in length.
    assert (found.record.body_bytes, found.record.wire_bytes) == (None, None)


def test_a_log_is_played_with_the_host_of_the_application() -> None:
    replay = {"log_sha256": "ab" * 32, "speed": 2, "query": False, "lines": 5, "requests": 4}
    more = {"busiest": 3, "kinds": [("/a", 3), ("other paths", 1)], "left_out": {"POST": 1}}
    load = {**CONSTANT, "generator": "metronome", "replay": {**replay, **more}}
    found = run(load, request={"headers": {"Host": "localhost", "X-A": "1"}})
    plan = json.loads(shlex.split(variables(found.offers[0])["MEASURE"])[3])
    assert plan["schedule"]["replay"] == "/usr/local/lib/loadlab/replay"
    headers = [dict(kind["headers"]) for kind in plan["kinds"]]
    assert headers == [{"Host": "localhost"}, {"Host": "localhost", "X-A": "1"}]
    # The answers differ in length.
    assert (found.record.body_bytes, found.record.wire_bytes) == (None, None)


def test_several_clients_share_the_load_and_begin_together() -> None:
    several = {**CONSTANT, "clients": 2}
    found = run(several, clients=["client", "clientb"], beside="http://10.0.0.1/hello")
    first, second = found.offers
    assert (first.name, second.name) == ("client", "clientb")
    assert second.begin.startswith(
        f"install -d -o loadlab -g loadlab {REMOTE} {REMOTE}/clients/clientb && "
    )
    assert second.end.startswith(f"cd {REMOTE}/clients/clientb || ")
    assert " -q 201 " in variables(first)["MEASURE"]
    assert (
        " -q 200 --latency-correction --redirect 0 -c 2 --worker-threads 2 "
        in variables(second)["MEASURE"]
    )
    assert [variables(one)["BESIDE_URL"] for one in found.offers] == ["http://10.0.0.1/hello", ""]
    assert (found.lead_s, found.expected_s) == (15, 45)
    assert msgspec.to_builtins(found.record.clients) == [
        {"name": "client", "rate": 201, "connections": 3, **HOST},
        {"name": "clientb", "rate": 200, "connections": 2, **HOST},
    ]
    assert list(found.scrape)[1:] == [
        f"{DIR}/clients/{name}/telemetry-client.prom.gz" for name in ("client", "clientb")
    ]
    assert found.until.startswith(f"cd {REMOTE}/clients/client && cat progress.txt; ")
    # The sandbox lets each write to the repetition's folder, which has its own in it.
    assert f"ReadWritePaths={REMOTE}" in rights(second)


def test_a_batch_has_no_duration_and_waits_for_its_ports() -> None:
    found = run(BATCH)
    given = variables(found.offers[0])
    assert (given["PORTS"], given["PAUSE"], given["WARM_UP"]) == ("500", "1.5", "")
    assert " async http://10.0.0.1:80/index --requests 500 " in given["MEASURE"]
    # 80 s, the timeout of the only round, and 0.02 s of CPU time for each request.
    assert given["MEASURE"].startswith("timeout 124 /opt/loadlab/clients/venv/bin/python ")
    assert (found.expected_s, found.most_s) == (0, 92 + 4 + 60)
    assert "for try in 1; do [ ! -e run.json ] || exit 0; done; ! systemctl" in found.until
    unreused = {**BATCH, "reuse": False, "requests": 900}
    assert variables(run(unreused).offers[0])["PORTS"] == "900"
    longest = run({**BATCH, "connections": 1, "requests": 1_000_000})
    assert longest.most_s == 86_400 + 4 + 60


def test_the_load_has_the_options_that_were_asked_for() -> None:
    asked = {"tls": True, "http2": True, "headers": {"X-b": "it's", "x-A": "$HOME *"}}
    (offer,) = run({**CONSTANT, **asked}, url="https://10.0.0.1/index").offers
    given = variables(offer)
    assert given["HTTP2"] == "true"
    assert given["CERTIFICATE"] == "/usr/local/lib/loadlab/10.0.0.1.pem"
    assert given["HEADERS"] == "x-A: $HOME *\nX-b: it's"
    argv = shlex.split(given["MEASURE"])
    assert "--http2" in argv
    assert argv[-5:] == ["https://10.0.0.1/index", "-H", "x-A: $HOME *", "-H", "X-b: it's"]
    closed = {**CONSTANT, "generator": "wrk", "mode": "closed", "rate": None, "keepalive": False}
    given = variables(run({**closed, "warmup_s": 0}).offers[0])
    assert " -H 'Connection: close' " in given["MEASURE"]
    assert (given["WARM_UP"], given["PRINTS"]) == ("", "yes")


def test_the_bursts_of_a_closed_loop_reach_its_script() -> None:
    closed = {**CONSTANT, "generator": "wrk", "mode": "closed", "rate": None}
    (offer,) = run({**closed, "burst_every_s": 2, "headers": {"A": "b"}}).offers
    for name in ("WARM_UP", "MEASURE"):
        argv = shlex.split(variables(offer)[name])
        assert argv[2:5] == ["env", "LAB_BURST_EVERY_MS=2000", "wrk"]
        assert argv[-2:] == ["-H", "A: b"]
    assert "env" not in shlex.split(variables(run(closed).offers[0])["MEASURE"])


def test_a_ramp_is_warmed_up_at_its_first_rate() -> None:
    def rates(ramp: list[tuple[float, float]]) -> list[tuple[float, bool]]:
        load = {**CONSTANT, "generator": "metronome", "rate": 60, "arrivals": {"ramp": ramp}}
        given = variables(run(load).offers[0])
        plans = [json.loads(shlex.split(given[name])[-1]) for name in ("WARM_UP", "MEASURE")]
        return [(plan["schedule"]["rate"], "ramp" in plan["schedule"]) for plan in plans]

    assert rates([(0, 2), (5, 2), (5, 6), (10, 6)]) == [(30, False), (60, True)]
    # Where that is 0, at the mean.
    assert rates([(0, 0), (10, 3)]) == [(60, False), (60, True)]


def test_only_a_snap_has_no_sandbox() -> None:
    asked = {**CONSTANT, "generator": "wrk2", "clients": 2}
    both = {"client": {**HOSTS["client"], "snaps": ["wrk2"]}}
    snap, own = run(asked, clients=["client", "clientb"], hosts={**HOSTS, **both}).offers
    # The last is that a load which hangs ends without its controller.
    assert rights(snap) == ["LimitNOFILE=1048576", "OOMScoreAdjust=1000", "RuntimeMaxSec=109"]
    assert {"User=loadlab", "NoNewPrivileges=true"} <= set(rights(own))
    assert rights(run(CONSTANT).offers[0])[:-1] == rights(own)[:-1]


@pytest.mark.parametrize(
    ("changed", "restart"),
    [
        ({}, ["start nginx postgresql", "restart loadlab-app"]),
        ({"again": True}, ["start nginx postgresql", "start loadlab-app"]),
        # The application began without its database.
        ({"again": True, "down": "postgresql@17-main"},
         ["start nginx postgresql", "restart loadlab-app"]),
        ({"again": True, "early": False}, ["start nginx postgresql", "restart loadlab-app"]),
        ({"again": True, "started": []}, ["start loadlab-app"]),
        ({"restart": []}, []),
    ],
)  # fmt: skip
def test_the_stack_is_restarted(
    tmp_path: Path, changed: dict[str, Any], restart: list[str]
) -> None:
    """Runs the command with a systemctl that starts what is down and keeps what it was asked."""
    asked = {"started": ["nginx", "postgresql"], "early": True, "down": "", **changed}
    early, down = asked.pop("early"), asked.pop("down")
    found = run(CONSTANT, **asked)
    assert bool(found.restart_early) == bool(restart)
    systemctl = f"""cd {tmp_path}
case $1 in
--quiet) exit 3 ;;
show) for unit in nginx.service postgresql@17-main.service; do
    printf 'Id=%s\nInvocationID=%s\n\n' $unit "$(cat $unit 2>/dev/null)"; done ;;
*)  echo "$*" >>done; [ "$1" != start ] || [ -z "{down}" ] || echo 2 >{down}.service ;;
esac"""
    stand_ins.put(tmp_path, {"systemctl": systemctl})
    (tmp_path / "systemd-run").symlink_to("/bin/true")
    mark = tmp_path / "restarted"
    if early:
        mark.touch()
    command = found.prepare.replace("/run/loadlab-restarted", str(mark))
    command = command.replace("/run/loadlab-begun", str(tmp_path / "begun"))
    command = command.replace("/sys/class/net/eth1", "/sys/class/net/lo")
    environment = {"PATH": stand_ins.before(tmp_path)}
    subprocess.run(["sh", "-c", command], env=environment, check=True)
    assert not restart or not mark.exists()
    log = tmp_path / "done"
    assert (log.read_text().splitlines() if log.exists() else []) == restart


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("", ""),
        ("rm begun", "was booted during the load. Find out who boots it: its journal says."),
        ("echo stopping >state", "is being shut down. Find out who does it: its journal says."),
        ("echo 0 >free", "the disk with /var/lib/loadlab-runs is full. Free some of it."),
        # Only where the load failed: a load that ends is void as link_down.
        ("echo 5 >lost", ""),
        ("echo 5 >lost; echo no answer >error.txt",
         f"the link eth1 was down during the load. {VOID['link_down'].remedy}. no answer"),
        ("echo no answer >error.txt", "no answer"),
    ],
)  # fmt: skip
def test_accidents_of_a_host_are_the_error_of_its_load(
    tmp_path: Path, fault: str, words: str
) -> None:
    (offer,) = run(CONSTANT).offers
    command = offer.end.replace(REMOTE, str(tmp_path))
    command = command.replace("/run/loadlab-begun", str(tmp_path / "begun"))
    command = command.replace("/sys/class/net/eth1/carrier_down_count", str(tmp_path / "lost"))
    files = {"begun": "4", "lost": "4", "free": "900 * 4096", "run.json": "{}", "state": "running"}
    for name, content in files.items():
        (tmp_path / name).write_text(f"{content}\n")
    subprocess.run(["sh", "-c", fault], cwd=tmp_path, check=True)
    systemctl = f'[ "$1" != is-system-running ] || cat {tmp_path}/state; exit 3'
    slept = f'[ "$1" != 120 ] || rm {tmp_path}/state'
    stand_ins.put(
        tmp_path, {"systemctl": systemctl, "stat": f"cat {tmp_path}/free", "sleep": slept}
    )
    environment = {"PATH": stand_ins.before(tmp_path)}
    ended = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True)
    assert ended.returncode == bool(words)
    assert ended.stderr.strip() == words
    # Until the connection is lost, and its next attempt finds the host booted.
    assert (tmp_path / "state").exists() == ("shut down" not in words)


def test_a_folder_that_is_gone_is_no_full_disk(tmp_path: Path) -> None:
    command = run(CONSTANT).end_recording.replace(REMOTE, str(tmp_path / "gone"))
    command = command.replace("/run/loadlab-begun", str(tmp_path))
    stand_ins.put(tmp_path, {"systemctl": "exit 3", "journalctl": "true"})
    environment = {"PATH": stand_ins.before(tmp_path)}
    ended = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True)
    words = f"the folder {tmp_path}/gone was removed during the load. Find out who removes it."
    assert (ended.returncode, ended.stderr.strip()) == (1, words)


def test_the_hosts_are_recorded_and_the_server_profiled() -> None:
    found = run({**CONSTANT, "stall": {"after_s": 3, "duration_s": 2}})
    session = "SESSION=$(sed -n 's/^0:://p' /proc/self/cgroup)"
    assert words_of(found.prepare, "loadlab-record", "--setenv=") == [
        session,
        f"DIR={REMOTE}",
        "SUFFIX=",
        "UNITS=application=loadlab-app.service nginx=nginx.service",
        "DATABASE=loadlab",
        "REQUESTS=/var/log/nginx/loadlab.log",
        "ERRORS=/var/log/nginx/error.log",
    ]
    ends = ["KillMode=mixed", "RuntimeMaxSec=104"]
    assert words_of(found.prepare, "loadlab-record", "--property=") == ends
    (offer,) = found.offers
    assert words_of(offer.begin, "loadlab-record", "--setenv=") == [
        session,
        f"DIR={REMOTE}",
        "SUFFIX=-client",
        "UNITS=generator=loadlab-load.service",
        "DATABASE=",
    ]
    assert words_of(offer.begin, "loadlab-record", "--property=") == [*ends, "User=loadlab"]
    assert shlex.split(found.observer_options) == [
        f"--setenv=DIR={REMOTE}",
        "--setenv=AFTER=10",
        "--setenv=SECONDS_LONG=28",
        "--setenv=UNITS=application=loadlab-app.service nginx=nginx.service",
        "--setenv=LOCK_SECONDS=5",
        "--setenv=RATE=100",
    ]
    assert found.observer == ""
    (fault,) = found.faults
    assert fault.host == "server"
    assert "sleep 13; systemctl kill --signal=STOP loadlab-app; sleep 2;" in fault.begin
    assert run(CONSTANT).faults == []


def test_the_record_identifies_the_measurement() -> None:
    record = run(CONSTANT).record
    assert (record.cell_id, record.repetition, record.purpose) == ("x", 2, "measure")
    assert record.cell.load == documents.decode(CONSTANT, Load, "load")
    assert (record.server, record.url) == ("server", "http://10.0.0.1:80/index")
    assert (record.body_bytes, record.wire_bytes) == (17, 180)
    assert record.cpus == HostCpus(server=[0, 1], client=[0, 1])
    assert record.interface == HostInterfaces(server="eth1", client="eth1")
    assert record.clients is None


def test_the_record_names_emulated_hosts() -> None:
    hosts = {**HOSTS, "client": {**HOSTS["client"], "emulated": True}}
    assert run(CONSTANT, hosts=hosts).record.emulated == ["client"]
    assert run(CONSTANT).record.emulated is None


def test_a_load_that_is_none_is_refused() -> None:
    with pytest.raises(ResultError, match=r"test: .*item.cell.load.connections"):
        run({**CONSTANT, "connections": 0})
    with pytest.raises(ResultError, match=r"test: mode constant with .*duration None"):
        run({**CONSTANT, "duration_s": None})


def test_a_failure_has_the_reason_of_each_item_that_failed() -> None:
    assert load_run.failure({"msg": "non-zero return code", "stderr": " broken \n"}) == "broken"
    assert load_run.failure({"msg": "unreachable"}) == "unreachable"
    good, bad = {"failed": False, "stderr": "a warning"}, {"failed": True, "stderr": "down"}
    assert load_run.failure({"results": [good, bad]}) == "down"
    assert load_run.failure({"results": [bad, {"failed": True, "msg": "full"}]}) == "down; full"


def test_several_clients_begin_the_later_the_slower_their_commands_are() -> None:
    assert load_run.until_begin_s(15, 0) == 15
    assert load_run.until_begin_s(15, 0.5) == 16


def test_nothing_of_a_measurement_is_written(tmp_path: Path) -> None:
    run(CONSTANT, dir=str(tmp_path / "one/cells/x/rep-1"))
    assert list(tmp_path.iterdir()) == []


def test_stacks_side_by_side_share_a_load_and_have_records_of_their_own() -> None:
    turns = {"closed_s": 4, "slice_s": 0.2}
    load = {**CONSTANT, "generator": "metronome", "rate": 300, "lanes": turns}
    cell = {**msgspec.to_builtins(builders.cell()), "load": load}
    lanes = [
        {
            "place": place,
            "cell_id": name,
            "repetition": 2,
            "purpose": "measure",
            "cell": {**cell, "variant": name},
            "dir": f"/lab/results/one/cells/{name}/rep-2",
            "url": f"http://10.0.0.1:820{place}/index",
            "status": f"http://10.0.0.1:820{place}/lab/status",
            "units": {f"application-{place}": f"loadlab-app-{place}.service"},
        }
        for name, place in (("base", 2), ("head", 1))
    ]
    planned = run(load, lanes=lanes)
    records = [planned.record, *planned.beside.values()]
    assert [record.cell.variant for record in records] == ["base", "head"]
    assert list(planned.beside) == ["/lab/results/one/cells/head/rep-2"]
    assert [record.lane and record.lane.place for record in records] == [2, 1]
    assert records[0].lane
    assert (records[0].lane.first, records[0].lane.cells) == ("x", {"base": 2, "head": 1})
    assert records[1].url == "http://10.0.0.1:8201/index"
    offered = variables(planned.offers[0])
    assert offered["LANES"].splitlines() == [
        f"place-{place} http://10.0.0.1:820{place}/index http://10.0.0.1:820{place}/lab/status"
        for place in (2, 1)
    ]
    plan = json.loads(shlex.split(offered["MEASURE"])[-1])
    assert plan["schedule"]["rate"] == 600
    assert [lane["name"] for lane in plan["lanes"]] == ["place-2", "place-1"]
    closed = json.loads(shlex.split(offered["SATURATE"])[-1])
    assert (closed["output"], closed["schedule"]["closed"]) == ("saturation", True)
    assert closed["lanes"] == plan["lanes"]
    assert planned.expected_s == 40 + 0.5 + 4
    alone = variables(run(CONSTANT).offers[0])
    assert (alone["LANES"], alone["SATURATE"]) == ("", "")
    answer = {"status": 200, "sha256": "cd", "body_bytes": 5, "wire_bytes": 99}
    mix = [
        {"name": name, "weight": 1, "url": f"http://x/{name}", "request": {}, "answer": answer}
        for name in ("index", "new")
    ]
    mixed = variables(run(load, lanes=lanes, mix=mix).offers[0])
    # Each kind of each stack.
    assert [part.split()[0] for part in mixed["MIX"].split("; ")[::2]] == [
        f"URL=http://10.0.0.1:820{place}/{name}" for place in (2, 1) for name in ("index", "new")
    ]
    for command in ("MEASURE", "SATURATE"):
        plan = json.loads(shlex.split(mixed[command])[-1])
        assert [kind["path"] for kind in plan["kinds"]] == ["/index", "/new"]
        assert "mix_seed" in plan["schedule"]
