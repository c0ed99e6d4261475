import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from loadlab.hosts import hardware
from loadlab.kinds import page as report
from loadlab.model import (
    Calibration,
    CellSummary,
    CertificateReference,
    Difference,
    Disturbance,
    GeneratorProgram,
    Manifest,
    Result,
    Stall,
    Summary,
)
from loadlab.plan.plan_document import PlannedComparison
from loadlab.report.first_screen import first_results as results_table
from loadlab.report.html import (
    Facts,
    Figure,
    Fold,
    Heading,
    Headline,
    Results,
    Section,
    Table,
    Text,
)
from loadlab.report.render import render
from loadlab.report.sections import (
    calibration_section,
    cell_outcome,
    comparison_section,
    manifest_section,
    python_clients_section,
)
from loadlab.report.sections import cells_section as report_cells
from loadlab.report.sections import hosts_section as hosts
from loadlab.report.sections.cells_section import CellSection, Frame, Remark, Remarks
from loadlab.report.terminal import cell_lines
from loadlab.report.words import labels
from loadlab.report.words.labels import Entry
from loadlab.results.repetitions import derive_result as results
from loadlab.results.summaries import summarize as summaries
from loadlab.run import documents, formatting
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import RunDir
from loadlab.telemetry import kernel_trace
from tests.unit import builders
from tests.unit.report import blocks

ROOT = builders.ROOT
RUN = ROOT / "tests" / "fixtures" / "documents"
TEMPLATE = ROOT / "roles" / "report" / "templates" / "report.html.j2"
INDEX = "cells/aiohttp-gunicorn-unix-http-index-production-lan-oha-1000rps-c64-6s"
AGENTS = INDEX.replace("index", "agents")

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RUN, tmp_path / "a-run"))


def page(run: Path) -> str:
    return render(TEMPLATE, report.build(run)).decode()


def summarize(run: Path) -> Summary:
    """Write summary.json anew, and return it."""
    written = summaries.summary(run)
    documents.write(run / "summary.json", documents.encode(written))
    return written


def copy(run: Path, cell: str, change: Change, number: int, of: Path | None = None) -> None:
    """Write repetition ``number`` as a changed copy of the first; ``of``: the run with that."""
    result = json.loads(((of or run) / cell / "rep-1" / "result.json").read_text())
    result["repetition"] = number
    change(result)
    path = RunDir(run).repetition(result["cell_id"], number).result
    path.parent.mkdir(parents=True, exist_ok=True)
    documents.write(path, documents.dump(result))


def repetition(run: Path, cell: str, number: int, change: Change) -> None:
    """Write repetition ``number`` as a changed copy of the first, and the summary anew."""
    copy(run, cell, change, number)
    summarize(run)


def void(result: dict[str, Any]) -> None:
    reason = {"code": "steal", "value": 0.05, "limit": 0.01, "facts": {"host": "server"}}
    result["validity"] = {"valid": False, "reasons": [reason], "findings": []}


def failed(words: str) -> Change:
    def change(result: dict[str, Any]) -> None:
        keep = ("schema", "cell_id", "purpose", "cell", "repetition", "server")
        for key in set(result) - set(keep):
            result[key] = None
        result["error"], result["raw_sha256"] = words, {}
        reason = {"code": "failed", "value": words}
        result["validity"] = {"valid": False, "reasons": [reason], "findings": []}

    return change


def beside(result: dict[str, Any], purpose: str, changes: dict[str, Any]) -> None:
    """Make the result one of a cell beside its own, of this purpose."""
    name = result["cell_id"]
    result |= {"base": name, "cell_id": f"{name}-{purpose}", "purpose": purpose, **changes}


def same(result: dict[str, Any]) -> None:
    """A further repetition like the first."""


def test_cell_shows_the_trace_of_its_server(run: Path) -> None:
    text = (ROOT / "tests/fixtures/kernel_trace/bpftrace-0.23.jsonl").read_text()
    again = '{"type": "map", "data": {"@retransmits": {"80": 1200}}}\n'
    found = kernel_trace.figures(text + again, "<not supported>,,cycles,0,100.00,,\n")
    for trace, error in ((to_builtins(found), None), (None, "trace.jsonl is not there")):
        traced = {"trace": trace, "error": error}
        repetition(run, INDEX, 1, lambda result, traced=traced: beside(result, "trace", traced))  # type: ignore[misc]
        shown = " ".join(page(run).split())
        assert shown.count("Trace of the kernel") == 1
        if error:
            assert "The trace failed: trace.jsonl is not there" in shown
        else:
            assert "1,200 TCP segments sent again (1,200 on port 80)" in shown
            assert "Instructions were not counted: cycles: not supported." in shown
            assert "poll 1.76 s, futex 0.0497 s" in shown


def summary(run: Path) -> Summary:
    return documents.read(run / "summary.json", Summary)


def first_cell(run: Path) -> CellSummary:
    return summary(run).cells[0]


def with_cell(cell: CellSummary, **changes: Any) -> CellSummary:
    """Return the summary of a cell with changes of what it measures."""
    return replace(cell, cell=replace(cell.cell, **changes))


def with_load(cell: CellSummary, **changes: Any) -> CellSummary:
    """Return the summary of a cell with changes of its load."""
    return with_cell(cell, load=replace(cell.cell.load, **changes))


def measured(run: Path) -> list[Entry]:
    return labels.entries([cell for cell in summary(run).cells if cell.purpose == "measure"], {})


def texts(run: Path) -> list[str]:
    """The sentence on each cell, by its path alone."""
    return [cell_outcome.headline(by_path(entry)).text for entry in measured(run)]


def by_path(entry: Entry) -> Entry:
    return dataclasses.replace(entry, where=entry.path)


def section(run: Path, cell: str) -> CellSection:
    entry = next(e for e in measured(run) if cell.endswith(e.cell.cell_id))
    return report_cells.section(run, entry, [], frame=Frame(entry.title))


def repetitions(cell: CellSection) -> Table:
    (table,) = blocks.tables("Each repetition.", cell)
    return table


def remarks(cell: CellSection) -> list[Remark]:
    return [remark for block in blocks.find(Remarks, cell) for remark in block.remarks]


def cells_of(table: Table | None) -> list[list[str]]:
    assert table
    return [[cell.text for cell in row.cells] for row in table.rows if not row.title]


def test_the_verdict_comes_first(run: Path) -> None:
    assert texts(run) == [
        "aiohttp on Gunicorn did not hold 1,000 requests/s on /agents: 944 verified answers/s, 273 "
        "requests never sent (4.5 %), p99 534 ms, no errors; saturated, the server's CPU was the "
        "limit.",
        "aiohttp on Gunicorn held 1,000 requests/s on /index: p99 1.84 ms, no errors.",
    ]
    text = page(run)
    assert text.index("did not hold") < text.index("held 1,000") < text.index("<table")


