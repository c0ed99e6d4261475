"""What is injected into cells whose limit is known, and into healthy ones.

Cases of one run share its hosts and stacks. A command is done to a host when the load begins, and
undone when it is over.
"""

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from .conftest import CLIENT, ROOT, SERVER, STATE, SUBNET, TESTED, ssh

CONF = "/etc/nginx/nginx.conf"
PSQL = "runuser -u postgres -- psql -q -d loadlab -c"
# What others' work on the machine that these hosts share brings about.
NOT_OURS = ("steal", "foreign_cpu", "generator_cpu", "shape")
WRK = {"generator": "wrk", "duration": 6, "warmup": 1}

APPLICATION = "server/payload/system.slice/loadlab-app.service"
PROXY = "server/payload/system.slice/nginx.service"
DATABASE = "server/payload/system.slice/system-postgresql.slice/postgresql@*.service"


def _go_to(group: str) -> str:
    """The command that enters a control group in the version 2 tree of this machine."""
    name = f"{STATE.name.replace('.', '-')}-{group}"
    return f"cd /sys/fs/cgroup/{name} 2>/dev/null || cd /sys/fs/cgroup/unified/{name}"


# Without the controller in that tree, the limit is that of a group of version 1. It counts what is
# allocated from then on, so the workers are killed, and the master starts new ones.
SHORT_OF_MEMORY = f"""
{_go_to(APPLICATION)}
if [ -e memory.max ]; then echo 8M >memory.max; exit; fi
read -r -a pids -d '' <cgroup.procs || true
own=$(sed -n 's/^[0-9]*:memory://p' "/proc/${{pids[0]}}/cgroup")
group=/sys/fs/cgroup/memory${{own%/loadlab-limits}}/loadlab-limits
mkdir -p "$group"
echo 8M >"$group/memory.limit_in_bytes"
for pid in "${{pids[@]}}"; do echo "$pid" >"$group/cgroup.procs" || [ ! -e "/proc/$pid" ]; done
kill -KILL "${{pids[@]:1}}"
"""
# A service that is being restarted has no group.
ENOUGH_MEMORY = f"""
{_go_to(APPLICATION)} || cd /
if [ -e memory.max ]; then echo max >memory.max; exit; fi
cd "$(find /sys/fs/cgroup/memory -name loadlab-limits)"
while read -r pid <cgroup.procs; do echo "$pid" >../cgroup.procs || [ ! -e "/proc/$pid" ]; done
cd .. && rmdir loadlab-limits
"""


def _quota(group: str, percent: float) -> dict[str, Any]:
    """What gives the processes of a group that part of a core, in each tenth of a second."""
    most = f"{1000 * percent:g}"
    begin = f"""
{_go_to(group)}
if [ -e cpu.max ]; then echo '{most} 100000' >cpu.max; exit; fi
limits=/sys/fs/cgroup/cpu/loadlab-limits
mkdir -p $limits
echo {most} >$limits/cpu.cfs_quota_us
for pid in $(cat cgroup.procs); do echo $pid >$limits/cgroup.procs || [ ! -e /proc/$pid ]; done
"""
    end = f"""
{_go_to(group)} || cd /
if [ -e cpu.max ]; then echo max >cpu.max; exit; fi
cd /sys/fs/cgroup/cpu/loadlab-limits
while read -r pid <cgroup.procs; do echo $pid >../cgroup.procs || [ ! -e /proc/$pid ]; done
cd .. && rmdir loadlab-limits
"""
    return {"command": begin, "after": end, "where": "here"}


def _nginx(change: str) -> dict[str, Any]:
    """What changes nginx's configuration; of a second load too, the first file comes back."""
    return {
        "command": f"[ -e /root/nginx.conf ] || cp {CONF} /root/; sed -i '{change}' {CONF} && "
        "nginx -t && systemctl reload nginx",
        "after": f"cat /root/nginx.conf >{CONF} && rm /root/nginx.conf && "
        "systemctl reload-or-restart nginx",
    }


