import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.kinds import page as report
from loadlab.kinds.study import analyse as claims
from loadlab.kinds.study import show as section
from loadlab.kinds.study import study_files
from loadlab.kinds.study.kind import StudyKind
from loadlab.model import Claims, Manifest, Study, StudySetup
from loadlab.report.html import Headline, Table
from loadlab.report.render import render
from loadlab.run import catalog, documents
from loadlab.run.run_dir import RunDir
from tests.unit import builders
from tests.unit.kinds.study.claimed import (
    FAST,
    SLOW,
    STUDY,
    cell,
    document,
    judge,
    judged,
    statement,
    summary,
)

ROOT = builders.ROOT
TEMPLATE = ROOT / "roles" / "report" / "templates" / "report.html.j2"
PUBLISHED = [
    name
    for name in catalog.names(ROOT / "files" / "studies", "*.yml")
    if "source" in catalog.load_yaml(ROOT / "files" / "studies" / f"{name}.yml")
]
CLIENT = builders.client(EMFILE=7)


def find(name: str) -> Study:
    return study_files.find(ROOT, {"study": name, "scale": "local"}, "study")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return Path(shutil.copytree(builders.RUN, tmp_path / "run"))


def write_documents(name: str, run_dir: Path) -> tuple[Claims, Manifest]:
    """Write claims.json and plan.json of a study whose cells have three real repetitions."""
    found = find(name)
    recorded = builders.summary().cells[0]
    repetitions = [replace(recorded.repetitions[0], client=CLIENT)] * 3
    measured = replace(
        builders.summary(),
        cells=[replace(recorded, cell_id=one.name, repetitions=repetitions) for one in found.cells],
    )
    planned = builders.planned_study(
        name=found.name,
        scale=found.scale,
        description=found.description,
        claims=found.claims,
        cells={one.name: [one.name] for one in found.cells},
        publication=found.publication,
    )
    judged = claims.build(measured, planned)
    manifest = builders.manifest()
    builders.write_plan(run_dir, replace(builders.plan(), study=planned))
    documents.write(run_dir / "claims.json", documents.encode(judged))
    return judged, manifest


def rows(table: Table) -> dict[str, list[str]]:
    return {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in table.rows}


def escaped(words: str) -> str:
    """Return words as the template escapes them."""
    return words.replace("&", "&amp;").replace("'", "&#39;").replace(">", "&gt;")


@pytest.mark.parametrize("name", PUBLISHED)
def test_page_of_a_study_shows_published_figures_beside_measured_ones(
    name: str, run_dir: Path
) -> None:
    judged, _ = write_documents(name, run_dir)
    page = render(TEMPLATE, report.build(run_dir)).decode()
    publication = find(name).publication
    assert publication.source is not None
    assert publication.source["url"] in page
    for hole in ("None", "nan", "{{", "&#39;value&#39;"):
        assert hole not in page.partition('<h2 id="study">')[2].partition("</section>")[0]
    for one in publication.errata:
        assert escaped(one.corrected) in page
    for words in publication.differs:
        assert escaped(words) in page
    assert len(judged.claims) == len(find(name).claims)


def test_differences_of_a_study_are_read_from_the_run(run_dir: Path) -> None:
    _, manifest = write_documents("gasc-2015", run_dir)
    server = manifest.hosts["server"]
    packages = {**server.packages, "postgresql": "17+278", "postgresql-17": "17.12-0"}
    server = replace(server, packages=packages)
    manifest = replace(manifest, hosts={**manifest.hosts, "server": server})
    publication = find("gasc-2015").publication
    found = rows(section.differences(publication, manifest, builders.calibration()))
    assert found["server"][0] == "Dell Precision M6800, i7 2.9 GHz, 16 GB"
    assert found["server"][1].startswith(server.cpu_model)
    assert found["link"][1].endswith("(iperf3)")
    pinned = {pin.rpartition("/")[2]: version for pin, version in manifest.pins.items()}
    assert found["version of aiohttp"] == ["0.13.1", pinned["aiohttp"]]
    assert found["version of PostgreSQL"] == ["9.4", "17.12"]
    # Not in this run at all.
    assert "version of Flask" not in found
    assert found["duration"] == ["300", "3"]
    rates = [value for key, value in found.items() if key.startswith("rate agents")]
    assert rates == [["4,000 requests/s", "110 % of the lowest saturation of r2-api_hour-agents"]]
    # A version that is the same is no difference.
    setup = builders.present(publication.setup)
    versions = {**(setup.versions or {}), "aiohttp": pinned["aiohttp"]}
    publication = replace(publication, setup=replace(setup, versions=versions))
    same = rows(section.differences(publication, manifest, None))
    assert "version of aiohttp" not in same
    assert same["link"][1] == "not measured"


