import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.model import Command, LabRevision
from loadlab.plan.plan_document import Run
from loadlab.results import build_manifest
from loadlab.results.build_manifest import Locked
from loadlab.run import documents
from tests.unit import builders

ROOT = Path(__file__).parents[3]
KNOWN = ["framework", "rate", "run_id"]
HIDDEN = "(not recorded)"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["-e", "framework=aiohttp"], ["-e", "framework=aiohttp"]),
        (["-erate=5"], ["-erate=5"]),
        (["--extra-vars", "rate=5"], ["--extra-vars", "rate=5"]),
        (["--extra-vars=rate=5 run_id=x"], ["--extra-vars=rate=5 run_id=x"]),
        # What follows the value is another word of the command again.
        (["-e", "rate=5", "-i", "inventory/aws"], ["-e", "rate=5", "-i", "inventory/aws"]),
        (["-e", "-e", "-e", "rate=1"], ["-e", HIDDEN, "-e", "rate=1"]),
        (["-vvv", "--check", "--limit", "x=y"], ["-vvv", "--check", "--limit", "x=y"]),
        (["-e", "rate=5 token=s3cret"], ["-e", f"rate=5 token={HIDDEN}"]),
        (["-e", "token="], ["-e", f"token={HIDDEN}"]),
        # Without quotes Ansible would split this value.
        (["-e", "run_id='a; b' rate=5"], ["-e", 'run_id="a; b" rate=5']),
    ],
)
def test_words_are_kept_and_values_of_the_main_variables(given: list[str], kept: list[str]) -> None:
    argv = ["/srv/.venv/bin/ansible-playbook", "/srv/lab.yml", *given]
    words = build_manifest.command_line(argv, KNOWN)
    assert words == ["ansible-playbook", "/srv/lab.yml", *kept]


FORMS = [
    *(["-e", "{}"], ["-e{}"], ["--extra-vars", "{}"], ["--extra-vars={}"]),
    # argparse takes these too.
    *(["--extra", "{}"], ["--ex={}"], ["-be", "{}"], ["-vvve{}"], ["-Kbe", "{}"]),
]
PASSWORDS = [
    "token=s3cret",
    "rate=5 token=s3cret",
    "token='a s3cret'",
    'token="a=b rate=s3cret c"',
    "token='a s3cret",
    r"token=a\ s3cret",
    "rate=5 s3cret",
    "token={{ lookup('env', 's3cret') }}",
    '{"token": "s3cret"}',
    "['s3cret']",
    ' {"token": "s3cret"}',
    "@s3cret.yml",
    "s3cret",
    "my-token=s3cret",
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[0])
@pytest.mark.parametrize("text", PASSWORDS)
def test_no_other_value_is_recorded(form: list[str], text: str) -> None:
    argv = ["ansible-playbook", "lab.yml", *(part.replace("{}", text) for part in form), "-v"]
    words = build_manifest.command_line(argv, KNOWN)
    assert "s3cret" not in " ".join(words)
    assert HIDDEN in " ".join(words)
    assert len(words) == len(argv)
    assert words[-1] == "-v"


VALUES = st.text(min_size=1).map(lambda text: f"S3CRET{text}S3CRET")


@given(VALUES, st.sampled_from(FORMS), st.booleans())
def test_secret_is_hidden_in_every_spelling_of_an_option(
    value: str, form: list[str], quoted: bool
) -> None:
    pair = f"token={shlex.quote(value) if quoted else value}"
    argv = ["ansible-playbook", *(part.replace("{}", pair) for part in form)]
    # As the name of a main variable it may be given on purpose, but not inside another's value.
    assert "S3CRET" not in " ".join(build_manifest.command_line(argv, KNOWN))


LOCK = """\
# This file was made by pip-compile
aiohttp==3.14.5 \\
    --hash=sha256:0133
    # via -r requirements.in
psycopg[binary,pool]==3.3.9 ; python_version >= "3.8" \\
    --hash=sha256:bb
zope.interface==8.0;platform_system=="Linux"
numpy==2.4 ; python_version < '3.12' \\
    --hash=sha256:cc
numpy==2.5 ; python_version >= '3.12' \\
    --hash=sha256:dd
# commented==1.0
    # indented==1.0
"""


def test_pins_of_lock_files() -> None:
    assert build_manifest.pins({"controller": LOCK, "other": "aiohttp==4\r\n", "none": ""}) == {
        "controller/aiohttp": "3.14.5",
        # What is for some machines only says for which.
        "controller/psycopg": '3.3.9 ; python_version >= "3.8"',
        "controller/zope.interface": '8.0 ; platform_system=="Linux"',
        "controller/numpy": "2.4 ; python_version < '3.12' or 2.5 ; python_version >= '3.12'",
        "other/aiohttp": "4",
    }


LOCKS = [ROOT / "requirements.txt", *sorted(ROOT.glob("apps/*/requirements.txt"))]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_every_line_with_a_version_in_the_labs_own_locks_is_a_pin(lock: Path) -> None:
    lines = [line for line in lock.read_text().splitlines() if line[:1].isalnum()]
    assert lines
    versions = " or ".join(build_manifest.pins({"x": lock.read_text()}).values()).split(" or ")
    # What a version is for may have an "or" too.
    assert sorted(v.split(" ;")[0] for v in versions if v[0].isdigit()) == sorted(
        line.split("==")[1].split()[0] for line in lines
    )


def begun(argv: list[str]) -> Run:
    given = {"framework": "aiohttp", "rate": 5, "seed": None, "server": None}
    return Run(
        started="2026-11-20T17:16:47Z", argv=argv, inventory_args="", place="",
        plan=replace(builders.plan(), given_options=given), thresholds=builders.thresholds(),
    )  # fmt: skip


@pytest.mark.parametrize("python", [[], ["/srv/.venv/bin/python3"], ["python3.11"]])
def test_manifest_has_the_command_without_secrets(python: list[str]) -> None:
    argv = [*python, "/srv/.venv/bin/ansible-playbook", "lab.yml", "-e", "rate=5 token=s3cret"]
    revision = LabRevision(version="0.2.0", revision=None, dirty=None)
    pins = Locked({"controller/aiohttp": "3.14.5"}, {"requirements.txt": "0" * 64})
    hosts = builders.manifest().hosts
    found = build_manifest.build(
        begun(argv), None, hosts, {"python": "3.11"}, revision, pins, None, None
    )
    assert found.command == Command(
        argv=["ansible-playbook", "lab.yml", "-e", f"rate=5 token={HIDDEN}"],
        # Only what was given, as it was given.
        extra_vars={"framework": "aiohttp", "rate": 5},
    )
    document = json.loads(documents.encode(found))
    assert (document["schema"], document["plan"]["options"]["framework"]) == ("lab/3", "aiohttp")
    assert "/srv" not in str(found)
