import platform
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.hosts import probe as host
from loadlab.hosts.hardware import cpu_list
from loadlab.hosts.probe import Demands, HostProbe, PythonStack
from loadlab.hosts.qdisc import NetworkProfile
from loadlab.model import HostDescription
from loadlab.run.fingerprint import fingerprint
from tests.unit import stand_ins

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "roles" / "host_check" / "files" / "probe.sh"
LINES = {
    "user": "debian",
    "machine_id": "5e0c",
    "booted": "1795224996",
    "os": "debian 13",
    "os_name": "Debian GNU/Linux 13 (trixie)",
    "kernel": "6.18.5",
    "machine": "x86_64",
    "cpu_model": "AMD EPYC 7B13",
    "cores": "4",
    "cpus": "0-1,3",
    "memory_kib": "2048",
    "available_kib": "1000",
    "free_bytes": "50000000",
    "virtualisation": "kvm",
    "clock_source": "tsc",
    "governor": "performance",
    "python": "3.13.5",
    "nofile": "20000",
    "interface": "eth1",
    "own_address": "10.77.0.11",
    "netem": "no",
    "untraced": "",
    "sources": "http://debian.example.org https://mirror.example.org:8443",
}
PACKAGES = ["nginx 1.26.3-3 ii ", "postgresql-17 17.6-0+deb13u1 hi ", "apache2 2.4 rc "]


def probe(packages: list[str] | None = None, **changed: str | None) -> str:
    lines = [f"{k}\t{v}" for k, v in {**LINES, **changed}.items() if v is not None]
    return "\n".join([*lines, *(f"package\t{package}" for package in packages or [])]) + "\n"


def test_parse_returns_what_a_probe_reports() -> None:
    programs = "program\toha \nprogram\twrk2 /snap/bin/wrk2\n"
    routes = "route\t10.0.0.2 eth1 10.0.0.1\nroute\t10.0.0.3 \n"
    assert host.parse(probe(PACKAGES) + programs + routes) == HostProbe(
        user="debian",
        machine_id="5e0c",
        booted=1795224996,
        os="debian 13",
        machine="x86_64",
        cpus=[0, 1, 3],
        interface="eth1",
        routes={"10.0.0.2": ["eth1", "10.0.0.1"], "10.0.0.3": []},
        own_address="10.77.0.11",
        python="3.13.5",
        netem=False,
        untraced=[],
        programs={"oha": "", "wrk2": "/snap/bin/wrk2"},
        sources=["debian.example.org:80", "mirror.example.org:8443"],
        free_bytes=50_000_000,
        available_bytes=1_024_000,
        manifest=HostDescription(
            cpu_model="AMD EPYC 7B13",
            cores=4,
            cpus=[0, 1, 3],
            memory_bytes=2048 * 1024,
            kernel="6.18.5",
            os="Debian GNU/Linux 13 (trixie)",
            virtualisation="kvm",
            clock_source="tsc",
            governor="performance",
            nofile=20000,
            # On hold is installed; removed with its configuration kept is not.
            packages={"nginx": "1.26.3-3", "postgresql-17": "17.6-0+deb13u1"},
        ),
    )


# What `ip -o route get` says, and what the probe makes of it.
WAYS = {
    "10.0.0.2 dev eth1 src 10.0.0.1 uid 0 \\    cache ": "eth1 10.0.0.1",
    "10.0.0.2 via 10.9.0.1 dev eth0 src 10.9.0.7 uid 1000 \\    cache ": "eth0 10.9.0.7",
    "10.0.0.2 from 10.0.0.1 via 10.0.0.9 dev eth1 uid 0 \\    cache ": "eth1 10.0.0.1",
    "local 10.0.0.2 dev lo src 10.0.0.2 uid 0 \\    cache <local> ": "lo 10.0.0.2",
    "": " ",
}