def test_the_table_has_every_number_rounded(run: Path) -> None:
    table = results_table.build(measured(run), [])
    assert cells_of(table)[1] == [
        "/index", "held", "1,000", "999", "0.457", "1.84", "-", "10.4", "0.532", "0", "3", "-", "-",
        "-", "33 %, 17 %",
    ]  # fmt: skip
    assert table
    titles = [cell.title for cell in table.rows[1].cells]
    assert titles[5] == "95 % interval 1.67 to 2.10 ms"
    assert titles[6] == "5,997 answers, a p99.9 takes 10,000: 10 must lie above it"
    (saturated, _) = table.rows
    # 273 never sent; the last 10 ms of the schedule are the generator's own.
    assert saturated.cells[8].text == "≥ 1,501"
    assert saturated.cells[8].title == "263 of 5,990 requests got no right answer"
    assert 'title="5,997 answers, a p99.9' in page(run)


def test_the_page_is_whole_and_carries_what_the_run_recorded(run: Path) -> None:
    text = page(run)
    assert text.startswith("<!-- Ansible managed")
    for words in ("24.9 Gb/s", "76,567 requests/s", "net.core.somaxconn", "not_namespaced",
                  "belongs to the machine", "Intel(R) Xeon(R)", "tsc", "Closed loop",
                  "cannot be compared", "baseline latency", "aria-label",
                  "ansible-playbook lab.yml -e framework=aiohttp",
                  f'href="{INDEX}/rep-1/result.json"', 'href="summary.json"'):  # fmt: skip
        assert words in text, words
    assert text.count("<script") == 1
    assert "src=" not in text


def with_processes(result: dict[str, Any]) -> None:
    used = {"cpu_s": 1.2, "cpu": 0.2, "rss_max_bytes": 2**25, "threads_max": 4, "processes_max": 3,
            "voluntary_switches": 11454, "involuntary_switches": None,
            "run_queue_wait_s": 0.5727}  # fmt: skip
    result["telemetry"]["server"] |= {
        "processes": {
            "reverse_proxy": used,
            "application": {**used, "cpu_s": 3.0},
            "postgresql": None,
        },
        "database": {
            "connections_max": 10,
            "sessions": 0,
            "transactions": 12345,
            "connections_limit": 97,
            "statements": [
                {"query": "SELECT <1>", "calls": 5727, "mean_us": 60.5, "total_s": 0.3465}
            ],
        },
    }


def test_the_servers_processes_by_request(run: Path) -> None:
    assert "Server processes" not in page(run)
    repetition(run, AGENTS, 1, with_processes)
    documents.read(run / AGENTS / "rep-1" / "result.json", Result)
    tables = blocks.find(Table, *hosts.blocks(measured(run), []))
    processes, details, database = map(cells_of, tables)
    # 5,727 requests.
    assert processes[0] == [
        "/agents", "oha, 1,000/s", "733", "210", "524", "-", "-", "22.7", "20 %", "20 %", "-", "",
    ]  # fmt: skip
    assert details[0] == [
        "/agents", "oha, 1,000/s", "reverse proxy", "3", "4", "32.0 MiB", "-", "-", "2.00", "-",
        "100",
    ]  # fmt: skip
    assert database == [
        ["/agents", "oha, 1,000/s", "10", "12,345", "SELECT <1>", "5,727", "60.5", "0.346", ""]
    ]
    text = page(run)
    assert "Server processes" in text
    assert "SELECT &lt;1&gt;" in text
    repetition(run, AGENTS, 1, void)
    assert "Server processes" not in page(run)


def test_the_cores_and_lost_packets_of_both_hosts(run: Path) -> None:
    def lossy(result: dict[str, Any]) -> None:
        result["telemetry"]["client"] |= {
            "cpu_busiest_core": 0.97,
            "softirq_busiest_core": 0.91,
            "tcp": {**result["telemetry"]["client"]["tcp"], "retransmits": 12},
            "drops": {
                "received": 123456,
                "dropped": 70,
                "softnet_dropped": 3,
                "softnet_squeezed": 15,
            },
        }

    repetition(run, AGENTS, 2, lossy)
    rows = cells_of(hosts.hosts(measured(run), []))
    assert [row[:3] for row in rows[:2]] == [
        ["/agents", "oha, 1,000/s", "server"],
        ["/agents", "oha, 1,000/s", "client"],
    ]
    # The first repetition is of a lab that did not record them.
    assert rows[0][6:] == ["-", "-", "-", "-"]
    assert rows[1][3:] == ["97 %", "91 %", "12", "123,456", "70", "3", "15"]
    assert "Cores and packets of both hosts" in page(run)


def _calibrated(run: Path, calibration: Calibration) -> list[list[str]]:
    return cells_of(*blocks.find(Table, calibration_section.section(run, calibration)))


def test_both_figures_of_a_link_are_shown_and_the_higher_is_its_own(run: Path) -> None:
    found = builders.calibration()
    link = replace(found.iperf3.client_to_server, streams=1, core_limited=True)
    several = replace(link, bits_per_second=24e9, streams=4, core_limited=False)
    lower = {"client_to_server": replace(link, bits_per_second=17e9)}
    iperf3 = replace(found.iperf3, client_to_server=several, lower=lower)
    first, second, back, *_ = _calibrated(run, replace(found, iperf3=iperf3))
    assert first[0] == second[0] == "Link, client to server"
    assert first[1].startswith("24.0 Gb/s with 4 streams, ")
    assert first[2] == "throughput of the network (iperf3)"
    assert second[1].startswith("17.0 Gb/s with 1 stream, ")
    assert second[2] == "not the link's: the other figure is higher"
    assert back[0] == "Link, server to client"
    # One figure that a core limited.
    limited = replace(found.iperf3, client_to_server=link)
    alone, back, *_ = _calibrated(run, replace(found, iperf3=limited))
    assert alone[2].endswith("iperf3 filled its cores, so the network may carry more")
    assert back[0] == "Link, server to client"


class _Balance(HTMLParser):
    """Raises on a tag that closes what is not open."""

    VOID = ("meta", "br", "wbr", "img", "link", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None: ...

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag


@pytest.mark.parametrize("more", [0, 2])
def test_tags_are_balanced_ids_unique_and_local_links_lead_somewhere(run: Path, more: int) -> None:
    for number in range(2, 2 + more):
        repetition(run, INDEX, number, same)
    text = page(run)
    parser = _Balance()
    parser.feed(text)
    assert parser.open == []
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'<a href="([^"]+)"', text):
        if target.startswith("#"):
            assert target[1:] in ids
        elif not target.endswith(("oha.json", "wrk.txt")):  # not among the fixtures
            assert (run / target).exists(), target


