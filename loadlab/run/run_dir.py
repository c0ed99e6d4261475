"""Names and places of the files of a run, results/<run_id>/.

Nothing else spells them: Python uses the classes below, YAML the filters run_path and
repetition_path. An attribute or method returns a path, whether or not the file exists, and creates
nothing. The output of a generator is named in generators/registry.py.

Below results/<run_id>/:

- cells/<cell_id>/rep-<n>/: a repetition
- percentiles/: a file for each cell
- stacks/<stack>/: unit and configuration of the reverse proxy of a stack of a matrix, as measured
- calibration<pair>/{link,ceiling,floor}/rep-<n>/: the n-th calibration of a pair's first client;
  calibration<pair>+<client>/ of its further clients. Beside each folder its document, with .json
- tuning.json, tuning-<profile><pair>.json; answers<pair>.json; compare-<run_id>.json
- one document of each other name

<pair> is empty for the first host pair, and -<server> for any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Protocol

# Name of a run's folder.
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# A client's name, where it names a folder.
CLIENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
# The link in results/ to the newest run, and the page of all runs there.
LATEST = "latest"
INDEX = "index.html"

# Documents of a run.
PLAN = "plan.json"
PROGRESS = "progress.json"
SUMMARY = "summary.json"
CLAIMS = "claims.json"
CERTIFICATE = "certificate.json"
VERDICT = "verdict.json"
MATRIX = "matrix.json"
MANIFEST = "manifest.json"
ORIGINAL = "original.json"
REPRODUCTION = "reproduction.json"
METRICS = "metrics.prom"
# All repetitions as one table.
TABLE = "cells.csv"
# The metrics of each measured cell for Bencher.
BENCHER = "bencher.json"
REPORT = "report.html"
# A comment for a pull request.
COMMENT = "comment.md"
READER = "reader.json"
LESSON = "lesson.json"
LESSON_TEXT = "lesson.md"
LESSON_PAGE = "lesson.html"
LOCK = ".lock"
# What a bundle has for archives of research data.
CRATE = "ro-crate-metadata.json"

# Folders: of the repetitions, of the percentiles of each cell, and of the files of stacks.
CELLS = "cells"
STACKS = "stacks"
PERCENTILES = "percentiles"
# Files of a repetition on the controller.
CELL = "cell.json"
RESULT = "result.json"
# Raw files that scripts write on the hosts.
RUN = "run.json"
ERROR = "error.txt"
STATUS = "progress.txt"
PROCESSES = "processes.txt.gz"
CORES = "cores.txt.gz"
QUEUES = "queues.jsonl.gz"
REVERSE_PROXY_LOG = "reverse_proxy.txt.gz"
DATABASE = "database.jsonl.gz"
DATABASE_LOG = "database.err"
PROFILE = "profile.txt"
PROFILE_LOG = "profile.log"
LOCK_PROFILE = "gil.txt"
TRACE = "trace.jsonl"
TRACE_COUNTERS = "perf.csv"
TRACE_LOG = "trace.log"
# Suffix of the same files of a client.
OF_CLIENT = "-client"
# Name of the generator's processes in a client's recording.
GENERATOR = "generator"
# The reverse proxy's counters before and after the load.
COUNTERS = ("reverse_proxy-before.txt", "reverse_proxy-after.txt")

# Folder of the files of a lane, until they are shared out.
_PLACE = "place-"

# Parts of a calibration that are repetitions, and the files of its part link.
CEILING, FLOOR, LINK = "ceiling", "floor", "link"
CONDITIONS = "conditions.json"
PING = "ping.txt"
_WAYS = ("client_to_server", "server_to_client")
IPERF3 = {way: f"iperf3-{way}.json" for way in _WAYS}
# The same with several streams, where one filled a core.
IPERF3_SEVERAL = {way: f"iperf3-several-{way}.json" for way in _WAYS}

# Runs on the hosts, with the same folders as on the controller.
ON_HOSTS = PurePosixPath("/var/lib/loadlab-runs")

_REPETITION = "rep-"
_NUMBERED = re.compile(_REPETITION + "(0|[1-9][0-9]*)")
_CALIBRATION = "calibration"
_TUNING = "tuning"
# What only a run has.
_OF_A_RUN = (PLAN, PROGRESS, SUMMARY, MANIFEST, LOCK, CELLS)
# Joins the name of a host pair's calibration and the name of one of its further clients.
_FURTHER = "+"


def suffix(server: str) -> str:
    """Return the suffix of a host pair's files, by its server; "" of the first pair."""
    return f"-{server}" if server else ""


