"""What listens, what runs as whom, where secrets lie, and what a hostile server can do.

docs/security.md is what the hosts are compared with.
"""

import gzip
import re
import resource
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .conftest import (
    CLIENT,
    ROOT,
    SERVER,
    STATE,
    TESTED,
    finish,
    playbook,
    results,
    run,
    ssh,
    stages,
)
from .test_truth import wait_until_measuring

pytestmark = [pytest.mark.lab, pytest.mark.core]

DOCS = (ROOT / "docs/security.md").read_text()
RUN_ID, HOSTILE_ID = "test-security", "test-security-hostile"
FOLDER = ROOT / "results" / RUN_ID
# Of the management link and of the test link.
ADDRESSES = {"server": SERVER, "client": CLIENT}
ASKED: dict[str, Any] = {
    "framework": "aiohttp",
    "tls": True,
    "endpoint": "index,hello,agents,lookup,upstream",
    "run_id": RUN_ID,
}
CALM = {"rate": 50, "connections": 4, "duration": 2, "warmup": 0}
# When what is asked for here has something listening.
WHEN = {
    "always",
    "on local hosts",
    "with `-e tls=true`",
    "over a unix socket",
    "for endpoints that ask it",
}
# No variable of the lab's, so it may be a secret.
GIVEN = f"given-{secrets.token_hex(16)}"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
# Beside what the server records of itself: what its client measured and the controller wrote, a
# link out of the folder, other folders, and names for a terminal.
PLANTED = r"""set -eu
cd /var/lib/loadlab-runs/{run}
odd=$(printf 'a\033[31mb')
rep=cells/{cell}/rep-1
mkdir -p $rep/clients/client cells/other/more/rep-1 "cells/$odd/rep-1" report.html/a/rep-1
cd $rep
for name in metronome.json wrk.txt cell.json run.json result.json clients/client/metronome.json \
    "$odd"; do
    echo forged >"$name"
done
ln -s /etc/passwd profile.txt
echo 'its own' >profile.log
cd -
for place in . cells cells/other cells/other/more/rep-1 "cells/$odd/rep-1" report.html/a/rep-1; do
    echo forged >"$place/profile.log"
done
echo forged >plan.json"""


def table(heading: str) -> list[list[str]]:
    """The cells of each row of the table below a heading of docs/security.md."""
    section = DOCS.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    assert len(lines) > 2, heading
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def quoted(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell)


