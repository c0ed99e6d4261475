import gzip
import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from loadlab.generators import oha_database
from loadlab.kinds import derive_run, run_end
from loadlab.kinds.study import words as study_words
from loadlab.model import LabRevision, Manifest, Reason, Result, Summary, Validity
from loadlab.report.html import Facts
from loadlab.report.sections import manifest_section
from loadlab.report.terminal import cell_lines
from loadlab.report.words import cost_words, repetitions_words
from loadlab.run import documents
from loadlab.run.errors import ResultError
from tests.unit import builders
from tests.unit.builders import present
from tests.unit.report import blocks

ROOT = builders.ROOT
FIXTURES = ROOT / "tests" / "fixtures"
OHA, WRK = "cells/aiohttp-oha-400rps/rep-1", "cells/aiohttp-wrk-closed/rep-1"
FAILED = "cells/aiohttp-oha-400rps/rep-2"
HOSTS = msgspec.to_builtins(builders.manifest().hosts)


def edit(path: Path, **changed: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


def judge(path: Path, validity: Validity) -> None:
    """Replace the validity in a result.json."""
    found = replace(documents.read(path, Result), validity=validity)
    documents.write(path, documents.encode(found))


def result(run_dir: Path, place: str) -> Result:
    return documents.read(run_dir / place / "result.json", Result)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run as its load stage leaves it: oha twice, the second time failed, and wrk once."""
    run = tmp_path / "a-run"
    shutil.copytree(FIXTURES / "rep-wrk", run / WRK)
    for place in (OHA, FAILED):
        shutil.copytree(FIXTURES / "rep-oha", run / place)
        kept = run / place / oha_database.KEPT
        (run / place / oha_database.DATABASE).write_bytes(gzip.decompress(kept.read_bytes()))
        kept.unlink()
    edit(run / FAILED / "cell.json", repetition=2)
    (run / FAILED / "error.txt").write_text("gunicorn did not start\n")
    builders.write_plan(run, builders.plan(run_id="a-run"))
    return run


def everything(run_dir: Path) -> str:
    derive_run.results(run_dir)
    derive_run.describe(run_dir, ROOT, HOSTS, {"python": "3.11"}, {})
    return run_end.derived(run_dir, derive_run.summary(run_dir))


def content(run_dir: Path) -> dict[str, bytes]:
    paths = (path for path in run_dir.rglob("*") if path.is_file())
    return {str(path.relative_to(run_dir)): path.read_bytes() for path in paths}


def test_every_repetition_has_a_result_and_no_database(run_dir: Path) -> None:
    derive_run.results(run_dir)
    found = {place: result(run_dir, place) for place in (OHA, FAILED, WRK)}
    assert [one.error for one in found.values()] == [None, "gunicorn did not start", None]
    assert found[OHA].requests == 1594
    assert not list(run_dir.rglob(oha_database.DATABASE))
    assert (run_dir / OHA / oha_database.REDUCED).exists()
    # Of a failed one the evidence is kept whole.
    assert (run_dir / FAILED / oha_database.KEPT).exists()


def test_a_result_that_is_there_is_not_made_again(run_dir: Path) -> None:
    derive_run.results(run_dir)
    before = content(run_dir)
    (run_dir / OHA / "oha.json").write_text("{")
    derive_run.results(run_dir)
    assert content(run_dir) == {**before, f"{OHA}/oha.json": b"{"}


def test_from_what_is_kept_everything_comes_out_the_same(run_dir: Path) -> None:
    table = everything(run_dir)
    first = content(run_dir)
    made = (
        "result.json", "manifest.json", "summary.json", "metrics.prom", "cells.csv", "bencher.json",
        ".hgrm",
    )  # fmt: skip
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
    derive_run.results(run_dir)
    validity = result(run_dir, OHA).validity
    assert "uncalibrated" in [finding.code for finding in validity.findings]
    slow = builders.calibration_at(1000.0)
    documents.write(run_dir / "calibration.json", documents.encode(slow))
    began = documents.load(run_dir / OHA / "run.json")["started"]
    before = run_dir / "calibration" / "ceiling" / "rep-1"
    before.mkdir(parents=True)
    earlier = {"started": began - 9, "finished": began - 1, "exit_code": 0}
    (before / "run.json").write_text(json.dumps(earlier))
    (run_dir / OHA / "result.json").unlink()
    derive_run.results(run_dir)
    validity = result(run_dir, OHA).validity
    links = [reason.facts for reason in validity.reasons if reason.code == "link"]
    assert "client_to_server" in [facts["direction"] for facts in links]
    assert "uncalibrated" not in [finding.code for finding in validity.findings]


def test_a_result_that_the_schema_does_not_know_is_not_written(run_dir: Path) -> None:
    edit(run_dir / OHA / "cell.json", purpose="leisure")
    with pytest.raises(ResultError, match=r"cell.json: Invalid .*'leisure' - at `\$.purpose`"):
        derive_run.results(run_dir)
    assert not (run_dir / OHA / "result.json").exists()
    assert (run_dir / OHA / oha_database.DATABASE).exists()


def test_the_manifest_of_a_run(run_dir: Path) -> None:
    derive_run.results(run_dir)
    derive_run.describe(run_dir, ROOT, HOSTS, {"python": "3.11"}, {})
    found = documents.read(run_dir / "manifest.json", Manifest)
    # The last to end was wrk's, at 1795194780.33; the failed one has no end.
    assert documents.load(run_dir / WRK / "run.json")["finished"] == pytest.approx(
        1795194780.33, abs=1
    )
    assert found.finished == "2026-11-20T17:13:00Z"
    locks = {pin.split("/")[0] for pin in found.pins}
    assert locks == {"controller", "aiohttp", "server-gunicorn", "oha"}
    assert found.locks is not None
    assert found.locks.keys() == {
        "requirements.txt",
        "apps/aiohttp/requirements.txt",
        "files/servers/gunicorn/requirements.txt",
    }
    assert (ROOT / ".git").exists() == (found.lab.revision is not None)
    assert found.lab.version == "0.3.0"


def test_the_manifest_of_a_run_on_instances_has_them_with_their_cost(run_dir: Path) -> None:
    found = {
        "instance_id": "i-1",
        "type": "c7i.2xlarge",
        "image": "ami-1",
        "region": "us-east-1",
        "zone": "us-east-1a",
        "tenancy": "default",
        "spot": False,
        "launched": "2026-11-20T16:00:00+00:00",
        "disk_gb": 20,
    }
    for name in ("i-1", "i-2"):
        one = {**found, "instance_id": name}
        derive_run.describe(run_dir, ROOT, HOSTS, {"python": "3.11"}, {"server": one})
    document = documents.read(run_dir / "manifest.json", Manifest)
    # The first ended before the run went on.
    assert document.instances
    assert [one.instance_id for one in document.instances] == ["i-1", "i-2"]
    for each in document.instances:
        assert each.usd == pytest.approx(each.hours * (each.usd_per_hour or 0))
    section = manifest_section.section(document, {})
    (facts,) = blocks.find(Facts, section)
    assert facts.facts["cost"] == cost_words.sentence(document.instances)
    assert len(blocks.tables("The instances that were its hosts.", section)) == 1


def test_a_run_of_which_nothing_came_has_no_end(run_dir: Path) -> None:
    shutil.rmtree(run_dir / "cells")
    derive_run.describe(run_dir, ROOT, {}, {}, {})
    assert documents.read(run_dir / "manifest.json", Manifest).finished is None
    assert run_end.derived(run_dir, derive_run.summary(run_dir)).count("\n") == 0


def test_outside_a_repository_there_is_no_revision(run_dir: Path, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    shutil.copytree(ROOT / "files", lab / "files")
    derive_run.describe(run_dir, lab, {}, {}, {})
    found = documents.read(run_dir / "manifest.json", Manifest)
    assert found.lab == LabRevision(version=None, revision=None, dirty=None)
    assert found.pins == {}


def test_a_summary_and_its_table(run_dir: Path) -> None:
    table = everything(run_dir)
    found = documents.read(run_dir / "summary.json", Summary)
    assert (found.run_id, [cell.cell_id for cell in found.cells]) == (
        "a-run",
        ["aiohttp-oha-400rps", "aiohttp-wrk-closed"],
    )
    assert 'cell="aiohttp-oha-400rps"' in (run_dir / "metrics.prom").read_text()
    rows = (run_dir / "cells.csv").read_text().splitlines()
    assert [row.partition(",")[0] for row in rows[1:]] == [
        "aiohttp-oha-400rps",
        "aiohttp-oha-400rps",
        "aiohttp-wrk-closed",
    ]
    _, oha, wrk, *_ = table.splitlines()
    assert oha.startswith("400/s")
    assert oha.endswith("0 of 2  void: steal, generator late, failed")
    assert wrk.startswith("closed loop")


def test_a_result_in_anothers_folder_stops_the_summary(run_dir: Path) -> None:
    derive_run.results(run_dir)
    edit(run_dir / WRK / "result.json", repetition=7)
    with pytest.raises(ResultError, match="is of aiohttp-wrk-closed, repetition 7"):
        derive_run.summary(run_dir)
    assert not (run_dir / "summary.json").exists()


def test_a_run_of_a_python_client_from_its_raw_files(run_dir: Path) -> None:
    place = "cells/python-async-emfile/rep-1"
    shutil.copytree(FIXTURES / "rep-python", run_dir / place)
    everything(run_dir)
    first = content(run_dir)
    assert present(result(run_dir, place).client).failures == {"EMFILE": 985}
    pins = documents.read(run_dir / "manifest.json", Manifest).pins
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
    (found,) = derive_run.unfinished(run_dir)
    assert (found.repetition.path, found.step, found.unfetched) == (lost, "measuring", [])
    error = repetitions_words.cut_off(found.step, found.unfetched)
    assert error == "cut off: the controller or a host went away, last seen measuring"
    found.fail(error)
    derive_run.results(run_dir)
    assert result(run_dir, "cells/aiohttp-oha-400rps/rep-3").error == error
    # A load that came to its end counts, whoever saw it.
    assert documents.read(over / "result.json", Result).error is None
    assert derive_run.unfinished(run_dir) == []


def test_what_could_not_be_fetched_is_failed_though_its_load_was_over(run_dir: Path) -> None:
    edit(run_dir / OHA / "cell.json", server="server2")
    edit(run_dir / WRK / "cell.json", server="server")
    reason = "server: its raw files could not be fetched: no space left"
    (found,) = derive_run.unfinished(run_dir, [{"server": "server", "reason": reason}])
    assert (found.repetition.path, found.unfetched) == (run_dir / WRK, [reason])
    error = repetitions_words.cut_off(found.step, found.unfetched)
    assert error == f"cut off: the controller or a host went away; {reason}"


def test_what_came_of_a_repetition_in_a_line(run_dir: Path) -> None:
    derive_run.results(run_dir)
    assert re.fullmatch(
        r"[\d.]+ requests/s, p50 [\d.]+ ms, p99 [\d.]+ ms, no errors, (valid|void: .*)",
        cell_lines.result(result(run_dir, OHA)),
    )
    failed = cell_lines.result(result(run_dir, FAILED))
    assert failed == "failed (recorded): gunicorn did not start"


def test_a_cell_has_percentiles_as_long_as_a_repetition_is_valid(run_dir: Path) -> None:
    everything(run_dir)
    result_json = run_dir / OHA / "result.json"
    hgrm = run_dir / "percentiles" / "aiohttp-oha-400rps.hgrm"
    judge(result_json, builders.valid())
    derive_run.summary(run_dir)
    assert "Total count    =         1596]" in hgrm.read_text()
    judge(result_json, builders.void("steal"))
    derive_run.summary(run_dir)
    assert not hgrm.exists()


def unmeasured(run_dir: Path) -> list[str]:
    return [study_words.unmeasured(one) for one in derive_run.unmeasured(run_dir)]


def test_a_studys_cells_without_a_valid_repetition_are_named(run_dir: Path) -> None:
    study = builders.planned_study(cells={"failed": [FAILED.split("/")[1]], "never": ["never"]})
    builders.write_plan(run_dir, replace(builders.plan(run_id="a-run"), study=study))
    everything(run_dir)
    first = run_dir / OHA / "result.json"
    steal = Reason(code="steal", value=0.2, limit=0.01, facts={"host": "server"})
    judge(first, Validity(valid=False, reasons=[steal], findings=[]))
    derive_run.summary(run_dir)
    failed, never = unmeasured(run_dir)
    assert failed.startswith("failed (another machine took 20 % of the CPU, and gunicorn did not")
    assert never.startswith("never (")
    # One repetition that counts is enough.
    assert not result(run_dir, FAILED).validity.valid
    judge(first, builders.valid())
    derive_run.summary(run_dir)
    assert unmeasured(run_dir) == [never]


def test_a_run_that_is_no_study_misses_nothing(run_dir: Path) -> None:
    everything(run_dir)
    assert derive_run.unmeasured(run_dir) == []


def test_a_run_of_which_every_measurement_is_void_has_reasons(run_dir: Path) -> None:
    everything(run_dir)
    first, wrk = (run_dir / place / "result.json" for place in (OHA, WRK))
    judge(first, builders.void("steal"))
    judge(wrk, builders.void("steal", "generator_late"))
    assert {why.code for why in derive_run.void_reasons(run_dir)} == {"steal", "generator_late"}
    judge(first, builders.valid())
    assert derive_run.void_reasons(run_dir) == []


def test_cells_that_failed_and_have_nothing_valid_are_named(run_dir: Path) -> None:
    everything(run_dir)
    first, wrk = (run_dir / place / "result.json" for place in (OHA, WRK))
    judge(first, builders.valid())
    # What is void did not fail.
    judge(wrk, builders.void("steal"))
    assert derive_run.abandoned(run_dir) == {}
    judge(first, builders.void("steal"))
    assert derive_run.abandoned(run_dir) == {"aiohttp-oha-400rps": "gunicorn did not start"}