def test_the_generators_executable_stands_beside_the_hosts(run: Path) -> None:
    assert "generator oha" not in page(run)
    document = documents.read(run / "manifest.json", Manifest)
    program = GeneratorProgram(version="wrk 4.0.0", sha256="a" * 64, snap_revision="12")
    client = replace(document.hosts["client"], generators={"wrk2": program})
    document = replace(document, hosts={**document.hosts, "client": client})
    documents.write(run / "manifest.json", documents.encode(document))
    text = page(run)
    assert f"wrk 4.0.0, revision 12 of its snap, SHA-256 {'a' * 64}" in text


def test_trust_names_noise_and_what_the_certificate_says(run: Path) -> None:
    whole = summarize(run)
    (first, *_) = whole.cells
    floor = builders.noise_floor("goodput", first.cell_id, "control", 0.17)
    documents.write(run / "summary.json", documents.encode(replace(whole, noise_floor=[floor])))
    reference = CertificateReference(
        run_id="certified", finished="2026-11-29T10:44:00Z", tests=21, failed=["a", "b"], void=["a"]
    )
    manifest = documents.read(run / "manifest.json", Manifest)
    documents.write(
        run / "manifest.json", documents.encode(replace(manifest, certificate=reference))
    )
    (facts,) = (block for block in blocks.find(Facts, *report.build(run).answer) if block.details)
    assert ", noise of 17 %): " in facts.facts["Trust"]
    details = facts.details["Trust"]
    assert "may differ from itself by up to 17 % in goodput." in details
    assert details.endswith(
        "tested with known faults, the lab was right in 19 of 21 tests and wrong in b; 1 has no "
        "valid measurement."
    )


def test_what_spoils_a_measurement_stands_beside_the_hosts(run: Path) -> None:
    document = documents.read(run / "manifest.json", Manifest)
    found = hardware.parse(
        "nic\tbond0\nspeed_mbit\t200\nduplex\tfull\nmtu\t1500\nqueue\t0 0\n"
        "card\teth1\ndriver\tigb\nspeed_mbit\t100\nduplex\tfull\nmtu\t1500\nqueue\t0 3\n"
        "sender\t0 \ninterrupt\t40 0-1\noffload\tgeneric-receive-offload on\n"
        "coalescing\trx-usecs 3\ncard\teth2\n"
        "management_nic\teth0\nsmt\t1\ngovernor\tpowersave\n"
        "idle_driver\tintel_idle\nidle\t2 0 C1\nidle\t0 0 POLL\nidle\t133 1 C6\nkept_awake\tyes\n"
        "numa_balancing\t1\nirqbalance\tabsent\nfirewall_rules\t4\nconntrack\t1200 262144\n"
    )
    server = replace(document.hosts["server"], hardware=found)
    document = replace(document, hosts={**document.hosts, "server": server})
    documents.write(run / "manifest.json", documents.encode(document))
    warnings, hosts, *_ = blocks.find(Table, manifest_section.section(document, {}))
    assert [row[0].split(":")[0] for row in cells_of(warnings)] == [
        "server, client", "server", "server", "server",
    ]  # fmt: skip
    assert cells_of(warnings)[1][0].startswith("server: eth1 runs at 100 Mb/s")
    rows = {row[0]: row[1:] for row in cells_of(hosts)}
    assert rows["card of the load"] == [
        "bond0 (unknown): 200 Mb/s, full duplex, 1 queue, MTU 1500", "unknown",
    ]  # fmt: skip
    assert rows["cards below it"][0] == (
        "eth1 (igb): 100 Mb/s, full duplex, 1 queue, MTU 1500; "
        "eth2 (unknown): unknown, unknown duplex, unknown, MTU unknown"
    )
    assert rows["its interrupts"] == ["eth1: 1, to processor 0, 1; eth2: unknown", "unknown"]
    assert rows["its offloads"][0] == "eth1: generic-receive-offload on; eth2: unknown"
    assert rows["its coalescing"][0] == "eth1: rx-usecs 3; eth2: unknown"
    assert rows["its packet steering"][0] == (
        "eth1: RPS on 1 queue, XPS on no queues; eth2: RPS on unknown, XPS on unknown"
    )
    assert rows["idle states"] == ["POLL 0 µs, C1 2 µs; while measuring only POLL", "unknown"]
    assert rows["NUMA balancing"] == ["on", "unknown"]
    assert rows["irqbalance"] == ["absent", "unknown"]
    assert rows["firewall rules"] == ["4", "unknown"]
    assert rows["connections tracked"] == ["1,200 of 262,144", "unknown"]
    assert rows["SMT"] == ["on", "unknown"]
    assert rows["turbo"] == ["unknown", "unknown"]
    assert "Warnings about this hardware" in page(run)


def test_the_same_files_give_the_same_bytes(run: Path) -> None:
    first = page(run)
    (run / "report.html").write_text(first)
    assert page(run) == first


def test_void_repetitions_are_shown_and_never_plotted(run: Path) -> None:
    alone = section(run, INDEX)
    repetition(run, INDEX, 2, void)
    beside = section(run, INDEX)
    assert blocks.find(Figure, beside) == blocks.find(Figure, alone) != []
    assert [row.css for row in repetitions(beside).rows] == ["", "void"]
    remark = Remark("void", "steal", "0.050 on server, limit 0.01", "repetition 2")
    assert remark in remarks(beside)
    assert texts(run)[1].endswith("no errors. 1 valid of 2 (1 void: steal).")


def test_remarks_of_several_repetitions_with_the_same_words_are_told_once(run: Path) -> None:
    for number in (1, 2):
        repetition(run, INDEX, number, void)
    (told,) = (one for one in remarks(section(run, INDEX)) if one.code == "steal")
    assert told.repetition == "repetitions 1, 2"


def test_a_cell_that_two_revisions_of_the_lab_measured_says_so(run: Path) -> None:
    for number, revision in ((1, "a" * 40), (2, "b" * 40 + "+")):
        hashes = dict.fromkeys(("application", "endpoint", "tuning", "network"), "0" * 64)
        made_of = {"input_hashes": {**hashes, "lab": revision}}
        repetition(run, INDEX, number, lambda result, made_of=made_of: result.update(made_of))  # type: ignore[misc]
        told = [one.text for one in remarks(section(run, INDEX)) if one.code == "lab"]
        assert len(told) == number - 1
    assert told == [
        "2 revisions measured this cell: aaaaaaaaaaaa measured repetition 1; bbbbbbbbbbbb with "
        "local changes measured repetition 2"
    ]


def test_with_only_void_repetitions_nothing_is_concluded(run: Path) -> None:
    repetition(run, INDEX, 1, void)
    assert texts(run)[1] == (
        "aiohttp on Gunicorn on /index: void: another machine took 5.0 % of the CPU."
    )
    assert blocks.find(Figure, section(run, INDEX)) == []
    assert cells_of(results_table.build(measured(run), []))[1][3:7] == ["-"] * 4
    assert "nothing is plotted" in page(run)


