"""Read, compare and pack runs. These commands touch no host.

They end with status 0, or with 2 if the command is refused or a bundle is not verified. compare
also ends with 3 or 10, as docs/gate.md describes.
"""

import argparse
import csv
import io
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from loadlab.bundle import archive, crate, grade, signature, unpack, verify
from loadlab.bundle.archive import BundleError
from loadlab.bundle.outcome import keep, kept
from loadlab.history import run_comparison
from loadlab.kinds import run_end
from loadlab.kinds.gate import analyse as verdict
from loadlab.kinds.lesson import words
from loadlab.plan import plan_document
from loadlab.report.sections import comparison_section
from loadlab.report.terminal.wrapping import wrapped
from loadlab.report.words import labels
from loadlab.run import documents
from loadlab.run.catalog import runs, with_home
from loadlab.run.errors import PlanError, ResultError
from loadlab.run.formatting import printable
from loadlab.run.run_dir import LATEST, RUN_ID, RunDir

ROOT = Path(__file__).parents[1]
# A command: its options and the folder of all runs -> its exit status.
Command = Callable[[argparse.Namespace, Path], int]
# As of a playbook that failed; argparse ends with it too.
REFUSED = 2
# The begin of a cell that a spreadsheet takes for a formula; - alone is none.
_FORMULA = re.compile(r"[=+@\t\r]|-.")


def _print(*lines: str, to: TextIO | None = None) -> None:
    """Print lines, which may contain a server's text; a terminal gets them broken between words,
    and tables among them stay together.

    ``to``: the standard output if left out.
    """
    # Each by itself: a long result has its end, which matters most.
    text, stream = "\n".join(map(printable, lines)), to or sys.stdout
    columns = shutil.get_terminal_size().columns
    print(wrapped(text, columns) if stream.isatty() else text, file=stream, flush=True)


def show(options: argparse.Namespace, results: Path) -> int:
    """Print the end of a run again, or its progress, also while another process measures it."""
    named = options.run_id == LATEST or RUN_ID.fullmatch(options.run_id)
    run_dir = (results / options.run_id).resolve()
    if not named or not RunDir(run_dir).plan.exists():
        raise PlanError(
            f"run_id: '{options.run_id}' is not in results/. {runs(results)} Give another, or "
            "begin one with ansible-playbook lab.yml -e framework=<name>. Nothing was changed."
        )
    try:
        _print(*run_end.shown(run_dir, time.time()))
    except ResultError as problem:
        raise ResultError(f"{problem} in {run_dir}. Nothing was changed.") from problem
    return 0


def compare(options: argparse.Namespace, results: Path) -> int:
    """Compare the cells that runs share; write compare-<base>.json into the last head's folder."""
    compared = run_comparison.compare(results, options.base, options.head)
    path = RunDir(results / compared.head[-1]).comparison(*compared.base)
    paths = labels.paths(plan_document.read(results / compared.head[-1]).plan.endpoints)
    documents.write(path, documents.encode(compared))
    _print(*comparison_section.lines(compared.comparisons, paths), f"Comparison: {path}")
    answer = run_comparison.answer(compared)
    return verdict.exit_status(answer, undecided_fails=options.undecided_fails)


def bundle(options: argparse.Namespace, results: Path) -> int:
    """Pack a run as <run_id>.tar.gz beside the runs; the same files give the same bytes."""
    archive.refuse(results, options.run_id)
    sign = None
    if options.sign:
        signature.refuse_key(options.sign)
        announce = _print if sys.stdin.isatty() else None
        sign = partial(signature.sign, key=options.sign, announce=announce)
    run_dir = (results / options.run_id).resolve()
    path, description = RunDir(run_dir).bundle, RunDir(run_dir).crate
    try:
        documents.write(description, crate.encode(run_dir))
        packed = archive.pack(run_dir, path, sign)
    except BundleError as refusal:
        raise BundleError(f"run_id: '{options.run_id}' {refusal}. Nothing was written.") from None
    finally:
        description.unlink(missing_ok=True)
    signer = packed["signer"]
    _print(
        f"Bundle: {path}",
        f"{packed['files']} files, {packed['bytes']} bytes, SHA-256 {packed['sha256']}",
        f"Signed by {signer}" if signer else "Not signed; --sign <private SSH key> signs it",
        f"Elsewhere: python -m loadlab verify {path.name}",
    )
    return 0