@pytest.mark.parametrize("said", WAYS)
@pytest.mark.parametrize("answers", ["", "yes"])
def test_probe_reports_the_routes_to_its_peers(tmp_path: Path, said: str, answers: str) -> None:
    asked = tmp_path / "asked"
    stand_ins.put(tmp_path, {"ip": f"echo \"$@\" >>{asked}\necho '{said}'"})
    peers = {"TEST_ADDRESS": "10.0.0.1", "PEERS": "10.0.0.2 10.0.0.3", "ANSWERS": answers}
    text = stand_ins.printed(SCRIPT.read_text(), tmp_path, **peers)
    way = WAYS[said]
    assert f"route\t10.0.0.2 {way}\nroute\t10.0.0.3 {way}\n" in text
    source = " from 10.0.0.1" if answers else ""
    assert f"-o route get 10.0.0.2{source}\n-o route get 10.0.0.3{source}\n" in asked.read_text()


def test_what_a_host_need_not_have() -> None:
    found = host.parse(probe(governor=None, cpu_model="", interface=""))
    assert found.interface == ""
    assert found.manifest.governor is None
    assert found.manifest.cpu_model == "unknown"
    assert host.parse(probe(netem="yes")).netem is True


@pytest.mark.parametrize("name", sorted(set(LINES) - {"governor"}))
def test_probe_without_a_required_line_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"the probe did not report '{name}'"):
        host.parse(probe(**{name: None}))


@pytest.mark.parametrize("line", ["sh: 1: ip: not found", "", "package\tnginx"])
def test_another_line_is_no_probe(line: str) -> None:
    with pytest.raises(ValueError, match=r"not a line of the probe|not enough values"):
        host.parse(probe() + line + "\n")


def test_the_probe_itself_makes_what_is_parsed() -> None:
    """The script on this machine: each line has its form, whatever the machine lacks."""
    lines = stand_ins.printed(SCRIPT.read_text()).splitlines()
    assert all("\t" in line for line in lines)
    names = {line.split("\t")[0] for line in lines}
    assert set(LINES) - {"governor"} <= names <= {*LINES, "package"}


@pytest.mark.parametrize(
    ("cpuinfo", "told"),
    [
        ("processor\\t: 0\\nmodel name\\t: AMD EPYC 7B13", "AMD EPYC 7B13"),
        ("processor\\t: 0\\nCPU part\\t: 0xd40", "Neoverse-V1"),
    ],
)
def test_the_probe_names_the_processor(tmp_path: Path, cpuinfo: str, told: str) -> None:
    lscpu = "Vendor ID:   ARM\\n  Model name:  Neoverse-V1\\n  Model name:  Cortex-A55"
    stand_ins.put(tmp_path, {"lscpu": f"printf '{lscpu}\\n'"})
    (tmp_path / "cpuinfo").write_text(cpuinfo.encode().decode("unicode_escape"))
    script = SCRIPT.read_text().replace("/proc/cpuinfo", f"{tmp_path}/cpuinfo")
    assert f"cpu_model\t{told}\n" in stand_ins.printed(script, tmp_path)


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
    script = SCRIPT.read_text()
    usual = {"uname": "echo 6.1", "grep": 'exec /usr/bin/grep "$@"'}
    there = {name: words for name, words in programs.items() if words is not None}
    stand_ins.put(tmp_path, {**usual, **there})
    alone = script.replace("PATH=$PATH:/usr/sbin:/sbin", f"PATH={tmp_path}")
    assert alone != script
    assert f"netem\t{told}\n" in stand_ins.printed(alone)


@pytest.mark.parametrize(
    ("container", "there", "lockdown", "told"),
    [
        (False, ["sys/kernel/tracing/", "sys/fs/cgroup/cgroup.procs"], "[none] integrity", ""),
        (False, ["sys/kernel/tracing/", "sys/fs/cgroup/unified/cgroup.procs"], "", ""),
        (False, ["sys/kernel/tracing/"], "", "cgroup"),
        (False, ["sys/fs/cgroup/cgroup.procs"], "", "tracefs"),
        (True, [], "none integrity [confidentiality]", "container tracefs cgroup lockdown"),
    ],
)
def test_the_probe_finds_what_keeps_bpftrace_out(
    tmp_path: Path, container: bool, there: list[str], lockdown: str, told: str
) -> None:
    for path in there:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).mkdir() if path.endswith("/") else (tmp_path / path).touch()
    if lockdown:
        file = tmp_path / "sys/kernel/security/lockdown"
        file.parent.mkdir(parents=True)
        file.write_text(f"{lockdown}\n")
    stand_ins.put(tmp_path, {"systemd-detect-virt": f"exit {int(not container)}"})
    script = SCRIPT.read_text().replace("/sys/", f"{tmp_path}/sys/")
    assert f"untraced\t{told}\n" in stand_ins.printed(script, tmp_path)