def test_a_failed_repetition_is_shown_with_its_error(run: Path) -> None:
    repetition(run, INDEX, 1, failed("wrk.txt is truncated"))
    assert "on /index: failed: wrk.txt is truncated." in texts(run)[1]
    assert repetitions(section(run, INDEX)).rows[0].cells[15].text == "failed"
    page(run)


def test_each_repetition_tells_how_its_arrivals_were_kept(run: Path) -> None:
    def sent(result: dict[str, Any]) -> None:
        result["shape"] = {
            **{"gap_error_p50_us": 0.04, "gap_error_p99_us": 51.6},
            **{"seconds_off": 0, "seed": 7, "mix_off": 0},
        }

    repetition(run, INDEX, 1, sent)
    table = repetitions(section(run, INDEX))
    at = [head.text for head in table.head].index("inter-arrival error, µs")
    cell = table.rows[0].cells[at]
    assert (cell.text, cell.title) == (
        "52",
        "p99; p50 0.040 µs; no seconds with another count; no blocks of the mix with other counts; "
        "seed 7",
    )


def overload(run: Path, recovery: dict[str, Any], p99_us: float | None = 9_960_000) -> str:
    """Add the overload of a cell, and return the page; ``p99_us``: of the highest stage."""
    stages = [(0, 10, 500, 500, 1100), (10, 20, 2000, 940, p99_us), (20, 45, 500, 700, 1200)]
    fields = ("begin_s", "end_s", "rate", "goodput", "p99_us")
    counts = {"scheduled": 5000, "failed": 3, "p50_us": 700}
    changes = {
        "stages": [dict(zip(fields, stage, strict=True)) | counts for stage in stages],
        "recovery": {"limit_us": 1210, "window_s": 3, "waiting": 10_600, **recovery},
    }
    repetition(run, INDEX, 1, lambda result: beside(result, "overload", changes))
    return " ".join(page(run).split())


def test_an_overload_tells_when_its_p99_was_back(run: Path) -> None:
    shown = overload(run, {"recovered_s": 14, "drained_s": 12})
    told = (
        "Of 2,000 requests/s offered, 940 came back right, with p99 9,960 ms and 3 requests "
        "failed; after the fall to 500/s, p99 was back within 10 % of its former 1.10 ms in 14 s. "
        "10,600 requests waited at the fall; 12 s later no more than before the overload."
    )
    assert f'<a href="#overload-1">/index, overload: {told}' in shown
    # It was asked for, so it is beside the answer and not behind the fold.
    assert "<details" not in shown[: shown.index(told)]
    assert shown.count('id="overload-1"') == 1
    assert shown.count("Overload and recovery") == 1
    assert '<th class="n" scope="row">20 to 45</th><td class="n">500</td>' in shown
    assert told in " ".join(cell_lines.table(summary(run), {}).split())


@pytest.mark.parametrize(
    ("recovery", "told"),
    [
        (
            {"recovered_s": None, "window_s": None, "drained_s": None},
            "in the 25 s at 500/s that followed, p99 did not come back within 10 % of its former "
            "1.10 ms. 10,600 requests waited at the fall, and more than before the overload to the "
            "end.",
        ),
        ({"recovered_s": 0, "drained_s": 0}, "p99 was within 10 % of its former 1.10 ms at once"),
        (
            {"recovered_s": 4, "drained_s": 4, "rose": True},
            "former 1.10 ms in 4 s, but rose above it again later. ",
        ),
        (
            {
                **{"limit_us": None, "recovered_s": None, "window_s": None, "drained_s": 9},
                "reason": {"code": "few_answers", "value": 500, "limit": 1000,
                           "facts": {"percentile": "p99"}},
            },
            "whether p99 came back at 500/s is not known: ",
        ),
    ],
)  # fmt: skip
def test_an_overload_may_not_recover(run: Path, recovery: dict[str, Any], told: str) -> None:
    assert told in overload(run, recovery)


def test_an_overload_in_which_too_many_fail_has_no_p99(run: Path) -> None:
    shown = overload(run, {"recovered_s": 0, "drained_s": 0}, p99_us=None)
    text = "Of 2,000 requests/s offered, 940 came back right, and 3 requests failed; after the fall"
    assert text in shown


KNEE = {"rate": 1002.4, "low": 980, "high": 1024}
UNKNOWN = {"reason": {"code": "knee_early"}}
ALL = "the stack answered all that was offered (the knee of the ramp)."


@pytest.mark.parametrize(
    ("knees", "shown"),
    [
        ([KNEE], f"Up to 1,002 requests/s (980 to 1,024) {ALL}"),
        (
            [KNEE, KNEE | {"rate": 900}, KNEE | {"rate": 1010}, UNKNOWN],
            f"Up to 1,002 requests/s (900 to 1,010) {ALL} 1 of 4 repetitions showed no clear knee: "
            "the answers stayed behind the first rate already. It is the median of the other 3.",
        ),
        ([{"above": 1950}], "The ramp has no knee up to 1,950 requests/s."),
        (
            [KNEE, {"above": 1950}],
            "The ramp has a knee at 1,002 requests/s in 1 of 2 repetitions, and no knee up to "
            "1,950 requests/s in 1.",
        ),
        (
            [UNKNOWN],
            "The knee of the ramp is not known: the answers stayed behind the first rate already.",
        ),
    ],
)
def test_a_ramp_tells_its_knee(run: Path, knees: list[dict[str, Any]], shown: str) -> None:
    for number, bend in enumerate(knees, start=1):
        fields = {"rate": None, "low": None, "high": None, **bend}
        repetition(run, INDEX, number, lambda result, knee=fields: result.update(knee=knee))  # type: ignore[misc]
    assert f"{shown} " in " ".join(page(run).split()).replace("</p>", " ")
    assert shown in cell_lines.table(summary(run), {})
    # It answers the run.
    first = report.build(run).headlines[0]
    assert first.text.endswith(shown[1:])
    assert first.state == ("inconclusive" if knees == [UNKNOWN] else "closed")


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        (
            {},
            "Of 1,200 bursts, the slowest drained in 33.0 ms, 99 % within 20.0 ms and half within "
            "12.1 ms. When 3 of them came, a request of an earlier one still waited.",
        ),
        (
            {"p99_us": None, "undrained": 20},
            "Of 1,200 bursts, the slowest drained in 33.0 ms, half within 12.1 ms and 20 did not "
            "drain, as a request got no answer.",
        ),
        (
            {"p50_us": None, "p99_us": None, "max_us": None, "undrained": 1200},
            "Of 1,200 bursts, 1,200 did not drain, as a request got no answer.",
        ),
    ],
)
def test_a_load_of_bursts_tells_how_they_drained(
    run: Path, changes: dict[str, Any], shown: str
) -> None:
    times = {"p50_us": 12_100, "p99_us": 20_000, "max_us": 33_000}
    bursts = {"scheduled": 1200, "undrained": 0, "met": 3, **times, **changes}
    repetition(run, INDEX, 1, lambda result: result.update(bursts=bursts))
    assert shown in " ".join(page(run).split())
    assert shown in cell_lines.table(summary(run), {})