def test_differences_without_a_published_setup_are_not_recorded() -> None:
    publication = replace(find("gasc-2015").publication, setup=StudySetup())
    found = rows(section.differences(publication, builders.manifest(), None))
    assert found["server"][0] == section.NOT_RECORDED


def test_a_study_that_was_not_published_has_its_claims_alone(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    builders.write_plan(tmp_path, replace(builders.plan(), study=STUDY))
    judged = document(summary(fast=FAST, slow=SLOW))
    documents.write(run.claims, documents.encode(replace(judged, source=None)))
    assert [own.anchor for own in StudyKind().sections(run)] == ["claims"]


def test_the_figure_of_one_metric_over_another_has_no_unit(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    builders.write_plan(tmp_path, replace(builders.plan(), study=STUDY))
    same = statement(metric="latency_us.mean", over="latency_us.mean", cell="fast", at_least=1)
    judged = replace(
        document(summary(fast=FAST)), source=None, claims=[judge(same, {"fast": FAST})]
    )
    documents.write(run.claims, documents.encode(judged))
    assert "'fast: 1.00 (n=" in str(StudyKind().sections(run))


def test_the_answer_counts_claims_and_its_table_has_what_decided_them() -> None:
    """Each of fast is about twice slow, which the statements claim in several forms."""
    cells = {"fast": FAST, "slow": SLOW, "void": cell(90, valid=False)}
    twice = judge(statement(ratio=["fast", "slow"], at_least=1.5), cells)
    order = judge(statement(order=["fast", "slow"]), cells)
    range_of = judge(
        [statement(cell=name, at_least=10, at_most=1000) for name in ("fast", "slow")], cells
    )
    void = judge(statement(cell="void", at_least=50), cells)
    few = judged(twice, range_of, void)
    assert section.headline(few) == Headline(
        "void", "Study x: of 3 claims, 2 are confirmed and 1 is inconclusive.", anchor="claims"
    )
    rows = [
        [cell.text for cell in row.cells] for row in builders.present(section.overview(few)).rows
    ]
    assert rows == [
        ["so", "confirmed", "1.96 times, interval 1.93 to 2.00, claimed at least 1.5"],
        ["so", "confirmed", "goodput 52 to 102, claimed at least 10 and at most 1000"],
        ["so", "inconclusive", "no valid repetition of void"],
    ]
    # Of many, the worst.
    many = builders.present(section.overview(judged(*[order] * 7, void)))
    assert [row.cells[1].text for row in many.rows] == ["inconclusive", *["confirmed"] * 5]
    assert many.rows[1].cells[2].text.startswith("fast / slow 1.96 times, ")
    assert "6 of 8 claims" in many.caption
    both = judged(order, order)
    assert section.headline(both).text == "Study x: both claims are confirmed."
    lesson = replace(both, kind="lesson", description="fast is faster")
    statement_first = "Lesson x: fast is faster. Both claims are confirmed."
    assert section.headline(lesson).text == statement_first
    # What was not shown is not said.
    mixed = replace(few, kind="lesson", description="fast is faster")
    assert section.headline(mixed).text.startswith("Lesson x: of 3 claims, ")
    # Of one claim, the answer has it.
    assert section.overview(judged(void)) is None
    alone = section.headline(judged(void))
    assert alone.text == "Study x: inconclusive: so (no valid repetition of void)."