def of_client(name: str) -> str:
    """Return the name of a client's recording, from that of a server's."""
    stem, dot, ending = name.partition(".")
    return f"{stem}{OF_CLIENT}{dot}{ending}"


def lane_folder(place: int) -> str:
    """Return the name of the folder of a place's files, below the repetition with the raw files."""
    return f"{_PLACE}{place}"


def runs(results: Path, name: str = PLAN) -> list[RunDir]:
    """Return the runs in results/ that have a file ``name``, by run_id."""
    folders = (RunDir(path.parent) for path in sorted(results.glob(f"*/{name}")))
    return [run for run in folders if not run.path.is_symlink()]


def folders(results: Path) -> list[RunDir]:
    """Return every folder in results/ that has anything of a run, by run_id."""
    paths = sorted({path.parent for name in _OF_A_RUN for path in results.glob(f"*/{name}")})
    return [RunDir(path) for path in paths if not path.is_symlink()]


class _Folder(Protocol):
    @property
    def path(self) -> Path: ...


class File:
    """An attribute of a folder: the path of the file or folder with this name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: _Folder, owner: type) -> Path:
        return folder.path / self._name


@dataclass(frozen=True)
class ClientDir:
    """A folder with the raw files of one client: an only client's is the repetition's."""

    path: Path

    run = File(RUN)
    error = File(ERROR)
    status = File(STATUS)
    # The client's own telemetry.
    telemetry = File("telemetry-client.prom.gz")
    # The recording of the client's own processes.
    own_processes = File(of_client(PROCESSES))
    # The recording of the client's own cores.
    own_cores = File(of_client(CORES))

    @property
    def counters(self) -> tuple[Path, Path]:
        """The reverse proxy's counters before and after the load."""
        before, after = COUNTERS
        return self.path / before, self.path / after


@dataclass(frozen=True)
class RepetitionDir(ClientDir):
    """A folder cells/<cell_id>/rep-<n>, or that of a calibration's ceiling or floor."""

    cell = File(CELL)
    result = File(RESULT)
    server_telemetry = File("telemetry-server.prom.gz")
    processes = File(PROCESSES)
    # The recording of the server's cores.
    cores = File(CORES)
    # The recording of the server's accept queues.
    queues = File(QUEUES)
    # The reverse proxy's log of a sample of the requests, and of errors.
    reverse_proxy_log = File(REVERSE_PROXY_LOG)
    database = File(DATABASE)
    profile = File(PROFILE)
    trace = File(TRACE)

    @property
    def number(self) -> int:
        return int(self.path.name.removeprefix(_REPETITION))

    @property
    def of(self) -> str:
        """The cell_id, or the part of the calibration."""
        return self.path.parent.name

    @property
    def run_dir(self) -> RunDir:
        return RunDir(self.path.parents[2])

    @property
    def place(self) -> str:
        """The path relative to the run's folder."""
        return self.path.relative_to(self.path.parents[2]).as_posix()

    @property
    def on_hosts(self) -> str:
        """The path on the hosts."""
        return str(self.run_dir.on_hosts / self.place)

    def client(self, name: str = "") -> ClientDir:
        """Return the folder of one of several clients; of an only client without a name."""
        return ClientDir(self.path / "clients" / name) if name else self

    def client_on_hosts(self, name: str = "") -> str:
        """Return the path of a client's folder on that client."""
        return str(self.on_hosts / self.client(name).path.relative_to(self.path))

    def recordings(self, clients: Sequence[str] = ()) -> list[str]:
        """Return the telemetry of the server and of each of several clients, or of the only one."""
        own = [self.client(name).telemetry for name in clients or [""]]
        return [str(path) for path in (self.server_telemetry, *own)]