@pytest.mark.parametrize(
    ("untraced", "reason"),
    [
        (
            "tracefs",
            "its kernel 6.18.5 was built without tracing (there is no /sys/kernel/tracing)",
        ),
        ("lockdown", "its kernel is locked down for confidentiality"),
        ("cgroup", "it has no control groups of version 2"),
    ],
)
def test_a_server_that_is_not_traced_need_not_let_itself(untraced: str, reason: str) -> None:
    (told,) = messages(probe(untraced=untraced), demands(trace=True))
    assert f"cannot run there: {reason}" in told
    assert messages(probe(untraced=untraced), demands()) == []


OTHERS = {"server": "5e0c", "client": "aaaa"}
STACK = PythonStack(
    framework="tornado", server="uwsgi", python_below="3.12", python_reason="its loops crash there"
)
LAN = {"lan": NetworkProfile(description="as it is")}
FAR = {**LAN, "transatlantic": NetworkProfile(rate_mbit=1000, delay_ms=45)}


def demands(**changed: Any) -> Demands:
    """What a run asks of the host "server"; nothing but its address unless changed."""
    asked = {"name": "server", "test_address": "10.0.0.1", "machine_ids": OTHERS, "networks": LAN}
    return Demands(**{**asked, **changed})


def refusals(
    others: dict[str, str] = OTHERS,
    stack: PythonStack | None = None,
    network: dict[str, NetworkProfile] = LAN,
    **changed: str,
) -> list[str]:
    asked = demands(machine_ids=others, stacks=[stack] if stack else [], networks=network)
    return messages(probe(None, **changed), asked)


def messages(text: str, asked: Demands) -> list[str]:
    return [problem.message for problem in host.problems(host.parse(text), asked)]


# A probe's lines and demands that violate one rule each, and its sentence.
VIOLATIONS: dict[str, tuple[str, Demands, str]] = {
    "no_python": (
        probe(python=""),
        demands(stacks=[STACK, STACK]),
        "it has no /usr/bin/python3. Install the package python3.",
    ),
    "python_too_new": (
        probe(),
        demands(stacks=[STACK]),
        "tornado does not run with server=uwsgi on Python 3.13.5: its loops crash there. Use "
        "Debian 12 on the server (local hosts: -e local_hosts_release=bookworm), or leave server "
        "and protocol out: then its own server stands in.",
    ),
    "unsupported_system": (
        probe(os="fedora 43", os_name="Fedora 43"),
        demands(),
        "it runs Fedora 43; the lab knows Debian 12, Debian 13 and Ubuntu 24.04. Install one of "
        "these.",
    ),
    "no_interface": (
        probe(interface=""),
        demands(),
        "the address 10.0.0.1 is on none of its interfaces. Set test_address in the inventory to "
        "the host's own address on the link that carries load.",
    ),
    "no_netem": (
        probe(),
        demands(networks=FAR),
        "the network profile transatlantic needs netem (jitter, loss, a delay above 100 Mbit/s), "
        "which its kernel 6.18.5 does not have (module sch_netem). Use a host with that module, or "
        "use a profile with a rate only (-e network=gigabit).",
    ),
    "not_traced": (
        # As a local host says.
        probe(untraced="container", virtualisation="systemd-nspawn"),
        demands(trace=True),
        "trace=true needs bpftrace, which cannot run there: it is a container (systemd-nspawn), "
        "which may not call bpf(2). Leave trace out, or use a machine of its own.",
    ),
    "sources_not_fetched": (
        probe(sources="http://de.archive.example.org http://security.example.org"),
        demands(fetched_sources=["security.example.org:80"]),
        "its packages come from de.archive.example.org:80, which this machine does not fetch from "
        "for a host without internet. Give the host the sources that this machine's own apt has, "
        "or add that to package_sources in the inventory's group_vars/lab.yml.",
    ),
    "other_link": (
        probe() + "route\t10.0.0.2 eth0 10.9.0.7\nroute\t10.0.0.3 eth1 10.0.0.1\n",
        demands(),
        "its way to 10.0.0.2 is eth0 from 10.9.0.7, and not eth1 from 10.0.0.1: load would take "
        "another link than the one that is looked at. Give it a route there "
        "(ip route replace 10.0.0.2 dev eth1 src 10.0.0.1), or set test_address of all hosts to "
        "their addresses on one link.",
    ),
    "disk_full": (
        probe(),
        demands(disk_bytes=144_000_000),
        "the disk of /var/lib has 47.7 MiB free, and a measurement needs 137 MiB. Free some, or "
        "give a lower -e rate= or a shorter -e duration=.",
    ),
    "memory_short": (
        probe(),
        demands(memory_bytes=648_000_000),
        "it has 1,000 KiB of available memory, and the generator needs 618 MiB. Stop other work "
        "there, or give a lower -e rate= or a shorter -e duration=.",
    ),
    "same_machine": (
        probe(),
        demands(machine_ids={"server": "5e0c", "one": "5e0c", "two": "aaaa", "three": "5e0c"}),
        "it is the same machine as one, three; a client on its own server measures itself. Give "
        "two machines.",
    ),
}


