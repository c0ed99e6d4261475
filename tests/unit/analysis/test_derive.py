from __future__ import annotations

import gzip
import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from loadlab.analysis import derive, result
from loadlab.core import documents, formatting
from loadlab.core.errors import ResultError
from loadlab.core.schema import SchemaError, validate
from loadlab.report import terminal

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
SCHEMA = ROOT / "files" / "schema" / "lab-1.schema.json"
OHA, WRK = "cells/aiohttp-oha-400rps/rep-1", "cells/aiohttp-wrk-closed/rep-1"
FAILED = "cells/aiohttp-oha-400rps/rep-2"
HOST = {
    "role": "server",
    "cpu_model": "x",
    "cores": 2,
    "cpus": [0],
    "memory_bytes": 1,
    "kernel": "6",
    "os": "Debian",
    "virtualisation": "none",
    "clock_source": "tsc",
    "governor": None,
    "nofile": 1024,
    "packages": {},
}


def edit(path: Path, **changed: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run as its load stage leaves it: oha twice, the second time failed, and wrk once."""
    run = tmp_path / "a-run"
    shutil.copytree(FIXTURES / "rep-wrk", run / WRK)
    for place in (OHA, FAILED):
        shutil.copytree(FIXTURES / "rep-oha", run / place)
        kept = run / place / result.KEPT
        (run / place / result.DATABASE).write_bytes(gzip.decompress(kept.read_bytes()))
        kept.unlink()
    edit(run / FAILED / "cell.json", repetition=2)
    (run / FAILED / "error.txt").write_text("gunicorn did not start\n")
    begun = {
        "started": "2026-11-20T17:16:47Z",
        "argv": ["ansible-playbook", "lab.yml"],
        "plan": {
            "run_id": "a-run",
            "given": {"framework": "aiohttp"},
            "options": {"framework": "aiohttp"},
            "stack": {},
            "endpoints": {},
            "tracks": [],
        },
    }
    (run / "plan.json").write_text(json.dumps(begun))
    return run


def everything(run_dir: Path, keep: bool = False) -> str:
    derive.results(run_dir, ROOT, keep)
    derive.describe(run_dir, ROOT, {"server": HOST}, {"python": "3.11"})
    return terminal.tables(*derive.summary(run_dir, ROOT))


def content(run_dir: Path) -> dict[str, bytes]:
    paths = (path for path in run_dir.rglob("*") if path.is_file())
    return {str(path.relative_to(run_dir)): path.read_bytes() for path in paths}


@pytest.mark.parametrize(("keep", "left"), [(False, result.REDUCED), (True, result.KEPT)])
def test_every_repetition_has_a_result_and_no_database(
    run_dir: Path, keep: bool, left: str
) -> None:
    derive.results(run_dir, ROOT, keep)
    found = {place: documents.load(run_dir / place / "result.json") for place in (OHA, FAILED, WRK)}
    assert [found[place]["error"] for place in found] == [None, "gunicorn did not start", None]
    assert found[OHA]["requests"] == 1594
    assert not list(run_dir.rglob(result.DATABASE))
    assert (run_dir / OHA / left).exists()
    # Of a failed one the evidence is kept whole.
    assert (run_dir / FAILED / result.KEPT).exists()


def test_a_result_that_is_there_is_not_made_again(run_dir: Path) -> None:
    derive.results(run_dir, ROOT, False)
    before = content(run_dir)
    (run_dir / OHA / "oha.json").write_text("{")
    derive.results(run_dir, ROOT, False)
    assert content(run_dir) == {**before, f"{OHA}/oha.json": b"{"}


def test_from_what_is_kept_everything_comes_out_the_same(run_dir: Path) -> None:
    table = everything(run_dir)
    first = content(run_dir)
    made = ("result.json", "manifest.json", "summary.json", "metrics.prom")
    for name in first:
        if name.endswith(made):
            (run_dir / name).unlink()
    assert everything(run_dir) == table
    assert content(run_dir) == first


def test_the_link_of_the_runs_calibration_counts(run_dir: Path) -> None:
    """A link slower than the answers voids the repetition; without iperf3 none is judged."""
    # In the recording the traffic went by another way; here eth0 sends 1 MB between two scrapes.
    scrapes = run_dir / OHA / "telemetry-client.prom.gz"
    sent = itertools.count(0, 1_000_000)
    pages = re.sub(
        r"(?m)^(node_network_transmit_bytes_total\{device=\"eth0\"\}) .*$",
        lambda line: f"{line[1]} {next(sent)}",
        gzip.decompress(scrapes.read_bytes()).decode(),
    )
    scrapes.write_bytes(gzip.compress(pages.encode()))
    derive.results(run_dir, ROOT, True)
    verdict = documents.load(run_dir / OHA / "result.json")["verdict"]
    assert any(finding.startswith("uncalibrated: ") for finding in verdict["findings"])
    slow = {"bits_per_second": 1000.0}
    calibration = {"iperf3": {"client_to_server": slow, "server_to_client": slow}}
    (run_dir / "calibration.json").write_text(json.dumps(calibration))
    began = documents.load(run_dir / OHA / "run.json")["started"]
    before = run_dir / "calibration" / "ceiling" / "rep-1"
    before.mkdir(parents=True)
    (before / "run.json").write_text(json.dumps({"started": began - 9, "finished": began - 1}))
    (run_dir / OHA / "result.json").unlink()
    derive.results(run_dir, ROOT, True)
    verdict = documents.load(run_dir / OHA / "result.json")["verdict"]
    assert [r for r in verdict["reasons"] if r.startswith("link: ") and "client_to_server" in r]
    assert not any(finding.startswith("uncalibrated: ") for finding in verdict["findings"])


def test_a_result_that_the_schema_does_not_know_is_not_written(run_dir: Path) -> None:
    edit(run_dir / OHA / "cell.json", purpose="leisure")
    with pytest.raises(SchemaError, match="result /purpose: 'leisure'"):
        derive.results(run_dir, ROOT, False)
    assert not (run_dir / OHA / "result.json").exists()
    assert (run_dir / OHA / result.DATABASE).exists()


def test_the_manifest_of_a_run(run_dir: Path) -> None:
    derive.results(run_dir, ROOT, False)
    derive.describe(run_dir, ROOT, {"server": HOST}, {"python": "3.11"})
    found = documents.load(run_dir / "manifest.json")
    validate(found, "manifest", SCHEMA)
    # The last to end was wrk's, at 1795194780.33; the failed one has no end.
    assert documents.load(run_dir / WRK / "run.json")["finished"] == pytest.approx(
        1795194780.33, abs=1
    )
    assert found["finished"] == "2026-11-20T17:13:00Z"
    locks = {pin.split("/")[0] for pin in found["pins"]}
    assert locks == {"controller", "aiohttp"}
    assert (ROOT / ".git").exists() == (found["lab"]["revision"] is not None)


def test_a_run_of_which_nothing_came_has_no_end(run_dir: Path) -> None:
    shutil.rmtree(run_dir / "cells")
    derive.describe(run_dir, ROOT, {}, {})
    assert documents.load(run_dir / "manifest.json")["finished"] is None
    assert terminal.tables(*derive.summary(run_dir, ROOT)).count("\n") == 0


def test_outside_a_repository_there_is_no_revision(run_dir: Path, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    shutil.copytree(ROOT / "files", lab / "files")
    derive.describe(run_dir, lab, {}, {})
    found = documents.load(run_dir / "manifest.json")
    assert found["lab"] == {"revision": None, "dirty": None}
    assert found["pins"] == {}


def test_a_summary_and_its_table(run_dir: Path) -> None:
    table = everything(run_dir)
    found = documents.load(run_dir / "summary.json")
    validate(found, "summary", SCHEMA)
    assert (found["run_id"], [cell["cell_id"] for cell in found["cells"]]) == (
        "a-run",
        ["aiohttp-oha-400rps", "aiohttp-wrk-closed"],
    )
    assert 'cell="aiohttp-oha-400rps"' in (run_dir / "metrics.prom").read_text()
    lines = [line for line in table.splitlines() if line.startswith("hello")]
    assert [line[12:30].strip() for line in lines] == ["oha 400/s", "oha 400/s", "wrk closed loop"]
    assert lines[1].endswith("void: failed: gunicorn did not start")


def test_a_result_in_anothers_folder_stops_the_summary(run_dir: Path) -> None:
    derive.results(run_dir, ROOT, False)
    edit(run_dir / WRK / "result.json", repetition=7)
    with pytest.raises(ResultError, match="is of aiohttp-wrk-closed, repetition 7"):
        derive.summary(run_dir, ROOT)
    assert not (run_dir / "summary.json").exists()


def repetition(**changed: Any) -> dict[str, Any]:
    return {
        "error": None,
        "goodput": 999.94,
        "latency_us": {"p50": 1234, "p99": 56_789, "p99_9": None},
        "responses": 100_000,
        "errors": {"connect": 1, "read": 0, "body": 2},
        "unsent": 6,
        "verdict": {"valid": True, "reasons": [], "findings": []},
        **changed,
    }


def document(*repetitions: dict[str, Any], rate: float | None = 1000) -> dict[str, Any]:
    mode = "closed" if rate is None else "constant"
    load = {"generator": "oha", "mode": mode, "rate": rate}
    cell = {"cell": {"endpoint": "index", "load": load}, "cell_id": "a", "purpose": "measure"}
    return {"cells": [{**cell, "repetitions": list(repetitions)}], "comparisons": []}


def test_the_columns_of_the_table() -> None:
    findings = ["unsent: 6 of 1600", "errors: body 2"]
    verdict = {"valid": False, "reasons": ["steal: 0.5", "swap: 3"], "findings": findings}
    head, *lines = terminal.table(
        document(
            repetition(verdict=verdict),
            repetition(unsent=None),
            repetition(error="x", latency_us=None, errors=None, goodput=None, unsent=None),
        )
    ).splitlines()
    numbers = ["999.9", "1.23ms", "56.79ms", "-", "3"]
    assert lines[0].split() == (
        ["index", "oha", "1000/s", *numbers, "6", "void:", "steal:", "0.5;", "swap:", "3"]
    )
    assert [line.strip() for line in lines[1:3]] == findings
    assert lines[3].split() == ["index", "oha", "1000/s", *numbers, "-", "valid"]
    assert lines[4].split() == ["index", "oha", "1000/s", "valid"]
    # Each number stands below the last letter of its name.
    for name, number in zip(("goodput", "p50", "p99", "p99.9"), numbers, strict=False):
        end = head.index(f" {name} ") + len(name) + 1
        assert lines[0][:end].endswith(number)
    assert head.index("verdict") == lines[0].index("void") == lines[4].index("valid")


def test_cells_of_several_tunings_and_twins_are_told_apart() -> None:
    cells = []
    for name, purpose in (("production", "measure"), ("production", "calibration"),
                          ("stock", "measure"), ("stock", "twin")):  # fmt: skip
        (cell,) = document(repetition())["cells"]
        cell["cell"]["tuning"] = name
        cells.append({**cell, "cell_id": f"{name}-{purpose}", "purpose": purpose})
    sample = {"n": 1, "median": 999.94, "low": None, "high": None}
    row = {
        "metric": "goodput",
        "base": sample,
        "head": sample,
        "difference": {"value": 0.0, "low": None, "high": None},
        "noise_floor": None,
        "conclusion": "undecided",
        "why": "1 repetition of the base to go by, at least 3 are needed",
    }
    sides = {name: {"name": name, "failed_share": 0.0} for name in ("production", "stock")}
    compared = {
        "by": "tuning",
        "cell": {**cells[0]["cell"], "load": {**cells[0]["cell"]["load"], "connections": 64,
                                              "duration_s": 5}},
        "base": sides["stock"],
        "head": sides["production"],
        "rows": [row],
    }  # fmt: skip
    text = terminal.table({"cells": cells, "comparisons": [compared]})
    lines = [line for line in text.splitlines() if not line.startswith("index")]
    assert lines[1:4] == ["production:", "stock:", "stock, twin:"]
    assert lines[5] == "production against stock on /index"
    assert lines[6].endswith("undecided: 1 repetition of the base to go by, at least 3 are needed")


@pytest.mark.parametrize("rate", [0.1, 99.5, 123_456.7, 1_000_000])
def test_a_rate_is_shown_as_it_was_asked(rate: float) -> None:
    assert f"oha {formatting.plain(rate)}/s " in terminal.table(document(repetition(), rate=rate))
    assert float(formatting.plain(rate)) == rate


def client_document(*repetitions: dict[str, Any]) -> dict[str, Any]:
    load = {
        "generator": "python-bounded", "mode": "batch", "rate": None, "requests": 10_000,
        "connections": 1_000, "open_files": 1024, "reuse": True,
    }  # fmt: skip
    cell = {"cell": {"endpoint": "book", "load": load}, "cell_id": "b", "purpose": "measure"}
    return {"cells": [{**cell, "repetitions": [*repetitions]}], "comparisons": []}


def test_python_clients_have_a_table_of_their_own() -> None:
    rep = repetition(
        requests=10_000,
        ok=9_000,
        rate_achieved=517.24,
        client={
            "seconds": 17.4165,
            "cpu_s": {"user": 3.8, "system": 1.054},
            "max_rss_bytes": 76_431_360,
        },
        verdict={"valid": True, "reasons": [], "findings": ["open_files: …"]},
    )
    failed = repetition(error="x", latency_us=None, errors=None, goodput=None, client=None)
    cells = document(repetition())["cells"] + client_document(rep, failed)["cells"]
    mixed = {"cells": cells, "comparisons": []}
    assert terminal.table(mixed) == "\n".join(
        [terminal.table(document(repetition())), terminal.table(client_document(rep, failed))]
    )
    head, *lines = terminal.table(client_document(rep, failed)).splitlines()
    numbers = ["10,000", "1,000", "17.42", "517.2", "72.9", "MiB", "4.85s", "1,000"]
    assert lines[0].split() == ["book", "python-bounded", *numbers, "valid"]
    assert lines[1].strip() == "open_files: …"
    assert lines[2].split() == ["book", "python-bounded", "10,000", "1,000", "valid"]
    assert head.index("verdict") == lines[0].index("valid") == lines[2].index("valid")
    for name, number in (("seconds", "17.42"), ("req/s", "517.2"), ("CPU", "4.85s")):
        assert lines[0][: head.index(f" {name} ") + len(name) + 1].endswith(number)


def test_a_run_of_a_python_client_from_its_raw_files(run_dir: Path) -> None:
    place = "cells/python-async-emfile/rep-1"
    shutil.copytree(FIXTURES / "rep-python", run_dir / place)
    everything(run_dir)
    first = content(run_dir)
    assert documents.load(run_dir / place / "result.json")["client"]["failures"] == {"EMFILE": 985}
    pins = documents.load(run_dir / "manifest.json")["pins"]
    assert {"clients/aiohttp", "clients/requests"} <= set(pins)
    metrics = (run_dir / "metrics.prom").read_text()
    assert 'cause="EMFILE"' in metrics
    for name in ("result.json", "summary.json", "metrics.prom"):
        for path in run_dir.rglob(name):
            path.unlink()
    everything(run_dir)
    assert content(run_dir) == first


def test_what_was_under_way_is_kept_as_cut_off(run_dir: Path) -> None:
    lost, over = run_dir / "cells/aiohttp-oha-400rps/rep-3", run_dir / WRK
    shutil.copytree(run_dir / OHA, lost)
    edit(lost / "cell.json", repetition=3)
    (lost / "run.json").unlink()
    (lost / "progress.txt").write_text("measuring\n")
    assert derive.cut_off(run_dir) == [lost]
    derive.results(run_dir, ROOT, False)
    found = documents.load(lost / "result.json")
    assert found["error"] == "cut off: the controller went away, last seen measuring"
    # A load that came to its end counts, whoever saw it.
    assert documents.load(over / "result.json")["error"] is None
    assert derive.cut_off(run_dir) == []


def test_what_could_not_be_fetched_is_failed_though_its_load_was_over(run_dir: Path) -> None:
    edit(run_dir / OHA / "cell.json", pair="server2")
    edit(run_dir / WRK / "cell.json", pair="server")
    why = "server: its raw files could not be fetched: no space left"
    assert derive.cut_off(run_dir, [{"pair": "server", "why": why}]) == [run_dir / WRK]
    derive.results(run_dir, ROOT, False)
    errors = [documents.load(run_dir / place / "result.json")["error"] for place in (OHA, WRK)]
    assert errors == [None, f"cut off: the controller went away; {why}"]


def test_what_came_of_a_repetition_in_a_line(run_dir: Path) -> None:
    derive.results(run_dir, ROOT, False)
    told = [
        terminal.told(documents.load(run_dir / place / "result.json")) for place in (OHA, FAILED)
    ]
    assert re.fullmatch(
        r"[\d.]+ requests/s, p50 [\d.]+ ms, p99 [\d.]+ ms, no errors, (valid|void: .*)", told[0]
    )
    assert told[1] == "failed, and kept as such: gunicorn did not start"


def test_a_studys_cells_without_a_valid_repetition_are_named(run_dir: Path) -> None:
    begun = documents.load(run_dir / "plan.json")
    begun["plan"]["study"] = {
        **{"kind": "study", "name": "x", "scale": None, "description": "d", "claims": []},
        "cells": {"failed": [FAILED.split("/")[1]], "never": ["never"]},
        "published": {"question": None, "source": None, "figures": [], "mistakes": []},
    }
    (run_dir / "plan.json").write_text(json.dumps(begun))
    everything(run_dir)
    first, second = (run_dir / place / "result.json" for place in (OHA, FAILED))
    edit(first, verdict={"valid": False, "reasons": ["steal: 0.2"], "findings": []})
    derive.summary(run_dir, ROOT)
    assert derive.missing(run_dir) == [
        "failed (steal: 0.2; failed: gunicorn did not start)",
        "never (it was not measured)",
    ]
    # One repetition that counts is enough.
    assert not documents.load(second)["verdict"]["valid"]
    edit(first, verdict={"valid": True, "reasons": [], "findings": []})
    derive.summary(run_dir, ROOT)
    assert derive.missing(run_dir) == ["never (it was not measured)"]


def test_a_run_that_is_no_study_misses_nothing(run_dir: Path) -> None:
    everything(run_dir)
    assert derive.missing(run_dir) == []


def test_cells_that_failed_and_have_nothing_valid_are_named(run_dir: Path) -> None:
    everything(run_dir)
    first, wrk = (run_dir / place / "result.json" for place in (OHA, WRK))
    valid = {"valid": True, "reasons": [], "findings": []}
    edit(first, verdict=valid)
    # What is void did not fail.
    edit(wrk, verdict={**valid, "valid": False})
    assert derive.given_up(run_dir) == []
    edit(first, verdict={**valid, "valid": False})
    assert derive.given_up(run_dir) == ["aiohttp-oha-400rps (gunicorn did not start)"]
