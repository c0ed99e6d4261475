"""The report's part on a published study: its figures, mistakes and differences beside this run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadlab.analysis.claim_text import quantity
from loadlab.core import formatting
from loadlab.report.html import link, table

# A program's name in studies -> its package on the hosts.
_PACKAGES = {"python": "python3", "uwsgi": "uwsgi-core"}
NOT_RECORDED = "not recorded"


def build(
    document: Mapping[str, Any] | None,
    manifest: Mapping[str, Any] | None,
    calibration: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """Return {question, source, scale, figures, mistakes, differs}; None where nothing was
    published.

    ``document``: claims.json. source: {text, href}; figures: tables; mistakes, differs: a table or
    None.
    """
    if document is None or not document["source"]:
        return None
    source = document["source"]
    words = [source["title"], source.get("author"), source["date"]]
    words += [f"{key} {source[key]}" for key in ("commit",) if key in source]
    study = ((manifest or {}).get("plan", {}).get("study") or {}).get("published")
    return {
        "question": document["question"],
        "source": {"text": ", ".join(filter(None, words)), "href": source["url"]},
        "scale": document["scale"],
        "figures": [_figures(group) for group in document["figures"]],
        "mistakes": _mistakes(document),
        "differs": differs(study, manifest, calibration) if study and manifest else None,
    }


def _figures(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of a group of published figures beside the measured ones."""
    if group["not_repeated"]:
        return table(
            f"{group['title']}. Not measured here: {group['not_repeated']}.",
            ["of", "metric", "published"],
            [
                [row["cell"], row["metric"], quantity(row["metric"], row["published"])]
                for row in group["rows"]
            ],
            "  n",
            title=f"{group['title']}: published",
            open=False,
        )
    rows = []
    for row in group["rows"]:
        seen = row["measured"]
        rows.append([
            row["cell"],
            row["metric"],
            quantity(row["metric"], row["published"]),
            _with_interval(seen, lambda size, metric=row["metric"]: quantity(metric, size)),
            formatting.NONE if row["published_ratio"] is None
            else formatting.significant(row["published_ratio"]),
            _with_interval(row["measured_ratio"], formatting.significant),
            str(seen["n"]),
        ])  # fmt: skip
    reference = group["reference"]
    against = (
        f" Ratios are to {reference}: the absolute figures belong to their machines."
        if reference
        else ""
    )
    return table(
        f"{group['title']} ({group['where']}). Medians of the valid repetitions with an interval "
        f"where there are enough of them; what so few can say stands at the claims.{against}",
        ["cell", "metric", "published", "measured", "published ratio", "measured ratio", "n"],
        rows,
        "  nnnnn",
        title=f"{group['title']}: published and measured",
        sources=[link("claims.json")],
    )


def _with_interval(found: Mapping[str, Any], show: Any) -> str:
    if found["value"] is None:
        return formatting.NONE
    if found["low"] is None:
        return str(show(found["value"]))
    return f"{show(found['value'])} ({show(found['low'])} to {show(found['high'])})"


def _mistakes(document: Mapping[str, Any]) -> dict[str, Any] | None:
    if not document["mistakes"]:
        return None
    rows = []
    for one in document["mistakes"]:
        here = formatting.NONE
        if one["cell"] is not None:
            here = f"{one['cell']}: not measured"
        if one["measured"]:
            shown = _with_interval(one["measured"], lambda size, m=one["metric"]: quantity(m, size))
            here = f"{one['cell']}, {one['metric']}: {shown}"
        rows.append([one["what"], one["printed"], one["corrected"], here, one["where"] or ""])
    return table(
        "What the source printed wrongly by its own or a later account, and how it is to be read.",
        ["mistake", "printed", "corrected reading", "here", "where"],
        rows,
    )


def differs(
    study: Mapping[str, Any],
    manifest: Mapping[str, Any],
    calibration: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """Return the table of differences between the published set-up and this one.

    Machines and versions come from manifest.json, the link from calibration.json. The sentences of
    the study's file come last.
    """
    setup = study["setup"] or {}
    rows: list[Any] = [
        [what, str(setup.get(what, NOT_RECORDED)), here]
        for what, here in (
            ("server", _machine(manifest, "server")),
            ("client", _machine(manifest, "client")),
            ("link", _link(calibration)),
        )
    ]
    for name, version in setup.get("versions", {}).items():
        here = _version(manifest, name)
        if here and here != version:
            rows.append([f"version of {name}", version, here])
    rows += [
        [one["name"], *map(_plain, (one["published"], one["here"]))] for one in study["settings"]
    ]
    for one in study["rates"]:
        if one["here"] != one["published"]:
            rows.append([
                f"rate {one['name']}: {one['says']}",
                f"{one['published']:,g} requests/s",
                _rate(one["here"]),
            ])  # fmt: skip
    rows += [[{"text": words, "class": "why"}, "", ""] for words in study["differs"]]
    return table(
        "What differs between the two set-ups.",
        ["what", "published", "here"],
        rows,
        sources=[link("manifest.json")],
    )


def _machine(manifest: Mapping[str, Any], role: str) -> str:
    told = []
    for host in manifest["hosts"].values():
        if host["role"] == role:
            told.append(
                f"{host['cpu_model']}, {formatting.plural(len(host['cpus']), 'core')} of "
                f"{host['cores']}, {formatting.size(host['memory_bytes'])}, {host['os']}, Linux "
                f"{host['kernel']}, virtualisation {host['virtualisation']}"
            )
    return "; ".join(dict.fromkeys(told)) or NOT_RECORDED


def _link(calibration: Mapping[str, Any] | None) -> str:
    if calibration is None:
        return "not measured"
    ways = (calibration["iperf3"][way] for way in ("client_to_server", "server_to_client"))
    return " and ".join(formatting.bits(found["bits_per_second"]) for found in ways) + " (iperf3)"


def _version(manifest: Mapping[str, Any], name: str) -> str:
    """Return the version of a program here, pinned or a package of the server; empty
    where unknown."""
    name = name.lower()
    pinned = {
        version.partition(" ;")[0]
        for pin, version in manifest["pins"].items()
        if pin.rpartition("/")[2] == name and not pin.startswith("controller/")
    }
    if pinned:
        return ", ".join(sorted(pinned))
    for host in manifest["hosts"].values():
        if host["role"] == "server":
            packages = host["packages"]
            # Debian's package postgresql has no version of its own; postgresql-17 has.
            found = packages.get(_PACKAGES.get(name, name)) or ""
            newest = [v for p, v in packages.items() if p.removeprefix(f"{name}-").isdecimal()]
            return str(newest[0] if newest else found).partition("-")[0]
    return ""


def _plain(value: Any) -> str:
    if value is None:
        return "left to the lab"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _rate(rate: Any) -> str:
    if isinstance(rate, Mapping):
        return (
            f"{formatting.percent(rate['share'])} of the least that {' and '.join(rate['of'])} "
            "saturate at"
        )
    return f"{rate:,g} requests/s"