@pytest.mark.parametrize("rule", host.RULES, ids=lambda rule: rule.code)
def test_rule_names_value_limit_and_remedy(rule: host.Rule) -> None:
    text, asked, message = VIOLATIONS[rule.code]
    assert host.problems(host.parse(text), asked) == [host.Problem(rule.code, message)]


@pytest.mark.parametrize("system", host.SUPPORTED)
def test_a_host_that_can_serve(system: str) -> None:
    assert refusals(os=system) == []
    assert refusals(network=FAR, netem="yes", os=system) == []
    assert refusals(network={"gigabit": NetworkProfile(rate_mbit=1000)}, os=system) == []


@pytest.mark.parametrize("system", ["fedora 43", "debian 11", "ubuntu 22.04", "debian 130", " "])
def test_another_system_is_refused_with_those_that_will_do(system: str) -> None:
    assert refusals(os=system, os_name=f"Some {system}") == [
        f"it runs Some {system}; the lab knows Debian 12, Debian 13 and Ubuntu 24.04. "
        "Install one of these."
    ]


def test_an_address_that_is_on_no_interface() -> None:
    (told,) = messages(probe(interface=""), demands(test_address=""))
    assert told.startswith("the address (none) is on none of its interfaces.")


@pytest.mark.parametrize(
    ("own", "other", "same"),
    [
        ("5e0c b001", "5e0c b001", True),
        # Two machines from copies of one image, and two containers of one machine.
        ("5e0c b001", "5e0c b002", False),
        ("5e0c b001", "aaaa b001", False),
    ],
)
def test_a_machine_is_told_by_its_id_and_its_boot(own: str, other: str, same: bool) -> None:
    ids = {"server": own, "client": other}
    told = messages(probe(machine_id=own), demands(machine_ids=ids))
    assert [one.startswith("it is the same machine as client;") for one in told] == [True] * same


def test_load_that_would_take_another_link() -> None:
    def told(*routes: str, others: dict[str, str] = OTHERS, **changed: str) -> list[str]:
        lines = "".join(f"route\t{route}\n" for route in routes)
        return messages(probe(None, **changed) + lines, demands(machine_ids=others))

    assert told("10.0.0.2 eth1 10.0.0.1", "10.0.0.3 eth1 10.0.0.1") == []
    # Through the relay that delays the link.
    assert told("10.0.0.2 loadlab-delay 10.0.0.1") == []
    # The interface's first address, where the test address is its second.
    (from_another,) = told("10.0.0.2 eth1 10.0.0.9")
    assert from_another.startswith("its way to 10.0.0.2 is eth1 from 10.0.0.9, and not eth1 from")
    (no_way,) = told("10.0.0.2 ")
    assert no_way.startswith("its way to 10.0.0.2 is none, and not eth1 from 10.0.0.1: ")
    # What is wrong then has been told.
    (twin,) = told("10.0.0.2 lo 10.0.0.2", others={"server": "5e0c", "client": "5e0c"})
    assert twin.startswith("it is the same machine as client; ")
    (nowhere,) = told("10.0.0.2 eth0 10.9.0.7", interface="")
    assert nowhere.startswith("the address 10.0.0.1 is on none of its interfaces.")