def test_a_sentence_without_a_section_links_nowhere(run: Path) -> None:
    disturbance = Disturbance(
        measured=4, void=2, outside=2, code="steal", host="server", part=0.1,
        repeats_s=0, repeats_max_s=0, withheld=0,
    )  # fmt: skip
    disturbed = replace(summary(run), disturbance=disturbance)
    documents.write(run / "summary.json", documents.encode(disturbed))
    shown = page(run)
    assert "2 of 4 measurements are void, both because another machine took 10\u00a0%" in shown
    assert 'href="#"' not in shown


def test_what_a_server_said_is_escaped(run: Path) -> None:
    bad = '<script>alert(1)</script>\x1b[31m\n"&{{ 7*7 }}'
    repetition(run, INDEX, 1, failed(bad))
    text = page(run)
    assert text.count("<script") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{ 7*7 }}" in text
    assert "\x1b" not in text
    assert all("\n" not in line and "\x1b" not in line for line in texts(run))


def test_several_repetitions_have_a_line_each_and_the_sum(run: Path) -> None:
    repetition(run, INDEX, 2, same)
    found = section(run, INDEX)
    percentiles = blocks.find(Figure, found)[0]
    assert percentiles.svg
    assert "all 2 added" in percentiles.svg
    assert "each repetition" in percentiles.svg
    assert "of 11,994 answers" in percentiles.caption
    assert [(fold.title, fold.open) for fold in blocks.find(Fold, found)] == [
        ("Repetition 1 over time", True), ("Repetition 2 over time", False),
    ]  # fmt: skip
    assert "Repetition 2 over time" in page(run)


def test_accept_queues_over_time_are_told_and_where_they_are_unknown(run: Path) -> None:
    def over_time() -> str:
        _, figure = blocks.find(Figure, section(run, INDEX))
        assert ("Accept queues of the server" in str(figure.svg)) == ("Most" in figure.caption)
        return figure.caption

    assert "Accept queues were not recorded. The server was busy" in over_time()

    def waited(result: dict[str, Any]) -> None:
        server = result["telemetry"]["server"]
        server["accept_queues"] = [
            {"service": service, "socket": socket, "limit": limit,
             "depth": [most] * len(server["per_second"]["t"]), "mean_depth": most}
            for service, socket, limit, most in (
                ("application", "/run/app.sock", 2048, 63),
                ("reverse_proxy", "10.77.0.11:80", 128, 129),
                ("postgresql", "127.0.0.1:5432", 200, 0),
            )
        ]  # fmt: skip

    repetition(run, INDEX, 1, waited)
    assert (
        "Most connections that waited in an accept queue: application 63 of 2,048 (solid), "
        "reverse proxy 129 of 128 (dotted). Red: a limit that was reached. The server was busy"
    ) in over_time()


def test_a_rate_held_in_some_repetitions_only_is_not_held(run: Path) -> None:
    def slow(result: dict[str, Any]) -> None:
        result["goodput"] = 700.0
        result["ok"] -= 1797
        result["errors"]["status_5xx"] = 1797

    repetition(run, INDEX, 2, slow)
    assert "did not hold 1,000 requests/s on /index in 1 of 2 repetitions" in texts(run)[1]
    assert "1,797 errors (15 % of requests)" in texts(run)[1]


@pytest.mark.parametrize(
    "name", ["summary.json", "manifest.json", "calibration.json", "tuning.json", "calibration"]
)
def test_a_run_may_lack_any_part(run: Path, name: str) -> None:
    path = run / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert "</html>" in page(run)


def test_an_empty_run_says_that_nothing_was_measured(tmp_path: Path) -> None:
    assert "Nothing was measured yet." in page(tmp_path)


def test_a_cell_without_series_or_percentiles_renders(run: Path) -> None:
    def bare(result: dict[str, Any]) -> None:
        result["per_second"] = None
        result["latency_us"] = dict.fromkeys(result["latency_us"])
        result["send_delay_us"] = None
        for host in result["telemetry"].values():
            host.pop("per_second")

    repetition(run, INDEX, 1, bare)
    (only,) = blocks.find(Figure, section(run, INDEX))
    assert only.title == "Latency by percentile"
    assert "</html>" in page(run)


def test_a_generator_without_records_of_requests_says_so(run: Path) -> None:
    def without(result: dict[str, Any]) -> None:
        result["per_second"] = None

    # A result of an earlier version of the lab has no counts by latency.
    _, figure = blocks.find(Figure, section(run, INDEX))
    assert "No answers by latency were recorded" in figure.caption
    repetition(run, INDEX, 1, without)
    _, figure = blocks.find(Figure, section(run, INDEX))
    assert "oha keeps no record of each request" in figure.caption
    assert "CPU of the server" in str(figure.svg)


def test_no_answers_at_all_render(run: Path) -> None:
    document = json.loads((run / "summary.json").read_text())
    cell = next(c for c in document["cells"] if INDEX.endswith(c["cell_id"]))
    rep, found = cell["repetitions"][0], cell["statistics"]
    for part in (rep, found):
        part["responses"] = part["ok"] = 0
        part["latency_us"] = dict.fromkeys(part["latency_us"])
    found["percentile_curve"] = []
    rep["goodput"] = found["goodput"]["median"] = 0.0
    documents.write(run / "summary.json", documents.dump(document))
    assert texts(run)[1].endswith(", no answers, no errors.")
    assert "too few for any percentile" in page(run)


def test_a_measured_closed_loop_is_never_said_to_hold_a_rate(run: Path) -> None:
    document = json.loads((run / "summary.json").read_text())
    for cell in document["cells"]:
        cell["purpose"] = "measure"
    documents.write(run / "summary.json", documents.dump(document))
    assert "answered 7,353 requests/s on /index in a closed loop of 64 connections" in "".join(
        texts(run)
    )
    found = section(run, INDEX.replace("oha-1000rps-c64-6s", "wrk-closed-c64-5s"))
    percentiles = blocks.find(Figure, found)[0]
    assert "baseline" not in str(percentiles.svg)
    assert "/index (closed loop, 5 s)" in found.title


def test_a_broken_document_is_named(run: Path) -> None:
    (run / "tuning.json").write_text('{"schema"')
    with pytest.raises(ResultError, match=r"tuning\.json is truncated"):
        report.build(run)


