"""Tuning is taken back: whatever was put on top of what, and also after a crash half-way."""

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml

from .conftest import CLIENT, ROOT, SERVER, TESTED, playbook, run, ssh, stages

RUN_ID = "test-tuning"
PING = f"ping -q -n -c 5 -i 0.2 {TESTED['server']}"
POSTGRESQL = """systemctl is-enabled postgresql || true
    systemctl list-units --plain --no-legend --state=active 'postgresql*.service'"""
pytestmark = pytest.mark.lab

# All of sysctl but what counts or is random, whoever owns it; every file of settings; units and
# what runs of them; the limits of a service and of a session; the rest that the lab can set.
LOOK = r"""
    sysctl -a 2>/dev/null | grep -v -E \
    '^(fs.(aio-nr|dentry-state|file-nr|inode-|quota)|kernel.(ns_last_pid|pty.nr|random)|.*_count )'
    find /etc /usr/lib/systemd /var/lib/loadlab-tuning -type f | sort | xargs -r sha256sum
    find /etc -printf '%p %M %u:%g %l\n' | sort
    systemctl list-unit-files --no-legend --plain
    systemctl list-units --all --no-legend --plain --type=timer | awk '{ print $1, $3 }'
    systemctl list-units --no-legend --plain --type=service --state=active \
        | awk '$1 !~ /^(run-|user@|user-runtime)/ { print $1 }'
    systemctl show --property=DefaultLimitNOFILE,DefaultLimitNOFILESoft
    systemd-run --quiet --pipe --wait --collect sh -c 'ulimit -Sa; ulimit -Ha' </dev/null
    for user in root nobody; do su -s /bin/sh $user -c 'ulimit -Sa; ulimit -Ha' </dev/null; done
    cat /sys/kernel/mm/transparent_hugepage/enabled /proc/swaps
    ethtool -k test0; ethtool -l test0; ethtool -g test0
    cd / && runuser -u postgres -- psql -X -A -t \
        -c 'SELECT name, setting, pending_restart FROM pg_settings'
    true
"""


def look_at(host: str) -> list[str]:
    # An emulated machine takes its time.
    return ssh(host, LOOK, seconds=300).splitlines()


def look() -> dict[str, list[str]]:
    hosts = (SERVER, CLIENT)
    with ThreadPoolExecutor() as pool:
        return dict(zip(hosts, pool.map(look_at, hosts), strict=True))


def sysctl(host: str, key: str) -> str:
    return " ".join(ssh(host, f"sysctl -n {key}").split())


def setting(name: str) -> str:
    return ssh(SERVER, f"cd / && runuser -u postgres -- psql -X -A -t -c 'SHOW {name}'").strip()


def tune(name: str, *arguments: str, **variables: Any) -> str:
    return run("playbooks/tune.yml", "-v", *arguments, tuning=name, run_id=RUN_ID, **variables)


def states(host: str = "server") -> dict[str, str]:
    rows = json.loads((ROOT / "results" / RUN_ID / "tuning.json").read_text())["hosts"][host]
    return {row["key"]: row["state"] for row in rows}


def refused(name: str, **variables: Any) -> str:
    """What the tune stage printed that must refuse the profile."""
    process = playbook("playbooks/tune.yml", tuning=name, run_id=RUN_ID, **variables)
    output, _ = process.communicate(timeout=300)
    assert process.returncode != 0, output[-6000:]
    return output


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """What there is before tuning, with a PostgreSQL that runs: each test leaves it so."""
    run(*stages("hosts"), local_hosts_fresh=True)
    ssh(SERVER, "systemctl --quiet enable --now postgresql")
    return look()


@pytest.fixture
def profile() -> Iterator[Callable[..., str]]:
    """Writes a profile of the test's own, and names it."""
    path = ROOT / "files" / "tuning" / "a-test.yml"

    def write(**parts: Any) -> str:
        entries = {"sysctl": [], "machine": [], "postgresql": []} | parts
        path.write_text(yaml.safe_dump({"description": "a test's", **entries}))
        return path.stem

    yield write
    path.unlink()


def machine(key: str, value: Any, required: bool = False) -> dict[str, Any]:
    return {
        "key": key,
        "value": value,
        "hosts": ["servers", "clients"],
        "required": required,
        "reason": "a test's",
    }


