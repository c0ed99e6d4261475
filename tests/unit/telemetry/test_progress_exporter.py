import os
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from loadlab.run import lock
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import RunDir
from loadlab.telemetry.progress_exporter import RunProgress
from tests.unit import builders

RUN_ID = "20261120-182321-aiohttp"
OF_RUN = f'{{run_id="{RUN_ID}"}}'


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """The newest run, planned and nothing else."""
    found = RunDir(tmp_path / RUN_ID)
    found.path.mkdir()
    found.plan.touch()
    found.link_latest()
    return found


def gauges(results: Path) -> dict[str, float]:
    """The page: each gauge with its labels, and its value."""
    registry = CollectorRegistry()
    registry.register(RunProgress(results))
    page: bytes = generate_latest(registry)
    lines = [line for line in page.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_progress_of_no_run_has_no_gauge(tmp_path: Path) -> None:
    assert gauges(tmp_path) == {}
    assert gauges(tmp_path / "absent") == {}


def test_progress_before_the_load_has_no_measurements(tmp_path: Path, run: RunDir) -> None:
    assert gauges(tmp_path) == {f"lab_run_under_way{OF_RUN}": 0}
    lock.take(run.path, os.getpid(), "")
    assert gauges(tmp_path) == {f"lab_run_under_way{OF_RUN}": 1}


def test_progress_names_the_measurement_under_way(tmp_path: Path, run: RunDir) -> None:
    lock.take(run.path, os.getpid(), "")
    builders.progress(run, abandoned={"a": "refused", "b": "refused"})
    for number in (1, 2):
        builders.begin(run, number)
    run.repetition(builders.NAME, 1).result.touch()
    found = gauges(tmp_path)
    assert 50 < found.pop(f"lab_load_left_seconds{OF_RUN}") <= 60
    # The order of labels is the exporter's.
    labels = f'cell="{builders.NAME}",purpose="measure",repetition="2",run_id="{RUN_ID}"'
    assert found == {
        f"lab_run_under_way{OF_RUN}": 1,
        f"lab_measurements{OF_RUN}": 12,
        f"lab_measurements_done{OF_RUN}": 3,
        f"lab_cells_given_up{OF_RUN}": 2,
        f'lab_measurement_under_way{{{labels},server="server"}}': 1,
    }


def test_progress_of_an_interrupted_run_has_nothing_under_way(tmp_path: Path, run: RunDir) -> None:
    builders.progress(run)
    builders.begin(run, 1)
    assert gauges(tmp_path) == {
        f"lab_run_under_way{OF_RUN}": 0,
        f"lab_measurements{OF_RUN}": 12,
        f"lab_measurements_done{OF_RUN}": 3,
        f"lab_cells_given_up{OF_RUN}": 0,
    }


def test_progress_that_cannot_be_read_is_no_page(tmp_path: Path, run: RunDir) -> None:
    run.progress.write_text('{"done": 3')
    with pytest.raises(ResultError, match=r"progress\.json is truncated or no JSON"):
        gauges(tmp_path)
