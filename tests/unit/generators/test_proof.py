"""A generator identifies itself and proves itself, with the scripts of the role load_tools."""

import hashlib
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from loadlab.generators import registry
from loadlab.generators.load import proof
from loadlab.generators.load.proof import InstalledProgram, Outcome
from loadlab.model import GeneratorProgram
from loadlab.report.words import generators_words
from tests.unit import stand_ins

FILES = Path(__file__).parents[3] / "roles/load_tools/files"
ASKS = """
import sys, urllib.request
for _ in range(3):
    print(urllib.request.urlopen(sys.argv[1]).read().decode())
"""


def outcome(*command: str) -> Outcome:
    """Run the script that proves a generator, with this command in its place."""
    words = [sys.executable, str(FILES / "prove-generator.py"), *command]
    done = subprocess.run(words, capture_output=True, check=True, timeout=60, text=True)
    return proof.outcome(done.stdout)


def test_a_program_that_is_answered_is_proven() -> None:
    found = outcome(sys.executable, "-c", ASKS, proof.URL)
    assert found == Outcome(exit_code=0, answered=3, said="ok\nok\nok")
    assert generators_words.proof_refusal("client", "wrk2", found) == ""


def test_a_program_that_only_prints_its_usage_is_refused() -> None:
    """As wrk2 does on aarch64."""
    found = outcome("sh", "-c", "printf 'Usage: wrk <options> <url>\\033[31m\\n'; exit 1")
    assert found == Outcome(exit_code=1, answered=0, said="Usage: wrk <options> <url>[31m")
    assert generators_words.proof_refusal("client", "wrk2", found) == (
        "client: wrk2 does not work there. In one second of load against a server on the host "
        "itself it got no answers, ended with 1 and said 'Usage: wrk <options> "
        "<url>[31m'. Name another with -e wrk2_binary=/path/to/wrk2, or measure with "
        "-e generator=metronome -e cross_check=false. No load was offered."
    )
    assert "it got no answers, ended with 0 and" in generators_words.proof_refusal(
        "client", "metronome", outcome("true")
    )
    failed = outcome("sh", "-c", f"{shlex.quote(sys.executable)} -c '{ASKS}' $0; exit 3", proof.URL)
    assert (failed.exit_code, failed.answered) == (3, 3)
    assert "Measure with -e generator=metronome" in generators_words.proof_refusal(
        "client", "wrk", failed
    )


def test_each_generator_proves_itself_with_its_own_command_and_rights() -> None:
    program = GeneratorProgram(version="wrk 4", sha256="a" * 64)
    snap = GeneratorProgram(version="wrk 4", sha256="b" * 64, snap_revision="12")
    found = {"oha": InstalledProgram("/usr/local/bin/oha", True, program)}
    found["wrk2"] = InstalledProgram("/snap/bin/wrk2", False, snap)
    (due,) = proof.missing_proofs(found)
    assert (due.name, due.sha256) == ("wrk2", "b" * 64)
    assert "User=loadlab" not in due.command
    assert due.command.endswith(
        " timeout 33 wrk2 -t 1 -c 2 -d 1s -R 10 --latency --u_latency --timeout 2s "
        f"{shlex.quote(proof.URL)}"
    )
    executables = [name for name, entry in registry.GENERATORS.items() if entry.program]
    for one in proof.missing_proofs(
        {name: InstalledProgram("", False, program) for name in executables}
    ):
        assert "--property=User=loadlab" in shlex.split(one.command)
        assert f" {one.name} " in one.command


def identified(folder: Path, **programs: str) -> dict[str, InstalledProgram]:
    """Run the script that identifies generators where these programs are in the PATH."""
    # Runs as another user, which only root may choose.
    stand_ins.put(folder, {**programs, "runuser": 'shift 3; exec "$@"'})
    script = (FILES / "identify-generators.sh").read_text()
    generators = "first=one=  second=two=snap third=nowhere="
    return proof.parse(stand_ins.printed(script, folder, GENERATORS=generators))


def test_generators_are_identified_by_version_and_checksum(tmp_path: Path) -> None:
    says = "printf 'one 1.0\\tof\\001 today\\nmore\\n' >&2; exit 1"
    found = identified(tmp_path, one=says, two="true")
    assert set(found) == {"first", "second"}
    sha256 = hashlib.sha256((tmp_path / "one").read_bytes()).hexdigest()
    program = GeneratorProgram(version="one 1.0of today", sha256=sha256)
    assert found["first"] == InstalledProgram(str(tmp_path / "one"), False, program)
    assert found["second"].program.version == ""


def test_a_line_that_identifies_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="not a line on a generator: 'sudo: a password"):
        proof.parse("sudo: a password is required\n")
    with pytest.raises(ValueError, match="answered"):
        proof.outcome(json.dumps({"exit_code": 0, "answered": -1, "said": ""}))
