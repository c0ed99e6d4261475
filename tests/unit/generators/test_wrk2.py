import hashlib
import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.generators import wrk, wrk2
from loadlab.generators.generator import Request
from loadlab.generators.measurement import GeneratorError, Measurement
from loadlab.model import Load, Reason
from loadlab.results.repetitions import response_time
from loadlab.stats import histograms
from tests.unit import stand_ins
from tests.unit.builders import load, present, thresholds

FIXTURES = Path(__file__).parents[2] / "fixtures" / "wrk2"
SCRIPT = Path(__file__).parents[3] / "roles" / "load_tools" / "files" / "run-load.sh"
# What was asked of each recording.
LOADS: dict[str, Load] = {
    "normal": load(rate=2000, duration_s=60, connections=64),
    "saturated": load(rate=2000, duration_s=30, connections=100),
    "errors": load(rate=4, duration_s=30, connections=10),
    "short": load(rate=100, duration_s=2, connections=100),
    "mute": load(rate=1, duration_s=10, connections=1),
}


def text(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def measure(name: str, changed: str | None = None, wire_bytes: int | None = None) -> Measurement:
    return wrk2.measure(changed or text(name), LOADS[name], wire_bytes)


def codes(found: Measurement) -> list[str]:
    return [finding.code for finding in found.findings]


def test_a_normal_run() -> None:
    found = measure("normal")
    assert (found.requests, found.responses, found.ok) == (119_714, 119_714, 119_714)
    # 64 connections that begin 5 ms apart: 0.16 s less than 60 s each, on average.
    assert (found.scheduled, found.unsent) == (119_716, 0)
    assert found.duration_s == pytest.approx(60.0004, abs=0.0002)
    assert found.goodput == found.rate_achieved == pytest.approx(1995.22)
    assert (found.latency_from, found.send_delay_us, found.per_second) == ("intended", None, None)
    assert sum(found.errors.values()) == 0
    # What came in the first 10 s is counted and in no latency.
    assert found.histogram.total_count == 99_357
    assert codes(found) == ["service"]


def test_its_percentiles_are_the_printed_ones() -> None:
    found = measure("normal").latency_us
    printed = {"p50": 1371, "p75": 1852, "p90": 2419, "p95": 2663, "max": 12_927}
    assert {name: found[name] for name in printed} == printed
    # In no row of the spectrum, but in the distribution, with two decimals.
    for name, value in (("p99", 3020), ("p99_9", 5720), ("p99_99", 7890)):
        assert found[name] == pytest.approx(value, abs=5 + value / 1000)
    assert (found["mean"], found["stdev"], found["min"]) == (1441, 706, 67)


def test_a_saturated_run() -> None:
    found = measure("saturated")
    assert found.rate_achieved == pytest.approx(249.19)
    assert found.latency_us["p50"] == 17_367_039
    assert found.latency_us["p99"] == pytest.approx(26_000_000, rel=0.001)
    assert found.scheduled == 59_800
    # Each of the 100 connections may have had one under way.
    assert found.unsent == 59_800 - 7_477 - 100
    # The service time is from the actual start: by Little's law all connections were in use.
    assert found.mean_service_us == 396_916
    assert found.rate_achieved * found.mean_service_us / 1e6 == pytest.approx(99, abs=1)
    assert found.findings == []


def test_ticks_are_no_requests_and_statuses_are_not_told_apart() -> None:
    """4 requests a second over 10 connections: each is idle for 2.5 s at a time, the limit is 2."""
    found = measure("errors")
    assert (found.requests, found.responses, found.ok, found.goodput) == (120, 120, 0, 0)
    assert (found.errors["status_other"], found.errors["timeout"]) == (120, 0)
    assert (found.scheduled, found.unsent) == (120, 0)
    assert found.findings[0].value == 20
    assert codes(found) == ["ticks", "service"]


def test_what_failed_is_an_attempt_and_leaves_its_place_unsent() -> None:
    line = "Socket errors: connect 70000, read 5, write 2, timeout 0"
    changed = text("saturated").replace("Requests/sec", f"  {line}\nRequests/sec", 1)
    found = measure("saturated", changed)
    assert [found.errors[name] for name in ("connect", "read", "write")] == [70_000, 5, 2]
    assert found.requests == 7_477 + 70_007
    assert found.unsent == measure("saturated").unsent


def test_a_run_too_short_to_calibrate() -> None:
    """Req/Sec is -nan and is not needed; the latencies are numbers."""
    found = measure("short")
    assert (found.responses, found.histogram.total_count) == (100, 100)
    assert found.latency_us["p50"] == 1_373_183
    assert codes(found) == ["calibrated", "service"]
    assert (found.findings[0].value, found.findings[0].limit) == (0, 10)


def test_connections_are_as_many_on_each_thread() -> None:
    changed = text("normal").replace("1 threads and 64", "40 threads and 250")
    found = wrk2.measure(changed, replace(LOADS["normal"], connections=250), None)
    assert codes(found) == ["opened", "calibrated", "service"]
    opened = Reason(code="opened", value=240, limit=250, facts={"threads": 40})
    assert found.findings[0] == opened


def test_another_length_is_a_finding() -> None:
    assert codes(measure("normal", wire_bytes=89)) == ["service"]
    found = measure("normal", wire_bytes=80)
    assert found.findings[1].code == "body"
    assert found.findings[1].facts == {
        "mean_bytes": pytest.approx(89, abs=0.05),
        "expected_bytes": 80,
    }


def test_the_older_form_of_the_calibration() -> None:
    changed = text("normal").replace("1.464ms, rate sampling interval: 10ms", "9747 usec, rate "
                                     "sampling interval: 21 msec")  # fmt: skip
    assert changed != text("normal")
    assert measure("normal", changed).latency_us == measure("normal").latency_us


def test_nothing_answered_is_a_result() -> None:
    found = measure("mute")
    assert (found.responses, found.ok, found.goodput, found.rate_achieved) == (0, 0, 0, 0)
    # It was sent again and again, so no request waited until the end.
    assert (found.errors["read"], found.requests, found.aborted) == (92_848, 92_848, 0)
    assert (found.scheduled, found.unsent, found.mean_service_us) == (10, 9, None)
    assert set(found.latency_us.values()) == {None}
    assert codes(found) == ["service"]
    waits = present(response_time.summarise(found.waited, 1, thresholds()))
    # One was under way, nine were never sent.
    assert (waits.requests, waits.failed) == (10, 10)


def test_each_connection_waits_where_a_server_never_answers() -> None:
    silent = re.sub(r"  Socket errors.*\n", "", text("mute"))
    found = measure("mute", silent)
    assert (found.requests, found.responses, found.aborted, found.unsent) == (1, 0, 1, 9)
    waits = response_time.censored(found, LOADS["mute"], thresholds())
    assert waits.total_count == 10
    assert waits.get_max_value() == pytest.approx(10e6, rel=0.01)


def test_answers_before_the_calibration_alone_have_no_latency() -> None:
    early = text("mute").replace("  0 requests in", "  5 requests in").replace("0.00\n", "0.50\n")
    found = measure("mute", early)
    assert (found.responses, found.ok) == (5, 5)
    assert found.goodput == pytest.approx(0.5)
    assert (found.histogram.total_count, found.waited) == (0, None)


@pytest.mark.parametrize(
    ("connections", "threads", "chosen"),
    [(64, 4, 4), (64, 6, 4), (61, 4, 4), (5, 4, 4), (3, 2, 2), (1, 1, 1), (100, 6, 5), (7, 1, 1)],
)
def test_as_few_connections_as_can_be_are_dropped(
    connections: int, threads: int, chosen: int
) -> None:
    asked = Request("http://h/", connections, threads, 2, 17, rate=10)
    for (entry,) in (wrk.GENERATORS, wrk2.GENERATORS):
        assert entry.command(asked, 30, entry.name)[:5] == [
            *(entry.name, "-t", str(chosen), "-c", str(connections))
        ]


@pytest.mark.parametrize(
    "words", ["unable to connect to 10.0.0.1:80 Connection refused", "Usage: wrk <o"]
)
def test_output_of_a_wrk2_that_did_not_run_is_refused(words: str) -> None:
    with pytest.raises(GeneratorError, match=f"line 1, it did not run: '{words}"):
        measure("normal", words + "\n")


@pytest.mark.parametrize("name", ["normal", "saturated", "errors"])
def test_truncated_text_is_refused(name: str) -> None:
    lines = text(name).splitlines()
    for kept in range(len(lines)):
        with pytest.raises(GeneratorError, match=r"truncated: no '.*' line after") as refusal:
            wrk2.measure("\n".join(lines[:kept]), LOADS[name], None)
        assert "--latency" in str(refusal.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("64 connections", "65 connections", "65 connections, 64 were asked for"),
        ("1 threads", "0 threads", "printed 0 threads"),
        ("Max   +/-", "99%   +/-", "line 4 not understood"),
        ("  12.92ms  ", "   -nanus  ", "line 5 has no number"),
        (" 1.44ms  ", " -nanus  ", "no number for the mean of 99357 latencies"),
        (" 99.000%    3.02ms", " 99.000%    3.02", "line 11 not understood"),
        (" 99.000%    3.02ms", " 99.000%    4.02ms", "99 % at 4020 µs, its spectrum between 2997"),
        (" 50.000%    1.37ms", " 50.000%    1.37s ", "50 % at 1370000 µs"),
        ("       1.001     0.3", "....\n       1.001     0.3", "line 23 not understood: '....'"),
        ("1.188     0.400000        39783", "1.188     0.400000        29783", "does not rise"),
        ("1.188     0.400000        39783", "0.188     0.400000        39783", "does not rise"),
        ("1.188     0.400000        39783", "1.188     0.400000        31783", "31783 of 99357"),
        ("       99357]", "       99358]", "ends at 12927 µs and 99357 answers"),
        ("[Max     =       12.920", "[Max     =       11.920", "ends at 12927 µs"),
        ("       99357]", "     99357.5]", "expected 'Max'"),
        ("SubBuckets     =         2048]", "SubBuckets", "expected 'Buckets'"),
        ("119714 requests in 1.00m", "99356 requests in 1.00m", "99357 latencies"),
        ("119714 requests in 1.00m", "119714 requests in 2.00m", "in 120 s, but 1995.22 a second"),
        ("119714 requests in 1.00m", "119714 requests in 0.00us", "in 0 s"),
        ("Requests/sec:   1995.22", "Requests/sec:      0.00", "0.0 a second"),
        ("Requests/sec:", "  Something else\nRequests/sec:", "'Something else'; expected"),
        ("173.39KB", "173.39KB\nmore", "stands after the end: 'more'"),
        ("173.39KB\n", "173.3", "line 112 not understood: 'Transfer/sec:    173.3'"),
    ],
)  # fmt: skip
def test_what_does_not_agree_is_refused(old: str, new: str, words: str) -> None:
    changed = text("normal").replace(old, new, 1)
    assert changed != text("normal")
    with pytest.raises(GeneratorError) as refusal:
        measure("normal", changed)
    assert words in str(refusal.value)


