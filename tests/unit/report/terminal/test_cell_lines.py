"""The results of a run as the terminal shows them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.model import CellSummary, Load, PythonClient, Reason, Repetition, Validity
from loadlab.model.result import ClientCpu
from loadlab.report.terminal import cell_lines
from loadlab.run import formatting
from tests.unit import builders
from tests.unit.builders import present


def repetition(**changes: Any) -> Repetition:
    measured = builders.repetition()
    latency = replace(present(measured.latency_us), p50=1234.0, p99=56_789.0, p99_9=None)
    errors = replace(present(measured.errors), connect=1, body=2)
    known = {"goodput": 999.94, "responses": 9_000, "latency_us": latency, "errors": errors}
    return replace(measured, **{**known, "unsent": 6, "validity": builders.valid(), **changes})


def failed() -> Repetition:
    nothing = dict.fromkeys(("goodput", "latency_us", "errors", "unsent", "client"))
    return repetition(error="x", **nothing)


def lines(*cells: CellSummary) -> list[str]:
    document = replace(
        builders.summary(), cells=list(cells), ranking=[], comparisons=[], sweeps=[], searches=[]
    )
    return cell_lines.table(document).splitlines()


def measured(*repetitions: Repetition, load: Load | None = None, **changes: Any) -> CellSummary:
    made = builders.cell(load=load or builders.load(), **changes)
    return builders.cell_summary("a", repetitions, made)


def test_columns_stand_below_their_names() -> None:
    found = Validity(
        valid=False,
        reasons=[Reason(code="steal", value=0.5, limit=0.01, facts={"host": "server"})],
        findings=[Reason(code="unsent", value=6, facts={"scheduled": 1600})],
    )
    head, note, *rows = lines(
        measured(repetition(validity=found), repetition(unsent=None), failed())
    )
    numbers = ["999.9", "1.23ms", "56.79ms", "-", "3"]
    assert note.startswith("(-: fewer than 10 answers")
    assert rows[0].split()[:9] == ["index", "oha", "1000/s", *numbers, "6"]
    assert rows[0].endswith("void: steal: 0.500 on server, limit 0.01")
    assert rows[1].split() == ["index", "oha", "1000/s", *numbers, "-", "valid"]
    assert rows[2].split() == ["index", "oha", "1000/s", "valid"]
    assert rows[3].strip().startswith("unsent: 6 of 1600 scheduled requests were never sent")
    # Each number stands below the last letter of its name.
    for name, number in zip(("goodput", "p50", "p99", "p99.9"), numbers, strict=False):
        end = head.index(f" {name} ") + len(name) + 1
        assert rows[0][:end].endswith(number)
    assert head.index("verdict") == rows[0].index("void") == rows[2].index("valid")


def test_findings_of_a_cell_take_one_line() -> None:
    unsent = Reason(code="unsent", value=6, facts={"scheduled": 1600})
    aborted = Reason(code="aborted", value=2, facts={"requests": 1600})
    told = Validity(valid=True, reasons=[], findings=[unsent, aborted])
    found = lines(measured(*[repetition(validity=told)] * 3))
    (line,) = (line.strip() for line in found if "unsent:" in line)
    assert line.startswith("unsent: 6 of 1600 scheduled requests")
    assert line.endswith("; also aborted")


@pytest.mark.parametrize("rate", [0.1, 99.5, 123_456.7, 1_000_000.0])
def test_rate_is_shown_as_it_was_asked(rate: float) -> None:
    shown = "\n".join(lines(measured(repetition(), load=builders.load(rate=rate))))
    assert f"oha {formatting.plain(rate)}/s " in shown


def test_cells_of_several_tunings_and_controls_have_headings() -> None:
    cells = [
        replace(measured(repetition(), tuning=name), cell_id=f"{name}-{purpose}", purpose=purpose)
        for name, purpose in (
            ("production", "measure"),
            ("production", "closed_loop"),
            ("stock", "measure"),
            ("stock", "aa_control"),
        )
    ]
    headings = [line for line in lines(*cells) if line.endswith(":")]
    assert headings == ["production:", "stock:", "stock, A/A control:"]


def test_python_clients_have_a_table_of_their_own() -> None:
    load = builders.batch(
        generator="python-bounded", requests=10_000, connections=1_000, warmup_s=0.0
    )
    client = PythonClient(
        seconds=17.4165,
        cpu_s=ClientCpu(user=3.8, system=1.054),
        max_rss_bytes=76_431_360,
        open_files=1024,
        local_ports=[32768, 60999],
        versions={},
        failures={},
    )
    finding = Reason(code="open_files_granted", value=1024, limit=2048)
    told = Validity(valid=True, reasons=[], findings=[finding])
    one = repetition(requests=10_000, ok=9_000, rate_achieved=517.24, client=client, validity=told)
    head, *rows = lines(measured(one, failed(), load=load))
    numbers = ["10,000", "1,000", "17.42", "517.2", "72.9", "MiB", "4.85s", "1,000"]
    assert rows[0].split() == ["index", "python-bounded", *numbers, "valid"]
    assert rows[1].split() == ["index", "python-bounded", "10,000", "1,000", "valid"]
    assert rows[2].strip().startswith("open_files_granted: 1,024 granted of 2,048 asked")
    assert head.index("verdict") == rows[0].index("valid") == rows[1].index("valid")
    for name, number in (("seconds", "17.42"), ("req/s", "517.2"), ("CPU", "4.85s")):
        assert rows[0][: head.index(f" {name} ") + len(name) + 1].endswith(number)
