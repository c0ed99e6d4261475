"""A run goes on past whatever breaks in its middle, and is resumed where it was cut off."""

import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import (
    CLIENT,
    ROOT,
    SERVER,
    STATE,
    finish,
    playbook,
    run,
    ssh,
    ssh_words,
    stages,
    study_file,
)
from .figures import figures

pytestmark = pytest.mark.lab

SHORT = {"framework": "aiohttp", "endpoint": "agents", "generator": "wrk", "warmup": 0}
# Starts as it should, but with three workers.
BROKEN = "/etc/systemd/system/loadlab-app.service.d/broken.conf"
# Fails as often as the file says, and is rsync otherwise.
RSYNC, FAILS = "/usr/local/bin/rsync", "/run/rsync-fails"
FAILING = f"""#!/bin/sh
read -r left <{FAILS}
[ "$left" -gt 0 ] || exec /usr/bin/rsync "$@"
echo $((left - 1)) >{FAILS}
echo 'made to fail' >&2
exit 1
"""
# Of one fetch, in about a minute.
ATTEMPTS = 7
# The first is measured against, and once more as its own twin.
TUNINGS = ("stock", "mcdonnell")


def records(run_id: str) -> list[dict[str, Any]]:
    """All results of a run by repetition, as far as they are there."""
    paths = (ROOT / "results" / run_id).glob("cells/*/rep-*/result.json")
    found = [json.loads(path.read_text()) for path in paths]
    return sorted(found, key=lambda record: (record["cell_id"], record["repetition"]))


def wait_until_measuring(process: subprocess.Popen[str], run_id: str, repetition: int) -> None:
    """Return when a repetition's load has begun, and went on for half a second."""
    runs = STATE / f"hosts/client/root/var/lib/loadlab-runs/{run_id}/cells"
    deadline = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < deadline:
        for path in runs.glob(f"*/rep-{repetition}/progress.txt"):
            if path.read_text().strip() == "measuring":
                time.sleep(0.5)
                return
        time.sleep(0.02)
    process.kill()
    pytest.fail(f"repetition {repetition} never began: {process.communicate()[0][-3000:]}")


def family(pid: int) -> list[int]:
    """A process and all that come from it."""
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
    return [pid, *(each for child in listed.stdout.split() for each in family(int(child)))]


