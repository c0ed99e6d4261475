"""A run's results as lines for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from loadlab.analysis import claim_text
from loadlab.core import formatting
from loadlab.report import comparison, labels, ranking, sweeps_searches
from loadlab.stats import inference, percentiles


def told(record: Mapping[str, Any]) -> str:
    """Return the result of a repetition in one line."""
    if record["error"] is not None:
        return f"failed, and kept as such: {formatting.one_line(record['error'])}"
    client, verdict = record.get("client"), record["verdict"]
    if client:
        words = [f"{client['seconds']:.2f} s", f"{record['rate_achieved']:,.1f} requests/s"]
    else:
        words = [f"{record['goodput']:,.1f} requests/s"]
    for name in ("p50", "p99"):
        if record["latency_us"][name] is not None:
            words.append(f"{name} {formatting.ms(record['latency_us'][name])} ms")
    failed = sum(record["errors"].values())
    words.append(f"{failed:,} errors" if failed else "no errors")
    words.append("valid" if verdict["valid"] else f"void: {'; '.join(verdict['reasons'])}")
    return ", ".join(words)


def tables(document: Mapping[str, Any], judged: Mapping[str, Any] | None) -> str:
    """Return the terminal's table of summary.json and the outcomes of a study's claims."""
    return "\n".join([table(document), *(claim_text.lines(judged) if judged else [])])


def table(document: Mapping[str, Any]) -> str:
    """Return a line for each repetition: its load, its result and its verdict.

    Python clients under test have a separate table below. Rankings, comparisons, sweeps and
    searches come last.
    """
    ids = [cell["cell_id"] for cell in document["cells"]]
    names = dict(zip(ids, labels.stacks(document["cells"]), strict=True))
    batches = [cell for cell in document["cells"] if cell["cell"]["load"]["mode"] == "batch"]
    # The search's own lines show its probes.
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
        pace = (
            f"{formatting.plain(load['rate'])}/s" if load["mode"] == "constant" else "closed loop"
        )
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
            *ranking.lines(document),
            *comparison.lines(document),
            *sweeps_searches.lines(document),
        ]
    )


def _named(
    cells: Sequence[Mapping[str, Any]], names: Mapping[str, Sequence[str]]
) -> Iterator[tuple[list[str], Mapping[str, Any]]]:
    """Yield each cell with its heading: how it differs from others, empty while that does not
    change."""
    before: list[str] = []
    for cell in cells:
        told = [cell["purpose"]] if cell["purpose"] in ("twin", "profile") else []
        name = [*names[cell["cell_id"]], *told]
        yield [f"{', '.join(name)}:"] if name and name != before else [], cell
        before = name


def _lines(
    cell: Mapping[str, Any], asked: str, numbers: Callable[[Mapping[str, Any]], str]
) -> list[str]:
    """Return a cell's repetitions, each with its findings."""
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
        f"{formatting.size(client['max_rss_bytes']):>10}{sum(client['cpu_s'].values()):>8.2f}s"
        f"{rep['requests'] - rep['ok']:>8,}"
    )


def _refused(rep: Mapping[str, Any]) -> list[str]:
    """Return the percentiles that a repetition has too few answers for."""
    if rep["error"] is not None:
        return []
    return [name for name in ("p50", "p99", "p99_9") if percentiles.refusal(rep["responses"], name)]


def _numbers(rep: Mapping[str, Any]) -> str:
    if rep["error"] is not None:
        return " " * 55
    latency, refused = rep["latency_us"], _refused(rep)

    def ms(name: str) -> str:
        none = latency[name] is None or name in refused
        return formatting.NONE if none else f"{latency[name] / 1000:.2f}ms"

    unsent = "-" if rep["unsent"] is None else str(rep["unsent"])
    return (
        f"{rep['goodput']:>9.1f}{ms('p50'):>10}{ms('p99'):>10}{ms('p99_9'):>10}"
        f"{sum(rep['errors'].values()):>8}{unsent:>8}"
    )