@dataclass(frozen=True)
class Case:
    """A cell and its limit.

    - code: the limit; unknown where nothing that is recorded can tell it
    - cause: what is injected, in words
    - cell: of the lesson ``lesson``, by its name there; otherwise a cell with ``options`` and
      ``load``, what a study's cell has besides them; ``pool``: the size of its application's pool
    - control: the case with the same load and without the injection; empty where the load alone
      makes the limit
    - command: what is done when the load begins; after: when it is over; empty for nothing
    - where: the host that it is done to, by its address, or this machine
    """

    run: str
    code: str
    cause: str
    cell: str = ""
    lesson: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    load: dict[str, Any] = field(default_factory=dict)
    pool: int | None = None
    control: str = ""
    command: str = ""
    after: str = ""
    where: str | Literal["here"] = SERVER

    def do(self, command: str) -> None:
        """Run one of its commands."""
        if command and self.where == "here":
            subprocess.run(["bash", "-euc", command], check=True, timeout=60)
        elif command:
            ssh(self.where, command)

    def of_study(self, name: str, tmp: Path) -> dict[str, Any]:
        """Its cell of a study. An application with another pool is put into ``tmp``."""
        options, load = self.options, self.load
        if self.lesson:
            content = yaml.safe_load((ROOT / f"files/lessons/{self.lesson}.yml").read_text())
            (cell,) = (one for one in content["cells"] if one["name"] == self.cell)
            options = {**content["options"], **cell.get("options", {}), **options}
            load = {key: cell[key] for key in cell if key not in ("name", "options")}
        if self.pool is not None:
            app = tmp / "app"
            shutil.copytree(ROOT / "apps" / str(options["framework"]), app, dirs_exist_ok=True)
            manifest = yaml.safe_load((app / "app.yml").read_text())
            (app / "app.yml").write_text(yaml.safe_dump({**manifest, "pool_size": self.pool}))
            options = {**options, "app": str(app)}
        if self.command:
            # Two cells that differ in what is done to a host alone are two cells.
            headers = options.get("headers", {"Case": name})
            options = {**options, "headers": headers}
        return {"name": name, "options": options, **load}


def _lesson(run: str, code: str, cell: str, lesson: str, cause: str, **more: Any) -> Case:
    return Case(run, code, cause, cell, lesson, **more)


def _faulty(code: str, cause: str, inject: str = "", **more: Any) -> Case:
    """A cell of the server with faults, of 200 requests/s, with what it injects into itself."""
    options = {
        "framework": "fault_server",
        "server": "native",
        "transport": "tcp",
        "upstream_keepalive": True,
        "workers": 1,
        "endpoint": "hello",
        "rate": 200,
        "connections": 128,
        "duration": 5,
        "warmup": 1,
        "headers": {"Inject": f"name={_word(cause)}{inject and '; '}{inject}"},
        **more.pop("options", {}),
    }
    control = more.pop("control", "nothing")
    return Case("faults", code, cause, options=options, control=control, **more)


def _word(cause: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in cause)


def _database(code: str, cause: str, **more: Any) -> Case:
    """A cell of 100 requests/s that ask the database."""
    options = {
        "framework": "aiohttp",
        "workers": 1,
        "endpoint": "agents_with_pool",
        "rate": 100,
        "duration": 5,
        "warmup": 1,
        **more.pop("options", {}),
    }
    control = more.pop("control", "a_database" if options["rate"] else "")
    return Case("database", code, cause, options=options, control=control, **more)


SHORT = {"duration": 5, "warmup": 1}
GTHREAD = {"framework": "flask", "server": "gunicorn", "worker_class": "gthread", "workers": 1}
AIOHTTP = {"framework": "aiohttp", "workers": 1}

