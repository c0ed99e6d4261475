"""Prove that a load generator works: one second of load against a server on the client itself.

A program that prints its usage and its version may fail each real call.
"""

import json
from collections.abc import Mapping

from msgspec import Struct

from loadlab.generators import registry
from loadlab.generators.generator import Request
from loadlab.generators.load import load_run
from loadlab.model import GeneratorProgram
from loadlab.model.base import Count
from loadlab.run import documents
from loadlab.run.errors import LabError

# The smallest load that every generator can offer.
SECONDS = 1
RATE = 10
CONNECTIONS = 2
TIMEOUT_S = 2
# The script replaces the address.
URL = "http://{address}/"
_SCRIPT = "/usr/local/lib/loadlab/prove-generator.py"


class InstalledProgram(Struct, frozen=True):
    """A generator's executable on a client, and whether it has proven itself there."""

    path: str
    proven: bool
    program: GeneratorProgram


class Proof(Struct, frozen=True):
    """The shell command, for root, by which a generator proves itself; it prints an Outcome."""

    name: str
    sha256: str
    command: str


class Outcome(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What became of a proof: exit code, requests answered, and what the generator said."""

    exit_code: int
    answered: Count
    said: str


def parse(text: str) -> dict[str, InstalledProgram]:
    """Return what roles/load_tools/files/identify-generators.sh printed, by generator.

    Raises ValueError for a malformed line.
    """
    programs = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 6:
            raise LabError(f"not a line on a generator: {line!r}")
        name, path, sha256, revision, proven, version = fields
        program = GeneratorProgram(version=version, sha256=sha256, snap_revision=revision or None)
        programs[name] = InstalledProgram(path, proven == "yes", program)
    return programs


def missing_proofs(programs: Mapping[str, InstalledProgram]) -> list[Proof]:
    """Return the proofs of the generators that have not proven themselves."""
    return [
        Proof(
            name, program.program.sha256, _command(name, program.program.snap_revision is not None)
        )
        for name, program in programs.items()
        if not program.proven
    ]


def _command(name: str, snap: bool) -> str:
    generator = registry.get(name)
    request = Request(
        URL,
        CONNECTIONS,
        threads=1,
        timeout_s=TIMEOUT_S,
        body_bytes=2,
        rate=RATE if generator.mode == "constant" else None,
    )
    return (
        "systemd-run --quiet --collect --wait --pipe --unit=loadlab-prove "
        f"--setenv=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin "
        f"{load_run.rights(snap)} /usr/bin/python3 {_SCRIPT} "
        f"{load_run.command(generator, request, SECONDS, 'proof')}"
    )


def outcome(text: str) -> Outcome:
    """Return what the script printed. Raises ResultError or ValueError where it is no outcome."""
    return documents.decode(json.loads(text), Outcome, "the proof of a generator")
