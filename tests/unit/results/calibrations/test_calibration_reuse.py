from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.model import LedgerRow, TuningLedger
from loadlab.report.words import calibration_words as words
from loadlab.results.calibrations import calibration_reuse
from loadlab.run import documents
from loadlab.run.run_dir import CalibrationDir
from tests.unit import builders

NOW = 1_800_000_000.0
HOSTS = ("server", "client")
GIVEN: dict[str, Any] = {
    "hosts": ["5e", "c1"], "cpus": [[0], [1]], "address": "10.77.1.11", "tuning": "production",
    "network": ["lan", {}], "load": ["oha", 1000, 64, False], "seconds": [5, None],
    "answer": {"sha256": "ab", "body_bytes": 12}, "method": "fa",
}  # fmt: skip


def row(key: str, after: str) -> LedgerRow:
    first = next(iter(builders.ledger().hosts.values()))[0]
    return replace(first, key=key, requested="1024", before="128", after=after, state="applied")


def ledger(**hosts: list[LedgerRow]) -> TuningLedger:
    return replace(builders.ledger(), hosts=hosts)


TUNED = {
    "server": [row("net.core.somaxconn", "4096"), row("nginx.backlog", "2048")],
    "client": [row("net.core.somaxconn", "4096")],
}
LEDGER = ledger(**TUNED)
CONDITIONS = calibration_reuse.conditions(GIVEN, LEDGER, HOSTS)


def calibrated(
    results: Path, run_id: str, age: float = 600, by: str = "", number: int = 1, **parts: Any
) -> Path:
    """A run whose calibration was measured ``age`` seconds ago, ``by`` an earlier one or itself;
    ``parts``: what each says of its error."""
    folder = results / run_id / "calibration"
    for part, error in {"ceiling": None, "floor": None, **parts}.items():
        (folder / part / f"rep-{number}").mkdir(parents=True)
        result = documents.encode(builders.result(error=error))
        (folder / part / f"rep-{number}" / "result.json").write_bytes(result)
    link = folder / "link" / f"rep-{number}"
    link.mkdir(parents=True)
    record = {"run_id": by or run_id, "measured": NOW - age, "conditions": CONDITIONS}
    (results / run_id / "plan.json").write_text("{}")
    (link / "conditions.json").write_bytes(documents.dump(record))
    (link / "ping.txt").write_text("ping")
    return folder


def found(results: Path, conditions: dict[str, Any] = CONDITIONS) -> list[str]:
    return [one.folder.run_dir.run_id for one in calibration_reuse.usable(results, conditions, NOW)]


def test_the_newest_of_the_same_is_used_again(tmp_path: Path) -> None:
    for run_id, age in (("old", 1800), ("new", 725), ("older", 3599)):
        calibrated(tmp_path, run_id, age)
    (tmp_path / "latest").symlink_to("new")
    assert found(tmp_path) == ["new", "old", "older"]
    first = next(calibration_reuse.usable(tmp_path, CONDITIONS, NOW))
    assert words.reused(first.origin, NOW) == "Calibration of run new, 12 min ago"


def test_a_copy_is_as_old_as_what_it_was_made_of(tmp_path: Path) -> None:
    calibrated(tmp_path, "copied", age=45, by="measured")
    (one,) = calibration_reuse.usable(tmp_path, CONDITIONS, NOW)
    assert words.reused(one.origin, NOW) == "Calibration of run measured, 45 s ago"


def changed(name: str, value: Any) -> Callable[[], dict[str, Any]]:
    return lambda: calibration_reuse.conditions({**GIVEN, name: value}, LEDGER, HOSTS)


def tuned(host: str, index: int, value: str) -> Callable[[], dict[str, Any]]:
    def make() -> dict[str, Any]:
        rows = [*TUNED[host]]
        rows[index] = replace(rows[index], after=value)
        return calibration_reuse.conditions(GIVEN, ledger(**{**TUNED, host: rows}), HOSTS)

    return make


OTHERS = {
    "machine, boot or program of the server": changed("hosts", ["5f", "c1"]),
    "machine, boot or program of the client": changed("hosts", ["5e", "c2"]),
    "cpus": changed("cpus", [[0, 1], [1]]),
    "address": changed("address", "10.77.1.13"),
    "tuning": changed("tuning", "none"),
    "network profile": changed("network", ["gigabit", {}]),
    "what the profile asks": changed("network", ["lan", {"delay_ms": 1}]),
    "generator": changed("load", ["wrk2", 1000, 64, False]),
    "rate": changed("load", ["oha", 1001, 64, False]),
    "connections": changed("load", ["oha", 1000, 65, False]),
    "tls": changed("load", ["oha", 1000, 64, True]),
    "seconds": changed("seconds", [5, 1]),
    "answer": changed("answer", {"sha256": "ac", "body_bytes": 12}),
    "method": changed("method", "fb"),
    "server's tuning as read back": tuned("server", 0, "128"),
    "nginx's": tuned("server", 1, "511"),
    "client's": tuned("client", 0, "128"),
    "no ledger": lambda: calibration_reuse.conditions(GIVEN, None, HOSTS),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_calibration_under_other_conditions_is_not_reused(
    tmp_path: Path, other: Callable[[], Any]
) -> None:
    calibrated(tmp_path, "a-run")
    assert found(tmp_path) == ["a-run"]
    assert found(tmp_path, other()) == []


def test_the_application_is_no_condition() -> None:
    server = [*TUNED["server"], row("application.backlog", "2048")]
    more = ledger(**{**TUNED, "server": server})
    assert calibration_reuse.conditions(GIVEN, more, HOSTS) == CONDITIONS


# An hour, and of a clock that was set back.
@pytest.mark.parametrize("age", [3600, -1])
def test_calibration_that_is_too_old_is_not_reused(tmp_path: Path, age: float) -> None:
    calibrated(tmp_path, "a-run", age)
    assert found(tmp_path) == []


@pytest.mark.parametrize("part", ["ceiling", "floor"])
def test_what_failed_is_not_used_again(tmp_path: Path, part: str) -> None:
    failed: dict[str, Any] = {part: "generator_failed"}
    folder = calibrated(tmp_path, "a-run", **failed)
    assert found(tmp_path) == []
    (folder / part / "rep-1" / "result.json").unlink()
    assert found(tmp_path) == []


@pytest.mark.parametrize("record", ["{", "{}", '{"conditions": 1, "measured": "x"}'])
def test_what_is_no_record_is_no_calibration(tmp_path: Path, record: str) -> None:
    folder = calibrated(tmp_path, "a-run")
    (folder / "link" / "rep-1" / "conditions.json").write_text(record)
    assert found(tmp_path) == []


def test_a_copy_has_all_files(tmp_path: Path) -> None:
    calibrated(tmp_path, "a-run", number=3)
    (earlier,) = calibration_reuse.usable(tmp_path, CONDITIONS, NOW)
    folder = tmp_path / "new" / "calibration"

    def content(folder: Path, number: int) -> dict[str, bytes]:
        return {
            path.relative_to(folder).as_posix().replace(f"rep-{number}", "rep"): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    calibration_reuse.copy(earlier, CalibrationDir(folder), 2)
    assert content(folder, 2) == content(earlier.folder.path, 3)
    calibration_reuse.drop(CalibrationDir(folder), 2)
    assert content(folder, 2) == {}
