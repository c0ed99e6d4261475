"""From a run's directory to its documents, each checked against the schema. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from . import (
    calibration,
    claim_words,
    claims,
    files,
    inference,
    manifest,
    percentiles,
    records,
    report_comparison,
    report_methods,
    report_ranking,
    report_titles,
    result,
    source,
    tracks,
    wording,
)
from . import summary as summaries
from .validate import validate


def write(document: dict[str, Any], name: str, path: Path, root: Path) -> None:
    """Write a document that the schema holds for right. Raises SchemaError before it is written."""
    validate(document, name, root / "files" / "schema" / "lab-1.schema.json")
    files.write(path, files.dump(document))


def thresholds(run_dir: Path, root: Path) -> dict[str, Any]:
    """What the run's verdicts go by: files/verdict.yml of when it began, as plan.json has it.

    One that the file did not have then is as it is now.
    """
    now = yaml.safe_load(files.text(root / "files" / "verdict.yml"))
    return {**now, **files.load(run_dir / "plan.json").get("thresholds", {})}


def results(run_dir: Path, root: Path, keep_requests: bool) -> None:
    """Write result.json of every repetition that has none yet, and reduce its raw files."""
    for description in sorted(run_dir.glob("cells/*/rep-*/cell.json")):
        repetition(description.parent, root, keep_requests)


def repetition(rep_dir: Path, root: Path, keep_requests: bool) -> None:
    """Write result.json of cells/<cell_id>/rep-<n> where there is none; reduce its raw files."""
    if not (rep_dir / "result.json").exists():
        run_dir = rep_dir.parents[2]
        in_force = calibration.in_force(run_dir, rep_dir)
        built = result.build(rep_dir, thresholds(run_dir, root), *in_force)
        write(built, "result", rep_dir / "result.json", root)
    result.reduce(rep_dir, keep_requests)


def cut_off(run_dir: Path, unfetched: Sequence[Mapping[str, str]] = ()) -> list[Path]:
    """Mark as failed what was under way when an earlier controller went away, and return it.

    That is each repetition without result whose load did not come to its end on every client; what
    the hosts had of it has been fetched. And each of a pair of which something could not be
    fetched: ``unfetched`` has the pair and why.
    """
    found = []
    for description in sorted(run_dir.glob("cells/*/rep-*/cell.json")):
        rep_dir = description.parent
        if any((rep_dir / name).exists() for name in ("result.json", "error.txt")):
            continue
        record = files.load(description)
        folders = [folder for folder, _ in result.parts(rep_dir, record)]
        going = [folder for folder in folders if not (folder / "run.json").exists()]
        whys = [one["why"] for one in unfetched if one["pair"] == record.get("pair")]
        if going or whys:
            seen = next((folder / "progress.txt" for folder in going), None)
            last = f", last seen {files.text(seen).strip()}" if seen and seen.exists() else ""
            words = "; ".join([f"cut off: the controller went away{last}", *whys])
            files.write(rep_dir / "error.txt", words.encode(errors="backslashreplace") + b"\n")
            found.append(rep_dir)
    return found


def told(record: Mapping[str, Any]) -> str:
    """What came of a repetition, for the line under the one that began it."""
    if record["error"] is not None:
        return f"failed, and kept as such: {wording.one_line(record['error'])}"
    client, verdict = record.get("client"), record["verdict"]
    if client:
        words = [f"{client['seconds']:.2f} s", f"{record['rate_achieved']:,.1f} requests/s"]
    else:
        words = [f"{record['goodput']:,.1f} requests/s"]
    for name in ("p50", "p99"):
        if record["latency_us"][name] is not None:
            words.append(f"{name} {wording.ms(record['latency_us'][name])} ms")
    failed = sum(record["errors"].values())
    words.append(f"{failed:,} errors" if failed else "no errors")
    words.append("valid" if verdict["valid"] else f"void: {'; '.join(verdict['reasons'])}")
    return ", ".join(words)


def describe(
    run_dir: Path, root: Path, hosts: Mapping[str, Any], controller: Mapping[str, str]
) -> None:
    """Write manifest.json; the run has finished when its last repetition has."""
    measured = _measured(run_dir)
    locks = {"controller": root / "requirements.txt"}
    for framework in {found["cell"]["framework"] for found in measured}:
        locks[framework] = root / "apps" / framework / "requirements.txt"
    if any(found["cell"]["load"]["mode"] == "batch" for found in measured):
        locks["clients"] = root / "files" / "clients" / "requirements.txt"
    if any(found["purpose"] == "profile" for found in measured):
        locks["profiler"] = root / "files" / "profiler" / "requirements.txt"
    document = manifest.build(
        files.load(run_dir / "plan.json"),
        _finished(measured),
        hosts,
        controller,
        source.of(root),
        {name: files.text(path) for name, path in locks.items() if path.exists()},
    )
    write(document, "manifest", run_dir / "manifest.json", root)


def describe_again(run_dir: Path, root: Path, known: Mapping[str, Any]) -> None:
    """Write manifest.json once more; what only its first time could tell is as ``known`` has it."""
    document = manifest.build(
        files.load(run_dir / "plan.json"),
        _finished(_measured(run_dir)),
        known["hosts"],
        known["controller"],
        known["lab"],
        {},
    )
    write({**document, "pins": known["pins"]}, "manifest", run_dir / "manifest.json", root)


def _measured(run_dir: Path) -> list[dict[str, Any]]:
    return [files.load(path) for path in sorted(run_dir.glob("cells/*/rep-*/result.json"))]


def _finished(measured: Sequence[Mapping[str, Any]]) -> str | None:
    ends = [found["finished"] for found in measured]
    return max((_iso(end) for end in ends if end is not None), default=None)


def _iso(unix: float) -> str:
    return datetime.datetime.fromtimestamp(unix, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def missing(run_dir: Path) -> list[str]:
    """A study's cells without a valid repetition, each with why; none where the run is no study."""
    judged = run_dir / "claims.json"
    found = files.load(judged)["unmeasured"] if judged.exists() else []
    return [f"{one['cell']} ({one['why']})" for one in found]


