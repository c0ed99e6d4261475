import hashlib
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.hosts import host_in_use
from loadlab.hosts.host_in_use import Cluster, HostUse, Listener, Use
from loadlab.stacks.reverse_proxies import reverse_proxies
from tests.unit import stand_ins

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "roles/host_check/files/in_use.sh"
MAIN = Cluster(name="17/main", port=5432, online=True, holds=2)
# A server of the lab's, between two runs.
LABS = HostUse(
    owned=["/opt/loadlab", "/usr/local/bin/oha", "postgresql"],
    paths=["/opt/loadlab", "/usr/local/bin/oha"],
    user="/nonexistent:/usr/sbin/nologin",
    listeners=[
        Listener(address="10.77.1.11", port=80, unit="nginx.service", process="nginx"),
        Listener(
            address="127.0.0.1", port=5432, unit="postgresql@17-main.service", process="postgres"
        ),
        Listener(address="127.0.0.1", port=8000, unit="loadlab-app.service", process="python3"),
        Listener(address="*", port=9100, unit="node.service", process="node_exporter"),
    ],
    clusters=[MAIN],
    databases={"loadlab": True, "loadlab_app": True},
)
PROXIES = reverse_proxies(ROOT)
PORTS = host_in_use.ports(PROXIES, 1)
USE = Use(is_server=True, paths=["/opt/loadlab", "/usr/local/bin/oha"], ports=PORTS)
TAKEN = replace(USE, take_over=True)
UNSAFE = {"gasc-2015": {"fsync": "off", "full_page_writes": "on", "work_mem": "32MB"}}


def listener(port: int, unit: str = "apache2.service") -> HostUse:
    return HostUse(listeners=[Listener(address="*", port=port, unit=unit, process="apache2")])


@pytest.mark.parametrize("host", [HostUse(), LABS, replace(LABS, owned=[], paths=[], databases={})])
def test_a_bare_host_and_the_labs_own_are_not_refused(host: HostUse) -> None:
    for use in (USE, TAKEN, replace(USE, postgresql=UNSAFE), replace(USE, is_server=False)):
        assert host_in_use.refusal(host, use) == ""


def test_what_the_lab_does_not_use_is_not_refused() -> None:
    # A client serves what it likes beside, and only stacks that are up together take more ports.
    host = replace(listener(80), sites={"nginx": ["x"]}, databases={"shop": False})
    assert host_in_use.refusal(host, replace(USE, is_server=False)) == ""
    assert host_in_use.refusal(listener(8202), USE) == ""


# What is covered by taking the host over.
YIELDS = {
    "PostgreSQL has the cluster 16/old on port 5433": HostUse(
        clusters=[MAIN, Cluster(name="16/old", port=5433, online=False, holds=1)]
    ),
    "PostgreSQL has the databases shop, blog": HostUse(databases={"shop": False, "blog": False}),
    "nginx has what its package did not bring: /etc/nginx/conf.d/a.conf": HostUse(
        sites={"nginx": ["/etc/nginx/conf.d/a.conf"]}
    ),
    "prometheus-node-exporter.service runs": HostUse(
        exporters=["prometheus-node-exporter.service"]
    ),
    "/opt/loadlab is there and not the lab's": HostUse(paths=["/opt/loadlab"]),
}


@pytest.mark.parametrize("clause", YIELDS)
def test_a_host_in_use_is_refused_unless_it_is_taken_over(clause: str) -> None:
    assert host_in_use.refusal(YIELDS[clause], USE) == (
        f"it is in use: {clause}. Use another machine, or set take_over: true for this host in the "
        "inventory, whose meaning docs/bare-metal.md describes."
    )
    assert host_in_use.refusal(YIELDS[clause], TAKEN) == ""


