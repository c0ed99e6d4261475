"""What hosts and servers say is bounded, ends, and is shown as text; with real curl and shell."""

import base64
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from html.parser import HTMLParser
from itertools import count, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from ansible_collections.lab.bench.plugins.action import fail_repetition
from ansible_collections.lab.bench.plugins.callback.playbook import CallbackModule
from ansible_collections.lab.bench.plugins.plugin_utils import controller
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.generators import oha, oha_database, tally, wrk, wrk2
from loadlab.generators.attribution import Schedule
from loadlab.generators.measurement import GeneratorError
from loadlab.kinds import page as report
from loadlab.model import Reason, Result, Validity
from loadlab.report.render import render
from loadlab.results.summaries import summarize as summaries
from loadlab.run import documents, errors, fetched_files
from loadlab.run.catalog import load_yaml
from loadlab.run.formatting import printable
from loadlab.run.run_dir import RunDir
from loadlab.stacks import contract
from loadlab.stats import latency_bins
from loadlab.telemetry import exporter, node_exporter, pyspy
from loadlab.telemetry.recordings import TelemetryError
from tests.unit.builders import cell, load

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests/fixtures"
CONTRACTS = contract.contracts(ROOT)
DATASET = load_yaml(ROOT / "files/dataset.yml")
MARK = load_yaml(ROOT / "roles/verify_endpoints/vars/main.yml")["__verify_endpoints_mark"]
EVIL = (
    "\x1b]0;owned\x07\x1b[31m<script>alert(1)</script><img src=x onerror=alert(1)>\"'`id`"
    "$(id){{ 7*7 }}../../../etc/passwd\0\r\n\u202e"
)
OK = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LONG = f"{OK}Content-Length: 99\r\n\r\n".encode()
SAME = f"{OK}Content-Length: 17\r\n\r\n".encode()
CHUNKED = f"{OK}Transfer-Encoding: chunked\r\n\r\n".encode()
ENDLESS = repeat(b"10000\r\n" + b"x" * 65536 + b"\r\n")