def given_up(run_dir: Path) -> list[str]:
    """The cells that were given up before there was anything valid, each with why."""
    found = []
    for cell_id, kept in records.load(run_dir).items():
        errors = [record["error"] for record in kept if record["error"] is not None]
        if errors and not tracks.valid(cell_id, {cell_id: kept}):
            found.append(f"{cell_id} ({wording.one_line(errors[-1])})")
    return found


def summary(run_dir: Path, root: Path) -> str:
    """Write summary.json, metrics.prom and a study's claims.json; return the terminal's table."""
    document = summaries.summary(run_dir)
    write(document, "summary", run_dir / "summary.json", root)
    files.write(run_dir / "metrics.prom", summaries.open_metrics(document).encode())
    study = files.load(run_dir / "plan.json")["plan"].get("study")
    if not study:
        return table(document)
    judged = claims.document(document, study)
    write(judged, "claims", run_dir / "claims.json", root)
    return "\n".join([table(document), *claim_words.lines(judged)])


def table(document: Mapping[str, Any]) -> str:
    """A line for each repetition: what was asked, what came of it, and whether it counts.

    The Python clients, which are measured themselves, have a table of their own below, and what
    the run compares another.
    """
    ids = [cell["cell_id"] for cell in document["cells"]]
    names = dict(zip(ids, report_titles.stacks(document["cells"]), strict=True))
    batches = [cell for cell in document["cells"] if cell["cell"]["load"]["mode"] == "batch"]
    # A search tells of its probes itself.
    others = [
        cell for cell in document["cells"] if cell not in batches and cell["purpose"] != "probe"
    ]
    lines = []
    if others or not batches:
        lines.append(
            f"{'endpoint':<12}{'load':<18}{'goodput':>9}{'p50':>10}{'p99':>10}{'p99.9':>10}"
            f"{'errors':>8}{'unsent':>8}  verdict"
        )
        if any(_refused(rep) for cell in others for rep in cell["repetitions"]):
            lines.append(f"(-: fewer than {inference.ABOVE} answers lie above that percentile)")
    for name, cell in _named(others, names):
        lines += name
        load = cell["cell"]["load"]
        pace = f"{wording.plain(load['rate'])}/s" if load["mode"] == "constant" else "closed loop"
        lines += _lines(cell, f"{load['generator'] + ' ' + pace:<18}", _numbers)
    if batches:
        lines.append(
            f"{'endpoint':<12}{'client':<16}{'requests':>9}{'at once':>9}{'seconds':>9}{'req/s':>8}"
            f"{'memory':>10}{'CPU':>9}{'failed':>8}  verdict"
        )
    for name, cell in _named(batches, names):
        lines += name
        load = cell["cell"]["load"]
        asked = f"{load['generator']:<16}{load['requests']:>9,}{load['connections']:>9,}"
        lines += _lines(cell, asked, _client_numbers)
    return "\n".join(
        [
            *lines,
            *report_ranking.lines(document),
            *report_comparison.lines(document),
            *report_methods.lines(document),
        ]
    )


