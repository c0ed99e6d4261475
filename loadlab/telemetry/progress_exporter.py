"""Export the progress of the newest run to Prometheus, while it runs.

``python -m loadlab.telemetry.progress_exporter RESULTS PORT`` serves one page on 127.0.0.1 until it
is ended. The page is read from the run's documents at each request.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric

from loadlab.model import Progress, RepetitionSetup
from loadlab.run import documents, lock
from loadlab.run.run_dir import LATEST, RunDir

ADDRESS = "127.0.0.1"
# Name of the process, at most 15 characters. Its number alone could be another process's later.
NAME = "lab-progress"


class RunProgress:
    """The gauges of the newest run in a folder of results, labelled with its run_id.

    Without a run there is none. A value that is not known has no gauge: the numbers of measurements
    before the load, and the time left while no process runs the run.
    """

    def __init__(self, results: Path) -> None:
        self._results = results

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges. Raises ResultError where a document of the run is malformed."""
        # Resolved once, because a new run may take the link at any time.
        run = RunDir((self._results / LATEST).resolve())
        if not run.plan.exists():
            return
        running = lock.holder(run.path) is not None
        yield _gauge("lab_run_under_way", "1 while a process runs the run", run, running)
        if run.progress.exists():
            progress = documents.read(run.progress, Progress)
            yield from _progress(run, progress, time.time() if running else None)
        yield _under_way(run, running)


def _progress(run: RunDir, progress: Progress, now: float | None) -> Iterator[Metric]:
    """Yield the gauges of progress.json. ``now``: unix seconds; None where nothing runs."""
    yield _gauge("lab_measurements", "Largest possible number of measurements", run, progress.total)
    yield _gauge("lab_measurements_done", "Measurements that did not fail", run, progress.done)
    yield _gauge("lab_cells_given_up", "Cells that failed twice", run, len(progress.abandoned))
    if now is not None:
        left = max(0.0, progress.ends - now)
        yield _gauge("lab_load_left_seconds", "Time until the load ends, as estimated", run, left)


def _under_way(run: RunDir, running: bool) -> Metric:
    """Return a gauge for each repetition without a result; none of these while nothing runs."""
    labels = ("run_id", "cell", "repetition", "purpose", "server")
    gauge = GaugeMetricFamily("lab_measurement_under_way", "1 while it is measured", labels=labels)
    for repetition in run.described() if running else ():
        if not repetition.result.exists():
            setup = documents.read(repetition.cell, RepetitionSetup)
            number = str(setup.repetition)
            named = (run.run_id, setup.cell_id, number, setup.purpose, setup.server)
            gauge.add_metric(named, 1)
    return gauge


def _gauge(name: str, meaning: str, run: RunDir, value: float) -> Metric:
    gauge = GaugeMetricFamily(name, meaning, labels=["run_id"])
    gauge.add_metric([run.run_id], value)
    return gauge


def main(results: Path, port: int) -> None:
    """Serve the page on a TCP port of the loopback. Raises OSError where the port is taken."""
    Path("/proc/self/comm").write_text(NAME, encoding="ascii")
    registry = CollectorRegistry()
    registry.register(RunProgress(results))
    _, serving = start_http_server(port, ADDRESS, registry)
    serving.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