def test_taken_back_whole(found: dict[str, list[str]]) -> None:
    ports = sysctl(CLIENT, "net.ipv4.ip_local_port_range")
    timer = "systemctl is-active systemd-tmpfiles-clean.timer || true"
    assert ssh(SERVER, timer) == "active\n"
    # Also that it does not run.
    ssh(SERVER, "systemctl --quiet disable --now postgresql")

    tune("production")
    assert ssh(SERVER, POSTGRESQL).startswith("enabled\npostgresql.service")
    assert sysctl(CLIENT, "net.ipv4.ip_local_port_range") == "1024 65535" != ports
    assert ssh(SERVER, timer) == "inactive\n"
    assert setting("jit") == "off"
    told = states()
    assert told["unit.systemd-tmpfiles-clean.timer"] == "applied"
    assert told["vm.swappiness"] == "not_namespaced"
    assert told["nic.ring.rx"] == "absent"
    assert told["nic.feature.tcp-segmentation-offload"] == "already"
    # The machine has no such states, or they are its own.
    idle = told["/sys/devices/system/cpu/cpu*/cpuidle/state[2-9]/disable"]
    assert idle in ("absent", "not_namespaced", "already")
    # As many as this machine grants: all that were asked for, or less, and then it says so.
    granted = int(ssh(SERVER, "systemd-run --quiet --pipe --wait --collect sh -c 'ulimit -n'"))
    assert granted > 1024
    assert told["limit.systemd.nofile"] == ("applied" if granted == 65536 else "clamped")

    # Check mode announces what another profile would restore, and restores nothing.
    tuned = look()
    announced = " ".join(tune("stock", "--check").split())
    assert "unit.systemd-tmpfiles-clean.timer: inactive -> active" in announced
    assert "server: PostgreSQL would get its own settings" in announced
    assert look() == tuned

    # Another on top: what only the first one set is put back at once.
    # And nginx, which the hosts have and do not run.
    run("playbooks/tune.yml", "tests/lab/nginx.yml", tuning="gasc-2015", run_id=RUN_ID)
    assert ssh(SERVER, "systemctl is-active nginx; ls /etc/nginx/loadlab | wc -l") == "active\n2\n"
    told = states()
    assert told["net.ipv4.tcp_tw_recycle"] == "absent"
    assert told["net.ipv4.tcp_wmem"] == "applied"
    assert told["unit.systemd-tmpfiles-clean.timer"] == "restored"
    assert setting("fsync") == "off"
    assert look() != found

    run("playbooks/untune.yml")
    assert ssh(SERVER, POSTGRESQL) == "disabled\n"
    ssh(SERVER, "systemctl --quiet enable --now postgresql")
    assert look() == found
    # Nor is a generator missed, which these hosts cannot have.
    again = run("playbooks/untune.yml", "-v", generator="wrk2")
    assert "changed=0" in again.rpartition("server  ")[2]


def test_a_host_of_ones_own_gets_its_units_back_without_the_controller(
    found: dict[str, list[str]],
) -> None:
    timer = "systemd-tmpfiles-clean.timer"
    told = tune("production", hosts_role="", tuning_hand_back_s=5)
    assert "stopped services and swap of server, client. The hosts start them again at 20" in told
    wait_for(f"systemctl is-active {timer}")
    assert sysctl(SERVER, "net.core.somaxconn") == "16384"
    # The next run stops them again, and has the timer wait longer.
    tune("production", hosts_role="")
    assert states()[f"unit.{timer}"] == "applied"
    left = "systemctl list-timers loadlab-hand-back.timer --output=json"
    (row,) = json.loads(ssh(SERVER, left))
    assert 3500e6 < row["next"] - time.time() * 1e6 < 3700e6
    # A boot ends the timer and starts the service.
    unit = "loadlab-hand-back"
    ssh(SERVER, f"systemctl stop {unit}.timer; systemctl is-enabled {unit}; systemctl start {unit}")
    assert ssh(SERVER, f"systemctl is-active {timer}; ls /etc/systemd/system").startswith("active")
    assert unit not in ssh(SERVER, "ls /etc/systemd/system")
    run("playbooks/untune.yml", hosts_role="")
    assert look() == found


def wait_for(moment: str) -> None:
    """Until the command succeeds on the server, for half a minute at most."""
    watch = f"for try in $(seq 1500); do {moment} >/dev/null 2>&1 && exit; sleep 0.02; done; exit 1"
    ssh(SERVER, watch)


