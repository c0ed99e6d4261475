"""Choose and caption a cell's figures, from the run's result.json files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadlab.core import documents, formatting
from loadlab.report.html import link
from loadlab.stats import histograms, inference

ORIGIN = {
    "intended": "counted from when each request was due",
    "sent": "counted from when each request was sent",
}

# By whether the load is a batch, which has no schedule.
_WHOSE = {False: "each second's requests", True: "the ok answers that came in each second"}
_RATES = {
    False: "Asked: due in that second. Answered: those of them answered, whenever the answer came.",
    True: "Begun: sent in that second. Answered: the answers that came in it.",
}


@dataclass(frozen=True)
class Entry:
    """A cell of summary.json with its titles in the report.

    - path: of the endpoint
    - where: path, plus backlog, tuning, network and hosts where they differ between cells
    - stack: path, plus all parts in which stacks differ
    - title: stack, plus the parts in which loads differ
    - anchor: id of its section in the page
    """

    cell: Mapping[str, Any]
    path: str
    where: str
    stack: str
    title: str
    anchor: str


@dataclass(frozen=True)
class Floor:
    """The baseline latency: its curve, its load, and the path of its result.json within the run."""

    curve: Any
    load: Mapping[str, Any]
    path: str


def floor(run_dir: Path, calibration: Mapping[str, Any] | None) -> Floor | None:
    """Return the repetition that calibration.json's floor_us came from; None where there
    is none."""
    if calibration is None or not calibration["floor_us"]:
        return None
    for path in sorted(run_dir.glob("calibration/floor/rep-*/result.json")):
        result = documents.load(path)
        if result["latency_us"] == calibration["floor_us"]:
            place = path.relative_to(run_dir).as_posix()
            return Floor(_curve(result), result["cell"]["load"], place)
    return None


def _short(path: str) -> dict[str, str]:
    """Return a link whose text is the end of its path: rep-1/result.json."""
    return link(path, "/".join(path.split("/")[-2:] if path.startswith("cells/") else [path]))


def _curve(result: Mapping[str, Any]) -> Any:
    from loadlab.report.plots import curves

    histogram = histograms.decode(result["histogram"]["data"])
    return curves.Curve(histograms.percentile_curve(histogram), histogram.total_count)


def of_cell(run_dir: Path, entry: Entry, ground: Floor | None) -> dict[str, Any]:
    """Return {percentiles, series} of a cell.

    percentiles is {title, svg, caption, sources}, or None without a valid repetition. series is
    [{title, open, figures}], one for each valid repetition; figures are of the same form as
    percentiles.
    """
    results = []
    for rep in entry.cell["repetitions"]:
        # Void repetitions are never plotted.
        if rep["verdict"]["valid"]:
            path = f"cells/{entry.cell['cell_id']}/rep-{rep['repetition']}/result.json"
            if (run_dir / path).exists():
                results.append((path, documents.load(run_dir / path)))
    if not results:
        return {"percentiles": None, "series": []}
    return {
        "percentiles": _percentiles(entry, results, ground),
        "series": [
            {
                "title": f"Repetition {result['repetition']}",
                "open": index == 0,
                "figures": _series(entry, path, result),
            }
            for index, (path, result) in enumerate(results)
        ],
    }


def _percentiles(
    entry: Entry, results: list[tuple[str, dict[str, Any]]], ground: Floor | None
) -> dict[str, Any]:
    from loadlab.report.plots import curves

    found = entry.cell["statistics"]
    several = [_curve(result) for _, result in results] if len(results) > 1 else []
    # A Python client's latencies are those of its ok answers only.
    counted = "ok" if entry.cell["cell"]["load"]["mode"] == "batch" else "responses"
    answers = sum(curve.count for curve in several) or found[counted]
    merged = curves.Curve(found["percentile_curve"], answers)
    base = ground if found["latency_from"] == "intended" else None
    p50, p99, largest = (formatting.ms(found["latency_us"][name]) for name in ("p50", "p99", "max"))
    limit = curves.highest(answers)
    words = [f"{ORIGIN[found['latency_from']].capitalize()}."]
    if limit is None:
        words.append(f"{formatting.plural(answers, 'answer')}: too few for any percentile.")
    else:
        words.append(
            f"Drawn to {formatting.significant(limit, 4)} %: beyond it lie the slowest "
            f"{inference.ABOVE} of {answers:,} answers, too few to draw; the largest took "
            f"{largest} ms."
        )
    if base:
        words.append(
            f"Grey: {base.load['generator']} at {formatting.asked(base.load)}/s against nginx's "
            "own static answer; nothing below it is the stack's."
        )
    sources = [_short(path) for path in [*(p for p, _ in results), *([base.path] if base else [])]]
    return {
        "title": "Latency by percentile",
        "svg": curves.latency_by_percentile(
            f"{entry.anchor}-percentiles",
            f"Latency by percentile of {entry.title}, in ms: p50 {p50}, p99 {p99}, "
            f"largest {largest}",
            merged,
            several,
            base.curve if base else None,
        ),
        "caption": " ".join(words),
        "sources": sources,
    }


def _drawn(series: Mapping[str, Any]) -> str:
    return "Median, p99 and largest" if any(series["p99_us"]) else "The largest"


def _above(series: Mapping[str, Any]) -> str:
    if not any(series["p99_us"]):
        return ""
    return f" A second's p99 has about {max(series['responses']) // 100:,} answers above it."


def _series(entry: Entry, path: str, result: Mapping[str, Any]) -> list[dict[str, Any]]:
    from loadlab.report.plots import curves

    name = f"{entry.anchor}-{result['repetition']}"
    of = f"of {entry.title}, repetition {result['repetition']}"
    made: list[dict[str, Any]] = []

    def add(title: str, svg: str, caption: str) -> None:
        made.append({"title": title, "svg": svg, "caption": caption, "sources": [_short(path)]})

    series, load = result["per_second"], result["cell"]["load"]
    batch = load["mode"] == "batch"
    # A batch may finish too quickly to draw a time series.
    if series and len(series["second"]) > (2 if batch else 0):
        add(
            "Latency over time",
            curves.latency_over_time(f"{name}-latency", f"Latency by second {of}", series, batch),
            f"{_drawn(series)} of {_WHOSE[batch]}, {ORIGIN[result['latency_from']]}."
            + _above(series),
        )
        add(
            "Rate over time",
            curves.rate(
                f"{name}-rate",
                f"Requests {'begun' if batch else 'asked'}, answered, verified {of}",
                series,
                batch,
            ),
            _RATES[batch] + " Verified: those answered 2xx with the right body length.",
        )
    seconds = float(result["duration_s"] if batch else load["duration_s"])
    for host, telemetry in (result["telemetry"] or {}).items():
        by_second = telemetry.get("per_second")
        if by_second and by_second["t"]:
            busy, cores = telemetry["cpu_busy"], telemetry["cores"]
            add(
                f"CPU of the {host}",
                curves.cpu(
                    f"{name}-{host}", f"CPU of the {host} by mode {of}", by_second, cores, seconds
                ),
                f"Busy {formatting.percent(busy)} of {formatting.plural(cores, 'core')} on "
                f"average, steal {formatting.percent(telemetry['cpu']['steal'])}.",
            )
    order = ["Latency over time", "Rate over time", "CPU of the server", "CPU of the client"]
    return sorted(made, key=lambda figure: order.index(figure["title"]))