def fits(pattern: str, text: str) -> bool:
    """Whether that is it, a star being anything."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text) is not None


@dataclass(frozen=True)
class Process:
    unit: str
    user: str
    status: dict[str, str]


@dataclass(frozen=True)
class Look:
    """Of one host: what is listened on and by which units, and the processes of all units."""

    sockets: list[tuple[str, frozenset[str]]]
    processes: list[Process]


def look(host: str) -> Look:
    output = ssh(
        ADDRESSES[host],
        "ss -Hlntuxp; echo ===; grep -Hs '' /proc/[0-9]*/cgroup; echo ===; "
        "grep -HsE '^(Uid|NoNewPrivs|Seccomp_filters|CapBnd):' /proc/[0-9]*/status; echo ===; "
        "getent passwd",
    )
    listening, groups, statuses, passwd = output.split("===\n")
    users = {line.split(":")[2]: line.split(":")[0] for line in passwd.splitlines()}
    units: dict[str, str] = {}
    group = r"^/proc/(\d+)/cgroup:.*?/([^/\s]+\.(?:service|scope))(?:/.*)?$"
    for pid, unit in re.findall(group, groups, re.MULTILINE):
        units.setdefault(pid, unit)
    seen: dict[str, dict[str, str]] = {}
    status = r"^/proc/(\d+)/status:(\w+):\s+(\S+)"
    for pid, key, value in re.findall(status, statuses, re.MULTILINE):
        seen.setdefault(pid, {})[key] = value
    processes = [
        Process(units[pid], users.get(fields["Uid"], fields["Uid"]), fields)
        for pid, fields in seen.items()
        if pid in units and "Uid" in fields
    ]
    sockets = []
    for line in listening.splitlines():
        local = line.split()[4]
        # A datagram socket without a name is nobody's to send to.
        if local != "*":
            owners = frozenset(units[pid] for pid in re.findall(r"pid=(\d+)", line) if pid in units)
            local = local.replace(ADDRESSES[host], "management").replace(TESTED[host], "test")
            sockets.append((local, owners))
    return Look(sockets, processes)


def strangers(host: str, seen: Look) -> list[Any]:
    """What listens and is in no row, and the rows of which nothing does."""
    rows = [
        (quoted(unit), quoted(where))
        for on, unit, where, when in table("What listens")
        if on in ("both", host) and when in WHEN
    ]
    met: set[int] = set()
    wrong: list[Any] = []
    for local, units in seen.sockets:
        # What systemd holds for a service is that service's too.
        own = units - {"init.scope"}
        fit = [
            number
            for number, (unit, where) in enumerate(rows)
            if any(fits(pattern, local) for pattern in where)
            and (not unit or all(fits(unit[0], owner) for owner in own))
        ]
        met.update(fit)
        if not fit:
            wrong.append((local, sorted(units)))
    return wrong + [row for number, row in enumerate(rows) if number not in met and row[0]]


@dataclass(frozen=True)
class Deployed:
    after_deploy: dict[str, Look]
    under_load: dict[str, Look]
    # Of every process, what it was started with.
    started_with: str


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployed]:
    for name in (RUN_ID, HOSTILE_ID):
        shutil.rmtree(ROOT / "results" / name, ignore_errors=True)
    run(*stages("hosts", "tune", "deploy"), **ASKED, ansible_become_password=GIVEN)
    after_deploy = {host: look(host) for host in ADDRESSES}

    options = {**ASKED, **CALM, "endpoint": "agents", "generator": "wrk", "duration": 3}
    del options["rate"]
    loading = playbook("playbooks/load.yml", **options, ansible_become_password=GIVEN)
    wait_until_measuring(loading, RUN_ID, "agents")
    under_load = {host: look(host) for host in ADDRESSES}
    everything = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | cat -v"
    started_with = "".join(ssh(address, everything) for address in ADDRESSES.values())
    finish(loading)
    yield Deployed(after_deploy, under_load, started_with)
    ssh(
        SERVER,
        "rm -rf /etc/systemd/system/loadlab-app.service.d /opt/loadlab/hostile.py; "
        "systemctl daemon-reload; systemctl restart loadlab-app",
    )


@pytest.mark.parametrize("host", ADDRESSES)
def test_what_listens_is_what_is_meant_to(deployed: Deployed, host: str) -> None:
    assert strangers(host, deployed.after_deploy[host]) == []
    assert strangers(host, deployed.under_load[host]) == []


def test_a_service_has_its_user_and_no_right_beside(deployed: Deployed) -> None:
    # Every process of a container has some.
    processes = deployed.under_load["server"].processes
    (containers,) = (int(p.status["Seccomp_filters"]) for p in processes if p.unit == "init.scope")
    for unit, user, calls, exposure in table("What runs as whom"):
        (name,) = quoted(unit)
        line = ssh(SERVER, f"systemd-analyze security --no-pager {name} | tail -n 1")
        level = re.search(r"exposure level for \S+: ([0-9.]+)", line)
        assert level, line
        assert float(level[1]) <= float(exposure), line
        own = [process for process in processes if process.unit == name]
        assert own, name
        for process in own:
            # A user that systemd made for it is in no list, and known by its number.
            expected = quoted(user) or [str(uid) for uid in range(61184, 65520)]
            assert process.user in expected, process
            assert process.status["NoNewPrivs"] == "1", process
            filters = int(process.status["Seccomp_filters"])
            assert calls == "any" or filters > containers, process
            assert "root" in expected or int(process.status["CapBnd"], 16) == 0, process
    load = [p for p in deployed.under_load["client"].processes if p.unit == "loadlab-load.service"]
    assert {process.user for process in load} == {"loadlab"}
    assert {process.status["NoNewPrivs"] for process in load} == {"1"}


def test_what_the_lab_put_there_is_not_the_applications_to_change(deployed: Deployed) -> None:
    # In its own view of the file system not even root could.
    refused = ssh(
        SERVER,
        "pid=$(systemctl show --property=MainPID --value loadlab-app); "
        "for path in /etc/x /opt/loadlab/app/x /usr/x /var/lib/x /root/x; do "
        "nsenter --mount --target $pid touch $path 2>/dev/null || echo refused; done",
    )
    assert refused.split() == ["refused"] * 5
    changeable = ssh(
        SERVER,
        "find /opt/loadlab /etc/nginx /etc/systemd/system /usr/local/lib/loadlab "
        r"/var/lib/loadlab-* -xdev ! -type l \( -perm /022 -o ! -user root \)",
    )
    assert changeable == ""


def keys() -> dict[Path, list[str]]:
    """Every private key of the lab's, and the lines of its text."""
    hosts = STATE / "hosts"
    paths = [
        STATE / "id_ed25519",
        *hosts.glob("*/root/etc/ssh/ssh_host_*_key"),
        *hosts.glob("server/root/etc/nginx/loadlab/*.key"),
    ]
    assert len(paths) >= 4
    return {path: path.read_text().splitlines()[1:-1] for path in paths}