@dataclass(frozen=True)
class CalibrationDir:
    """A folder calibration<pair> or calibration<pair>+<client>."""

    path: Path

    @property
    def run_dir(self) -> RunDir:
        return RunDir(self.path.parent)

    @property
    def document(self) -> Path:
        """The document of the newest calibration in the folder."""
        return self.path.with_name(f"{self.path.name}.json")

    def part(self, name: str, number: int) -> RepetitionDir:
        """Return the folder of a part: CEILING, FLOOR or LINK."""
        return RepetitionDir(self.path / name / f"{_REPETITION}{number}")

    def conditions(self, number: int) -> Path:
        return self.part(LINK, number).path / CONDITIONS

    def numbers(self, part: str = CEILING) -> list[int]:
        """Return the numbers of the calibrations that have a part, ascending."""
        return _numbers(self.path / part)


@dataclass(frozen=True)
class RunDir:
    """A run's folder. ``RunDir(Path())`` gives paths relative to it."""

    path: Path

    plan = File(PLAN)
    progress = File(PROGRESS)
    summary = File(SUMMARY)
    claims = File(CLAIMS)
    certificate = File(CERTIFICATE)
    # The answer about two variants.
    verdict = File(VERDICT)
    # The best way to serve an application.
    matrix = File(MATRIX)
    # The verdict as a comment for a pull request.
    comment = File(COMMENT)
    manifest = File(MANIFEST)
    # The run that this one repeats.
    original = File(ORIGINAL)
    # How this run compares with the run that it repeats.
    reproduction = File(REPRODUCTION)
    metrics = File(METRICS)
    # The table of all repetitions.
    table = File(TABLE)
    bencher = File(BENCHER)
    report = File(REPORT)
    # What the reader of a lesson did.
    reader = File(READER)
    lesson = File(LESSON)
    lesson_text = File(LESSON_TEXT)
    lesson_page = File(LESSON_PAGE)
    lock = File(LOCK)
    crate = File(CRATE)
    logs = File("logs")

    @property
    def run_id(self) -> str:
        return self.path.resolve().name

    @property
    def latest(self) -> Path:
        """The link beside the run's folder that names the newest run."""
        return self.path.with_name(LATEST)

    @property
    def index(self) -> Path:
        """The page of all runs, beside the run's folder."""
        return self.path.with_name(INDEX)

    @property
    def bundle(self) -> Path:
        return self.path.with_name(f"{self.path.name}.tar.gz")

    @property
    def on_hosts(self) -> PurePosixPath:
        """The run's folder on the hosts."""
        return ON_HOSTS / self.path.name

    def log(self, host: str) -> Path:
        return self.logs / f"{host}.log"

    def arriving(self, host: str) -> Path:
        """Return the folder for files while they are fetched from a host.

        It is in the run's folder, so that moving a file to its place is a rename.
        """
        return self.path / f".arriving-{host}"

    def answers(self, pair: str = "") -> Path:
        """Return the verified answers of a host pair, by the suffix of its files."""
        return self.path / f"answers{pair}.json"

    def stack(self, name: str) -> Path:
        """Return the folder with the files of a stack as it was measured, by its id."""
        return self.path / STACKS / name

    def comparison(self, *bases: str) -> Path:
        """Return the comparison of this run, the last of its side, with the runs ``bases``."""
        return self.path / f"compare-{'+'.join(bases)}.json"

    def comparisons(self) -> list[Path]:
        return sorted(self.path.glob("compare-*.json"))

    def ledger(self, profile: str = "", pair: str = "") -> Path:
        """Return the ledger of the first profile on all hosts, or of another profile on a pair."""
        return self.path / (f"{_TUNING}-{profile}{pair}.json" if profile else f"{_TUNING}.json")

    def ledgers(self) -> list[Path]:
        """Return the ledgers that exist, that of the first profile first."""
        first = self.ledger()
        return [*([first] if first.exists() else []), *sorted(self.path.glob(f"{_TUNING}-*.json"))]

    def percentiles(self, cell_id: str) -> Path:
        """Return the percentiles of a cell's valid repetitions together."""
        return self.path / PERCENTILES / f"{cell_id}.hgrm"

    def repetition(self, cell_id: str, number: int) -> RepetitionDir:
        return RepetitionDir(self.path / CELLS / cell_id / f"{_REPETITION}{int(number)}")

    def repetitions(self) -> list[RepetitionDir]:
        """Return the folders of all repetitions, by cell_id and number."""
        folders = (self.path / CELLS).glob("*")
        return [
            self.repetition(folder.name, n) for folder in sorted(folders) for n in _numbers(folder)
        ]

    def described(self) -> list[RepetitionDir]:
        """Return the repetitions that have a cell.json."""
        return [repetition for repetition in self.repetitions() if repetition.cell.exists()]

    def measured(self) -> list[RepetitionDir]:
        """Return the repetitions that have a result.json."""
        return [repetition for repetition in self.repetitions() if repetition.result.exists()]

    def calibration(self, pair: str = "", client: str = "") -> CalibrationDir:
        """Return the folder of a pair's calibrations; ``client`` is one of its further clients."""
        further = f"{_FURTHER}{client}" if client else ""
        return CalibrationDir(self.path / f"{_CALIBRATION}{pair}{further}")

    def calibrations(self) -> list[CalibrationDir]:
        """Return the folders of calibrations that exist, by name."""
        paths = sorted(path for path in self.path.glob(f"{_CALIBRATION}*") if path.is_dir())
        return [CalibrationDir(path) for path in paths]

    def calibration_documents(self) -> dict[str, list[Path]]:
        """Return the documents of calibrations of each host pair, by the name of its first."""
        documents: dict[str, list[Path]] = {}
        for path in sorted(self.path.glob(f"{_CALIBRATION}*.json")):
            documents.setdefault(path.stem.partition(_FURTHER)[0], []).append(path)
        return documents

    def link_latest(self) -> None:
        """Make this run the newest: replace the link in one step."""
        link = self.path.with_name(f".{LATEST}.{self.path.name}")
        link.unlink(missing_ok=True)
        link.symlink_to(self.path.name)
        link.replace(self.latest)


# rsync's patterns of the folders from a run's folder down to its repetitions.
TO_REPETITIONS = ("/", f"/{CELLS}/", f"/{_CALIBRATION}*/", "/*/*/", f"/*/*/{_REPETITION}*/")
# Paths relative to the run's folder, as in the links of its report.
HERE = RunDir(Path())


def derived(name: str) -> bool:
    """Return whether a file, by its path below the run's folder, is derived from the others."""
    path = PurePath(name)
    documents = {
        RESULT, MANIFEST, SUMMARY, CLAIMS, CERTIFICATE, VERDICT, MATRIX, REPRODUCTION, METRICS,
        TABLE, BENCHER, REPORT, COMMENT, LESSON, LESSON_TEXT, LESSON_PAGE, CRATE,
    }  # fmt: skip
    calibration, percentiles = path.match(f"{_CALIBRATION}*.json"), path.match(f"{PERCENTILES}/*")
    return path.name in documents or calibration or percentiles


def _numbers(folder: Path) -> list[int]:
    """Return the n of a folder's rep-<n>, ascending."""
    matches = (_NUMBERED.fullmatch(path.name) for path in folder.glob(f"{_REPETITION}*"))
    return sorted(int(match[1]) for match in matches if match)
