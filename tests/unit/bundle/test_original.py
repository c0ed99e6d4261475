"""The run that another one repeats, read from a bundle or from results/."""

import re
import shutil
from pathlib import Path

import pytest

from loadlab.bundle import archive, verify
from loadlab.bundle import original as originals
from loadlab.bundle.outcome import Outcome
from loadlab.history import reproduction
from loadlab.model import Summary
from loadlab.run import documents, revision
from loadlab.run.errors import PlanError
from loadlab.run.run_dir import RunDir
from tests.unit import builders
from tests.unit.bundle.test_verify import CLEAN, ROOT, change
from tests.unit.bundle.test_verify import original as original
from tests.unit.bundle.test_verify import run_dir as run_dir


@pytest.fixture
def bundle(run_dir: Path, tmp_path: Path) -> Path:
    return packed(run_dir, tmp_path / "elsewhere")


def packed(run_dir: Path, folder: Path) -> Path:
    """Pack the run into a folder of its own."""
    folder.mkdir()
    path = folder / "any-name.tar.gz"
    archive.pack(run_dir, path)
    return path


def test_a_bundle_is_verified_and_read(bundle: Path, run_dir: Path) -> None:
    original = originals.read(str(bundle), ROOT)
    assert (original.source.run_id, original.source.signer) == ("a-run", None)
    assert original.source.sha256 == documents.digest_of(bundle)
    assert original.source.unverified == []
    assert original.summary == documents.read(RunDir(run_dir).summary, Summary)
    assert original.recipe.given_options["framework"] == "aiohttp"
    assert original.recipe.locks is not None
    assert list(bundle.parent.iterdir()) == [bundle]


def test_a_run_is_read_by_its_name_and_by_its_path(run_dir: Path, tmp_path: Path) -> None:
    results = tmp_path / "lab" / "results"
    shutil.copytree(run_dir, results / "a-run")
    named = originals.read("a-run", tmp_path / "lab")
    assert named.source.sha256 is None
    assert originals.read(str(run_dir), tmp_path / "lab") == named
    assert originals.read(f"{results}/a-run/", tmp_path / "lab") == named


def test_an_altered_bundle_is_refused_by_the_file(run_dir: Path, tmp_path: Path) -> None:
    change(run_dir / "summary.json", "cells", 0, "statistics", "n", to=99)
    path = packed(run_dir, tmp_path / "altered")
    words = "is refused, as these files are not what its raw"
    with pytest.raises(PlanError, match=words) as refusal:
        originals.read(str(path), ROOT)
    assert "summary.json" in str(refusal.value)
    assert f"python -m loadlab verify {path}" in str(refusal.value)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(PlanError, match=r"damaged.*It is refused"):
        originals.read(str(path), ROOT)


def test_documents_of_another_revision_are_named(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = run_dir / "report.html"
    page.write_text(page.read_text().replace("<title>", "<title>Older ", 1))
    original = originals.read(str(packed(run_dir, tmp_path / "older")), ROOT)
    assert original.source.unverified == ["report.html"]
    # By the very lab that made it, the same words are an alteration.
    monkeypatch.setattr(revision, "of", lambda root: CLEAN)
    with pytest.raises(PlanError, match=r"report\.html"):
        originals.read(str(packed(run_dir, tmp_path / "own")), ROOT)


def test_another_schema_is_refused(run_dir: Path, tmp_path: Path) -> None:
    change(run_dir / "manifest.json", "schema", to="lab/1")
    with pytest.raises(PlanError, match="has documents of schema lab/1, and this lab verifies"):
        originals.read(str(packed(run_dir, tmp_path / "older")), ROOT)
    with pytest.raises(PlanError, match=r"cannot be read: .*schema lab/1"):
        originals.read(str(run_dir), ROOT)


def test_what_is_no_finished_run_is_refused(run_dir: Path, tmp_path: Path) -> None:
    for like in ("nosuch", "../x", str(tmp_path), "nosuch.tar.gz"):
        with pytest.raises(PlanError, match=re.escape(f"like: '{like}' is neither a bundle nor")):
            originals.read(like, tmp_path)
    (run_dir / "summary.json").unlink()
    with pytest.raises(
        PlanError, match=r"has no summary\.json: it was not finished. Finish it with"
    ):
        originals.read(str(run_dir), tmp_path)


def test_the_comparison_with_the_original_is_verified_too(run_dir: Path, tmp_path: Path) -> None:
    before = originals.read(str(run_dir), ROOT)
    again = Path(shutil.copytree(run_dir, tmp_path / "runs" / "again"))
    documents.write(RunDir(again).original, documents.encode(before))
    for name in ("manifest", "summary"):
        change(again / f"{name}.json", "run_id", to="again")
    change(again / "plan.json", "plan", "run_id", to="again")
    original = builders.present(reproduction.write(again))
    assert original.run_id == "again"

    def outcome(name: str) -> Outcome:
        scratch = tmp_path / name
        scratch.mkdir()
        return verify.verify(packed(again, tmp_path / f"{name}-packed"), ROOT, scratch)

    assert outcome("as-it-is").files["reproduction.json"].state == "same"
    change(again / "reproduction.json", "only_here", to=["made-up"])
    assert outcome("altered").files["reproduction.json"].state == "differs"
