"""What the commands of python -m loadlab print and write; tests/unit/test_bad_inputs.py has what
they refuse."""

import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab import __main__ as commands
from loadlab.bundle import signature
from loadlab.bundle.archive import BundleError
from loadlab.model import Summary
from loadlab.run import documents, lock
from tests.unit import builders
from tests.unit.bundle import test_verify as recorded
from tests.unit.history import test_run_comparison as runs
from tests.unit.kinds.test_run_end import Run

original = recorded.original


def printed(capsys: pytest.CaptureFixture[str], results: Path, *arguments: str) -> list[str]:
    assert commands.run(arguments, results) == 0
    return capsys.readouterr().out.splitlines()


def test_a_run_is_shown_packed_verified_and_graded(
    original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    run = Path(shutil.copytree(original, results / "a-run"))
    (results / "latest").symlink_to("a-run")
    assert printed(capsys, results, "show")[0].startswith("Run a-run, started ")

    bundle, counts, signed, elsewhere = printed(capsys, results, "bundle", "a-run")
    path = results / "a-run.tar.gz"
    assert bundle == f"Bundle: {path}"
    with tarfile.open(path) as archive:
        assert counts.startswith(f"{len(archive.getnames()) - 1} files, {path.stat().st_size} byte")
    assert signed == "Not signed; --sign <private SSH key> signs it"
    assert elsewhere == "Elsewhere: python -m loadlab verify a-run.tar.gz"

    lines = printed(capsys, results, "verify", str(path))
    assert "Files that differ: 0." in lines[-3]
    assert lines[-1] == f"State of each file: {results / 'a-run.derived' / 'files.txt'}"

    # A spreadsheet would take the name for a formula.
    shutil.copy(path, results / "-1+1.tar.gz")
    shutil.move(path, results / "=1+1.tar.gz")
    lines = printed(capsys, results, "grade", str(results))
    assert lines[1].startswith("-1+1")
    assert lines[-1] == f"Table: {results / 'grades.csv'}"
    rows = (results / "grades.csv").read_text().splitlines()
    assert [row[:9] for row in rows[1:]] == ["'-1+1,-,-", "'=1+1,-,-"]

    (run / "summary.json").write_bytes((run / "summary.json").read_bytes() + b"\n")
    commands.run(["bundle"], results)
    with pytest.raises(
        BundleError, match=r"a-run\.tar\.gz: Not every file is what the raw files g"
    ):
        commands.run(["verify", str(path)], results)


def test_what_the_system_refuses_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a-run.tar.gz", "grades.csv"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("sys.argv", ["loadlab", "grade", str(tmp_path)])
    assert commands.main() == commands.REFUSED
    assert "Is a directory" in capsys.readouterr().err


def test_a_locale_without_a_sign_of_the_results_gets_them_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Run(tmp_path / "results" / "mine")
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["loadlab", "show", "mine"])
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, "ascii"))
    assert commands.main() == 0
    assert b"CPU in \\xb5s/request" in written.getvalue()


def test_a_bundle_is_signed_and_its_signer_demanded(
    original: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the shell leaves ~ to the command."""
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copytree(original, tmp_path / "a-run")
    key = tmp_path / "key"
    signature._run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
    signed = printed(capsys, tmp_path, "bundle", "a-run", "--sign=~/key")[2]
    assert signed.startswith("Signed by SHA256:")
    signers = tmp_path / "signers"
    signers.write_text(f"alice {Path(f'{key}.pub').read_text()}")
    command = ["verify", "~/a-run.tar.gz", "--signers=~/signers"]
    lines = printed(capsys, tmp_path, *command)
    assert any(line.startswith("Signed by alice, SHA256:") for line in lines)
    signers.write_text("")
    with pytest.raises(BundleError, match=r"No signer of .* signed it"):
        commands.run(command, tmp_path)


def test_a_run_that_measures_is_not_packed(original: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(original, tmp_path / "a-run"))
    lock.take(run, os.getpid(), "")
    with pytest.raises(BundleError, match=f"'a-run' is under way in process {os.getpid()}, and"):
        commands.run(["bundle", "a-run"], tmp_path)
    assert not (tmp_path / "a-run.tar.gz").exists()


@pytest.mark.parametrize(("options", "status"), [([], 0), (["--undecided-fails"], 10)])
def test_runs_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], status: int
) -> None:
    runs.write(tmp_path, "old")
    runs.write(tmp_path, "new", 1.5)
    # An application of one's own has other paths than the names of its endpoints.
    planned = builders.plan(framework="aiohttp", endpoint="index")
    own = replace(planned.endpoints["index"], path="/start")
    builders.write_plan(tmp_path / "new", replace(planned, endpoints={"index": own}))
    assert commands.run(["compare", "old", "new", *options], tmp_path) == status
    path = tmp_path / "new" / "compare-old.json"
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"Comparison: {path}"
    assert any("/start" in line for line in lines[:-1])
    assert path.exists()


def test_a_long_result_is_printed_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("old", "new"):
        runs.write(tmp_path, name)
        path = tmp_path / name / "summary.json"
        summary = documents.read(path, Summary)
        cells = [replace(summary.cells[0], cell_id=f"cell-{number}") for number in range(60)]
        changed = replace(summary, cells=cells, noise_floor=[])
        documents.write(path, documents.encode(changed))
    builders.write_plan(tmp_path / "new", builders.plan(framework="aiohttp", endpoint="index"))
    lines = printed(capsys, tmp_path, "compare", "old", "new")
    assert sum(map(len, lines)) > 10_000
    assert lines[-1] == f"Comparison: {tmp_path / 'new' / 'compare-old.json'}"
