"""Applications, interfaces and contracts as their files have them."""

from pathlib import Path

import pytest

from loadlab.run.catalog import names
from loadlab.run.errors import PlanError
from loadlab.stacks import application, contract, servers

ROOT = Path(__file__).parents[3]


def test_the_labs_own_files_are_read() -> None:
    interfaces, contracts = servers.interfaces(ROOT), contract.contracts(ROOT)
    folders = [f"apps/{name}" for name in names(ROOT / "apps", "*/app.yml")]
    apps = [application.manifest(ROOT, folder) for folder in folders]
    assert {app.interface for app in apps} <= set(interfaces)
    assert {name for app in apps for name in app.endpoints} <= set(contracts)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("language: cobol", "Invalid enum value 'cobol' - at `$.language`"),
        ("language: go", "missing required field"),
        ("- 1", "Expected `object`, got `array`"),
    ],
)
def test_a_wrong_manifest_is_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "apps" / "one").mkdir(parents=True)
    (tmp_path / "apps" / "one" / "app.yml").write_text(text)
    with pytest.raises(PlanError) as refusal:
        application.manifest(tmp_path, "apps/one")
    assert str(refusal.value).startswith("apps/one/app.yml: ")
    assert words in str(refusal.value)
