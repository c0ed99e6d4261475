"""lab.yml from the first stage to the report, and what it refuses."""

import csv
import hashlib
import json
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml

from loadlab.model import Calibration, Manifest, Result, Summary
from loadlab.run import documents
from loadlab.run.schema import DOCUMENTS

from .conftest import CLIENT, ROOT, SERVER, loadlab, playbook, results, run, ssh
from .figures import Measured, figures

pytestmark = [pytest.mark.lab, pytest.mark.alone]

SHORT = {"framework": "aiohttp", "rate": 200, "duration": 5, "warmup": 1}
RUN_ID = "test-lab"
AGAIN = f"{RUN_ID}-again"


@pytest.fixture(scope="module")
def whole() -> str:
    """The lab from nothing to the report, for all that look at it; what it printed."""
    shutil.rmtree(ROOT / "results" / RUN_ID, ignore_errors=True)
    asked = {**SHORT, "endpoint": "index,agents,sleep", "run_id": RUN_ID}
    return run("lab.yml", **asked, local_hosts_fresh=True)


@pytest.mark.core
def test_whole_lab(whole: str, tmp_path: Path) -> None:
    folder = ROOT / "results" / RUN_ID
    assert f"Report: {folder}/report.html" in whole
    assert (ROOT / "results/latest").resolve() == folder

    for name in ("manifest", "tuning", "calibration", "summary"):
        documents.read(folder / f"{name}.json", DOCUMENTS[name])
    # What proved itself on the client.
    hosts = json.loads((folder / "manifest.json").read_text())["hosts"]
    generators = hosts["client"]["generators"]
    assert set(generators) == {"metronome", "wrk"}
    assert "generators" not in hosts["server"]
    proven = ssh(CLIENT, "ls /var/lib/loadlab-proven").split()
    assert {each["sha256"] for each in generators.values()} <= set(proven)
    found = results(RUN_ID)
    endpoints = ("index", "agents", "sleep")
    constant, closed = ([f"{name} {each}" for each in endpoints] for name in ("metronome", "wrk"))
    assert set(found) == {*constant, *closed}
    for result in found.values():
        documents.decode(result, Result, "result.json")
        assert result["error"] is None
        assert result["responses"] > 0
        assert sum(result["errors"].values()) == 0
    for name in constant:
        # What the server counted is what the client counted, to the request.
        assert found[name]["reverse_proxy_requests"] == found[name]["requests"]
        assert found[name]["scheduled"] == 200 * 5
        assert found[name]["requests"] + found[name]["unsent"] == 200 * 5
        assert found[name]["telemetry"]["server"]["cpu"]["steal"] >= 0
        # At least a packet for each request, and none lost on a link of memory.
        for telemetry in found[name]["telemetry"].values():
            assert telemetry["drops"]["received"] >= found[name]["responses"]
            assert telemetry["drops"]["dropped"] == 0
    for name in closed:
        # The closed loop cuts what is under way at its end: one request a connection at most.
        assert 0 <= found[name]["reverse_proxy_requests"] - found[name]["requests"] <= 64
    # 50 ms asleep come out as 50 ms; uvloop counts whole milliseconds, and may wake up one early.
    slept = found["metronome sleep"]["latency_us"]
    assert slept["min"] >= 49_000
    assert 50_000 <= slept["p50"] <= 55_000

    servers = {name: result["telemetry"]["server"] for name, result in found.items()}
    for name, server in servers.items():
        used = {group: each["cpu"] for group, each in server["processes"].items()}
        # The whole seconds of the load; at its edges the scrapes see less of it.
        busy = server["per_second"]["cpu_busy"][1:-1]
        assert sum(used.values()) <= sum(busy) / len(busy) + 0.1, name
        if name == "wrk index":
            assert used["reverse_proxy"] + used["application"] > 0.5 * server["cpu_busy"]
            assert used["postgresql"] < 0.02
        assert (server.get("database") is None) == (not name.endswith("agents"))
        queues = server["accept_queues"]
        assert {"reverse_proxy", "application", "postgresql"} <= {one["service"] for one in queues}
        assert all(len(one["depth"]) == len(server["per_second"]["t"]) for one in queues)
        assert all(None not in one["depth"] and one["limit"] > 0 for one in queues)
    pool = yaml.safe_load((ROOT / "apps/aiohttp/app.yml").read_text())["pool_size"]
    for name in ("metronome agents", "wrk agents"):
        database = servers[name]["database"]
        assert database["connections_max"] == pool * servers[name]["cores"]
        statement = database["statements"][0]
        assert "FROM agents" in statement["query"]
        # One for each answer, and one for each that the closed loop cut off; the load's beginning
        # lies between two readings.
        assert statement["calls"] == pytest.approx(found[name]["responses"], rel=0.15)

    html = (folder / "report.html").read_text()
    # What a noisy machine has made void is no result.
    valid = any(result["validity"]["valid"] for result in found.values())
    assert ("Server processes" in html) == valid
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", html), "not self-contained"
    with (folder / "metrics.prom").open() as file:
        subprocess.run(["promtool", "check", "metrics"], stdin=file, check=True)
    with (folder / "cells.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    # A row for each measurement: one that is void is made again.
    measured = Counter(path.parts[-3] for path in folder.glob("cells/*/rep-*/result.json"))
    assert Counter(row["cell_id"] for row in rows) == measured
    for cell_id in measured:
        hgrm = folder / "percentiles" / f"{cell_id}.hgrm"
        valid_rows = [row for row in rows if row["cell_id"] == cell_id and row["valid"] == "true"]
        assert hgrm.exists() == bool(valid_rows)

    # Rebuilt from what is on disk, everything comes out the same.
    index = ROOT / "results" / "index.html"
    assert f'href="{RUN_ID}/report.html"' in index.read_text()
    derived = (folder / "summary.json", folder / "report.html", index)
    before = {path: path.read_bytes() for path in derived}
    run("playbooks/report.yml", run_id=RUN_ID)
    assert {path: path.read_bytes() for path in derived} == before
    assert f"Report: {folder}/report.html" in loadlab("show", RUN_ID)
    verified_elsewhere(RUN_ID, tmp_path)


def verified_elsewhere(run_id: str, tmp_path: Path) -> None:
    """A bundle is verified by a copy of the lab, without results, network or root, in seconds."""
    told = loadlab("bundle", run_id)
    archive = ROOT / "results" / f"{run_id}.tar.gz"
    assert f"SHA-256 {hashlib.sha256(archive.read_bytes()).hexdigest()}" in told
    copy = tmp_path / "lab"
    left = shutil.ignore_patterns("results", ".git", ".venv", ".*cache", "node_modules")
    shutil.copytree(ROOT, copy, ignore=left)
    received = Path(shutil.move(archive, tmp_path))
    words = [
        *("unshare", "--user", "--map-user=65534", "--net"),
        *(sys.executable, "-m", "loadlab", "verify", str(received)),
    ]
    began = time.monotonic()
    done = subprocess.run(words, cwd=copy, capture_output=True, text=True, check=False, timeout=60)
    took = time.monotonic() - began
    assert done.returncode == 0, done.stdout + done.stderr
    folder = ROOT / "results" / run_id
    several = [*folder.rglob("result.json"), *folder.rglob("*.hgrm")]
    documents = 8 + len(several)
    counts = rf"Run {run_id}: documents as derived again: {documents}, with [\d,]+ numbers\. "
    assert re.search(rf"{counts}Files that differ: 0\. Raw files, hashed only: \d", done.stdout)
    assert "requests.json.gz" not in done.stdout
    assert "Not signed: " in done.stdout
    report = tmp_path / f"{run_id}.derived" / "report.html"
    assert report.read_bytes() == (folder / "report.html").read_bytes()
    assert "judged by" not in done.stdout
    assert took < 10


@pytest.mark.core
def test_a_second_run_changes_nothing(whole: str) -> None:
    folder = ROOT / "results" / RUN_ID
    kept = {path: path.read_bytes() for path in folder.glob("cells/*/rep-*/result.json")}
    output = run("lab.yml", "-v", run_id=RUN_ID)
    assert f"Run {RUN_ID} is complete" in " ".join(output.split())
    assert "server: aiohttp already deployed, nothing to do" in output
    recap = re.search(r"^server +: ok=\d+ +changed=(\d+)", output, re.MULTILINE)
    assert recap is not None
    assert recap[1] == "0"
    assert {path: path.read_bytes() for path in folder.glob("cells/*/rep-*/result.json")} == kept


@pytest.mark.core
def test_a_recorded_virtual_machine_does_not_sleep(whole: str) -> None:
    """The kernel says how many µs an idle core may take to wake up: 0 where it has to poll."""
    device = "/dev/cpu_dma_latency"
    asked = (
        "grep -qx POLL /sys/devices/system/cpu/cpu0/cpuidle/state0/name && "
        f"systemd-detect-virt --quiet --vm && [ -c {device} ] && exec 5>{device}"
    )
    can_poll = (
        subprocess.run(["bash", "-c", asked], check=False, capture_output=True).returncode == 0
    )
    manifest = documents.read(ROOT / "results" / RUN_ID / "manifest.json", Manifest)
    for host in manifest.hosts.values():
        assert host.hardware is not None
        assert host.hardware.kept_awake is can_poll
    if can_poll:
        recorder = "/usr/local/lib/loadlab/record-host.sh"
        settings = "DIR=$(mktemp -d) SUFFIX= UNITS= SESSION= DATABASE="
        latency_us = f"od -An -td4 {device}"
        recorded = ssh(
            SERVER, f"{settings} timeout 3 {recorder} & sleep 1; {latency_us}; wait; {latency_us}"
        )
        during_us, after_us = map(int, recorded.split())
        assert during_us == 0 < after_us


@pytest.fixture(scope="module")
def again(whole: str) -> Measured[str]:
    """A second run, as short as can be, with its curve; what it printed."""

    def measure() -> str:
        shutil.rmtree(ROOT / "results" / AGAIN, ignore_errors=True)
        asked = {**SHORT, "endpoint": "index", "duration": 1}
        return run("lab.yml", **asked, curve=True, run_id=AGAIN)

    return Measured(measure)


def test_a_new_run_uses_the_calibration_again(again: Measured[str], tmp_path: Path) -> None:
    """From files of its own: nothing of the other run is needed to verify it."""
    output = again.found
    first = documents.read(ROOT / "results" / RUN_ID / "calibration.json", Calibration)
    told = rf"Calibration of run {RUN_ID}, \d+ (s|min) ago, reused; -e recalibrate=true"
    # What a neighbour disturbed is measured again.
    usable = not (first.link_reasons or first.ceiling_reasons)
    assert (re.search(told, output) is not None) == usable
    assert ("Calibrating the link" in output) == (not usable)
    assert f"All runs: {ROOT}/results/index.html" in output
    verified_elsewhere(AGAIN, tmp_path)


def test_a_run_at_one_rate_has_its_curve(again: Measured[str]) -> None:
    """At fractions of what the closed loop found, each measured after it."""
    told = " ".join(again.found.split())
    folder = ROOT / "results" / AGAIN
    assert f"Run {AGAIN}: 6 measurements of aiohttp at index" in told
    (curve,) = documents.read(folder / "summary.json", Summary).curves
    with figures():
        assert curve.saturation is not None, curve.reason
    found = [documents.read(path, Result) for path in folder.glob("cells/*/rep-*/result.json")]
    loops = [one for one in found if one.purpose == "closed_loop" and one.validity.valid]
    began = min(one.started or 0 for one in loops)
    measured = {one.cell.load.fraction or 0.0: one for one in found if one.purpose == "curve"}
    assert sorted(measured) == [0.25, 0.5, 0.75, 0.95]
    for fraction, one in measured.items():
        assert one.cell.load.rate == pytest.approx(fraction * curve.saturation, rel=0.05)
        assert (one.started or 0) > began
        assert one.scheduled == pytest.approx(one.cell.load.rate, abs=1)
    rates = {step.rate for step in curve.trace}
    assert rates == {200, *(one.cell.load.rate for one in measured.values())}
    with figures():
        # A fifth of the saturation is little work: right answers in far less than 100 ms.
        assert curve.within, curve.trace
    sentence = f"p99 stayed within 100 ms, with no errors, up to {curve.within:,g} requests/s"
    html = " ".join((folder / "report.html").read_text().split())
    assert sentence in told
    assert sentence in html
    assert "p99 by offered rate on /index" in html


def test_a_calibration_that_fails_is_made_once_more(whole: str) -> None:
    folder = ROOT / "results" / RUN_ID
    ceiling = folder / "calibration/ceiling"
    new = len(list(ceiling.glob("rep-*"))) + 1
    # What is there is somebody's measurement: the next of this run cannot be kept.
    taken = folder / f"calibration/link/rep-{new}/ping.txt"
    taken.parent.mkdir()
    taken.write_text("somebody's\n")
    output = run("playbooks/calibrate.yml", run_id=RUN_ID)
    assert "Calibration failed (recorded); retrying" in output
    results = [(ceiling / f"rep-{number}/result.json").exists() for number in (new, new + 1)]
    assert results == [False, True]
    assert taken.read_text() == "somebody's\n"
    documents.read(folder / "calibration.json", Calibration)


@pytest.mark.core
def test_a_generator_that_does_not_run_on_the_client_is_refused(whole: str, tmp_path: Path) -> None:
    """No generator in any copy of the cache; the next run has the right one again."""
    shutil.copytree("/var/cache/loadlab/metronome", tmp_path, dirs_exist_ok=True)
    for built in tmp_path.glob("*/metronome"):
        shutil.copyfile("/bin/true", built)
    process = playbook("playbooks/load.yml", run_id=RUN_ID, metronome_cache=str(tmp_path))
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    told = " ".join(output.split())
    assert "The generator metronome does not run on client." in told
    assert "No load was offered" in told