CASES = {
    # A server that does to its requests what their header asks for.
    "nothing": _faulty("none", "nothing, 200 requests/s", control=""),
    "slow_answers": _faulty(
        "unknown", "each answer waits 300 ms in the application", "delay_ms=300"
    ),
    "one_by_one": _faulty(
        "unknown", "a queue in the application: 8 ms each, one at a time", "service_ms=8"
    ),
    "stall": _faulty(
        "unknown", "the application answers nothing for 2 s", "stall_at_s=2; stall_s=2"
    ),
    "computes": _faulty("worker_cpu", "each answer computes for 8 ms", "cpu_ms=8"),
    "in_the_kernel": _faulty("worker_cpu", "each answer takes 8 ms in the kernel", "kernel_ms=8"),
    "errors": _faulty("unknown", "every tenth answer is an error", "error_every=10"),
    "truncated": _faulty("unknown", "every tenth answer breaks off", "truncate_every=10"),
    "stopped": _faulty(
        "unknown",
        "the application is stopped for 2 s (SIGSTOP)",
        load={"stall": {"after_s": 1, "duration_s": 2}},
    ),
    "proxy_stopped": _faulty(
        "unknown",
        "the reverse proxy is stopped for 2 s (SIGSTOP)",
        command="sleep 1; pkill -STOP -x nginx; sleep 2; pkill -CONT -x nginx",
    ),
    "quota": _faulty(
        "cpu_quota",
        "the application may use 10 % of a core and needs 20 %",
        "cpu_ms=1",
        **_quota(APPLICATION, 10),
    ),
    "proxy_quota": _faulty(
        "cpu_quota",
        "the reverse proxy may use 2 % of a core, at 1,000 requests/s",
        options={"rate": 1000},
        control="",
        **_quota(PROXY, 2),
    ),
    "lost": _faulty(
        "link",
        "every twentieth packet to the server is lost",
        load={"injection": {"lost_every": 20}},
    ),
    "refused": _faulty(
        "unknown",
        "a firewall refuses every fifth connection",
        options={"keepalive": False},
        load={"injection": {"refused_every": 5}},
    ),
    "narrow": _faulty(
        "unknown",
        "the server sends 200 kbit/s, and needs twice that",
        command="tc qdisc add dev test0 root tbf rate 200kbit burst 4k limit 60k",
        after="tc qdisc del dev test0 root",
    ),
    "generator_stop": _faulty(
        "client",
        "the generator is stopped for 1 s (SIGSTOP)",
        load={"injection": {"generator_stop": {"after_s": 1, "duration_s": 1}}},
    ),
    "client_neighbour": _faulty(
        "neighbour",
        "eight programs use the client's core",
        load={
            "injection": {
                "neighbour": {"host": "client", "after_s": 0, "duration_s": 5, "programs": 8}
            },
            "expected_void": ["foreign_cpu"],
        },
    ),
    "nagle": _lesson("faults", "delayed_ack", "held", "nagle",
        "Nagle's algorithm, with delayed acknowledgements", options=SHORT),
    # The application's database.
    "a_database": _database("none", "nothing, 100 requests/s to the database", control=""),
    "database_lock": _database(
        "database_lock",
        "a transaction locks the table that is written to",
        options={"endpoint": "write", "connections": 32, "rate": "", **WRK},
        command="systemd-run --quiet --collect --property=RuntimeMaxSec=20 "
        f"{PSQL} 'LOCK TABLE visits IN EXCLUSIVE MODE; SELECT pg_sleep(6)'",
    ),
    "read_lock": _database(
        "database_lock",
        "a transaction locks the table that is read, for 4 of 5 s",
        command="systemd-run --quiet --collect --property=RuntimeMaxSec=20 "
        f"{PSQL} 'LOCK TABLE agents IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(4)'",
    ),
    "database_quota": _database(
        "cpu_quota", "PostgreSQL may use 1 % of a core", **_quota(DATABASE, 1)
    ),
    "database_stopped": _database(
        "unknown",
        "the connections' processes of PostgreSQL are stopped for 3 s (SIGSTOP)",
        command="sleep 1; pids=$(runuser -u postgres -- psql -tA -d loadlab -c \"SELECT pid FROM "
        "pg_stat_activity WHERE datname = 'loadlab' AND pid <> pg_backend_pid()\"); "
        "kill -STOP $pids; sleep 3; kill -CONT $pids",
    ),
    "slow_backend": _database(
        "unknown",
        "the application waits 0.5 s for another service",
        options={"endpoint": "upstream", "connections": 128},
    ),
    "pool_of_one": _database(
        "pool_wait",
        "a pool of one connection, whose commits take 5 ms",
        options={"endpoint": "write", "tuning": "slow-flush", "connections": 32, "rate": "", **WRK},
        pool=1,
    ),
    "disk": _lesson(
        "database", "disk", "waits", "synchronous_commit", "each commit waits 5 ms for the disk",
        options=SHORT,
    ),
    "connection_pool": _lesson(
        "database", "database_cpu", "each", "connection_pool",
        "each request opens a connection to the database", options=SHORT,
    ),
    "connection_pool_cured": _lesson(
        "database", "cores_busy", "pool", "connection_pool", "nothing, a closed loop with a pool",
        options=SHORT,
    ),
    "database_connections": Case(
        "database",
        "database_connections",
        "the database admits two connections",
        options={
            **GTHREAD,
            "framework": "django",
            "threads": 32,
            "endpoint": "agents",
            "connections": 64,
            **WRK,
        },
        command=f"{PSQL} 'ALTER DATABASE loadlab CONNECTION LIMIT 2'",
        after=f"{PSQL} 'ALTER DATABASE loadlab CONNECTION LIMIT -1'",
    ),
    # Workers, threads, files and memory.
    "event_loop": _lesson("workers", "worker_cpu", "blocked", "event_loop_blocked",
        "an event loop computes for 0.5 s at a time", options=SHORT, control="event_loop_cured"),
    "event_loop_cured": _lesson("workers", "none", "executor", "event_loop_blocked",
        "nothing: a thread computes", options=SHORT),
    "neighbour": _lesson("workers", "neighbour", "beside", "noisy_neighbour",
        "eight programs use the server's core", options=SHORT, control="neighbour_gone"),
    "neighbour_gone": _lesson("workers", "none", "alone", "noisy_neighbour",
        "nothing, 400 requests/s", options=SHORT),
    "one_worker": Case(
        "workers", "worker_cpu", "one worker computes, a closed loop",
        options={**AIOHTTP, "endpoint": "cpu", "connections": 8, **WRK},
    ),
    "reverse_proxy_connections": Case(
        "workers", "reverse_proxy_connections", "nginx has 24 connections (worker_connections)",
        options={"framework": "aiohttp", "endpoint": "hello", "connections": 64, **WRK},
        **_nginx("s/worker_connections .*/worker_connections 24;/"),
    ),
    "open_files": Case(
        "workers", "open_files", "nginx has 24 open files (worker_rlimit_nofile)",
        options={"framework": "aiohttp", "endpoint": "hello", "connections": 64, **WRK},
        **_nginx(r"s/^worker_processes.*/&\nworker_rlimit_nofile 24;/"),
    ),
    "ephemeral_ports": _lesson("workers", "client", "few", "ephemeral_ports",
        "the client has too few local ports"),
    "file_descriptors": _lesson("workers", "client", "shell", "file_descriptors",
        "the client has too few open files"),
    "memory": Case(
        "workers", "memory", "the application may use 8 MiB",
        options={**GTHREAD, "worker_class": "sync", "workers": 2, "endpoint": "hello",
                 "connections": 16, **WRK},
        command=SHORT_OF_MEMORY, after=ENOUGH_MEMORY, where="here",
    ),
    "slow_upstream": Case(
        "workers", "too_few_threads", "four threads wait 0.5 s each for another service",
        options={**GTHREAD, "threads": 4, "endpoint": "upstream", "connections": 32, **WRK},
    ),
    "knee": _lesson("workers", "too_few_threads", "n400", "knee",
        "eight threads for 400 connections", options={"duration": 8}),
    # Queues, sockets and the link.
    "listen_backlog": _lesson("queues", "accept_queue", "short", "listen_backlog",
        "an accept queue of 128 (somaxconn)", options=SHORT, control="listen_backlog_cured"),
    "listen_backlog_cured": _lesson("queues", "cores_busy", "long", "listen_backlog",
        "nothing, an accept queue of 4,096", options=SHORT),
    "keepalive_timeouts": _lesson("queues", "upstream_closed", "short", "keepalive_timeouts",
        "the application closes kept connections after 2 s"),
    "syn_queue": _lesson("queues", "syn_queue", "no_cookies", "syn_queue",
        "256 half-open connections, and no SYN cookies", control="syn_queue_cured"),
    "syn_queue_cured": _lesson("queues", "none", "cookies", "syn_queue",
        "256 half-open connections, with SYN cookies"),
    "keepalive": _lesson("queues", "cores_busy", "unkept", "keepalive",
        "each request opens a connection to the application", options=SHORT),
    "unix_or_tcp": _lesson("queues", "reverse_proxy_cpu", "tcp", "unix_or_tcp",
        "each request opens a connection to uWSGI, over TCP", options=SHORT),
    "nginx_alone": Case(
        "queues", "reverse_proxy_cpu", "nginx answers by itself, a closed loop",
        options={"framework": "nginx", "endpoint": "hello", "connections": 32, **WRK},
    ),
    "slow_start": _lesson("link", "link", "restarted", "slow_start_after_idle",
        "a round trip of 45 ms, and slow start after idle"),
    "bufferbloat": _lesson("link", "link", "deep", "bufferbloat",
        "a download fills a deep queue before the link"),
    "link_of_100_megabits": Case(
        "link", "link", "a link of 100 Mbit/s",
        options={"framework": "nginx", "endpoint": "page", "network": "fast_ethernet",
                 "connections": 16, **WRK},
    ),
}  # fmt: skip