def verify_bundle(options: argparse.Namespace, results: Path) -> int:
    """Derive every document of a bundle again from its raw files, and compare.

    Writes the report as derived again, and the state of each file, into <run_id>.derived beside the
    bundle. Refuses an archive that differs from what bundle writes.
    """
    unpack.refuse_absent(options.bundle)
    path = _file(options.bundle)
    if options.signers:
        signature.refuse_signers(options.signers)
    with tempfile.TemporaryDirectory(prefix="loadlab-verify-") as scratch:
        try:
            outcome = verify.verify(path, ROOT, Path(scratch), options.signers)
        except ValueError as problem:
            raise BundleError(
                f"bundle: '{path}' {problem}. It is refused; nothing of it was kept."
            ) from None
        folder = keep(outcome, path)
    _print(*outcome.lines(), *kept(folder))
    if not outcome.verified:
        raise BundleError(f"{path}: {outcome.refusal(folder)}")
    return 0


def grade_bundles(options: argparse.Namespace, results: Path) -> int:
    """Verify the bundles of a lesson in a folder; print a table of the class, and keep it there."""
    grades = list(grade.grades(options.bundles, ROOT))
    rows = [words.grade(row) for row in grades]
    text = io.StringIO()
    csv.writer(text).writerows([words.GRADES, *map(_without_formulas, rows)])
    path = Path(options.bundles) / "grades.csv"
    documents.write(path, text.getvalue().encode())
    _print(*words.table(rows), *words.graded(grades), f"Table: {path}")
    return 0


def _without_formulas(row: Sequence[str]) -> Iterator[str]:
    """Yield a row's words so that a spreadsheet takes none of a bundle's for a formula."""
    for word in row:
        yield f"'{word}" if _FORMULA.match(word) else word


def _file(text: str) -> Path:
    """Return a path; a shell leaves ~ in --sign=~/.ssh/id_ed25519."""
    return Path(with_home(text))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    whole = argparse.ArgumentParser(prog="python -m loadlab", description=__doc__)
    commands = whole.add_subparsers(required=True, metavar="command")

    def add(
        name: str, run: Command, about: str, *parents: argparse.ArgumentParser
    ) -> argparse.ArgumentParser:
        short = about.split(". ")[0].rstrip(".")
        command = commands.add_parser(name, help=short, description=about, parents=parents)
        command.set_defaults(run=run)
        return command

    of_run = argparse.ArgumentParser(add_help=False)
    latest = "run in results/; the latest if left out"
    of_run.add_argument("run_id", nargs="?", default=LATEST, help=latest)
    add("show", show, "Print the results of a run, or its progress while it measures.", of_run)
    command = add(
        "compare",
        compare,
        "Compare the cells that two runs share. Writes the comparison as JSON into the folder of "
        "the second run. Only three or more runs a side tell a difference from the noise between "
        "runs.",
    )
    runs_of = "run_ids of the {}, separated by commas"
    command.add_argument("base", nargs="?", default="", help=runs_of.format("runs to compare with"))
    command.add_argument("head", nargs="?", default="", help=runs_of.format("runs to judge"))
    command.add_argument(
        "--undecided-fails",
        action="store_true",
        help=f"end with status {verdict.UNDECIDED}, not 0, if no answer is clear for a metric",
    )
    command = add("bundle", bundle, "Pack a run into one archive, results/<run_id>.tar.gz.", of_run)
    command.add_argument(
        "--sign",
        type=_file,
        metavar="KEY",
        help="private SSH key that signs the bundle; without it the bundle shows no author",
    )
    command = add(
        "verify",
        verify_bundle,
        "Derive all numbers of a bundle again from its raw files, and compare them. Writes the "
        "derived report into <run_id>.derived beside the bundle.",
    )
    command.add_argument("bundle", nargs="?", default="", help="path of the archive (.tar.gz)")
    command.add_argument(
        "--signers",
        type=_file,
        metavar="FILE",
        help="list of trusted signers, in ssh-keygen's format; the bundle must have a signature of "
        "one. Without it, anybody's signature is shown and none is needed",
    )
    command = add(
        "grade",
        grade_bundles,
        "Verify the bundles of a class and print a table of their lessons. Writes the table to "
        "grades.csv in the folder.",
    )
    command.add_argument("bundles", nargs="?", default="", help="folder with the bundles (.tar.gz)")
    return whole


def run(arguments: Sequence[str], results: Path) -> int:
    """Carry out a command; return its exit status. Raises ValueError where it is refused.

    ``results``: the folder of all runs.
    """
    options = parser().parse_args(arguments)
    status: int = options.run(options, results)
    return status


def main() -> int:
    """Carry out the command line's command; return its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale without UTF-8 has no sign such as ≥.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return run(sys.argv[1:], ROOT / "results")
    except BrokenPipeError:
        # The reader is gone, such as head. Nothing is left to be flushed at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as refusal:
        sys.stdout.flush()
        _print(str(refusal), to=sys.stderr)
        return REFUSED


if __name__ == "__main__":
    sys.exit(main())