def serve(*parts: bytes | Iterable[bytes], apart_s: float = 0) -> tuple[str, threading.Event]:
    """Answer every connection on a port of 127.0.0.1 with the parts, one after another, until the
    other side goes; return where and the event that ends it."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    over = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                for part in parts:
                    for piece in [part] if isinstance(part, bytes) else part:
                        if over.is_set():
                            return
                        connection.sendall(piece)
                        time.sleep(apart_s)
            except OSError:
                pass  # The other side has gone.

    def accept() -> None:
        with listener:
            while not over.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                connection.settimeout(10)
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    host, port = listener.getsockname()
    return f"http://{host}:{port}", over


Serve = Callable[..., str]


@pytest.fixture
def serving() -> Iterator[Serve]:
    ends = []

    def begin(*parts: bytes | Iterable[bytes], apart_s: float = 0) -> str:
        url, over = serve(*parts, apart_s=apart_s)
        ends.append(over)
        return url

    yield begin
    for over in ends:
        over.set()


# What a host answers for its telemetry, and what is kept of that.
PAGES: dict[str, tuple[list[Any], str]] = {
    "right": ([b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n"], "a 1"),
    "endless": ([CHUNKED, ENDLESS], "more than 1,000,000"),
    "endless headers": ([OK.encode(), repeat(b"X-Evil: x\r\n")], "got more than 100 headers"),
    "cut short": ([LONG, b"a 1"], "IncompleteRead"),
    "elsewhere": ([b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n"], "status 302"),
    "no text": ([f"{OK}Content-Length: 2\r\n\r\n".encode(), b"\xff\xfe"], "UnicodeDecodeError"),
    "no HTTP": ([EVIL.encode(), b"\n"], "BadStatusLine"),
    "nothing": ([b""], "RemoteDisconnected"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_scrape_of_any_host_is_a_page_or_a_failure(
    serving: Serve, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "PAGE_BYTES_MAX", 1_000_000)
    parts, words = PAGES[name]
    url = f"{serving(*parts)}/metrics"
    block = exporter.Exporter(url).block()
    assert block.startswith("# scrape ")
    assert words in block
    assert (" failed: " in block) == (name != "right")
    assert len(block) < 1000
    assert all(line.isprintable() for line in block.splitlines())
    if name != "right":
        # Where several clients are to begin together, neither is it a bug of the lab.
        with pytest.raises(errors.LabError, match=f"the clock cannot be read at {url}: .*{words}"):
            exporter.clock_ahead_s(url)


def test_what_is_fetched_of_a_server_is_what_is_recorded_there() -> None:
    scripts = [
        (ROOT / "roles" / name).read_text()
        for name in (
            "telemetry/files/record-host.sh",
            "observers/files/profile-server.sh",
            "observers/files/trace-server.sh",
        )
    ]
    words = {word.strip(",.;:") for script in scripts for word in script.split()}
    accepted = fetched_files.rsync_options(Path("results/a-run"), True)
    assert accepted[-1] == "--exclude=*"
    included = [option for option in accepted if option.startswith("--include=/a-run/")]
    names = {option.rpartition("/")[2] for option in included} - {""}
    # What is read of it, and what it says where that is not all.
    assert names - words <= {"database.err"}
    assert any("2>>database.err" in script for script in scripts)


@pytest.mark.parametrize("head", [b"", f"{OK}\r\n".encode(), LONG])
def test_a_scrape_ends_though_a_byte_comes_now_and_then(
    serving: Serve, head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "SCRAPE_S", 0.4)
    said = count()
    url = serving(head, (b"x" for _ in said), apart_s=0.1)
    assert " failed: " in exporter.Exporter(f"{url}/metrics").block()
    # The clock is the server's: on a slow machine it says no more than on a fast one.
    assert next(said) < 20


# Each a server's whole answer, and what the load script says of it where it verifies.
BODY = b'{"hello":"world"}'
ANSWERS: dict[str, tuple[list[Any], str]] = {
    "endless": ([CHUNKED, ENDLESS],
                "answers otherwise than when it was verified: with more than 17 bytes"),
    "other": ([LONG, EVIL.encode().ljust(99)[:99]],
              "answers otherwise than when it was verified: with more than 17 bytes"),
    "as long": ([SAME, b"\x1b[31m<script>\0\xff".ljust(17)],
                "answers otherwise than when it was verified: status 200, sha256 "),
    "error": ([b"HTTP/1.1 503 No database\r\nContent-Length: 4\r\n\r\n", b"gone"],
              "answers otherwise than when it was verified: status 503, sha256 "),
    "gzip": ([b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", b"\x1f\x8b".ljust(17)],
             "answers otherwise than when it was verified: status 200, sha256 "),
    "no HTTP": ([EVIL.encode(), b"\n\n"], "does not answer: curl: "),
    "endless headers": ([OK.encode(), repeat(b"X: " + b"x" * 60000 + b"\r\n")],
                        "does not answer: curl: "),
    "cut short": ([SAME, BODY[:5]], "does not answer: curl: "),
    "drip": ([SAME, repeat(b"x")], "does not answer: curl: "),
}  # fmt: skip


def offer(folder: Path, url: str, **more: str) -> None:
    """Run the load script, which verifies the answer, as far as it comes."""
    environment = {
        "PATH": os.environ["PATH"],
        "DIR": str(folder),
        "GENERATOR": "none",
        "WARM_UP": "",
        "MEASURE": "true",
        "PRINTS": "",
        "PORTS": "",
        "PAUSE": "0",
        "LANES": "",
        "SATURATE": "",
        "PAUSE_AFTER": "0",
        "URL": url,
        "STATUS_URL": "",
        "METHOD": "GET",
        "BODY": "",
        "STATUS": "200",
        "BODY_SHA256": hashlib.sha256(BODY).hexdigest(),
        "BODY_BYTES": str(len(BODY)),
        "BODY_MOST": str(len(BODY)),
        "REQUEST_TIMEOUT": "2",
        "HTTP2": "false",
        "HEADERS": "",
        "CERTIFICATE": "",
        "MIX": "",
        **more,
    }
    script = ROOT / "roles/load_tools/files/run-load.sh"
    subprocess.run(["sh", str(script)], env=environment, check=False, timeout=60)


def test_counters_that_are_refused_are_an_error(serving: Serve, tmp_path: Path) -> None:
    """What nginx tells others than the clients is no count."""
    status = serving(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nForbidden")
    settings = {"STATUS_URL": status, "WARMUP": "0", "SETTLE": "2", "BEGIN_AT": ""}
    offer(tmp_path, serving(SAME, BODY), **settings)
    error = documents.text(tmp_path / "error.txt")
    assert error.startswith(f"{status} does not answer: curl: (22)")
    assert error.endswith("403\n")
    assert json.loads(documents.text(tmp_path / "run.json"))["exit_code"] == 6


@pytest.mark.parametrize("name", ANSWERS)
def test_the_load_script_takes_no_more_than_was_verified(
    serving: Serve, name: str, tmp_path: Path
) -> None:
    parts, words = ANSWERS[name]
    url = serving(*parts, apart_s=0.2 if name == "drip" else 0)
    offer(tmp_path / "rep-1", url)
    left = tmp_path / "rep-1"
    assert (left / "answer.body").stat().st_size <= len(BODY) + 1
    said = documents.text(left / "error.txt")
    assert f"{url} {words}" in said
    assert all(line.isprintable() for line in said.splitlines())
    assert json.loads(documents.text(left / "run.json"))["exit_code"] in (3, 4)


def test_the_load_script_verifies_each_kind_of_a_mix(serving: Serve, tmp_path: Path) -> None:
    right = serving(SAME, BODY)
    other = serving(f"{OK}Content-Length: 5\r\n\r\n".encode() + b"other")
    kinds = {"first": right, "second": other}
    mix = "; ".join(f"URL={url}; verify answer-{name}.body" for name, url in kinds.items())
    offer(tmp_path, right, MIX=mix)
    assert (tmp_path / "answer-first.body").read_bytes() == BODY
    assert not (tmp_path / "answer.body").exists(), "the first kind was asked twice"
    error = documents.text(tmp_path / "error.txt")
    assert error.startswith(f"{other} answers otherwise than when it was verified: status 200")
    assert json.loads(documents.text(tmp_path / "run.json"))["exit_code"] == 4


def shell_command(contracts: dict[str, Any], url: str) -> str:
    """The command of the role verify_endpoints that asks for these."""
    requests = contract.requests(contracts, dict.fromkeys(contracts, url), MARK)
    return "\n".join(["exec 3>&1", *(request.command for request in requests)])


@pytest.mark.parametrize("name", ANSWERS)
def test_the_verify_stage_reads_no_more_than_a_contract_can_have(serving: Serve, name: str) -> None:
    parts, _ = ANSWERS[name]
    contracts = {"index": CONTRACTS["index"], "hello": CONTRACTS["hello"]}
    command = shell_command(contracts, serving(*parts)).replace("--max-time 10", "--max-time 2")
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=True, timeout=60)
    assert len(done.stdout) < 2 * (contract.ANSWER_BYTES_MAX + 1000)
    text = done.stdout.decode("utf-8", "surrogateescape")
    answers = contract.cut(text, MARK, list(contracts))
    for endpoint, right in contracts.items():
        with pytest.raises(contract.ContractError) as refusal:
            contract.check(right, *answers[endpoint], DATASET)
        assert str(refusal.value).isprintable()
        assert len(str(refusal.value)) < 1000


def test_the_verify_stage_reads_a_right_answer_whole(serving: Serve) -> None:
    url = serving(f"{OK}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
    contracts = {"index": CONTRACTS["index"]}
    done = subprocess.run(
        ["sh", "-c", shell_command(contracts, url)], capture_output=True, check=True
    )
    answers = contract.cut(done.stdout.decode(), MARK, list(contracts))
    assert contract.check(CONTRACTS["index"], *answers["index"], DATASET).body_bytes == 17
    longest = max(len(contract.expected_body(right, DATASET)) for right in CONTRACTS.values())
    assert 2 * longest <= contract.ANSWER_BYTES_MAX


@given(st.binary(max_size=200))
def test_what_is_said_of_any_answer_is_printable(answer: bytes) -> None:
    for begun in (answer, b"HTTP/1.1 200 OK\r\n" + answer, b"HTTP/1.1 200 OK\r\n\r\n" + answer):
        with pytest.raises(contract.ContractError) as refusal:
            contract.check(CONTRACTS["index"], begun, 0.01, DATASET)
        assert str(refusal.value).isprintable()


@given(st.text(max_size=200))
def test_what_is_said_of_any_output_is_printable(text: str) -> None:
    offered = load(rate=1.0, duration_s=30.0, connections=1)
    nothing = oha_database.Reduction(
        format=oha_database.FORMAT,
        rate=1,
        duration_s=30,
        connections=1,
        missing=0,
        limits=oha_database.Limits(0.005, 0.1, 0.01, 0.0),
        answers=[],
        latency_us=[],
        service_s=oha_database.ServiceTime(0, None),
        issue_s=0,
        lateness=oha_database.Lateness(0, 0, 0, False, []),
        per_second=tally.AnswerSeries([], [], [], [], [], [], latency_bins.record([])),
        offset_s=0.0,
        opening_us=[],
    )
    schedule = Schedule(1, 30, 1)
    for parse in (
        lambda: oha.measure(oha.report(text, schedule), nothing, None),
        lambda: oha.report(
            json.dumps({"summary": {"total": 1, "average": None}, "statusCodeDistribution": {},
                        "latencyPercentiles": {}, "errorDistribution": {text + "?": 1}}),
            schedule,
        ),
        lambda: wrk.measure(f"Running {text}", 1, None),
        lambda: wrk2.measure(f"Running {text}", offered, None),
        lambda: pyspy.read(f"{text}\n?"),
    ):  # fmt: skip
        with pytest.raises((GeneratorError, errors.ResultError)) as refusal:
            parse()
        assert str(refusal.value).isprintable()


@given(st.text())
def test_a_recording_of_anything_is_refused_in_printable_words(text: str) -> None:
    with pytest.raises(TelemetryError) as refusal:
        node_exporter.parse(node_exporter.block(1.0, text), "telemetry-server.prom.gz")
    assert str(refusal.value).isprintable()


@given(st.text())
def test_a_terminal_gets_text_alone(text: str) -> None:
    shown = printable(text)
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    if all(c.isprintable() or c in "\n\t" for c in text):
        assert shown == text
    assert len(printable(text * 20_000)) <= 8000 * 10 + 1


class Shown:
    """Stands in for Ansible's display."""

    verbosity = 0

    def __init__(self) -> None:
        self.lines: list[str] = []

    def display(self, line: str, color: str) -> None:
        self.lines.append(line)