def test_cells_that_differ_in_more_than_the_endpoint_are_told_apart(run: Path) -> None:
    cell = first_cell(run)
    other = with_load(with_cell(cell, framework="flask"), rate=2000.0)
    titles = [entry.title for entry in labels.entries([cell, other], {})]
    assert titles == ["/agents (aiohttp, 1,000/s)", "/agents (flask, 2,000/s)"]


def compare(run: Path, factor: float = 1.3, count: int = 5, control: bool = True) -> None:
    """Measure /index, its A/A control, and /index with tuning stock and other goodput."""
    name = INDEX.removeprefix("cells/")
    heads = {"": 1.0, "-stock": factor, **({"-aa_control": 1.0} if control else {})}
    for suffix, times in heads.items():

        def change(result: dict[str, Any], suffix: str = suffix, times: float = times) -> None:
            if suffix == "-aa_control":
                beside(result, "aa_control", {})
            else:
                result["cell_id"] += suffix
            result["cell"]["tuning"] = "stock" if suffix == "-stock" else "production"
            # The same five values, each cell's in another order.
            turn = {"-aa_control": 1, "-stock": 2}.get(suffix, 0)
            result["goodput"] *= times * (1 + ((result["repetition"] + turn - 1) % 5 + 1) / 1000)

        for number in range(1, count + 1):
            copy(run, INDEX, change, number, of=RUN)
    compared = PlannedComparison(by="tuning", base=name, head=f"{name}-stock")
    controls = [(name, f"{name}-aa_control")] if control else []
    plan = replace(builders.plan(), comparisons=[compared], aa_controls=controls)
    builders.write_plan(run, plan)
    summarize(run)


def compared(run: Path) -> Section:
    """The comparison of the report."""
    (found,) = comparison_section.sections(summary(run), {}, measured(run))
    return found


def compared_headlines(run: Path) -> list[Headline]:
    return comparison_section.headlines(summary(run), {})


def test_without_comparisons_there_is_no_section(run: Path) -> None:
    assert comparison_section.sections(summary(run), {}, measured(run)) == []
    assert 'id="comparison"' not in page(run)


def test_a_comparison_comes_first_in_a_sentence(run: Path) -> None:
    compare(run)
    for path in run.glob(f"{INDEX}*/*/result.json"):
        path.unlink()  # which only the figures of the cells take
    said = report.build(run).headlines
    assert said == [
        Headline(
            anchor="comparison",
            state="decided",
            text="stock against production on /index: goodput higher, +30 % (30 to 30 %); no "
            "difference in p50 response time and p99 response time.",
        )
    ]
    # Then the cells, without the A/A control.
    (folded,) = blocks.find(Fold, *report.build(run).answer)
    texts = [one.text for one in blocks.find(Headline, folded)]
    assert [text.partition(":")[0].rpartition(" on ")[2] for text in texts] == [
        "/agents (production)", "/index (production)", "/index (stock)",
    ]  # fmt: skip


def test_no_difference_is_said_as_plainly(run: Path) -> None:
    compare(run, factor=1.0)
    (first,) = compared_headlines(run)
    assert first.state == "same"
    assert first.text.startswith(
        "stock against production on /index: no difference in goodput, p50 response"
    )
    assert "inconclusive" not in first.text


def test_few_repetitions_are_undecided_and_no_twin_is_said_so(run: Path) -> None:
    compare(run, count=2, control=False)
    (first,) = compared_headlines(run)
    assert first.state == "inconclusive"
    assert first.text == (
        "stock against production on /index: inconclusive in goodput, p50 response time and p99 "
        "response time."
    )
    texts = [block.text for block in blocks.find(Text, compared(run))]
    assert "75, 88 or 94 %" in texts[0]
    assert texts[1:] == ["No cell was measured twice, so the noise floor is not known."]


def test_the_tables_of_a_comparison(run: Path) -> None:
    compare(run)
    found = compared(run)
    assert [heading.text for heading in blocks.find(Heading, found)] == ["/index", "Noise floor"]
    table, noise_floor = blocks.find(Table, found)
    assert cells_of(table) == [
        ["goodput, requests/s", "1,002 (1,000 to 1,004)",
         "1,303 (1,300 to 1,306)", "+30 % (30 to 30 %)", "0.3 %", "higher",
         "corrected p below 0.001, above the noise floor"],
        ["p50 response time, ms", "0.457 (0.457 to 0.457)",
         "0.457 (0.457 to 0.457)", "0.0 % (0.0 to 0.0 %)", "0 %", "no difference",
         "the interval includes equality, and all of it is within 5.0 %"],
        ["p99 response time, ms", "1.84 (1.84 to 1.84)", "1.84 (1.84 to 1.84)",
         "0.0 % (0.0 to 0.0 %)", "0 %", "no difference",
         "the interval includes equality, and all of it is within 5.0 %"],
        ["failed requests", "0 %", "0 %", "", "", "",
         "repetitions: 5 valid against 5 valid"],
    ]  # fmt: skip
    title, *rows = table.rows
    assert title.title == "stock against production"
    classes = [row.cells[5].css for row in rows]
    assert classes == ["better", "same", "same", ""]
    assert cells_of(noise_floor)[0] == [
        "/index (production)", "goodput", "0.0 % (-0.3 to 0.3 %)", "0.3 %",
    ]  # fmt: skip
    (figure,) = blocks.find(Figure, found)
    assert "stock against production on /index" in str(figure.svg)


def test_a_gain_by_failing_requests_is_seen(run: Path) -> None:
    compare(run)
    for path in run.glob(f"{INDEX}-stock/*/result.json"):
        result = documents.load(path)
        result["errors"]["timeout"] = 300
        documents.write(path, documents.dump(result))
    summarize(run)
    assert compared_headlines(run)[0].text.endswith("; failed requests 5.0 % against 0 %.")
    last = blocks.find(Table, compared(run))[0].rows[-1]
    assert (last.css, last.cells[2].text) == ("bad", "5.0 %")


def test_twins_are_nowhere_among_the_measured(run: Path) -> None:
    compare(run, count=1)
    document = report.build(run)
    control = f"{INDEX.removeprefix('cells/')}-aa_control"
    shown = [text.text for text in blocks.find(Text, *document.sections) if text.css == "id"]
    assert f"Cell {control}" not in shown
    (overview,) = blocks.find(Results, *document.sections)
    assert len(shown) == len(overview.table.rows) == 3
    (index,) = (part for part in document.sections if part.title == "/index")
    (closed_loop,) = blocks.tables("Every connection", index)
    assert len(closed_loop.rows) == 1