def test_two_kinds_of_latency_of_different_answers_are_refused() -> None:
    recorded, rule, rest = text("saturated").partition("-" * 58)
    changed = recorded + rule + rest.replace("5011", "5010")
    with pytest.raises(GeneratorError, match="5011 recorded and 5010 uncorrected"):
        measure("saturated", changed)


def as_wrk2(microseconds: float) -> str:
    """A time as wrk2 prints it: the next unit from 85 % of it on."""
    if microseconds >= 1_000_000:
        seconds = microseconds / 1e6
        return f"{seconds / 60:.2f}m" if seconds >= 51 else f"{seconds:.2f}s"
    return f"{microseconds / 1000:.2f}ms" if microseconds >= 850 else f"{microseconds:.2f}us"


def printed(histogram: Any, requests: int, seconds: float) -> str:
    """What wrk2 prints of a histogram, by the iterator of hdrh, which is another implementation."""
    lines = ["Running 30s test @ http://127.0.0.1/", "  1 threads and 1 connections"]
    lines += ["  Thread Stats   Avg      Stdev     Max   +/- Stdev"]
    mean, stdev = histogram.get_mean_value(), histogram.get_stddev()
    top = as_wrk2(histogram.get_max_value())
    lines += [f"    Latency {as_wrk2(mean):>10}{as_wrk2(stdev):>10}{top:>9}   50.00%"]
    lines += ["    Req/Sec       -nan      -nan   0.00      0.00%"]
    lines += ["  Latency Distribution (HdrHistogram - Recorded Latency)"]
    for percentile in (50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0):
        value = as_wrk2(histogram.get_value_at_percentile(percentile))
        lines += [f"{percentile:7.3f}%{value:>10}"]
    lines += ["", "  Detailed Percentile spectrum:"]
    lines += ["       Value   Percentile   TotalCount 1/(1-Percentile)", ""]
    for item in histogram.get_percentile_iterator(5):
        level = item.percentile_level_iterated_to / 100
        inverse = "inf" if level == 1 else f"{1 / (1 - level):.2f}"
        value, count = item.value_iterated_to / 1000, item.total_count_to_this_value
        lines += [f"{value:12.3f} {level:12f} {count:12d} {inverse:>12}"]
    lines += [f"#[Mean    = {mean / 1000:12.3f}, StdDeviation   = {stdev / 1000:12.3f}]"]
    highest = histogram.get_max_value() / 1000
    lines += [f"#[Max     = {highest:12.3f}, Total count    = {histogram.total_count:12d}]"]
    lines += ["#[Buckets =           27, SubBuckets     =         2048]", "-" * 58]
    lines += [f"  {requests} requests in {as_wrk2(seconds * 1e6)}, 1.00MB read"]
    lines += [f"Requests/sec: {requests / seconds:9.2f}", "Transfer/sec:     34.13KB"]
    return "\n".join(lines) + "\n"