def _named(
    cells: Sequence[Mapping[str, Any]], names: Mapping[str, Sequence[str]]
) -> Iterator[tuple[list[str], Mapping[str, Any]]]:
    """Each cell, and the line above it: what tells it from others, where that is another now."""
    before: list[str] = []
    for cell in cells:
        told = [cell["purpose"]] if cell["purpose"] in ("twin", "profile") else []
        name = [*names[cell["cell_id"]], *told]
        yield [f"{', '.join(name)}:"] if name and name != before else [], cell
        before = name


def _lines(
    cell: Mapping[str, Any], asked: str, numbers: Callable[[Mapping[str, Any]], str]
) -> list[str]:
    """A cell's repetitions, each with its findings."""
    lines = []
    for rep in cell["repetitions"]:
        verdict = rep["verdict"]
        words = "valid" if verdict["valid"] else "void: " + "; ".join(verdict["reasons"])
        lines.append(f"{cell['cell']['endpoint']:<12}{asked}{numbers(rep)}  {words}")
        lines += [f"{'':<12}{finding}" for finding in verdict["findings"]]
    return lines


def _client_numbers(rep: Mapping[str, Any]) -> str:
    if rep["error"] is not None:
        return " " * 44
    client = rep["client"]
    return (
        f"{client['seconds']:>9.2f}{rep['rate_achieved']:>8.1f}"
        f"{wording.size(client['max_rss_bytes']):>10}{sum(client['cpu_s'].values()):>8.2f}s"
        f"{rep['requests'] - rep['ok']:>8,}"
    )


def _refused(rep: Mapping[str, Any]) -> list[str]:
    """The percentiles that a repetition has too few answers for."""
    if rep["error"] is not None:
        return []
    return [name for name in ("p50", "p99", "p99_9") if percentiles.refusal(rep["responses"], name)]


def _numbers(rep: Mapping[str, Any]) -> str:
    if rep["error"] is not None:
        return " " * 55
    latency, refused = rep["latency_us"], _refused(rep)

    def ms(name: str) -> str:
        none = latency[name] is None or name in refused
        return wording.NONE if none else f"{latency[name] / 1000:.2f}ms"

    unsent = "-" if rep["unsent"] is None else str(rep["unsent"])
    return (
        f"{rep['goodput']:>9.1f}{ms('p50'):>10}{ms('p99'):>10}{ms('p99_9'):>10}"
        f"{sum(rep['errors'].values()):>8}{unsent:>8}"
    )