def kill(playing: subprocess.Popen[str]) -> None:
    """Kill a playbook with Ansible's workers, which have sessions of their own and would go on."""
    for pid in family(playing.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    playing.wait()


@pytest.mark.core
def test_whatever_is_killed_costs_one_repetition(run_id: str) -> None:
    # So long that whatever is killed is killed under load, also on a busy machine.
    asked = {**SHORT, "duration": 6, "repetitions": 4, "run_id": run_id}
    run(*stages("hosts", "tune", "deploy"), **asked)
    # Named alone, the run knows its own words.
    killed = playbook("playbooks/load.yml", run_id=run_id)
    wait_until_measuring(killed, run_id, 2)
    kill(killed)
    (before,) = records(run_id)

    # One more is added, and none is measured again.
    loading = playbook("playbooks/load.yml", run_id=run_id, repetitions=5)
    breaking = {
        3: (CLIENT, "pkill -KILL -x wrk"),
        4: (CLIENT, "sleep 0.5; pkill -KILL sshd; systemctl restart ssh"),
        5: (SERVER, "pkill -KILL -P $(systemctl show --value -p MainPID loadlab-app)"),
        6: (SERVER, "pkill -KILL -x postgres"),
        7: (SERVER, "systemctl kill --signal=KILL loadlab-record"),
    }
    for repetition, (host, command) in breaking.items():
        # By a service of its own, which outlives the connection. On a busy machine, connecting may
        # take as long as the load.
        service = f"systemd-run --quiet --collect sh -c {shlex.quote(command)}"
        connecting = ssh_words(host, f"read begin; {service}")
        with subprocess.Popen(connecting, stdin=subprocess.PIPE, text=True) as connected:
            wait_until_measuring(loading, run_id, repetition)
            connected.communicate("begin\n", timeout=300)
        assert connected.returncode == 0, repetition
        if repetition == 3:
            collecting = playbook("playbooks/collect.yml", run_id=run_id)
    # What is under way is nobody else's.
    told = " ".join(collecting.communicate(timeout=300)[0].split())
    assert collecting.returncode != 0
    assert f"run_id: '{run_id}' is under way in process {loading.pid} of this machine" in told
    output = finish(loading)

    found = records(run_id)
    # On a busy machine some are void, and are repeated.
    last = len(found)
    assert [record["repetition"] for record in found] == [*range(1, last + 1)]
    assert last >= 8
    assert found[0] == before
    errors = {record["repetition"]: record["error"] for record in found if record["error"]}
    assert set(errors) == {2, 3, 7}, errors
    # By when it was resumed the load was over, but nobody had watched it.
    words = ("cut off: the controller or a host ", "telemetry-", "none of 0 scrapes succeeded")
    assert errors[2].startswith(words)
    assert "wrk" in errors[3]
    # Without its server's recording it is no measurement.
    assert errors[7].startswith("End the load and the recordings: "), errors[7]
    assert "no processes.txt.gz: " in errors[7]
    assert "Failed with result 'signal'" in errors[7]
    assert "[2/" in output
    # What a worker was about to answer is lost and nothing else; without its database none is ok.
    assert found[4]["goodput"] > 0
    assert sum(found[5]["errors"].values()) > 0
    assert sum(found[7]["errors"].values()) == 0, "PostgreSQL is up again"
    progress = json.loads((ROOT / "results" / run_id / "progress.json").read_text())
    assert (progress["done"], progress["total"], progress["abandoned"]) == (last - 3, last - 3, {})

    # Elsewhere it does not go on.
    recorded = ROOT / "results" / run_id / "plan.json"
    begun = json.loads(recorded.read_text())
    assert set(begun["hosts"]) == {"server", "client"}
    # Twice the load.
    assert len(begun["resumed"]) == 2
    another = {**begun["hosts"]["server"], "cpu_model": "another"}
    elsewhere_begun = json.dumps({**begun, "hosts": {**begun["hosts"], "server": another}})
    recorded.write_text(elsewhere_begun)
    elsewhere = playbook("playbooks/load.yml", run_id=run_id)
    told = " ".join(elsewhere.communicate(timeout=300)[0].split())
    assert elsewhere.returncode != 0
    assert f"'{run_id}' was begun on other hosts: server has cpu_model 'another' then and" in told
    assert "Nothing was changed on the hosts." in told
    assert records(run_id) == found
    assert recorded.read_text() == elsewhere_begun


@pytest.fixture
def study() -> Iterator[str]:
    """A stack of three workers, which a test keeps from starting, and one of two."""
    cells = {f"{n} workers": {"workers": n} for n in (3, 2)}
    options = {**SHORT, "endpoint": "index", "duration": 2, "repetitions": 1}
    with study_file(cells, **options) as name:
        yield name


def test_a_stack_that_cannot_run_is_given_up_and_the_other_is_measured(
    run_id: str, study: str
) -> None:
    asked = {"study": study, "run_id": run_id}
    run(*stages("hosts", "tune"), **asked)
    refuse = "[Service]\nExecStartPre=/bin/sh -c 'test \"$LAB_WORKERS\" != 3'\n"
    ssh(SERVER, f"mkdir -p {Path(BROKEN).parent}; printf %s {shlex.quote(refuse)} >{BROKEN}")
    output = run(*stages("deploy", "calibrate", "load"), **asked)
    found = {(r["cell"]["workers"], r["repetition"]): r["error"] for r in records(run_id)}
    # Void ones, of which a neighbour is the cause, are repeated.
    assert {error for (workers, _), error in found.items() if workers == 2} == {None}
    refusals = [error for (workers, _), error in found.items() if workers == 3]
    assert len(refusals) == 2
    for error in refusals:
        assert "does not start on server" in error
        assert error.count("Starting loadlab-app.service") == 1, "its last start alone"
    assert "Skipped after 2 failed attempts: aiohttp" in output
    # What was measured is in the report, and the command that wrote it says what is not.
    reporting = playbook(*stages("collect", "report"), run_id=run_id)
    told = " ".join(reporting.communicate(timeout=120)[0].split())
    assert reporting.returncode != 0
    (cell_id,) = {r["cell_id"] for r in records(run_id) if r["cell"]["workers"] == 3}
    # If others' load made all of the other cell void, that is what it says.
    with figures():
        assert f"No valid measurement of {cell_id} (" in told
    assert f"Go on with ansible-playbook playbooks/study.yml -e run_id={run_id} " in told
    assert (ROOT / "results" / run_id / "report.html").exists()

    # Mended, what was given up is measured, and only that.
    ssh(SERVER, f"rm {BROKEN}; systemctl daemon-reload; systemctl reset-failed")
    run("playbooks/load.yml", run_id=run_id)
    again = {(r["cell"]["workers"], r["repetition"]): r["error"] for r in records(run_id)}
    assert again.items() >= found.items()
    # More than one, where a neighbour made the first void.
    assert {(3, None)} == {(workers, again[workers, n]) for workers, n in set(again) - set(found)}


def test_a_fetch_that_fails_costs_one_repetition_at_most(run_id: str) -> None:
    asked = {**SHORT, "endpoint": "index", "duration": 2, "repetitions": 3, "run_id": run_id}
    run(*stages("hosts", "tune", "deploy"), **asked)
    runs, folder = "/var/lib/loadlab-runs", ROOT / "results" / run_id
    write = f"echo 1 >{FAILS}; printf %s {shlex.quote(FAILING)} >{RSYNC}; chmod 755 {RSYNC}"
    ssh(SERVER, write)
    try:
        loading = playbook("playbooks/load.yml", run_id=run_id)
        for repetition, fails in ((1, 1), (2, ATTEMPTS)):
            wait_until_measuring(loading, run_id, repetition)
            assert ssh(SERVER, f"cat {FAILS}; echo {fails} >{FAILS}") == "0\n"
        finish(loading)
    finally:
        ssh(SERVER, f"rm {RSYNC}")
    failed, *others = sorted(records(run_id), key=lambda record: record["error"] is None)
    # Void ones, of which a neighbour is the cause, are repeated.
    assert {record["repetition"] for record in others} >= {1, 3, 4}
    assert {record["error"] for record in others} == {None}
    left = f"{runs}/{run_id}.left-1"
    words = f"server: its raw files could not be fetched and stay there in {left}: made to fail"
    assert failed["repetition"] == 2
    assert failed["error"].startswith(words)
    rep = f"cells/{failed['cell_id']}/rep-2"
    assert ssh(SERVER, f"ls {left}/{rep}/processes.txt.gz")
    # Of the client it was fetched; nothing is on its way any more.
    assert (folder / rep / "wrk.txt").exists()
    assert not list(folder.glob(".arriving-*"))
    # The next to fetch from the host fetches it too, and nothing stays there.
    result = (folder / rep / "result.json").read_bytes()
    run("playbooks/collect.yml", run_id=run_id)
    assert (folder / rep / "processes.txt.gz").exists()
    assert ssh(SERVER, f"find {runs} -maxdepth 1 -name '*.left-*'") == ""
    assert (folder / rep / "result.json").read_bytes() == result

    # A host that answers is not lost.
    ssh(SERVER, f"mv {runs} {runs}.away; touch {runs}")
    try:
        loading = playbook("playbooks/load.yml", run_id=run_id, repetitions=4)
        told = " ".join(loading.communicate(timeout=120)[0].split())
    finally:
        ssh(SERVER, f"rm {runs}; mv {runs}.away {runs}")
    assert loading.returncode == 2
    assert told.endswith("Remove the cause and run the same command again.")


def test_postgresql_that_was_stopped_is_started(run_id: str) -> None:
    asked = {**SHORT, "duration": 3, "repetitions": 3, "run_id": run_id}
    run(*stages("hosts", "tune", "deploy"), **asked)
    stop = "systemctl stop postgresql"
    ssh(SERVER, stop)
    run(*stages("tune", "deploy"), **asked)
    loading = playbook("playbooks/load.yml", run_id=run_id)
    for repetition, command in ((1, stop), (2, "systemctl stop 'postgresql@*'")):
        wait_until_measuring(loading, run_id, repetition)
        ssh(SERVER, command)
    finish(loading)
    found = records(run_id)
    assert {record["error"] for record in found} == {None}
    # Void ones, of which a neighbour is the cause, are repeated.
    first, second, *others = (sum(record["errors"].values()) for record in found)
    assert first > 0, "it was stopped meanwhile"
    assert second > 0, "it was running again, and its cluster was stopped"
    assert others
    assert not any(others), "it is running again"


def somaxconn(run_id: str, ledger: str, host: str) -> dict[str, Any]:
    """The row of net.core.somaxconn in a ledger of the run."""
    rows = json.loads((ROOT / "results" / run_id / ledger).read_text())["hosts"][host]
    (row,) = (row for row in rows if row["key"] == "net.core.somaxconn")
    return dict(row)


def test_two_pairs_share_two_tunings_of_two_cells(run_id: str) -> None:
    pairs = {"inventory": "inventory/local_pairs"}
    asked = {**SHORT, "framework": "nginx", "endpoint": "index,hello", "duration": 2}
    try:
        output = run("lab.yml", **pairs, **asked, tuning=",".join(TUNINGS), run_id=run_id)
        # Both pairs measured the first tuning once more at the end.
        assert ssh(SERVER, "sysctl -n net.core.somaxconn") != "8191\n"
    finally:
        run("playbooks/teardown.yml", **pairs)
    found = records(run_id)
    assert all(record["error"] is None for record in found)
    pair_of = {record["cell_id"]: record["server"] for record in found}
    begun = json.loads((ROOT / "results" / run_id / "plan.json").read_text())["plan"]
    for compared in begun["comparisons"]:
        assert pair_of[compared["base"]] == pair_of[compared["head"]]
    assert set(pair_of.values()) == {"server", "server2"}
    # More repetitions than cells: pairs of one machine make each other's void.
    assert len(pair_of) == len(begun["experiments"]) == 7
    # Of the A/A controls one is on the other pair, and both pairs were calibrated.
    *own, across = begun["aa_controls"]
    assert all(pair_of[one] == pair_of[other] for one, other in own)
    assert pair_of[across[0]] != pair_of[across[1]]
    assert (ROOT / "results" / run_id / "calibration-server2.json").exists()
    # They measured at the same time.
    spans = {
        pair: sorted((r["started"], r["finished"]) for r in found if r["server"] == pair)
        for pair in ("server", "server2")
    }
    assert any(
        one[0] < other[1] and other[0] < one[1] for one, other in itertools.product(*spans.values())
    )
    report = (ROOT / "results" / run_id / "report.html").read_text()
    assert "on server2" in report

    # Each tuning was really applied when its turn came.
    for server, suffix in {"server": "", "server2": "-server2"}.items():
        rows = {name: somaxconn(run_id, f"tuning-{name}{suffix}.json", server) for name in TUNINGS}
        assert rows["mcdonnell"]["after"] == "8191"
        assert rows["stock"]["state"] == "restored"
    summary = json.loads((ROOT / "results" / run_id / "summary.json").read_text())
    tuning_of = {record["cell_id"]: record["cell"]["tuning"] for record in found}
    assert len(summary["comparisons"]) == 2
    for comparison in summary["comparisons"]:
        sides = [comparison[side]["cell_id"] for side in ("base", "head")]
        assert tuple(tuning_of[cell_id] for cell_id in sides) == TUNINGS
        # One repetition against one tells nothing, and that is what is said.
        words = {row["metric"]: row["conclusion"] for row in comparison["rows"]}
        assert words["goodput"] == "inconclusive"
    # Goodput and two percentiles of each A/A control, beside what its requests cost.
    floors = Counter(
        (row["cell_id"], row["control_id"])
        for row in summary["noise_floor"]
        if row["metric"] in ("goodput", "p50", "p99")
    )
    assert floors == {tuple(each): 3 for each in begun["aa_controls"]}
    with figures():
        assert "noise floor" in output


# The heading of each stage, and what the last line says of a host that is lost below it. The report
# needs no host.
STAGES = {
    "preflight": ("Preflight", "Nothing was changed on the hosts."),
    "hosts": ("Check the hosts", "Nothing was changed on the hosts."),
    "tune": ("Tune", "Nothing was measured."),
    "deploy": ("Deploy", "Nothing was measured."),
    "calibrate": ("Calibrate", "Nothing was measured."),
    "load": ("Load", "Nothing was measured."),
    "collect": ("Collect", "What was measured is kept."),
    "report": ("Report", ""),
}


def lose(host: str, heading: str, **asked: Any) -> tuple[int, list[str]]:
    """Run the lab, losing a host where a stage has begun; its status and the lines it printed."""
    address = {"client": CLIENT, "server": SERVER}[host]
    keys = STATE / f"hosts/{host}/root/root/.ssh/authorized_keys"
    away = keys.with_name("away")
    running = playbook("lab.yml", "-v", **asked)
    assert running.stdout
    told = []
    try:
        for printed in running.stdout:
            told.append(printed.rstrip("\n"))
            if re.fullmatch(rf"\d+:\d\d {heading}", told[-1]) and keys.exists():
                keys.rename(away)
                close = ["ssh", "-o", f"ControlPath={STATE}/ssh-{address}", "-O", "exit", "host"]
                # Preflight has no connection yet.
                subprocess.run(close, check=False, capture_output=True, timeout=10)
        assert away.exists(), told
    finally:
        if away.exists():
            away.rename(keys)
    return running.wait(), told


@pytest.fixture(scope="module")
def lost_run() -> str:
    """A run that loses its hosts in one stage after another, on hosts that are up."""
    shutil.rmtree(ROOT / "results" / "test-lost", ignore_errors=True)
    run(*stages("hosts"))
    return "test-lost"


@pytest.mark.parametrize("stage", STAGES)
def test_a_host_that_is_lost_ends_the_run_with_its_cause(
    stage: str, lost_run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command then goes on, into the next stage."""
    monkeypatch.setenv("ANSIBLE_SSH_RETRIES", "0")
    # Every stage then prints something with -v, and so its heading.
    monkeypatch.setenv("ANSIBLE_DISPLAY_OK_HOSTS", "true")
    heading, kept = STAGES[stage]
    asked = {**SHORT, "endpoint": "index", "duration": 2, "recalibrate": True}
    for host, address in {"server": SERVER, "client": CLIENT}.items():
        status, told = lose(host, heading, **asked, run_id=lost_run)
        output = "\n".join(told)
        for words in ("Traceback", "has no attribute", "Error while resolving", "Conditional"):
            assert words not in output
        if stage == "report":
            # Others' load on this machine may have made the measurement void.
            assert status == 0 or "No measurement is valid: " in output, told[-20:]
            assert f"Report: {ROOT}/results/{lost_run}/report.html" in output
            continue
        assert status == 4, told[-20:]
        denied = f"root@{address}: Permission denied (publickey)"
        if "changed" in kept:
            assert told[-1].startswith(f"{host}: {address} does not answer over SSH: {denied}. ")
        else:
            cause = f"{host}: unreachable over SSH ({denied}) at the task '"
            assert told[-1].startswith(cause), told[-20:]
        assert kept in told[-1]