# The first setting that takes; PostgreSQL's file written, and not in force.
@pytest.mark.parametrize(
    "moment",
    [
        "[ $(cat /proc/sys/net/core/somaxconn) = 16384 ]",
        "ls /etc/postgresql/*/main/conf.d/loadlab.conf",
    ],
    ids=["kernel", "postgresql"],
)
def test_taken_back_after_a_crash(found: dict[str, list[str]], moment: str) -> None:
    tuning = playbook("playbooks/tune.yml", tuning="production", run_id=RUN_ID)
    wait_for(moment)
    tuning.send_signal(signal.SIGKILL)
    tuning.wait()
    # What was sent to the hosts goes on there for a moment.
    time.sleep(5)
    assert look() != found

    run("playbooks/untune.yml")
    assert look() == found


def test_an_nginx_of_ones_own_is_put_back_also_after_a_crash(found: dict[str, list[str]]) -> None:
    def deployed() -> str:
        """What the next run would take for granted."""
        script = (ROOT / "roles/host_check/files/in_use.sh").read_text()
        lines = ssh(SERVER, f"MARK=/nowhere PATHS= PROXIES=; {script}").splitlines()
        (line,) = [line for line in lines if line.startswith("deployed\t")]
        return line.partition("\t")[2]

    mine = "user www-data; events {} http { server { listen 127.0.0.1:80; return 204; } }"
    ssh(
        SERVER,
        "cd /etc/nginx; cp -p nginx.conf /root/; "
        f"echo '{mine}' >nginx.conf; chmod 600 nginx.conf; systemctl --quiet enable --now nginx",
    )
    before = look_at(SERVER)

    told, _ = playbook("tests/lab/nginx.yml", run_id=RUN_ID).communicate(timeout=300)
    assert "what its package did not bring: /etc/nginx/nginx.conf." in " ".join(told.split())
    assert look_at(SERVER) == before
    deploying = playbook("tests/lab/nginx.yml", run_id=RUN_ID, take_over=True)
    wait_for("grep /lab/status /etc/nginx/nginx.conf")
    deploying.send_signal(signal.SIGKILL)
    deploying.wait()
    time.sleep(2)
    run("tests/lab/nginx.yml", run_id=RUN_ID, take_over=True)
    assert "of-a-test" in deployed()
    assert look_at(SERVER) != before

    run("playbooks/untune.yml")
    assert look_at(SERVER) == before
    assert ssh(SERVER, "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1/") == "204"
    assert "of-a-test" not in deployed()
    ssh(SERVER, "systemctl --quiet disable --now nginx; mv /root/nginx.conf /etc/nginx/")
    assert look() == found


def test_what_is_gone_and_what_refuses_keep_nothing_else_from_being_put_back(
    found: dict[str, list[str]], profile: Callable[..., str]
) -> None:
    offload = "nic.feature.tcp-segmentation-offload"
    folder = "/run/systemd/system"

    def start(unit: str) -> str:
        service = r"[Service]\nType=exec\nExecStart=/usr/bin/sleep infinity\n"
        write = f"mkdir -p {folder}; printf '{service}' >{folder}/{unit}"
        return f"{write}; systemctl daemon-reload; systemctl start {unit}"

    units = ["a-test-purged.service", "a-test-broken.service"]
    ssh(SERVER, "; ".join(start(unit) for unit in units))
    name = profile(
        machine=[
            machine(offload, "off"),
            machine("nic.channels.rx", 2),
            *({**machine(f"unit.{unit}", "inactive"), "hosts": ["servers"]} for unit in units),
        ],
        postgresql=[{"name": "fsync", "value": "off", "reason": "a test's"}],
    )
    tune(name)
    assert set(states().values()) == {"applied"}
    assert "tcp-segmentation-offload: off" in ssh(CLIENT, "ethtool -k test0")
    assert setting("fsync") == "off"

    purged, broken = units
    spoil = f"rm {folder}/{purged}; sed -i s,/sleep,/nosuch, {folder}/{broken}"
    ssh(SERVER, f"{spoil}; systemctl daemon-reload")
    process = playbook("playbooks/untune.yml")
    output, _ = process.communicate(timeout=300)
    assert process.returncode != 0, output[-6000:]
    told = " ".join(output.split())
    assert "server is not as it was found: Settings that are required did not take" in told
    assert f"unit.{broken}: asked active, is inactive (rejected)" in told
    assert purged not in told
    assert "client: 2 settings of the machine are as they were found" in told
    assert setting("fsync") == "on"
    assert "tcp-segmentation-offload: on" in ssh(SERVER, "ethtool -k test0")
    assert ssh(SERVER, "cat /var/lib/loadlab-tuning/*") == f"unit.{broken} = active\n"

    # What is left is tried again. The files of a PostgreSQL that does not run are removed.
    conf = "/etc/postgresql/*/main/conf.d"
    stop = f"systemctl stop {broken} 'postgresql*'"
    ssh(SERVER, f"{start(broken)}; {stop}; touch $(echo {conf})/loadlab.conf")
    run("playbooks/untune.yml")
    seen = ssh(SERVER, f"systemctl is-active {broken}; ls {conf}").split()
    assert (seen[0], "loadlab.conf" in seen) == ("active", False)
    ssh(
        SERVER, f"{stop}; systemctl start postgresql; rm {folder}/{broken}; systemctl daemon-reload"
    )
    assert look() == found


