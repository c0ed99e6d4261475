from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.lab.bench.plugins.module_utils import host
from ansible_collections.lab.bench.plugins.module_utils.cpus import cpu_list
from ansible_collections.lab.bench.plugins.module_utils.fingerprint import fingerprint
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
LINES = {
    "user": "debian",
    "machine_id": "5e0c",
    "booted": "1795224996",
    "os": "debian 13",
    "os_name": "Debian GNU/Linux 13 (trixie)",
    "kernel": "6.18.5",
    "cpu_model": "AMD EPYC 7B13",
    "cores": "4",
    "cpus": "0-1,3",
    "memory_kib": "2048",
    "virtualisation": "kvm",
    "clock_source": "tsc",
    "governor": "performance",
    "python": "3.13.5",
    "nofile": "20000",
    "interface": "eth1",
    "own_address": "10.77.0.11",
    "netem": "no",
    "wrk2": "/snap/bin/wrk2",
    "deployed": "c0ffee",
}
PACKAGES = ["nginx 1.26.3-3 ii ", "postgresql-17 17.6-0+deb13u1 hi ", "apache2 2.4 rc "]


def probe(packages: list[str] | None = None, **changed: str | None) -> str:
    lines = [f"{k}\t{v}" for k, v in {**LINES, **changed}.items() if v is not None]
    return "\n".join([*lines, *(f"package\t{package}" for package in packages or [])]) + "\n"


def test_a_probe() -> None:
    assert host.parse(probe(PACKAGES)) == {
        "user": "debian",
        "machine_id": "5e0c",
        "booted": 1795224996,
        "os": "debian 13",
        "cpus": [0, 1, 3],
        "interface": "eth1",
        "own_address": "10.77.0.11",
        "python": "3.13.5",
        "netem": False,
        "wrk2": "/snap/bin/wrk2",
        "deployed": "c0ffee",
        "manifest": {
            "cpu_model": "AMD EPYC 7B13",
            "cores": 4,
            "cpus": [0, 1, 3],
            "memory_bytes": 2048 * 1024,
            "kernel": "6.18.5",
            "os": "Debian GNU/Linux 13 (trixie)",
            "virtualisation": "kvm",
            "clock_source": "tsc",
            "governor": "performance",
            "nofile": 20000,
            # On hold is installed; removed with its configuration kept is not.
            "packages": {"nginx": "1.26.3-3", "postgresql-17": "17.6-0+deb13u1"},
        },
    }


def test_what_a_host_need_not_have() -> None:
    found = host.parse(probe(governor=None, deployed=None, cpu_model="", interface=""))
    assert (found["deployed"], found["interface"]) == ("", "")
    assert found["manifest"]["governor"] is None
    assert found["manifest"]["cpu_model"] == "unknown"
    assert host.parse(probe(netem="yes"))["netem"] is True


@pytest.mark.parametrize("name", sorted(set(LINES) - {"governor", "deployed"}))
def test_what_a_probe_must_tell(name: str) -> None:
    with pytest.raises(ValueError, match=f"the probe did not tell '{name}'"):
        host.parse(probe(**{name: None}))


@pytest.mark.parametrize("line", ["sh: 1: ip: not found", "", "package\tnginx"])
def test_another_line_is_no_probe(line: str) -> None:
    with pytest.raises(ValueError, match=r"not a line of the probe|not enough values"):
        host.parse(probe() + line + "\n")


def test_the_probe_itself_makes_what_is_parsed() -> None:
    """The script on this machine: each line has its form, whatever the machine lacks."""
    script = (ROOT / "roles" / "host_check" / "files" / "probe.sh").read_text()
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert all("\t" in line for line in lines)
    names = {line.split("\t")[0] for line in lines}
    assert set(LINES) - {"governor", "deployed"} <= names <= {*LINES, "package"}


