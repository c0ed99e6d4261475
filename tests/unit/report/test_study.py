from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest

from loadlab.analysis import claims
from loadlab.core import catalog, documents
from loadlab.core.schema import validate
from loadlab.planning import studies
from loadlab.report import page as report
from loadlab.report import study as report_study

ROOT = Path(__file__).parents[3]
RUN = ROOT / "tests" / "fixtures" / "report"
TEMPLATE = ROOT / "roles" / "report" / "templates" / "report.html.j2"
SCHEMA = ROOT / "files" / "schema" / "lab-1.schema.json"
PUBLISHED = [
    name
    for name in catalog.names(ROOT / "files" / "studies", "*.yml")
    if "source" in catalog.load_yaml(ROOT / "files" / "studies" / f"{name}.yml")
]


def made(name: str, run_dir: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """(claims.json, manifest.json) of a study, each cell of three copies of a real repetition."""
    found = studies.find(ROOT, {"study": name, "scale": "local"}, "study")
    assert found is not None
    real = documents.load(RUN / "summary.json")["cells"][0]
    rep = copy.deepcopy(real["repetitions"][0])
    client = {"seconds": 3.0, "cpu_s": {"user": 1.0, "system": 0.5}, "failures": {"EMFILE": 7}}
    rep |= {"client": client | {"max_rss_bytes": 2**26}}
    summary = documents.load(RUN / "summary.json")
    summary["cells"] = [
        {
            "cell_id": cell["name"],
            "cell": {**real["cell"], "load": real["cell"]["load"] | {"requests": 20}},
            "repetitions": [rep, rep, rep],
        }
        for cell in found["cells"]
    ]
    plan = {key: found[key] for key in ("kind", "name", "scale", "description", "claims")}
    plan |= {"published": found["published"]}
    plan |= {"cells": {cell["name"]: [cell["name"]] for cell in found["cells"]}}
    judged = claims.document(summary, plan)
    validate(judged, "claims", SCHEMA)
    manifest = documents.load(RUN / "manifest.json")
    manifest["plan"]["study"] = plan
    documents.write(run_dir / "claims.json", documents.dump(judged))
    documents.write(run_dir / "manifest.json", documents.dump(manifest))
    return judged, manifest


def rows(table: dict[str, Any]) -> dict[str, list[str]]:
    return {row["cells"][0]["text"]: [c["text"] for c in row["cells"][1:]] for row in table["rows"]}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_page_of_a_study_has_what_was_published_beside_what_was_measured(
    name: str, tmp_path: Path
) -> None:
    run_dir = Path(shutil.copytree(RUN, tmp_path / "run"))
    judged, _ = made(name, run_dir)
    page = report.render(TEMPLATE, report.build(run_dir)).decode()
    file = catalog.load_yaml(ROOT / "files" / "studies" / f"{name}.yml")
    assert file["source"]["url"] in page
    for hole in ("None", "nan", "{{", "&#39;value&#39;"):
        assert hole not in page.partition('<h2 id="study">')[2].partition("</section>")[0]
    for one in file.get("mistakes", []):
        assert report_text(one["corrected"]) in page
    for words in file["differs"]:
        assert report_text(words) in page
    assert len(judged["claims"]) == len(file["claims"])


def report_text(words: str) -> str:
    """As the template escapes it."""
    return words.replace("&", "&amp;").replace("'", "&#39;").replace(">", "&gt;")


def test_what_differs_is_read_from_the_run(tmp_path: Path) -> None:
    run_dir = Path(shutil.copytree(RUN, tmp_path / "run"))
    _, manifest = made("gasc-2015", run_dir)
    manifest["hosts"]["server"]["packages"] |= {"postgresql": "17+278", "postgresql-17": "17.12-0"}
    study = manifest["plan"]["study"]["published"]
    calibration = documents.load(run_dir / "calibration.json")
    table = report_study.differs(study, manifest, calibration)
    assert table is not None
    found = rows(table)
    server = next(host for host in manifest["hosts"].values() if host["role"] == "server")
    assert found["server"][0] == "Dell Precision M6800, i7 2.9 GHz, 16 GB"
    assert found["server"][1].startswith(server["cpu_model"])
    assert found["link"][1].endswith("(iperf3)")
    pinned = {k.rpartition("/")[2]: v for k, v in manifest["pins"].items()}
    assert found["version of aiohttp"] == ["0.13.1", pinned["aiohttp"]]
    assert found["version of PostgreSQL"] == ["9.4", "17.12"]
    # Not in this run at all.
    assert "version of Flask" not in found
    assert found["duration"] == ["300", "3"]
    rates = [value for key, value in found.items() if key.startswith("rate agents")]
    assert rates == [["4,000 requests/s", "110 % of the least that r2-api_hour-agents saturate at"]]
    # A version that is the same differs in nothing.
    study["setup"]["versions"]["aiohttp"] = pinned["aiohttp"]
    same = report_study.differs(study, manifest, None)
    assert same is not None
    assert "version of aiohttp" not in rows(same)
    assert rows(same)["link"][1] == "not measured"


def test_a_run_that_repeats_nothing_has_no_such_section() -> None:
    assert report_study.build(None, None, None) is None
    assert report_study.build({"source": None}, None, None) is None