def test_a_server_whose_python_is_too_new_for_its_stack() -> None:
    assert refusals(stack=STACK, python="3.11.2", os="debian 12") == []
    assert refusals(stack=replace(STACK, python_below=None)) == []


def test_sources_that_nobody_fetches_from() -> None:
    def told(sources: str, fetched: list[str] | None) -> list[str]:
        return messages(probe(sources=sources), demands(fetched_sources=fetched))

    german = "http://de.archive.example.org http://security.example.org"
    known = ["security.example.org:80", "archive.example.org:80"]
    assert told(german, None) == []
    assert told(german, [*known, "de.archive.example.org:80"]) == []
    assert told("", []) == []
    (refused,) = told("https://archive.example.org", known)
    assert "from archive.example.org:443, which" in refused
    assert "add that to package_sources" in refused


def test_the_probe_finds_the_sources(tmp_path: Path) -> None:
    """Of both forms, without those that are commented out, of source code, or on a disk."""
    files = {
        "sources.list": "# deb http://one.example.org/x y z\ndeb-src http://two.example.org x y\n"
        "deb [signed-by=/a/b.gpg] http://three.example.org/debian trixie main\n"
        "deb cdrom:[x]/ y z\ndeb https://four.example.org:8443 ./\n",
        "sources.list.d/a.list": "deb http://three.example.org/security y z\n",
        "sources.list.d/b.sources": "Types: deb\nURIs: http://five.example.org/a\n"
        "  http://six.example.org/b\nSuites: x\n#URIs: http://seven.example.org\n",
        "sources.list.d/c.save": "deb http://eight.example.org y z\n",
    }
    script = SCRIPT.read_text().replace("cd /etc/apt ", f"cd {stand_ins.tree(tmp_path, files)} ")
    names = ("http://five", "http://six", "http://three", "https://four")
    told = " ".join(f"{name}.example.org" for name in names)
    assert f"sources\t{told}:8443\n" in stand_ins.printed(script)


def test_what_machine_a_program_is_for(tmp_path: Path) -> None:
    assert host.program_machine("") == ""
    assert host.program_machine(sys.executable) == platform.machine()
    head = b"\x7fELF\2%b\1" + bytes(9) + b"\2\0%b"
    for order, number, machine in (
        (b"\1", b"\x3e\0", "x86_64"),
        (b"\1", b"\xb7\0", "aarch64"),
        (b"\1", b"\xf3\0", "another (ELF machine 243)"),
        (b"\2", b"\0\x16", "another (ELF machine 22)"),
    ):
        program = tmp_path / "program"
        program.write_bytes(head % (order, number) + bytes(44))
        assert host.program_machine(str(program)) == machine
    for content in (b'#!/bin/sh\nexec oha-for-any "$@"\n', b"\x7fELF", b""):
        program.write_bytes(content)
        assert host.program_machine(str(program)) == ""
    with pytest.raises(OSError, match="No such file"):
        host.program_machine(str(tmp_path / "none"))


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


def test_a_fingerprint_tells_every_difference(tmp_path: Path) -> None:
    files = {"roles/a": "1", "roles/b/c": "2", "lock": "3", "aside": "4"}
    paths = ["roles", "lock"]
    values: dict[str, Any] = {"x": 1, "y": [1, 2]}
    base = fingerprint(values, str(stand_ins.tree(tmp_path / "base", files)), paths)
    # Neither the place of the tree, the order of keys, nor what lies beside counts.
    (tmp_path / "base" / "aside").write_text("5")
    stand_ins.tree(tmp_path / "base", {"roles/__pycache__/x": "6"})
    assert fingerprint({"y": [1, 2], "x": 1}, str(tmp_path / "base"), paths) == base
    assert fingerprint(values, str(stand_ins.tree(tmp_path / "same", files)), paths) == base
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
        others[name] = fingerprint(values, str(stand_ins.tree(tmp_path / name, changed)), paths)
    assert len({base, *others.values()}) == len(others) + 1