def test_keys_are_their_owners_alone(deployed: Deployed) -> None:
    assert stat.S_IMODE(STATE.stat().st_mode) == 0o700
    for path in keys():
        assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_uid) == (0o600, 0), path
    assert stat.S_IMODE((STATE / "known_hosts").stat().st_mode) & 0o022 == 0
    for host in ADDRESSES:
        trusted = STATE / f"hosts/{host}/root/root/.ssh"
        assert stat.S_IMODE(trusted.stat().st_mode) == 0o700
        assert stat.S_IMODE((trusted / "authorized_keys").stat().st_mode) == 0o600
    # There is none to keep.
    passwords = "SELECT count(*) FROM pg_authid WHERE rolpassword IS NOT NULL"
    count = ssh(SERVER, f'cd / && runuser -u postgres -- psql -X -A -t -c "{passwords}"')
    assert count.strip() == "0"


@dataclass(frozen=True)
class Attacked:
    """What the stages printed with a hostile server in the application's place."""

    verifying: str
    loading: str
    # Of every raw file its content, before root on the server put some beside its own.
    measured: dict[Path, bytes]


def snapshot() -> dict[Path, bytes]:
    """The raw files of the cells, the links among them as nothing."""
    paths = (path for path in FOLDER.glob("cells/**/*") if not path.is_dir() or path.is_symlink())
    return {path: b"" if path.is_symlink() else path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def attacked(deployed: Deployed) -> Attacked:
    source = Path(__file__).with_name("hostile.py").read_text()
    (STATE / "hosts/server/root/opt/loadlab/hostile.py").write_text(source)

    def stand_in(more: str) -> None:
        words = r"[Service]\nExecStart=\nExecStart=/usr/bin/python3 /opt/loadlab/hostile.py\n"
        ssh(
            SERVER,
            "cd /etc/systemd/system && mkdir -p loadlab-app.service.d && "
            f"printf '{words}{more}' >loadlab-app.service.d/hostile.conf && "
            "systemctl daemon-reload && systemctl restart loadlab-app",
        )

    stand_in("")
    verifying = playbook("playbooks/deploy.yml", **{**ASKED, "run_id": HOSTILE_ID})
    # An endless answer would not fit into that, and would last as long as curl waits.
    resource.prlimit(verifying.pid, resource.RLIMIT_AS, (2 << 30, 2 << 30))
    verified, _ = verifying.communicate(timeout=300)
    assert verifying.returncode != 0

    stand_in(r"Environment=HONEST=1\n")
    options = {**ASKED, **CALM, "endpoint": "hello", "request_timeout": 2}
    loaded = finish(playbook("playbooks/load.yml", **options), 300)
    measured = snapshot()
    ssh(SERVER, PLANTED.format(run=RUN_ID, cell=next(FOLDER.glob("cells/*-hello*")).name))
    run(*stages("collect", "report"), run_id=RUN_ID)
    return Attacked(verified, loaded, measured)


def test_a_server_that_answers_anything_is_refused(attacked: Attacked) -> None:
    output = " ".join(attacked.verifying.split())
    assert "server: aiohttp already deployed" in output
    assert "/index answered status 500, the contract says 200" in output
    assert "No load was offered" in output
    assert not CONTROL.search(attacked.verifying)


def test_a_load_of_it_ends_and_is_a_result(attacked: Attacked) -> None:
    assert not CONTROL.search(attacked.loading)
    measured = results(RUN_ID)
    result = measured["metronome hello"]
    assert result["errors"]["status_5xx"] > 0, result
    assert result["errors"]["timeout"] > 0, result
    assert result["ok"] == 0
    # Of answers without an end it has no latency, where there are no others.
    result = measured["wrk hello"]
    assert result["error"] or result["errors"]["status_other"] > 0, result
    bodies = [path.stat().st_size for path in FOLDER.rglob("answer.body")]
    # The agents' is the longest of them.
    assert len(bodies) >= 3
    assert max(bodies) < 10_000


def test_root_on_the_server_changes_nothing_that_was_measured(attacked: Attacked) -> None:
    after = snapshot()
    changed = {
        str(path.relative_to(FOLDER))
        for path in after.keys() | attacked.measured.keys()
        if after.get(path) != attacked.measured.get(path)
    }
    (log,) = changed
    # What it records of itself it may say anything of.
    assert re.fullmatch(r"cells/[^/]*-hello[^/]*/rep-1/profile.log", log)
    assert (FOLDER / log).read_text() == "its own\n"
    for path in FOLDER.rglob("*"):
        assert path.name.isprintable(), path
        assert path.is_dir() or path.read_bytes() != b"forged\n", path


def test_what_it_said_is_nowhere_more_than_text(attacked: Attacked) -> None:
    page = (FOLDER / "report.html").read_text()
    assert not re.search(r"<(img|iframe|object|embed|link|base|form)\b", page)
    own = (ROOT / "roles/report/templates/report.js").read_text().strip()
    assert re.findall(r"<script.*?</script>", page, re.DOTALL) == [f"<script>{own}</script>"]
    for text in (page, (FOLDER / "logs/server.log").read_text()):
        assert not CONTROL.search(text)
    for address in ADDRESSES.values():
        assert ssh(address, "ls -d /tmp/owned /var/tmp/owned 2>/dev/null || true") == ""
    assert not Path("/tmp/owned").exists()


def test_no_secret_is_anywhere_else(deployed: Deployed, attacked: Attacked) -> None:
    own = keys()
    # A last line may be short, and somewhere else by chance.
    secrets = {line.encode() for lines in own.values() for line in lines if len(line) > 30}
    assert len(secrets) >= 10
    secrets |= {GIVEN.encode()}

    def leaks(data: bytes) -> bool:
        return any(secret in data for secret in secrets)

    assert not leaks(deployed.started_with.encode())
    kept_in_memory = "find /run /tmp /dev/shm -xdev -type f -size -1024k -exec cat {} + | cat -v"
    for address in ADDRESSES.values():
        assert not leaks(ssh(address, "journalctl --no-pager --output=cat --all | cat -v").encode())
        assert not leaks(ssh(address, kept_in_memory).encode())
    seen = 0
    places = [FOLDER, *(STATE / f"hosts/{host}/upper" for host in ADDRESSES)]
    for path in (path for place in places for path in place.rglob("*")):
        # PostgreSQL's files come and go.
        if path.is_symlink() or not path.is_file() or "/var/lib/postgresql/" in str(path):
            continue
        data = path.read_bytes()
        if path.suffix == ".gz" and data:
            data = gzip.decompress(data)
        seen += 1
        assert Path(str(path).replace("/upper/", "/root/")) in own or not leaks(data), path
    assert seen > 100