# What is refused in any case, and what the owner is to do.
NEVER = {
    "apache2 (apache2.service) listens on *:443, a port of the lab's: stop it": (
        listener(443),
        TAKEN,
    ),
    "apache2 (nginx.service) listens on *:8000, a port of the lab's: stop it": (
        listener(8000, "nginx.service"),
        TAKEN,
    ),
    "apache2 listens on *:9109, a port of the lab's: stop it": (
        listener(9109, "-"),
        replace(TAKEN, is_server=False),
    ),
    "apache2 (apache2.service) listens on *:8202, a port of the lab's: stop it": (
        listener(8202),
        replace(TAKEN, ports=host_in_use.ports(PROXIES, 2)),
    ),
    "no cluster of PostgreSQL has the port 5432, where the lab looks for it: give one": (
        HostUse(clusters=[Cluster(name="17/main", port=5433, online=True, holds=0)]),
        TAKEN,
    ),
    "PostgreSQL's cluster 17/main is stopped, so nobody knows whose databases it holds: start": (
        HostUse(clusters=[replace(MAIN, online=False)]),
        TAKEN,
    ),
    "PostgreSQL does not tell its user postgres which databases it has: no: let postgres log": (
        HostUse(unreadable="no"),
        TAKEN,
    ),
    "PostgreSQL's database loadlab is not the lab's, which uses that name and drops no other's: "
    "rename it (ALTER database loadlab RENAME TO ...)": (
        HostUse(databases={"loadlab": False}),
        TAKEN,
    ),
    "PostgreSQL's role loadlab is not the lab's": (HostUse(role=True), TAKEN),
    "the tuning profile gasc-2015 switches fsync off, and a crash would then lose or destroy the "
    "databases shop: choose another profile": (
        HostUse(databases={"shop": False, "loadlab": True}),
        replace(TAKEN, postgresql=UNSAFE),
    ),
    "the tuning profile mine sets shared_preload_libraries without timescaledb, which PostgreSQL": (
        HostUse(preloads=["pg_stat_statements", "timescaledb"]),
        replace(
            TAKEN, postgresql={"mine": {"shared_preload_libraries": "'pg_stat_statements' , x"}}
        ),
    ),
    "its user loadlab is not the lab's (/home/loadlab:/bin/bash): rename it": (
        HostUse(user="/home/loadlab:/bin/bash"),
        replace(TAKEN, is_server=False),
    ),
}


@pytest.mark.parametrize("sentence", NEVER)
def test_what_nobody_takes_over_is_refused_with_its_remedy(sentence: str) -> None:
    host, use = NEVER[sentence]
    assert host_in_use.refusal(host, use).startswith(sentence)


def test_all_that_is_in_the_way_is_said_at_once() -> None:
    host = HostUse(sites={"nginx": ["/etc/nginx/nginx.conf"]}, databases={"shop": False}, role=True)
    told = host_in_use.refusal(host, replace(USE, remake="ansible-playbook playbooks/teardown.yml"))
    assert "in use: PostgreSQL has the databases shop; nginx has what its package did not" in told
    assert "Make it anew (ansible-playbook playbooks/teardown.yml removes it), or set" in told
    assert "The role loadlab" not in told
    assert "PostgreSQL's role loadlab is not the lab's" in told


@pytest.mark.parametrize(
    ("values", "off"),
    [("off OF false f no n 0", True), ("on o true local remote_write 1 yes", False), ("", False)],
)
def test_only_a_word_for_off_is_off(values: str, off: bool) -> None:
    for value in values.split() or [""]:
        use = replace(TAKEN, postgresql={"mine": {"synchronous_commit": value}})
        refusal = host_in_use.refusal(HostUse(databases={"shop": False}), use)
        assert ("switches synchronous_commit off" in refusal) == off == bool(refusal), value


paths = st.lists(st.sampled_from(["/opt/loadlab", "/usr/local/bin/oha"]), unique=True)
hosts = st.builds(
    HostUse,
    paths=paths,
    owned=paths,
    databases=st.dictionaries(st.sampled_from(["shop", "loadlab"]), st.booleans()),
    clusters=st.lists(st.builds(Cluster, name=st.just("17/main"), port=st.just(5432),
                                online=st.booleans(), holds=st.integers(0, 2)), max_size=1),
)  # fmt: skip


@given(hosts)
def test_a_host_that_was_noted_is_not_refused_again(host: HostUse) -> None:
    """Only databases of the owner's keep a host from being the lab's."""
    aside = host_in_use.taken(host, TAKEN)
    noted = replace(host, owned=host_in_use.owned(host, TAKEN), paths=[*{*host.paths} - {*aside}])
    assert host_in_use.taken(replace(noted, paths=TAKEN.paths), TAKEN) == []
    again = {one.code for one in host_in_use.problems(noted, USE)}
    assert again <= {"databases", "same_name", "closed_cluster"}
    # A stopped cluster is the lab's only if nothing of the owner's was seen in it.
    assert ("postgresql" in noted.owned) <= (not noted.foreign)