@pytest.mark.parametrize(
    ("programs", "told"),
    [
        # What each program does: the shell's words of a stand-in, None where there is none.
        ({"unshare": 'shift; exec "$@"', "tc": "exit 0", "id": "echo 0"}, "yes"),
        ({"unshare": 'shift; exec "$@"', "tc": "exit 2", "id": "echo 0"}, "no"),
        ({"unshare": "exit 1", "tc": "exit 0", "id": "echo 0"}, "no"),
        ({"unshare": None, "tc": "exit 0", "id": "echo 0"}, "no"),
        ({"unshare": 'shift; exec "$@"', "tc": None, "id": "echo 0"}, "no"),
        # Who is not root looks whether there is a module.
        ({"tc": "exit 1", "cat": "echo kernel/net/sched/sch_netem.ko.xz:", "id": "echo 7"}, "yes"),
        ({"tc": "exit 1", "cat": "echo kernel/net/sched/sch_tbf.ko:", "id": "echo 7"}, "no"),
        ({"tc": None, "cat": "echo kernel/net/sched/sch_netem.ko:", "id": "echo 7"}, "no"),
    ],
)
def test_the_probe_finds_netem(tmp_path: Path, programs: dict[str, str | None], told: str) -> None:
    script = (ROOT / "roles" / "host_check" / "files" / "probe.sh").read_text()
    for name, words in {"uname": "echo 6.1", "grep": 'exec /usr/bin/grep "$@"', **programs}.items():
        if words is not None:
            (tmp_path / name).write_text(f"#!/bin/sh\n{words}\n")
            (tmp_path / name).chmod(0o755)
    alone = script.replace("PATH=$PATH:/usr/sbin:/sbin", f"PATH={tmp_path}")
    assert alone != script
    done = subprocess.run(["sh", "-c", alone], capture_output=True, text=True, check=False)
    assert f"netem\t{told}\n" in done.stdout


OTHERS = {"server": "5e0c", "client": "aaaa"}


STACK = {
    "framework": "tornado",
    "server": "uwsgi",
    "python_below": "3.12",
    "python_reason": "its loops crash there",
}


LAN: dict[str, Any] = {"lan": {"description": "as it is"}}
FAR: dict[str, Any] = {**LAN, "transatlantic": {"rate_mbit": 1000, "delay_ms": 45}}


def refusals(
    others: dict[str, str] = OTHERS,
    stack: dict[str, Any] | None = None,
    network: dict[str, Any] = LAN,
    **changed: str,
) -> list[str]:
    found = host.parse(probe(None, **changed))
    return host.refusals(found, "server", others, "10.0.0.1", [stack] if stack else [], network)


@pytest.mark.parametrize("system", host.SUPPORTED)
def test_a_host_that_can_serve(system: str) -> None:
    assert refusals(os=system) == []


@pytest.mark.parametrize("system", ["fedora 43", "debian 11", "ubuntu 22.04", "debian 130", " "])
def test_another_system_is_refused_with_those_that_will_do(system: str) -> None:
    assert refusals(os=system, os_name=f"Some {system}") == [
        f"it runs Some {system}; the lab knows Debian 12, Debian 13 and Ubuntu 24.04. "
        "Install one of these."
    ]


def test_an_address_that_is_on_no_interface() -> None:
    (told,) = refusals(interface="")
    assert told.startswith("the address 10.0.0.1 is on none of its interfaces. Set test_address")
    (told,) = host.refusals(host.parse(probe(interface="")), "server", OTHERS, "", [], LAN)
    assert told.startswith("the address (none) is on none of its interfaces.")


def test_a_client_on_its_own_server() -> None:
    (told,) = refusals({"server": "5e0c", "one": "5e0c", "two": "aaaa", "three": "5e0c"})
    assert told.startswith("it is the same machine as one, three; ")
    assert told.endswith("Give two machines.")