# Two healthy loads, and what limits each of them.
HEALTHY = {
    "rate": ({**AIOHTTP, "endpoint": "hello", "rate": 1000}, ("none",)),
    "closed": (
        {**AIOHTTP, "endpoint": "agents_with_pool", "generator": "wrk", "connections": 32},
        ("cores_busy", "worker_cpu", "database_cpu"),
    ),
}
_LOG = "/var/log/nginx/error.log"


def _logged(words: str) -> str:
    return f"date '+%Y/%m/%d %T [error] 7#7: *1 {words}' >>{_LOG}"


# Connections to a listening socket of its own, more than its queue holds.
_OVERFLOW = """python3 -c '
import socket
with socket.socket() as queue:
    queue.bind(("127.0.0.1", 0))
    queue.listen(0)
    held = [socket.socket() for number in range(3)]
    for one in held:
        one.setblocking(False)
        one.connect_ex(queue.getsockname())
    import time
    time.sleep(0.3)
'"""
_KILLED = """
mkdir -p /sys/fs/cgroup/memory/loadlab-stray && cd /sys/fs/cgroup/memory/loadlab-stray
echo 16M >memory.limit_in_bytes
! sh -c 'echo $$ >cgroup.procs; exec python3 -c "b = bytearray(64 << 20)"' 2>/dev/null
cd .. && rmdir loadlab-stray
"""
# A stray event -> the host that it is done to, or here, and the command.
EVENTS = {
    "a connection overflows an accept queue": (SERVER, _OVERFLOW),
    "a packet of the load is lost": (
        "here",
        f'nft() {{ ip netns exec loadlab-{SUBNET.replace(".", "-")}-server nft "$@"; }}; '
        "nft 'add table inet stray; add chain inet stray input { type filter hook input "
        "priority 0; }; add rule inet stray input tcp dport 80 limit rate 1/hour burst 1 packets "
        "drop'; sleep 1; nft delete table inet stray",
    ),
    "a line in nginx's log: no connection": (
        SERVER,
        _logged("24 worker_connections are not enough"),
    ),
    "a line in nginx's log: no open file": (
        SERVER,
        _logged("accept4() failed (24: Too many open files)"),
    ),
    "a line in nginx's log: the application closed": (
        SERVER,
        _logged(
            "upstream prematurely closed connection while reading response header from upstream"
        ),
    ),
    "a query of 1 s": (SERVER, f"{PSQL} 'SELECT pg_sleep(1)'"),
    "a query waits 0.5 s for a lock": (
        SERVER,
        f"{PSQL} 'LOCK TABLE visits; SELECT pg_sleep(0.5)' & sleep 0.1; "
        f"{PSQL} 'SELECT count(*) FROM visits'; wait",
    ),
    "a client opens a connection and resets it": (
        CLIENT,
        "python3 -c 'import socket, struct; one = socket.create_connection((\""
        f'{TESTED["server"]}", 80)); one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, '
        'struct.pack("ii", 1, 0)); one.close()\'',
    ),
    "the kernel kills a process of somebody else": ("here", _KILLED),
    "a checkpoint of the database": (SERVER, f"{PSQL} CHECKPOINT"),
}