def test_a_refusal_and_a_line_of_progress_are_shown_so(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown()
    monkeypatch.setattr(controller, "Display", lambda: shown)
    controller.tell(EVIL)
    callback = CallbackModule()
    callback._display = shown
    monkeypatch.setattr(callback, "_print_task_banner", lambda task: None)
    callback.v2_runner_on_failed(
        SimpleNamespace(
            result={"msg": f"it says:\n{EVIL}"},
            task=SimpleNamespace(action="ansible.builtin.fail", name="Refuse", delegate_to=None),
            host=SimpleNamespace(get_name=lambda: "server"),
        )
    )
    assert len(shown.lines) == 2
    for text in shown.lines:
        assert all(line.isprintable() for line in text.split("\n"))
        assert r"\x1b[31m<script>" in text


def test_an_error_that_is_no_text_is_kept_as_text(tmp_path: Path) -> None:
    # As Ansible has it of bytes that are not UTF-8.
    error = b"curl: \xff\xfe".decode("utf-8", "surrogateescape")
    action = fail_repetition.ActionModule.__new__(fail_repetition.ActionModule)
    record = {
        "cell_id": "index",
        "repetition": 1,
        "purpose": "measure",
        "cell": msgspec.to_builtins(cell()),
        "server": "server",
    }
    answer = action.act({"dest": str(tmp_path), "record": record, "error": error})
    assert answer == {"changed": True}
    assert documents.text(tmp_path / "error.txt") == "curl: \\udcff\\udcfe\n"


class Page(HTMLParser):
    """What of a page could do something."""

    # Of a figure, of text and of the page's own controls.
    INERT = frozenset({
        "html", "head", "meta", "title", "style", "body", "header", "main", "section", "nav",
        "p", "br", "wbr", "h1", "h2", "h3", "h4", "a", "span", "strong", "code", "pre", "ul", "li",
        "dl", "dt", "dd", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "details",
        "summary", "figure", "figcaption", "svg", "g", "path", "rect", "text", "tspan", "use",
        "defs", "clippath", "line", "circle", "polyline", "polygon", "image", "pattern", "button",
        "fieldset", "legend", "small",
    })  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.active: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.INERT:
            self.active.append(tag)
        for name, value in attrs:
            refers = re.match(r"\s*([a-z][a-z0-9+.-]*:|//)", value or "", re.IGNORECASE)
            leads = name in ("href", "src", "action", "xlink:href") and refers
            image = tag == "image" and (value or "").startswith("data:image/png;base64,")
            https = (value or "").startswith("https://")
            if name.startswith("on") or (leads and not https and not image):
                self.active.append(f"{tag} {name}={value}")

    handle_startendtag = handle_starttag


def spoilt(document: Any, keys: frozenset[str]) -> Any:
    """A copy whose texts below these keys, and the keys below them, are evil."""
    if isinstance(document, dict):
        return {
            key: evil(value) if key in keys else spoilt(value, keys)
            for key, value in document.items()
        }
    return (
        [spoilt(element, keys) for element in document] if isinstance(document, list) else document
    )


def evil(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: evil(element) for key, element in value.items()}
    if isinstance(value, list):
        return [evil(element) for element in value]
    return f"{value}{EVIL}" if isinstance(value, str) else value


# Where the words of a host, of a server or of a program are.
WORDS = frozenset({
    "after", "before", "reason", "cpu_model", "kernel", "os", "clock_source",
    "virtualisation", "packages", "pins", "argv", "query", "error",
})  # fmt: skip


def test_the_report_of_any_words_holds_nothing_active(tmp_path: Path) -> None:
    run = Path(shutil.copytree(FIXTURES / "documents", tmp_path / "a-run"))
    paths = [*run.glob("*.json"), *run.glob("cells/*/rep-*/result.json")]
    for path in paths:
        documents.write(path, documents.dump(spoilt(documents.load(path), WORDS)))
    (measured,) = run.glob("cells/*agents*oha*/rep-1/result.json")
    first = documents.read(measured, Result)
    reason = Reason(code="failed", value=EVIL)
    failed = replace(
        first,
        repetition=2,
        error=EVIL,
        raw_sha256={},
        validity=Validity(valid=False, reasons=[reason], findings=[reason]),
    )
    # The application names the frames of a profile.
    stacks = f"main (app.py:1);{EVIL.replace(chr(10), '')} (<script>.py:2) 50\n".replace("\r", "")
    profile = replace(
        first,
        purpose="py_spy",
        base=first.cell_id,
        cell_id=f"{first.cell_id}-py-spy",
        py_spy=pyspy.figures(pyspy.read(stacks), ["main", EVIL], ["/app.py"]),
    )
    for result in (failed, profile):
        repetition = RunDir(run).repetition(result.cell_id, result.repetition)
        repetition.path.mkdir(parents=True, exist_ok=True)
        documents.write(repetition.result, documents.encode(result))
        repetition.profile.write_text(stacks)
    documents.write(run / "summary.json", documents.encode(summaries.summary(run)))
    template = ROOT / "roles/report/templates/report.html.j2"
    page = render(template, report.build(run)).decode()
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 20
    assert "Flame graph" in page
    assert "CPU by kind of request" in page
    # Its one script is the page's own, which the policy names by its hash.
    script, style = (
        template.with_name(f"report.{kind}").read_text().strip() for kind in ("js", "css")
    )
    assert re.findall(r"<script.*?</script>", page, re.DOTALL) == [f"<script>{script}</script>"]
    page = page.replace(f"<script>{script}</script>", "")
    parsed = Page()
    parsed.feed(page)
    assert parsed.active == []
    assert not re.search("[\0-\x08\x0b-\x1f\x7f\u202e]", page)
    (policy,) = re.findall(r"<meta http-equiv[^>]*>", page)
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    assert policy == (
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
        f"'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; img-src data:\">"
    )
    assert " style=" not in page