def test_closed_loops_of_several_tunings_are_told_apart(run: Path) -> None:
    loops = [cell for cell in summary(run).cells if cell.purpose == "closed_loop"][:1]
    other = with_cell(loops[0], tuning="stock")
    one, two = (report_cells.closed_loop(labels.entries(each, {}))
                for each in (loops, [*loops, other]))  # fmt: skip
    assert one is not None
    assert two is not None
    assert [row[0] for row in cells_of(one)] == ["wrk"]
    assert [row[0] for row in cells_of(two)] == ["/agents (production)", "/agents (stock)"]


def test_a_run_of_twins_alone_shows_its_noise_floor(run: Path) -> None:
    compare(run, count=3)
    name = INDEX.removeprefix("cells/")
    controls = [(name, f"{name}-aa_control")]
    builders.write_plan(run, replace(builders.plan(), aa_controls=controls))
    summarize(run)
    found = compared(run)
    assert (found.title, blocks.find(Figure, found)) == ("Noise floor", [])
    assert compared_headlines(run) == []
    _Balance().feed(page(run))


def without_holes(text: str) -> str:
    """Return the words of a page that have no absent value among them."""
    words = re.sub(r"<(style|script)>.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)
    for hole in ("None", "nan", "NaN", "null", "{}"):
        assert not re.search(rf"(?<!\w){re.escape(hole)}(?!\w)", words), hole
    return words


@pytest.mark.parametrize(("count", "control"), [(1, True), (4, False)])
def test_the_page_of_a_comparison_has_no_holes(run: Path, count: int, control: bool) -> None:
    compare(run, count=count, control=control)
    repetition(run, f"{INDEX}-stock", 1, void)
    text = page(run)
    _Balance().feed(text)
    words = without_holes(text)
    assert ("the noise floor is not known" in words) is not control
    lost = f"repetitions: {count - 1} valid of {count} (1 void: steal) against {count} valid"
    assert lost in words
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_comparisons_are_called_by_what_differs_beside(run: Path) -> None:
    compare(run)
    (one,) = summary(run).comparisons
    other = replace(one, cell=replace(one.cell, load=replace(one.cell.load, rate=2000.0)))
    assert labels.compared([one, other], {}) == ["/index (1,000/s)", "/index (2,000/s)"]
    assert labels.compared([one], {"index": "/x"}) == ["/x"]
    base, head = replace(one.base, name="2"), replace(one.head, name="4")
    other = replace(one, by="workers", base=base, head=head)
    assert comparison_section.subject(other) == "workers 4 against workers 2"


def test_comparisons_at_the_terminal(run: Path) -> None:
    compare(run)
    name, head, *said = comparison_section.lines(summary(run).comparisons, {})
    assert name == "stock against production on /index"
    assert said[0].split() == [
        "goodput", "1,002/s", "1,303/s", "+30", "%", "(30", "to", "30", "%)", "0.3", "%", "higher",
    ]  # fmt: skip
    assert said[1].split()[:5] == ["p50", "response", "time", "0.457ms", "0.457ms"]
    assert [head.index("conclusion")] * 2 == [
        said[0].index("higher"),
        said[1].index("no difference"),
    ]
    assert comparison_section.lines([], {}) == []


def test_loads_are_told_apart_by_all_that_may_differ(run: Path) -> None:
    cell = first_cell(run)
    others = [
        with_load(cell, keepalive=False),
        with_load(cell, stall=Stall(after_s=5.0, duration_s=2.0)),
        with_load(cell, background_endpoint="index"),
    ]
    titles = [entry.title for entry in labels.entries([cell, *others], {})]
    assert titles == [
        "/agents (client connections kept)",
        "/agents (a client connection for each request)",
        "/agents (client connections kept, stopped for 2 s)",
        "/agents (client connections kept, beside index)",
    ]


def test_a_tuning_is_called_by_its_whole_name(run: Path) -> None:
    cell, name = first_cell(run), "x-without-net.core.somaxconn"
    other = with_cell(cell, tuning=name)
    entries = labels.entries([cell, other], {})
    assert [entry.where for entry in entries] == ["/agents (production)", f"/agents ({name})"]
    assert labels.part(replace(cell.cell, worker_class="a.b.Worker"), "worker_class") == "Worker"


CLIENT = "cells/python-async-emfile"


@pytest.fixture
def clients(run: Path) -> Path:
    """The run and a Python client's repetition beside it."""
    thresholds = builders.thresholds(steal_max=1.0, late_max=0.02)
    raw = ROOT / "tests" / "fixtures" / "rep-python"
    folder = Path(shutil.copytree(raw, run / CLIENT / "rep-1"))
    documents.write(
        folder / "result.json", documents.encode(results.build(folder, thresholds, None))
    )
    summarize(run)
    return run


def of_client(run: Path) -> Entry:
    return next(entry for entry in measured(run) if entry.is_client)


def client_section(run: Path) -> CellSection:
    return python_clients_section.section(run, of_client(run), Frame())


def client_headline(run: Path) -> Headline:
    return python_clients_section.headline(by_path(of_client(run)))


def all_answered(result: dict[str, Any]) -> None:
    result["ok"] = result["requests"]
    result["errors"]["connect"] = 0
    result["client"]["failures"] = {}


def test_a_python_client_has_a_table_and_a_section_of_its_own(clients: Path) -> None:
    sections = report.build(clients).sections
    (results,) = (section for section in sections if section.anchor == "results")
    overview, of_clients = map(cells_of, blocks.find(Table, results))
    stacks = [row[0] for row in overview]
    assert stacks == ["/agents (production, lan)", "/index (production, lan)"]
    assert of_clients == [[
        "/book (none, none)", "python-async", "985 failed", "2,000", "2,000", "1,024", "yes",
        "3.53", "288", "1,931", "3,332", "3,398", "50.1 MiB", "0.527 (15 %)", "76 %",
    ]]  # fmt: skip
    (book,) = (section for section in sections if section.title == "/book")
    (cell,) = blocks.find(CellSection, book)
    (failures,) = blocks.tables("Of 2,000 requests", cell)
    assert cells_of(failures) == [
        ["EMFILE", "985", "49 %", "connect", "Too many open files; no connection"]
    ]
    assert {"open_files", "errors"} <= {remark.code for remark in remarks(cell)}
    assert cells_of(repetitions(cell))[0][1:3] == ["3.53", "288"]
    titles = [figure.title for figure in blocks.find(Figure, cell)]
    assert titles == ["Latency by percentile", "Over time"]


def test_the_page_of_a_python_client_has_no_holes(clients: Path) -> None:
    repetition(clients, CLIENT, 2, void)
    repetition(clients, CLIENT, 3, failed("python-async ended with 137: Killed"))
    words = without_holes(page(clients))
    assert "closed loop of" not in words
    for words_ in (
        "Failures by cause",
        "985 failed, 1 valid of 3 (1 void: steal; 1 failed)",
        "ended with 137",
    ):
        assert words_ in words
    _Balance().feed(page(clients))


def test_what_a_python_client_did_in_a_sentence(clients: Path) -> None:
    asked = "python-async: 2,000 requests at once to /book of aiohttp on Gunicorn "
    used = "peak memory 50.1 MiB, 0.527 s of CPU time."
    assert client_headline(clients) == Headline(
        state="missed",
        short="985 failed",
        text=f"{asked}took 3.53 s; 985 failed (49 % of requests: EMFILE), {used}",
    )
    repetition(clients, CLIENT, 2, void)
    assert client_headline(clients).text.endswith(f"{used} 1 valid of 2 (1 void: steal).")
    shutil.rmtree(clients / CLIENT / "rep-2")
    repetition(clients, CLIENT, 1, all_answered)
    found = client_headline(clients)
    assert found.text == f"{asked}took 3.53 s, all answered: 288 requests/s, {used}"
    assert (found.state, found.short) == ("held", "all answered")
    assert blocks.tables("Of 2,000 requests", client_section(clients)) == []
    repetition(clients, CLIENT, 1, failed("killed"))
    assert client_headline(clients).text == f"{asked.rstrip()}: failed: killed."
    cells = cells_of(python_clients_section.overview([of_client(clients)]))
    assert cells[0][2] == "failed"
    assert cells[0][7:] == ["-"] * 8


def test_a_short_batch_is_not_drawn_over_time(clients: Path) -> None:
    def short(result: dict[str, Any]) -> None:
        del result["per_second"]["latency_bins"]
        result["per_second"] = {name: values[:2] for name, values in result["per_second"].items()}

    repetition(clients, CLIENT, 1, short)
    _, figure = blocks.find(Figure, client_section(clients))
    assert "CPU of the server" in str(figure.svg)
    assert "Latency" not in str(figure.svg)


def test_python_clients_are_told_apart_by_what_differs(clients: Path) -> None:
    cell = of_client(clients).cell
    others = [
        with_load(cell, reuse=False),
        with_load(cell, generator="python-bounded", connections=1000),
        with_load(cell, requests=10_000, open_files=20_000),
    ]
    titles = [entry.title for entry in labels.entries([cell, *others], {})]
    assert titles == [
        "/book (python-async, 2,000 requests, 1,024 open files, connections reused)",
        "/book (python-async, 2,000 requests, 1,024 open files, new connections)",
        "/book (python-bounded, 2,000 requests, 1,000 at a time, 1,024 open files, connections "
        "reused)",
        "/book (python-async, 10,000 requests, 20,000 open files, connections reused)",
    ]
    assert {entry.stack for entry in labels.entries([cell, *others], {})} == {"/book"}


@pytest.mark.parametrize(
    ("show", "texts"),
    [
        (
            formatting.significant,
            {0: "0", 0.0451: "0.0451", 0.457: "0.457", 9.996: "10.0", 10.43: "10.4", 533.9: "534",
             15_012: "15,012"},
        ),
        (
            formatting.signed,
            {0.414: "+41 %", -0.032: "-3.2 %", 0.0: "0.0 %", -0.0001: "0.0 %", 2.5: "+250 %",
             0.0996: "+10 %", 12.345: "+1,234 %", 1.0: "+100 %", None: "-"},
        ),
        # From a doubling or a halving on, a factor.
        (
            lambda parts: formatting.difference(Difference(value=parts[0], low=parts[1],
                                                           high=parts[2])),
            {(0.54, 0.49, 0.58): "+54 % (49 to 58 %)", (16.51, 13.49, 20.16): "17.5 times (14.5 to "
             "21.2)", (-0.8, -0.84, -0.76): "0.20 times (0.16 to 0.24)", (1.0, None, None):
             "2.00 times", (-0.49, None, None): "-49 %", (-0.5, -0.6, 1.5): "0.50 times (0.40 to "
             "2.50)", (-1.0, None, None): "-100 %", (None, None, None): "-"},
        ),
        # Both bounds have as many decimals.
        (
            lambda bounds: formatting.span(*bounds),
            {(0.35, 0.48): "35 to 48 %", (-0.01, 0.021): "-1.0 to 2.1 %",
             (-0.43, 0.04): "-43 to 4 %", (-0.0001, 0.0): "0.0 to 0.0 %", (None, None): "-"},
        ),
        (
            lambda counts: formatting.share(*counts),
            {(0, 0): "-", (0, 5): "0 %", (1, 1_000_000): "< 0.01 %", (12, 30_000): "0.04 %"},
        ),
        (formatting.percent, {0.004: "0.4 %", None: "-"}),
    ],
)  # fmt: skip
def test_numbers_are_rounded_for_reading(show: Callable[[Any], str], texts: dict[Any, str]) -> None:
    assert {number: show(number) for number in texts} == texts


def test_stacks_are_ranked_in_the_page(run: Path) -> None:
    """A second stack like the first, with half its goodput, five repetitions each."""
    name = Path(INDEX.replace("aiohttp", "flask")).name

    def vary(result: dict[str, Any]) -> None:
        result["goodput"] *= 0.4 + 0.001 * result["repetition"]
        result["ok"] //= 2

    def another(result: dict[str, Any]) -> None:
        vary(result)
        result["goodput"] /= 2
        result["cell_id"] = name
        result["cell"]["framework"] = "flask"

    for number in range(1, 6):
        for change in (vary, another):
            copy(run, INDEX, change, number, of=RUN)
    summarize(run)
    (table,) = blocks.tables("Ranking on", *report.build(run).sections)
    assert [row[:3] for row in cells_of(table)] == [
        ["1", "/index (aiohttp)", "403"],
        ["2", "/index (flask)", "201"],
    ]
    assert [row[4] for row in cells_of(table)] == ["5 valid", "5 valid"]
    assert cells_of(table)[1][5].startswith("goodput 0.50 times: corrected p below 0.001")
    text = page(run)
    assert "Ranking on /index" in text
    assert text.index("Ranking on") < text.index('id="endpoint-1"')
    # A median of survivors says so, in the page and on the terminal.
    repetition(run, f"cells/{name}", 2, void)
    again = summary(run)
    (table,) = blocks.tables("Ranking on", *report.build(run).sections)
    assert cells_of(table)[1][4] == "4 valid of 5 (1 void: steal)"
    assert re.search(r"4 of 5 .*void: steal", cell_lines.table(again, {}))


def test_a_cells_percentiles_have_their_intervals(run: Path) -> None:
    (table,) = blocks.tables("Percentiles of all", section(run, INDEX))
    rows = {row[0]: row[1:] for row in cells_of(table)}
    assert rows["p99"] == ["1.84", "-", "1.67 to 2.10"]
    assert rows["p99.99"] == [
        "-",
        "-",
        "5,997 answers, a p99.99 takes 100,000: 10 must lie above it",
    ]
    repetition(run, INDEX, 1, void)
    assert blocks.tables("Percentiles of all", section(run, INDEX)) == []
