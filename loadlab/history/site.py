"""Write the index and the reports as a static folder: python -m loadlab.history.site RESULTS TO."""

import re
import shutil
import sys
import urllib.parse
from collections.abc import Container
from functools import partial
from pathlib import Path

from loadlab.history.index import index_page as index
from loadlab.report.render import render
from loadlab.run import documents, formatting, lock, run_dir
from loadlab.run.errors import LabError
from loadlab.run.run_dir import INDEX, REPORT, RunDir

# A link in a page of the lab, whose attributes are escaped; not to a section, nor to another site.
_LINK = re.compile(rb'<a href="(?!#|[a-z]+:)([^"]*)">(.*?)</a>', re.DOTALL)
# Begins each page of the lab.
_MARK = b"<!-- Ansible managed: written by roles/report"


def write(results: Path, to: Path) -> list[Path]:
    """Write index.html, and the report and the bundle of each run, into ``to``; return the pages.

    A link to a file that the folder does not have becomes text. A report or a bundle that is gone
    is removed. Raises ValueError where there is no results/, and where ``to`` is in it or has other
    files.
    """
    _refuse(results, to)
    with lock.alone(results):
        pages = {INDEX: render(index.TEMPLATE, index.build(results))}
        bundles: dict[str, Path] = {}
        for run in run_dir.folders(results):
            if run.report.is_file():
                pages[f"{run.path.name}/{REPORT}"] = run.report.read_bytes()
            if run.bundle.is_file():
                bundles[run.bundle.name] = run.bundle
    published = {*pages, *bundles}
    for name, text in pages.items():
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        documents.write(path, _unlinked(text, Path(name).parent, published))
    for name, archive in bundles.items():
        # It may be larger than the memory.
        with archive.open("rb") as packed:
            documents.fill(to / name, partial(shutil.copyfileobj, packed))
    _remove_old(to, published)
    return [to / name for name in pages]


def _refuse(results: Path, to: Path) -> None:
    if not results.is_dir():
        raise LabError(f"{results} is not there: no run was begun yet. Nothing was written.")
    if to.resolve().is_relative_to(results.resolve()):
        raise LabError(f"to: {to} is in {results}; give another folder. Nothing was written.")
    index_page = to / INDEX
    if to.exists() and any(to.iterdir()) and not (index_page.exists() and _is_ours(index_page)):
        raise LabError(
            f"to: {to} has other files and no {INDEX} of this lab; give an empty or a new folder. "
            "Nothing was written."
        )


def _unlinked(text: bytes, folder: Path, published: Container[str]) -> bytes:
    """Return a page whose links to files that are not published are text."""

    def one(match: re.Match[bytes]) -> bytes:
        path = urllib.parse.unquote(match[1].decode().partition("#")[0])
        return match[0] if (folder / path).as_posix() in published else match[2]

    return _LINK.sub(one, text)


def _remove_old(to: Path, published: Container[str]) -> None:
    """Remove reports and bundles that are gone, and folders of reports with nothing else in them.

    A bundle is the lab's where the folder has the report of its run.
    """
    for path in to.glob(f"*/{REPORT}"):
        if not _is_ours(path):
            continue
        bundle = RunDir(path.parent).bundle
        if bundle.name not in published:
            bundle.unlink(missing_ok=True)
        if path.relative_to(to).as_posix() not in published:
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MARK)) == _MARK


def main() -> None:
    """Write the site that the command line names; end with its error."""
    results, to = map(Path, sys.argv[1:])
    try:
        pages = write(results, to)
    except (ValueError, OSError) as problem:
        sys.exit(str(problem))
    print(f"{formatting.plural(len(pages), 'page')}: {to / INDEX}")


if __name__ == "__main__":
    main()