def at_or_below(histogram: Any, value: int) -> int:
    values, counts = histograms.counts_of(histogram)
    return int(counts[values <= value].sum())


LATENCIES = st.lists(
    st.one_of(st.integers(1, 5_000), st.integers(1, 3_000_000), st.integers(1, 600_000_000)),
    min_size=1,
    max_size=100,
)


@given(LATENCIES, st.integers(1, 40), st.integers(0, 1000), st.floats(1, 4000))
def test_any_histogram_comes_back(
    values: list[int], times: int, uncounted: int, seconds: float
) -> None:
    truth = histograms.from_values([value for value in values for _ in range(times)])
    requests = truth.total_count + uncounted
    asked = load(rate=10, duration_s=30, connections=1)
    found = wrk2.measure(printed(truth, requests, seconds), asked, None)
    assert found.histogram.total_count == truth.total_count
    assert found.duration_s == pytest.approx(seconds, rel=0.01, abs=0.01)
    rows = list(truth.get_percentile_iterator(5))
    for row in rows:
        count = row.total_count_to_this_value
        assert at_or_below(found.histogram, row.value_iterated_to) == count
    tops = {row.percentile_level_iterated_to: row.value_iterated_to for row in rows}
    summary = histograms.summary(truth)
    for name, percentile in histograms.PERCENTILES.items():
        was, is_now = present(summary[name]), present(found.latency_us[name])
        printed_to = 300_000 if was >= 51e6 else 5_000 if was >= 1e6 else 5
        if percentile in tops:
            # The row's rank may be one more than the percentile's, which is rounded.
            assert was <= is_now <= tops[percentile]
        else:
            assert is_now == pytest.approx(was, rel=0.001, abs=printed_to + 1)
    for name in ("min", "max"):
        assert found.latency_us[name] == summary[name]
    assert found.latency_us["mean"] == pytest.approx(summary["mean"], rel=0.001, abs=1)


