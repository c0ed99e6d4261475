import json
import shutil
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from msgspec.structs import replace

from loadlab import __main__ as commands
from loadlab.bundle import archive, crate
from loadlab.bundle.archive import SUMS
from loadlab.kinds import page
from loadlab.model import Manifest
from loadlab.report.render import render
from loadlab.run import documents
from loadlab.run.run_dir import CRATE, RunDir
from tests.unit import builders
from tests.unit.bundle import test_verify as recorded

original = recorded.original


@pytest.fixture
def results(original: Path, tmp_path: Path) -> Path:
    """Runs, of which one has a manifest with hosts and a name that a URI escapes."""
    run = RunDir(Path(shutil.copytree(original, tmp_path / "results" / "a-run")))
    manifest = documents.read(run.manifest, Manifest)
    manifest = replace(manifest, hosts=builders.manifest().hosts)
    documents.write(run.manifest, documents.encode(manifest))
    (run.path / "logs" / "50% of it.log").write_text("x\n")
    documents.write(run.report, render(recorded.TEMPLATE, page.build(run.path)))
    return run.path.parent


def content(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {
            name.partition("/")[2]: builders.present(tar.extractfile(name)).read()
            for name in tar.getnames()
        }


def by_id(text: bytes) -> dict[str, dict[str, Any]]:
    graph = json.loads(text)["@graph"]
    entities = {entity["@id"]: entity for entity in graph}
    assert len(entities) == len(graph)
    return entities


def references(value: Any) -> list[str]:
    """Every @id that a property names."""
    if isinstance(value, list):
        return [name for item in value for name in references(item)]
    if isinstance(value, dict):
        return [value["@id"]] if value.keys() == {"@id"} else references([*value.values()])
    return []


def test_a_bundle_has_a_crate_that_lists_its_files_and_verifies(results: Path) -> None:
    run = RunDir(results / "a-run")
    assert commands.run(["bundle", "a-run"], results) == 0
    assert not run.crate.exists()
    packed = content(run.bundle)
    entities = by_id(packed[CRATE])

    files = {unquote(name): one for name, one in entities.items() if one["@type"] == "File"}
    assert files.keys() == packed.keys() - {CRATE, SUMS}
    assert all(int(own["contentSize"]) == len(packed[name]) for name, own in files.items())
    assert files["cells.csv"]["encodingFormat"] == "text/csv"
    assert "logs/50%25%20of%20it.log" in entities
    graph = [*entities.values()]
    named = {name for name in references(graph) if not name.startswith("https:")}
    # Everything hangs on the root, and nothing is named that is not there.
    assert named | {CRATE} == entities.keys()

    manifest = documents.read(run.manifest, Manifest)
    root, action = entities["./"], entities["#run"]
    assert entities[CRATE]["about"] == {"@id": "./"}
    assert root["datePublished"] == manifest.finished == action["endTime"]
    assert {"name", "description", "license"} <= root.keys()
    license_name = (builders.ROOT / "LICENSE").read_text().split()[0]
    assert entities["#lab"]["license"] == {"@id": f"https://spdx.org/licenses/{license_name}"}
    assert f'license = "{license_name}"' in (builders.ROOT / "metronome/Cargo.toml").read_text()
    assert entities["#lab"]["version"] == manifest.lab.version
    assert entities["#lab"]["identifier"] == manifest.lab.revision
    assert action["object"] == {"@id": "plan.json"}
    assert {"#lab", "#host-server"} <= set(references(action["instrument"]))
    assert {"cells/", "report.html"} <= set(references(action["result"]))

    again = run.bundle.read_bytes()
    commands.run(["bundle", "a-run"], results)
    assert run.bundle.read_bytes() == again
    assert commands.run(["verify", str(run.bundle)], results) == 0


def test_a_crate_is_verified(results: Path) -> None:
    run = RunDir(results / "a-run")
    documents.write(run.crate, crate.encode(run.path))
    assert CRATE in recorded.verify(run.path).of("same")
    text = run.crate.read_text()
    run.crate.write_text(text.replace('"text/csv"', '"text/html"'))
    assert CRATE in recorded.verify(run.path).of("differs")


def test_a_run_that_cannot_be_packed_keeps_no_crate(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "FILE_BYTES_MAX", 3)
    with pytest.raises(archive.BundleError, match=r"limit 3\. Nothing was written\.$"):
        commands.run(["bundle", "a-run"], results)
    assert not list(results.rglob(CRATE))
