"""What a verification says: the state of every file of a bundle, and lines for the terminal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Literal, TypeAlias, get_args

from loadlab.bundle.archive import BundleError
from loadlab.bundle.signature import Signer
from loadlab.run import documents, run_dir
from loadlab.run.formatting import one_line, plural
from loadlab.run.run_dir import RunDir

SHOWN = 5  # how many documents that differ, and differences of each, are printed
NAMED = 20  # how many lines of files that were not verified are printed for one reason
LISTING = "files.txt"

# - same: a document that was derived again, and is the same
# - differs: a document that the raw files do not give, or that contradicts another one or the plan;
#   a raw file with another SHA-256 than its result names
# - hashed: a raw file with the SHA-256 that its result names
# - not verified: a document of another revision of the lab, which may word and draw it otherwise; a
#   raw file that no result names, or that is not in the bundle
State: TypeAlias = Literal["same", "differs", "hashed", "not verified"]

# Fields of the manifest that no other file of the bundle has.
_COPIED = "hosts, controller, lab, pins and locks"


@dataclass(frozen=True)
class Checked:
    """State of a file, with the differences or the reasons."""

    state: State
    reasons: tuple[str, ...] = ()


@dataclass
class Outcome:
    """The result of a verification."""

    run_dir: Path  #: The run as it was derived again, in the folder ``scratch``.
    revision: str  #: Of the lab that made the run.
    #: Why a document of it may be worded otherwise, None where this lab is the same, without
    #: changes.
    other: str | None
    signer: Signer | None  #: Who signed the bundle, None where nobody did.
    signers: Path | None  #: The list of signers, or None.
    numbers: int = 0  #: How many were compared.
    notes: list[str] = field(default_factory=list)  #: Texts for the user.
    files: dict[str, Checked] = field(default_factory=dict)  #: State of each file, by its path.

    def of(self, state: State) -> dict[str, tuple[str, ...]]:
        """Return the files of a state, with the reasons, by name."""
        return {
            name: checked.reasons
            for name, checked in sorted(self.files.items())
            if checked.state == state
        }

    @property
    def trusted(self) -> bool:
        """Whether somebody of the list of signers signed the bundle, where there is a list."""
        return self.signers is None or (self.signer is not None and self.signer.name is not None)

    @property
    def verified(self) -> bool:
        """Whether every document is the same, every raw file that a result names has its SHA-256,
        and the signer is trusted."""
        return not self.of("differs") and not self.unverified() and self.trusted

    def unverified(self) -> list[str]:
        """Return the documents that could not be verified."""
        return [name for name in self.of("not verified") if run_dir.derived(name)]

    def lines(self) -> list[str]:
        """Return lines for the terminal; their number is limited however much differs."""
        lines = list(self.notes)
        wrong = self.of("differs")
        for name, differences in list(wrong.items())[:SHOWN]:
            lines.append(f"Differs: {one_line(name, 200)}")
            lines += [f"  {difference}" for difference in differences[:SHOWN]]
            if len(differences) > SHOWN:
                lines.append(f"  and {len(differences) - SHOWN:,} more")
        if len(wrong) > SHOWN:
            lines.append(f"Differs too: {plural(len(wrong) - SHOWN, 'more file')}.")
        doubtful = self.of("not verified")
        for reason in dict.fromkeys(first for first, *_ in doubtful.values()):
            files = _alike(
                {name: more for name, (first, *more) in doubtful.items() if first == reason}
            )
            lines += [f"Not verified ({reason}):", *files[:NAMED]]
            if len(files) > NAMED:
                lines.append(f"  and {len(files) - NAMED:,} more")
        return [
            *lines,
            f"Not verified in {run_dir.MANIFEST}: {_COPIED}. No other file of the bundle has them.",
            self._signed(),
            self._counts(),
        ]

    def _signed(self) -> str:
        if self.signer is None:
            return (
                "Not signed: nothing in the bundle shows who made it, or that its raw files and "
                "documents were not replaced together."
            )
        if self.signer.name is not None:
            return f"Signed by {self.signer.name}, {self.signer.fingerprint}."
        which = f"{self.signers}" if self.signers else "a list of signers that you gave"
        return f"Signed by {self.signer.fingerprint}, not in {which}."

    def _counts(self) -> str:
        same, differ, hashed, doubtful = (len(self.of(state)) for state in get_args(State))
        return (
            f"Run {self.run_dir.name}: documents as derived again: {same:,}, with {self.numbers:,} "
            f"numbers. Files that differ: {differ:,}. Raw files, hashed only: {hashed:,}. Not "
            f"verified: {doubtful:,}."
        )

    def refusal(self, folder: Path) -> str:
        """Return why the bundle is not verified, and the remedy; "" where it is.

        ``folder``: that of keep().
        """
        sentences = []
        if self.of("differs"):
            sentences.append("Not every file is what the raw files give.")
        if doubtful := self.unverified():
            sentences.append(f"Not verified: {listing(doubtful)}.")
        if sentences and self.other is not None:
            sentences.append(
                f"Verify again with lab revision {one_line(self.revision, 40)}, or trust only the "
                f"report as derived again, in {folder}."
            )
        if not self.trusted:
            sentences.append(f"No signer of {self.signers} signed it.")
        return " ".join(sentences)


def _alike(files: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each file with a further reason, and one for all others of a name: a run
    has many, in folders with long names, and files.txt names each."""
    alike = Counter(PurePath(name).name for name, more in files.items() if not more)
    return [
        *(f"  {one_line(f'{name}: {more[0]}', 300)}" for name, more in files.items() if more),
        *(f"  {one_line(name, 200)}, {plural(number, 'file')}" for name, number in alike.items()),
    ]


def listing(names: Sequence[str]) -> str:
    """Return the first names of documents, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(one_line(name, 200) for name in names[:SHOWN]) + more


def keep(outcome: Outcome, archive: Path) -> Path:
    """Write the report as it was derived again, and the state of every file, into a folder beside
    the archive; return the folder.

    Raises BundleError where it cannot be written.
    """
    folder = archive.with_name(f"{archive.name.removesuffix('.tar.gz')}.derived")
    states = "".join(
        "\t".join(one_line(word) for word in (checked.state, name, *checked.reasons)) + "\n"
        for name, checked in sorted(outcome.files.items())
    )
    report = RunDir(outcome.run_dir).report
    try:
        folder.mkdir(exist_ok=True)
        documents.write(folder / LISTING, states.encode())
        # A report of an earlier verification must not pass for this one's.
        (folder / report.name).unlink(missing_ok=True)
        if report.exists():
            documents.write(folder / report.name, report.read_bytes())
    except OSError as problem:
        raise BundleError(
            f"was verified, and the report as derived again cannot be written to {folder}: "
            f"{problem.strerror}. Copy the bundle to a folder that you may write to"
        ) from None
    return folder


def kept(folder: Path) -> list[str]:
    """Return lines for the terminal on the folder of keep()."""
    report = folder / run_dir.REPORT
    return [
        f"Report as derived again: {report}" if report.exists() else "No report could be derived.",
        f"State of each file: {folder / LISTING}",
    ]