def test_a_server_whose_python_is_too_new_for_its_stack() -> None:
    (told,) = refusals(stack=STACK)
    assert told.startswith(
        "tornado does not run with server=uwsgi on Python 3.13.5: its loops crash there. "
        "Use Debian 12 on the server"
    )
    assert refusals(stack=STACK, python="3.11.2", os="debian 12") == []
    assert refusals(stack={**STACK, "python_below": None}) == []


def test_a_network_profile_that_the_kernel_cannot_do() -> None:
    assert refusals(network=FAR) == [
        "the network profile transatlantic needs netem (delay, jitter, loss), which its kernel "
        "6.18.5 does not have (module sch_netem). Use a profile with a rate only "
        "(-e network=gigabit), or a host with that module."
    ]
    assert refusals(network=FAR, netem="yes") == []
    assert refusals(network={"gigabit": {"rate_mbit": 1000}}) == []


def test_a_client_without_a_way_to_wrk2() -> None:
    def told(packages: list[str], needs: bool, wrk2: str) -> list[str]:
        found = host.parse(probe(packages, wrk2=wrk2))
        return host.refusals(found, "server", OTHERS, "10.0.0.1", [], LAN, needs)

    assert told([], True, "") == [
        "the generator wrk2 is not there, and neither is snapd, which could install the snap wrk2. "
        "Name an executable of yours with -e wrk2_binary=/path/to/wrk2, or install the package "
        "snapd, or measure with -e generator=oha."
    ]
    assert told([], True, "/usr/local/bin/wrk2") == []
    assert told(["snapd 2.67 ii "], True, "") == []
    assert len(told(["snapd 2.67 rc "], True, "")) == 1
    assert told([], False, "") == []


def test_all_that_is_wrong_is_told_at_once() -> None:
    twins = {"server": "5e0c", "client": "5e0c"}
    assert len(refusals(twins, STACK, FAR, os="x 1", interface="")) == 5


@given(st.sets(st.integers(0, 300), min_size=1))
def test_any_set_of_processors_reads_back(processors: set[int]) -> None:
    ranges: list[list[int]] = []
    for number in sorted(processors):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    text = ",".join(f"{low}-{high}" if low < high else f"{low}" for low, high in ranges)
    assert cpu_list(text + "\n") == sorted(processors)


@pytest.mark.parametrize("text", ["", "-", "0-", "a", "0,", "3-1", "0--1", "0-1-2", "-1"])
def test_what_is_no_list_of_processors(text: str) -> None:
    with pytest.raises(ValueError, match="not a list of processors"):
        cpu_list(text)


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_fingerprint_tells_every_difference(tmp_path: Path) -> None:
    files = {"roles/a": "1", "roles/b/c": "2", "lock": "3", "aside": "4"}
    paths = ["roles", "lock"]
    values: dict[str, Any] = {"x": 1, "y": [1, 2]}
    base = fingerprint(values, str(tree(tmp_path / "base", files)), paths)
    # Neither the place of the tree, the order of keys, nor what lies beside counts.
    (tmp_path / "base" / "aside").write_text("5")
    tree(tmp_path / "base", {"roles/__pycache__/x": "6"})
    assert fingerprint({"y": [1, 2], "x": 1}, str(tmp_path / "base"), paths) == base
    assert fingerprint(values, str(tree(tmp_path / "same", files)), paths) == base
    others = {
        "value": fingerprint({"x": 1, "y": [2, 1]}, str(tmp_path / "base"), paths),
        "paths": fingerprint(values, str(tmp_path / "base"), ["roles"]),
    }
    for name, changed in {
        "content": {**files, "roles/b/c": "7"},
        "single file": {**files, "lock": "7"},
        "name": {"roles/a": "1", "roles/b/d": "2", "lock": "3"},
        "one more": {**files, "roles/b/d": ""},
        "one less": {"roles/a": "1", "lock": "3"},
    }.items():
        others[name] = fingerprint(values, str(tree(tmp_path / name, changed)), paths)
    assert len({base, *others.values()}) == len(others) + 1
