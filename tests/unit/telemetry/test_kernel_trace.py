"""Traces of a kernel, as bpftrace 0.17 (Debian 12) and 0.23 (Debian 13) recorded them."""

import shutil
from pathlib import Path

import pytest

from loadlab.run import run_dir
from loadlab.run.errors import ResultError
from loadlab.telemetry import kernel_trace

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kernel_trace"
# As perf prints them with -x; on a virtual machine without counters the value is in brackets.
COUNTED = "# started on a day\n\n3000,,instructions:u,99,100.00,,\n2000,,cycles:u,99,100.00,,\n"
UNCOUNTED = "<not supported>,,instructions,0,100.00,,\n<not supported>,,cycles,0,100.00,,\n"


@pytest.mark.parametrize("version", ["0.17", "0.23"])
def test_service_of_a_recorded_trace_has_its_waits_by_system_call(version: str) -> None:
    """A small Python server in the control group of the application, two seconds."""
    text = (FIXTURES / f"bpftrace-{version}.jsonl").read_text()
    (one,) = kernel_trace.figures(text, COUNTED).services
    assert one.service == "application"
    assert one.scheduled > 50
    assert 0 < one.run_queue_p50_us <= one.run_queue_p99_us
    assert 1 < one.run_queue_mean_us < 5000
    assert one.waits[0].call in ("poll", "select", "epoll_wait")
    assert 0.5 < one.waits[0].seconds < 5
    assert [each.seconds for each in one.waits] == sorted(
        (each.seconds for each in one.waits), reverse=True
    )


GROUPS = '{"type": "group", "data": {"7": "/nginx.service", "8": "/loadlab-app.service/a"}}'
STATS = '{"type": "stats", "data": {"@run_queue_us": {"7": {"count": 100, "total": 500}}}}'
BINS = ", ".join(
    f'{{"min": {low}, "max": {2 * low - 1}, "count": {count}}}'
    for low, count in ((2, 60), (4, 39), (512, 1))
)
HISTOGRAM = f'{{"type": "hist", "data": {{"@run_queue": {{"7": [{BINS}]}}}}}}'


def lines(*maps: str) -> str:
    return "\n".join((GROUPS, *maps))


def test_percentiles_are_the_ends_of_their_bins() -> None:
    (one,) = kernel_trace.figures(lines(STATS, HISTOGRAM), COUNTED).services
    assert (one.service, one.scheduled, one.run_queue_mean_us) == ("reverse_proxy", 100, 5)
    assert (one.run_queue_p50_us, one.run_queue_p99_us) == (3, 7)


def test_instructions_per_cycle_and_retransmits() -> None:
    again = '{"type": "map", "data": {"@retransmits": {"80": 3, "443": 1}}}'
    found = kernel_trace.figures(lines(STATS, HISTOGRAM, again), COUNTED)
    assert (found.instructions_per_cycle, found.uncounted) == (1.5, None)
    assert found.retransmits == {"80": 3, "443": 1}


def test_instructions_of_both_kinds_of_cores_are_added_up() -> None:
    """As perf prints them of a hybrid processor; the last core does not run."""
    kinds = "900,,cpu_atom/instructions/,9,50.00,0.90,insn per cycle\n"
    kinds += "600,,cpu_atom/cycles/,9,50.00,,\n900,,cpu_core/instructions/,9,50.00,,\n"
    kinds += "600,,cpu_core/cycles/,9,50.00,,\n<not counted>,,cpu_low/cycles/,0,100.00,,\n"
    found = kernel_trace.figures(lines(STATS, HISTOGRAM), kinds)
    assert (found.instructions_per_cycle, found.uncounted) == (1.5, None)


@pytest.mark.parametrize(
    ("counters", "why"), [(UNCOUNTED, "cycles: not supported"), ("", "perf printed nothing")]
)
def test_host_without_counters_says_why(counters: str, why: str) -> None:
    found = kernel_trace.figures(lines(STATS, HISTOGRAM), counters)
    assert (found.instructions_per_cycle, found.uncounted) == (None, why)


@pytest.mark.parametrize(
    ("stack", "name"),
    [
        ("\n    __schedule+1\n    do_epoll_wait+3\n    __x64_sys_epoll_wait+9\n", "epoll_wait"),
        (r"\n    __schedule+1\n    do_futex+3\n    __arm64_sys_futex+9\n", "futex"),
        ("\n    __schedule+1\n    io_schedule+63\n    folio_wait_bit+2\n", "folio_wait_bit"),
        ("\n    __schedule+1\n    schedule+35\n", "?"),
        ("", "?"),
    ],
)
def test_name_of_a_wait(stack: str, name: str) -> None:
    assert kernel_trace.call(stack) == name


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (lines(), "has no thread that waited for a core"),
        (lines('{"type": "map", "data": {"@waited_us": [1]}}'), "line 2 not understood"),
        ("Attaching 6 probes...", "line 1 not understood"),
        (lines(STATS.replace("100", "0")), "line 2 not understood: .* >= 1"),
    ],
)
def test_trace_that_is_not_understood(text: str, why: str) -> None:
    with pytest.raises(ResultError, match=why):
        kernel_trace.figures(text, COUNTED)


def test_trace_that_failed_says_what_bpftrace_said(tmp_path: Path) -> None:
    (tmp_path / run_dir.TRACE).write_text("")
    (tmp_path / run_dir.TRACE_LOG).write_text("ERROR: Could not create map\n")
    with pytest.raises(ResultError, match="bpftrace said: ERROR: Could not create map"):
        kernel_trace.reduce(tmp_path)
    shutil.copy(FIXTURES / "bpftrace-0.23.jsonl", tmp_path / run_dir.TRACE)
    assert kernel_trace.reduce(tmp_path).uncounted == "perf printed nothing"