def offered(folder: Path, program: str, **changed: str) -> Path:
    """The directory that the load script leaves, with stand-ins for wrk2 and curl."""
    curl = (
        'while [ "$1" != -o ]; do shift; done; '
        'if [ "$2" = - ]; then printf ok; printf 200 >&2; else printf ok >"$2"; fi'
    )
    stand_ins.put(folder, {"wrk2": f'echo "$@" >>{folder}/asked\n{program}', "curl": curl})
    environment = {
        "PATH": stand_ins.before(folder),
        "DIR": str(folder / "rep-1"),
        "GENERATOR": "wrk2",
        "URL": "http://10.0.0.1/index",
        "STATUS_URL": "http://10.0.0.1/lab/status",
        "METHOD": "GET",
        "BODY": "",
        "STATUS": "200",
        "BODY_SHA256": hashlib.sha256(b"ok").hexdigest(),
        "BODY_BYTES": "2",
        "BODY_MOST": "2",
        "WARM_UP": "timeout 70 wrk2 -d 10s",
        "MEASURE": "timeout 90 wrk2 -d 30s -H 'X-One: a '\\''b'\\'' $HOME' -H 'X-Two: *'",
        "PRINTS": "yes",
        "WARMUP": "10",
        "PORTS": "",
        "PAUSE": "0",
        "LANES": "",
        "SATURATE": "",
        "MIX": "",
        "PAUSE_AFTER": "0",
        "REQUEST_TIMEOUT": "30",
        "BEGIN_AT": "",
        "SETTLE": "2",
        "BESIDE_URL": "",
        "HTTP2": "false",
        "HEADERS": "",
        "CERTIFICATE": "",
        **changed,
    }
    subprocess.run(["sh", str(SCRIPT)], env=environment, check=False, timeout=60)
    return folder / "rep-1"


