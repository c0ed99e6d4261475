import csv
import io

import msgspec
import pytest
from msgspec.structs import asdict, replace

from loadlab.model import RepetitionRow
from loadlab.results.exports import cells_table
from loadlab.run.errors import ResultError
from tests.unit import builders
from tests.unit.builders import present


def read(text: str) -> list[RepetitionRow]:
    """Read cells.csv by its record: a field that is empty is null."""
    return [
        msgspec.convert(
            {name: field or None for name, field in row.items()}, RepetitionRow, strict=False
        )
        for row in csv.DictReader(io.StringIO(text, newline=""), strict=True)
    ]


def test_the_table_reads_back_as_its_record_with_all_digits() -> None:
    void = builders.repetition(repetition=2, validity=builders.void("steal", "link", "steal"))
    nothing = {"latency_us": None, "errors": None, "telemetry": None, "response_time": None}
    failed = builders.repetition(repetition=3, validity=builders.void("failed"), **nothing)
    last = builders.cell_summary("void", [void, failed])
    rows = cells_table.rows(builders.summary_of(*builders.summary().cells, last))
    text = cells_table.text(rows)
    assert read(text) == rows
    assert len(rows) == 6
    assert text.count("\r\n") == text.count("\n") == 7
    assert (rows[4].valid, rows[4].void_reasons) == (False, "steal link")
    assert (rows[5].p99_ms, rows[5].errors_body, rows[5].client_cpu_fraction) == (None, None, None)


def test_a_row_has_the_figures_of_its_repetition_in_the_units_of_its_columns() -> None:
    used = builders.processes()
    measured = builders.repetition(reverse_proxy_requests=1000, client=builders.client(EMFILE=1))
    rep = builders.with_services(
        measured, reverse_proxy=used, application=replace(used, cpu_s=2.25)
    )
    (row,) = cells_table.rows(builders.summary_of(builders.cell_summary(builders.NAME, [rep])))
    latency = present(rep.latency_us)
    assert row.p99_ms == present(latency.p99) / 1000
    assert row.max_ms == present(latency.max) / 1000
    assert row.response_time_mean_ms == present(rep.response_time).mean_us / 1000
    assert row.goodput_per_s == rep.goodput
    assert row.errors_timeout == present(rep.errors).timeout
    costs = {
        "cpu_us_per_request": 2750,
        "reverse_proxy_cpu_us_per_request": 500,
        "postgresql_cpu_us_per_request": None,
        "memory_mib": 3,
        "memory_pss_mib": None,
        "joules_per_request": None,
    }
    assert costs.items() <= asdict(row).items()
    assert row.server_cpu_fraction == present(rep.telemetry).server.cpu_busy
    assert row.batch_cpu_s == 0.6
    assert (row.framework, row.rate_per_s, row.clients) == ("aiohttp", 1000, 1)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(1)", "\t=1"])
def test_a_name_that_a_spreadsheet_takes_for_a_formula_is_refused(name: str) -> None:
    rep = builders.repetition(server=name)
    with pytest.raises(ResultError, match=r"cells\.csv: aiohttp.*matching regex.*\$\.host"):
        cells_table.rows(builders.summary_of(builders.cell_summary(builders.NAME, [rep])))
