"""ro-crate-metadata.json: what a bundle has, as RO-Crate 1.1 describes research data.

It is in bundles alone, and depends only on the names, sizes and manifest of the files beside it.
"""

from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import TypeAlias
from urllib.parse import quote

from loadlab.bundle.archive import names
from loadlab.model import Manifest
from loadlab.model.base import Json
from loadlab.run import documents
from loadlab.run.run_dir import CRATE, METRICS, PLAN, RunDir

_VERSION = "https://w3id.org/ro/crate/1.1"
# Of the lab's own source, as LICENSE and metronome/Cargo.toml have it.
_LAB_LICENSE = "https://spdx.org/licenses/MIT"
# Media types by suffix; a table of the machine's own would differ between machines.
_FORMATS = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".gz": "application/gzip",
    ".html": "text/html",
    ".md": "text/markdown",
    ".csv": "text/csv",
    **dict.fromkeys(
        (PurePath(METRICS).suffix, ".txt", ".log", ".err", ".hgrm", ".conf", ".service"),
        "text/plain",
    ),
}
_UNKNOWN = "application/octet-stream"

Entity: TypeAlias = dict[str, Json]


def encode(run_dir: Path) -> bytes:
    """Return the document of a run's files, without itself, as bytes.

    Raises BundleError as names() does, and ResultError for an unusable manifest.
    """
    manifest = documents.read(RunDir(run_dir).manifest, Manifest)
    files = [name for name in names(run_dir) if name != CRATE]
    folders: dict[str, list[str]] = {}
    for name in files:
        top, slash, _ = name.partition("/")
        if slash:
            folders.setdefault(f"{top}/", []).append(name)
    parts = [*(name for name in files if "/" not in name), *folders]
    instruments = [_lab(manifest), *_hosts(manifest)]
    document = {
        "@context": f"{_VERSION}/context",
        "@graph": [
            {
                "@id": CRATE,
                "@type": "CreativeWork",
                "conformsTo": {"@id": _VERSION},
                "about": {"@id": "./"},
            },
            {
                "@id": "./",
                "@type": "Dataset",
                "name": f"Load test {manifest.run_id}",
                "description": "Plan, recordings, results and report of a load test of web "
                "servers. SHA256SUMS has the checksum of every file. `python -m loadlab verify` "
                "derives the results again from the recordings.",
                "datePublished": manifest.finished or manifest.started,
                "license": {"@id": "#license"},
                "hasPart": _links(map(quote, parts)),
                "mentions": {"@id": "#run"},
            },
            {
                "@id": "#license",
                "@type": "CreativeWork",
                "name": "No license granted for the files of the run",
                "description": "Who made the run has granted no license to its files. Ask before "
                "you publish them.",
            },
            {
                "@id": "#run",
                "@type": "CreateAction",
                "name": f"Run {manifest.run_id}",
                "description": " ".join(manifest.command.argv),
                "startTime": manifest.started,
                **({"endTime": manifest.finished} if manifest.finished else {}),
                "instrument": _links(entity["@id"] for entity in instruments),
                "object": {"@id": PLAN},
                "result": _links(quote(name) for name in parts if name != PLAN),
            },
            *instruments,
            *({"@id": quote(top), "@type": "Dataset", "name": top,
               "hasPart": _links(map(quote, below))}
              for top, below in folders.items()),
            *(_file(run_dir, name) for name in files),
        ],
    }  # fmt: skip
    return documents.dump(document)


def _links(identifiers: Iterable[Json]) -> Json:
    """Return references to entities; a single reference stands without a list."""
    links: list[Json] = [{"@id": identifier} for identifier in identifiers]
    return links[0] if len(links) == 1 else links


def _file(run_dir: Path, name: str) -> Entity:
    return {
        "@id": quote(name),
        "@type": "File",
        "name": name,
        "contentSize": str((run_dir / name).stat().st_size),
        "encodingFormat": _FORMATS.get(PurePath(name).suffix, _UNKNOWN),
    }


def _lab(manifest: Manifest) -> Entity:
    """Return the lab's own source; a commit with changes has a + behind it."""
    lab = manifest.lab
    commit = f"{lab.revision}{'+' if lab.dirty else ''}" if lab.revision else None
    own = {"version": lab.version, "identifier": commit}
    return {
        "@id": "#lab",
        "@type": "SoftwareApplication",
        "name": "loadlab",
        "license": {"@id": _LAB_LICENSE},
        **{key: text for key, text in own.items() if text},
    }


def _hosts(manifest: Manifest) -> list[Entity]:
    return [
        {
            "@id": f"#host-{quote(name)}",
            "@type": "IndividualProduct",
            "name": name,
            "description": f"{host.role}: {host.cores} cores of {host.cpu_model}, {host.os}, "
            f"kernel {host.kernel}",
        }
        for name, host in manifest.hosts.items()
    ]