def test_a_required_setting_that_does_not_take_ends_the_play(
    found: dict[str, list[str]], profile: Callable[..., str]
) -> None:
    name = profile(machine=[machine("nic.ring.rx", 4096, required=True), machine("swap", "off")])
    told = refused(name)
    assert "nic.ring.rx: asked 4096, is None (absent)" in told
    run("playbooks/untune.yml")
    assert look() == found


def test_settings_that_postgresql_refuses(
    found: dict[str, list[str]], profile: Callable[..., str]
) -> None:
    tune("production")
    # The last lines are PostgreSQL's settings.
    before = look_at(SERVER)[-400:]
    for name, value, reason in (
        ("shared_bufers", "1GB", "unrecognized configuration parameter"),
        ("work_mem", "plenty", 'invalid value for parameter "work_mem"'),
        # Only a start tells.
        ("shared_buffers", "2000GB", "Cannot allocate memory"),
    ):
        bad = profile(postgresql=[{"name": name, "value": value, "reason": "a test's"}])
        told = refused(bad)
        assert reason in told
        assert "Its former settings are in force." in told
        assert look_at(SERVER)[-400:] == before
        assert setting("jit") == "off"
    run("playbooks/untune.yml")
    assert look() == found


def test_postgresql_is_restarted_only_where_a_setting_takes_that(
    found: dict[str, list[str]], profile: Callable[..., str]
) -> None:
    started = "cd / && runuser -u postgres -- psql -X -A -t -c 'SELECT pg_postmaster_start_time()'"
    # Its first start in which it counts statements.
    tune("stock")
    assert states() == {}
    before = ssh(SERVER, started)
    reload = {"name": "work_mem", "value": "8MB", "reason": "a test's"}
    tune(profile(postgresql=[reload]))
    assert (setting("work_mem"), ssh(SERVER, started)) == ("8MB", before)
    restart = {"name": "max_connections", "value": "123", "reason": "a test's"}
    tune(profile(postgresql=[reload, restart]))
    assert setting("max_connections") == "123"
    assert ssh(SERVER, started) != before
    run("playbooks/untune.yml")
    assert look() == found


def test_pools_that_do_not_fit_are_refused_before_anything_is_changed(
    found: dict[str, list[str]],
) -> None:
    told = refused("stock", framework="aiohttp", workers=10)
    assert "aiohttp would open 10 workers x 10 = 100 database connections" in told
    assert "Nothing was changed on the hosts." in told
    assert look() == found


def test_a_delay_alone_is_had_on_every_kernel_and_goes_again(found: dict[str, list[str]]) -> None:
    tune("stock", network="continental")
    (round_trip,) = re.findall(r"= ([0-9.]+)/", ssh(CLIENT, PING))
    assert 45 <= float(round_trip) < 60
    pid = "systemctl show --property=MainPID --value loadlab-delay"
    relay = ssh(CLIENT, pid)
    tune("stock", network="continental")
    assert ssh(CLIENT, pid) == relay != "0"
    tune("stock", network="lan")
    (direct,) = re.findall(r"= ([0-9.]+)/", ssh(CLIENT, PING))
    assert float(direct) < 10
    run("playbooks/untune.yml")
    assert look() == found


def test_a_network_profile_is_refused_where_the_kernel_cannot_have_it(
    found: dict[str, list[str]],
) -> None:
    shape = "unshare --net tc qdisc add dev lo root netem delay 1ms 2>/dev/null"
    if ssh(SERVER, f"{shape} && echo yes || true").strip():
        tune("stock", network="transatlantic")
        run("playbooks/untune.yml")
    else:
        words = " ".join(refused("stock", network="transatlantic").split())
        assert "the network profile transatlantic needs netem" in words
        assert "use a profile with a rate only (-e network=gigabit)" in words
        assert "Nothing was changed" in words
    assert look() == found