def test_the_load_script_runs_the_commands_that_it_is_given(tmp_path: Path) -> None:
    left = offered(tmp_path / "kept", f"cat {FIXTURES}/saturated.txt")
    warmup, measured = (tmp_path / "kept" / "asked").read_text().splitlines()
    assert warmup == "-d 10s"
    assert measured == "-d 30s -H X-One: a 'b' $HOME -H X-Two: *"
    assert json.loads((left / "run.json").read_text())["exit_code"] == 0
    assert measure("saturated", (left / "wrk2.txt").read_text()).responses == 7_477
    assert not list(left.glob("warmup*"))


@pytest.mark.parametrize(
    ("program", "code"), [("echo out; echo err >&2", 0), ("echo out; echo err >&2; exit 7", 7)]
)
@pytest.mark.parametrize("prints", ["", "yes"])
def test_the_load_script_keeps_output_and_errors_apart(
    tmp_path: Path, prints: str, program: str, code: int
) -> None:
    left = offered(tmp_path / "one", program, PRINTS=prints, WARM_UP="")
    assert (left / "wrk2.txt").exists() == bool(prints)
    assert not prints or (left / "wrk2.txt").read_text() == "out\n"
    assert (left / "wrk2.err").read_text() == "err\n"
    assert json.loads((left / "run.json").read_text())["exit_code"] == code


def test_the_load_script_tells_what_wrk2_says_where_it_does_not_run(tmp_path: Path) -> None:
    words = "unable to connect to 10.0.0.1:80 Connection refused"
    left = offered(tmp_path / "one", f"echo {words} >&2; exit 1")
    assert json.loads((left / "run.json").read_text())["exit_code"] == 5
    assert (left / "error.txt").read_text() == f"the warm-up failed: {words}\n"
    left = offered(tmp_path / "two", f"echo {words} >&2; exit 1", WARM_UP="")
    assert json.loads((left / "run.json").read_text())["exit_code"] == 1
    assert (left / "error.txt").read_text() == f"wrk2 ended with 1: {words}\n"


def test_the_load_script_waits_for_the_moment_of_several_clients(tmp_path: Path) -> None:
    begin = time.time() + 2
    when = {"BEGIN_AT": repr(begin), "SETTLE": "0.8", "WARMUP": "0.4"}
    left = offered(tmp_path / "one", f"date +%s.%N >>{tmp_path}/moments", **when)
    warmup, measured = map(float, (tmp_path / "moments").read_text().split())
    read = (left / "reverse_proxy-before.txt").stat().st_mtime
    started = json.loads((left / "run.json").read_text())["started"]
    # Not before, a file's time being of the last tick; how much later, the machine's load says.
    for moment, early in ((warmup, 1.2), (read, 0.4), (started, 0), (measured, 0)):
        assert -0.02 <= moment - (begin - early) < 10
    # One that has passed is not waited for.
    left = offered(tmp_path / "two", "true", **when)
    assert json.loads((left / "run.json").read_text())["started"] > begin
