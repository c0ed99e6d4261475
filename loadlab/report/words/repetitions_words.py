"""Words for repetitions that are not valid, and for cells without a valid one."""

from collections.abc import Iterable, Sequence

from loadlab.model import ComparedCell, Repetition
from loadlab.run import formatting


def cut_off(step: str | None, unfetched: Sequence[str]) -> str:
    """Return the error of a repetition that an earlier controller left unfinished.

    ``step``: of the load, seen last; None where none was. ``unfetched``: why files of its hosts
    could not be fetched.
    """
    last = f", last seen {step}" if step else ""
    return "; ".join([f"cut off: the controller or a host went away{last}", *unfetched])


def abandoned(cell_id: str, error: str) -> str:
    """Return a cell that failed and has no valid repetition, with its last error."""
    return f"{cell_id} ({formatting.one_line(error)})"


def counted(repetitions: Sequence[Repetition]) -> str:
    """Return "5 valid of 7 (2 void: steal, link; 1 failed)"; empty where all are valid."""
    valid = sum(rep.validity.valid for rep in repetitions)
    if valid == len(repetitions):
        return ""
    lost = [
        measured
        for measured in repetitions
        if measured.error is None and not measured.validity.valid
    ]
    codes = [reason.code for repetition in lost for reason in repetition.validity.reasons]
    return _counted(valid, len(lost), len(repetitions) - valid - len(lost), codes)


def valid(repetitions: Sequence[Repetition]) -> str:
    """Return how many repetitions are valid, and why others are not: 5 valid."""
    return counted(repetitions) or f"{len(repetitions)} valid"


def compared(side: ComparedCell) -> str:
    """Return how many repetitions of one side of a comparison are valid, and why others are not."""
    if not side.n_void:
        return f"{side.n:,} valid"
    return _counted(side.n, side.n_void - side.n_failed, side.n_failed, side.void_reasons)


def void(count: int, codes: Iterable[str]) -> str:
    """Return "3 void: generator late"; ``codes``: of the reasons, each once or more."""
    listed = causes(codes)
    return f"{count} void{': ' if listed else ''}{listed}"


def causes(codes: Iterable[str]) -> str:
    """Return the codes of reasons as words, each once: steal, generator late."""
    return ", ".join(code.replace("_", " ").replace("cpu", "CPU") for code in dict.fromkeys(codes))


def lost(number: int, failed: int, codes: Iterable[str]) -> list[str]:
    """Return how many are void, as void() does, and how many failed, each if there are some."""
    return [*([void(number, codes)] if number else []), *([f"{failed} failed"] if failed else [])]


def _counted(valid: int, number: int, failed: int, codes: Sequence[str]) -> str:
    return f"{valid} valid of {valid + number + failed} ({'; '.join(lost(number, failed, codes))})"
