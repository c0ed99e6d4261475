from pathlib import Path

import pytest

from loadlab.run.errors import PlanError
from loadlab.tuning import profiles

ROOT = Path(__file__).parents[3]
STOCK = (ROOT / "files" / "tuning" / "stock.yml").read_text()
ENTRY = "description: x\nmachine: [{key: swap, hosts: [servers], reason: why, value: "


def test_profile_without_backlog_has_that_of_stock() -> None:
    stock = profiles.tuning_profile(ROOT, "stock")
    assert profiles.tuning_profile(ROOT, "few-ports").backlog == stock.backlog
    assert profiles.tuning_profile(ROOT, "mcdonnell").backlog.value == 8191


def entries(profile: profiles.TuningProfile) -> int:
    of_nginx = profile.reverse_proxies.get("nginx", [])
    return sum([len(profile.sysctl), len(profile.machine), len(of_nginx), len(profile.postgresql)])


@pytest.mark.parametrize("name", ["production", "gasc-2015"])
def test_profile_without_a_key_lacks_that_key_alone(name: str) -> None:
    whole = profiles.tuning_profile(ROOT, name)
    keys = profiles.tuning_keys(ROOT, name)
    assert len(set(keys)) == len(keys)
    for key in keys:
        less = profiles.tuning_profile(ROOT, f"{name}-without-{key}")
        assert entries(whole) - entries(less) == (key != "backlog"), key
        assert (less.backlog == whole.backlog) == (key != "backlog")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            ENTRY + "off}]",
            r"Expected `int \| str \| object`, got `bool` - at `\$.machine\[0\].value`",
        ),
        (ENTRY + "{of: disk}}]", r"Invalid enum value 'disk' - at `\$.machine\[0\].value.of`"),
        (
            ENTRY + "{times: 2}}]",
            r"Object missing required field `of` - at `\$.machine\[0\].value`",
        ),
        (ENTRY + "{of: cores, per: 2}}]", r"unknown field `per` - at `\$.machine\[0\].value`"),
        (ENTRY + "1, need: true}]", r"unknown field `need` - at `\$.machine\[0\]`"),
        ("sysctl: []", "Object missing required field `description`"),
        ("description: x\nbacklog: {value: 0, reason: y}", r"Expected `int` >= 1 - at `\$.backlog"),
        ("description: x\nreverse_proxies: {other: []}", "reverse_proxies: 'other' is not known"),
        ("description: [", "while parsing a flow node"),
        ("", "Expected `object`, got `null`"),
    ],
)
def test_bad_profile_names_file_path_and_reason(tmp_path: Path, text: str, reason: str) -> None:
    folder = tmp_path / "files" / "tuning"
    folder.mkdir(parents=True)
    (folder / "stock.yml").write_text(STOCK)
    (folder / "bad.yml").write_text(text)
    with pytest.raises(PlanError, match=rf"files/tuning/bad\.yml: .*{reason}"):
        profiles.tuning_profile(tmp_path, "bad")