TEXT = """owned\t/opt/loadlab
path\t/opt/loadlab
user\t/nonexistent:/usr/sbin/nologin
exporter\tnode_exporter.service
listener\t[::1]:5432 postgresql@17-main.service postgres
listener\t0.0.0.0:443 - web server
site\tnginx /etc/nginx/sites-enabled/shop
cluster\t17/main 5432 online 3
cluster\t16/old 5433 down 0
database\tlab loadlab
database\tforeign my shop
role\tloadlab
preloads\ttimescaledb, "pgaudit"
sudo: unable to resolve host
looked\tyes
"""


def test_parse_returns_what_the_script_reports() -> None:
    assert host_in_use.parse(TEXT) == HostUse(
        owned=["/opt/loadlab"],
        paths=["/opt/loadlab"],
        user="/nonexistent:/usr/sbin/nologin",
        exporters=["node_exporter.service"],
        sites={"nginx": ["/etc/nginx/sites-enabled/shop"]},
        listeners=[
            Listener(
                address="[::1]", port=5432, unit="postgresql@17-main.service", process="postgres"
            ),
            Listener(address="0.0.0.0", port=443, unit="-", process="web server"),
        ],
        clusters=[
            Cluster(name="17/main", port=5432, online=True, holds=3),
            Cluster(name="16/old", port=5433, online=False, holds=0),
        ],
        databases={"loadlab": True, "my shop": False},
        role=True,
        preloads=["timescaledb", "pgaudit"],
    )


def test_a_run_of_another_clone_is_not_cut_off(tmp_path: Path) -> None:
    host = host_in_use.parse(TEXT.replace("role\tloadlab\n", "run\t20261127-aiohttp\n"))
    for is_server in (True, False):
        use = replace(TAKEN, is_server=is_server, results=str(tmp_path))
        assert "the run 20261127-aiohttp, which another" in host_in_use.refusal(host, use)
    (tmp_path / host.run).mkdir()
    assert host_in_use.refusal(host, use) == ""


def test_a_look_that_was_cut_off_is_refused() -> None:
    with pytest.raises(ValueError, match="the look at what the host serves did not end"):
        host_in_use.parse(TEXT.partition("role")[0])


def test_the_script_ends_on_any_machine(tmp_path: Path) -> None:
    mark, folder = tmp_path / "mark", tmp_path / "folder"
    mark.write_text("/a\n/b\n")
    (folder / "deps").mkdir(parents=True)
    stamps = tmp_path / "stamps"
    for part, text in {"tools": "/a", "stack": "/b"}.items():
        (stamps / part).mkdir(parents=True)
        digest = hashlib.sha256(b"/a\n/b\n").hexdigest() if part == "tools" else "0" * 64
        (stamps / part / "sums").write_text(f"{digest}  {mark}\n")
        (stamps / part / "services").write_text("")
        (stamps / part / "fingerprint").write_text(f"{text}\n")
    script = SCRIPT.read_text().replace("/var/lib/loadlab-deployed", str(stamps))
    script = script.replace("xargs -n 1", "xargs -r -n 1")
    command = f"MARK={mark} PROXIES= PATHS='{folder} {mark} /nowhere'\n{script}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    found = host_in_use.parse(done.stdout)
    assert found.owned == ["/a", "/b"]
    assert found.paths == [str(mark)]
    # A file of the other part was changed.
    assert found.deployed == "/a"


@pytest.mark.parametrize(
    ("home_and_shell", "lines"),
    [
        ("/nonexistent:/usr/sbin/nologin", ["userdel loadlab", "removed loadlab"]),
        ("/home/loadlab:/bin/bash", []),
        (None, []),
    ],
    ids=["the lab's", "the owner's", "none"],
)
def test_untune_removes_the_labs_user_and_no_other(
    tmp_path: Path, home_and_shell: str | None, lines: list[str]
) -> None:
    """untune.yml refuses no host, so it comes to those that the lab refused, too."""
    entry = f"echo loadlab:x:999:999::{home_and_shell}" if home_and_shell else "exit 2"
    stand_ins.put(tmp_path / "bin", {"getent": entry, "userdel": 'echo "userdel $*"'})
    folder = stand_ins.tree(tmp_path / "etc/loadlab", {"application.env": "KEY=1"})
    (task,) = yaml.safe_load((ROOT / "roles/host_check/tasks/remove.yml").read_text())
    script = task["ansible.builtin.raw"].replace("{{ __host_check_runs }}", "/var/lib/runs")
    script = re.sub("(?<= )/(etc|var)/", rf"{tmp_path}/\1/", script)
    assert stand_ins.printed(script, tmp_path / "bin").splitlines() == lines
    assert folder.exists() == (lines == [])
