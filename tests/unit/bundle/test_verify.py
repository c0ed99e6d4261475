import copy
import gzip
import itertools
import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.bundle import archive as bundle
from loadlab.bundle import signature
from loadlab.bundle import verify as rederive
from loadlab.bundle.document_comparison import TOLERANCE, Comparison
from loadlab.bundle.outcome import Outcome, keep
from loadlab.bundle.signature import SignatureError, Signed
from loadlab.bundle.unpack import unpack
from loadlab.generators import oha_database
from loadlab.kinds import all_kinds, derive_run
from loadlab.kinds import page as report
from loadlab.model import (
    SCHEMA,
    Calibration,
    CalibrationConditions,
    ClaimStatement,
    GeneratorRun,
    LabRevision,
    RepetitionSetup,
    Result,
    StudyClaim,
)
from loadlab.plan.modes.levels import Fixed
from loadlab.plan.plan_document import Run
from loadlab.report.render import render
from loadlab.results.calibrations import judge_calibration
from loadlab.results.repetitions import derive_result
from loadlab.run import documents as files
from loadlab.run import errors, revision
from loadlab.run.run_dir import CalibrationDir, RunDir, derived
from loadlab.stats import histograms
from tests.unit import builders
from tests.unit.bundle import test_signature as ssh

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
TEMPLATE = ROOT / "roles" / "report" / "templates" / "report.html.j2"
OHA, CLIENT = "cells/aiohttp-oha-400rps/rep-1", "cells/python-async-emfile/rep-1"
HGRM = "percentiles/python-async-emfile.hgrm"
CEILING, FLOOR = "calibration/ceiling/rep-1", "calibration/floor/rep-1"
PING = "rtt min/avg/max/mdev = 0.043/0.055/1.136/0.012 ms\n"
CLEAN = LabRevision(version="0.2.0", revision="0" * 40, dirty=False)
GOODPUT = ClaimStatement(metric="goodput", cell="client", at_least=1)
STUDY = builders.planned_study(
    name="small",
    description="one claim",
    claims=[StudyClaim(statement="It answers", all=[GOODPUT])],
    cells={"client": ["python-async-emfile"]},
)
# The recordings were made on a machine that was shared.
THRESHOLDS = builders.thresholds(steal_max=0.1, late_max=0.02)


def experiments() -> list[Fixed]:
    """Return the plan of the recorded cells."""
    paths = (FIXTURES / f"rep-{name}" / "cell.json" for name in ("oha", "python"))
    return [
        Fixed(item=builders.item(cell_id=own.cell_id, cell=own.cell, purpose=own.purpose))
        for own in (files.read(path, RepetitionSetup) for path in paths)
    ]


def begun() -> Run:
    """Return plan.json of a run of one study."""
    plan = replace(builders.plan(), run_id="a-run", study=STUDY, experiments=[*experiments()])
    return Run(
        started="2026-11-20T17:06:00Z",
        argv=["ansible-playbook", "lab.yml"],
        plan=plan,
        inventory_args="",
        place="",
        thresholds=THRESHOLDS,
    )


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from recorded raw files, through every step of deriving that a real one takes."""
    run = tmp_path_factory.mktemp("results") / "a-run"
    for place, recorded in ((OHA, "oha"), (CLIENT, "python"), (CEILING, "wrk"), (FLOOR, "oha")):
        shutil.copytree(FIXTURES / f"rep-{recorded}", run / place)
        kept = run / place / oha_database.KEPT
        if kept.exists():
            (run / place / oha_database.DATABASE).write_bytes(gzip.decompress(kept.read_bytes()))
            kept.unlink()
    (measured_again(run, OHA) / "error.txt").write_text("gunicorn did not start\n")
    link = run / "calibration" / "link" / "rep-1"
    link.mkdir(parents=True)
    for name, recorded in (("client_to_server", "forward"), ("server_to_client", "reverse")):
        shutil.copy(FIXTURES / "iperf3" / f"{recorded}.json", link / f"iperf3-{name}.json")
    (link / "ping.txt").write_text(PING)
    # Measured by an earlier run, and used again by this one.
    earlier = CalibrationConditions(run_id="earlier", measured=1_763_658_300.5, conditions={})
    files.write(link / "conditions.json", files.encode(earlier))
    files.write(run / "plan.json", files.encode(begun()))
    (run / "logs").mkdir()
    (run / "logs" / "server.log").write_text("nginx started\n")
    derive_all(run)
    return run


def measured_again(run: Path, place: str) -> Path:
    """Copy a repetition as the second of its cell; return its folder."""
    copied = Path(shutil.copytree(run / place, run / place.replace("rep-1", "rep-2")))
    setup = files.read(copied / "cell.json", RepetitionSetup)
    files.write(copied / "cell.json", files.encode(replace(setup, repetition=2)))
    return copied


def derive_all(run: Path) -> None:
    """Derive every document of the run as the lab that made it does."""
    folder = CalibrationDir(run / "calibration")
    calibration = judge_calibration.derive(folder, 1, "oha", THRESHOLDS)
    files.write(run / "calibration.json", files.encode(calibration))
    derive_run.results(run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revision, "of", lambda root: CLEAN)
        derive_run.describe(run, ROOT, {}, {"python": "3.11"}, {})
    derive_run.summary(run)
    files.write(run / "report.html", render(TEMPLATE, report.build(run)))
    for path, content in all_kinds.of_run(run).pages(RunDir(run)).items():
        files.write(path, content)


@pytest.fixture
def run_dir(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "a-run"))


def verify(run_dir: Path, root: Path = ROOT) -> Outcome:
    """Pack the run as it is now, with sums that are right, and verify that elsewhere."""
    bundle.pack(run_dir, run_dir.parent / "bundle.tar.gz")
    return verify_packed(run_dir, root)


def verify_packed(run_dir: Path, root: Path = ROOT, signers: Path | None = None) -> Outcome:
    scratch = run_dir.parent / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    return rederive.verify(run_dir.parent / "bundle.tar.gz", root, scratch, signers)


def change(path: Path, *place: str | int, to: Any) -> None:
    document = files.load(path)
    inner: Any = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = to
    path.write_bytes(files.dump(document))


def test_a_run_of_another_schema_is_refused_with_the_lab_that_verifies_it(run_dir: Path) -> None:
    change(run_dir / "manifest.json", "schema", to="lab/0")
    change(run_dir / "manifest.json", "lab", to={"revision": "0123abc", "version": "0.1.0"})
    with pytest.raises(bundle.BundleError) as refusal:
        verify(run_dir)
    assert str(refusal.value) == (
        f"has documents of schema lab/0, and this lab verifies those of {SCHEMA} alone. "
        "Verify it with the lab that made it, version 0.1.0, revision 0123abc"
    )


@pytest.mark.parametrize("lab", [None, [], "\x1b[2J", {"revision": None}])
def test_a_run_of_an_unknown_lab_is_refused(run_dir: Path, lab: Any) -> None:
    change(run_dir / "manifest.json", "schema", to=["\x1b[2J"])
    change(run_dir / "manifest.json", "lab", to=lab)
    with pytest.raises(bundle.BundleError) as refusal:
        verify(run_dir)
    assert str(refusal.value).endswith("the lab that made it, revision unknown")
    assert str(refusal.value).isprintable()


def test_a_run_as_it_was_derived_is_the_same(run_dir: Path) -> None:
    outcome = verify(run_dir)
    assert outcome.verified
    paths = {path.relative_to(run_dir).as_posix() for path in run_dir.rglob("*") if path.is_file()}
    missing = outcome.files.keys() - paths
    assert {Path(name).name for name in missing} <= {oha_database.DATABASE}
    assert outcome.files.keys() - missing == paths
    assert set(outcome.of("same")) == {name for name in paths if derived(name)}
    assert len(outcome.of("same")) == 15
    assert outcome.numbers > 1000
    assert set(outcome.of("hashed")) == set(raw_files(run_dir))
    doubtful = outcome.of("not verified")
    assert {"plan.json", "logs/server.log", "calibration/link/rep-1/ping.txt"} <= set(doubtful)
    hashed = len(outcome.of("hashed"))
    assert outcome.lines()[-2:] == [
        "Not signed: nothing in the bundle shows who made it, or that its raw files and documents "
        "were not replaced together.",
        f"Run a-run: documents as derived again: 15, with {outcome.numbers:,} numbers. Files that "
        f"differ: 0. Raw files, hashed only: {hashed}. Not verified: {len(doubtful)}.",
    ]


def test_the_verdict_of_a_gate_is_derived_again(run_dir: Path) -> None:
    gate = builders.plan(endpoint="hello", base="workers=1", head="workers=2").gate
    run = begun()
    run = replace(run, plan=replace(run.plan, gate=gate))
    files.write(run_dir / "plan.json", files.encode(run))
    derive_all(run_dir)
    assert {"verdict.json", "comment.md", "report.html"} <= set(verify(run_dir).of("same"))
    comment = RunDir(run_dir).comment
    comment.write_text(comment.read_text() + "CPU per request: -5 %\n")
    assert verify(run_dir).of("differs").keys() == {"comment.md"}


NUMBERS: list[tuple[str, tuple[str | int, ...], Any, str]] = [
    (f"{OHA}/result.json", ("latency_us", "p99"), 1, "latency_us.p99: 1 in the bundle, "),
    (f"{OHA}/result.json", ("errors", "timeout"), 1, "errors.timeout: 1 in the bundle, 0 derived"),
    (f"{OHA}/result.json", ("validity", "valid"), False, "validity.valid: false in "),
    (f"{OHA}/result.json", ("per_second", "ok", 1), 1, "per_second.ok[1]: 1 in the bundle, 400"),
    (f"{OHA}/result.json", ("raw_sha256", "oha.json"), "0", 'raw_sha256.oha.json: "0" in '),
    (f"{CLIENT}/result.json", ("client", "seconds"), 1, "client.seconds: 1 in the bundle, "),
    (f"{CEILING}/result.json", ("goodput",), 1, "goodput: 1 in the bundle, "),
    ("calibration.json", ("round_trip_us", "mean"), 54, "round_trip_us.mean: 54 in the bundle, 55"),
    ("calibration.json", ("baseline_latency_us", "p50"), 1, "baseline_latency_us.p50: 1 in "),
    ("summary.json", ("cells", 1, "statistics", "n"), 2, "cells[1].statistics.n: 2 in the bundle"),
    ("claims.json", ("claims", 0, "outcome"), "confirmed", 'outcome: "confirmed" in the bundle'),
    ("manifest.json", ("finished",), "2026", 'finished: "2026" in the bundle, "2026-11-21T'),
]


def test_a_number_that_the_raw_files_do_not_give_is_told(run_dir: Path) -> None:
    for name, place, to, _ in NUMBERS:
        change(run_dir / name, *place, to=to)
    outcome = verify(run_dir)
    assert not outcome.verified
    for name, *_, words in NUMBERS:
        assert any(words in difference for difference in outcome.of("differs")[name]), words
    assert NUMBERS[0][-1] in "\n".join(outcome.lines())


def test_a_figure_of_a_text_that_the_documents_do_not_give_is_told(run_dir: Path) -> None:
    befores = {
        "metrics.prom": "^lab_goodput.*} ",
        "report.html": "p99 ",
        "cells.csv": "^python-async.*,",
        HGRM: "^ *[0-9.]+ 0.5[0-9]+ +",
    }
    for name, before in befores.items():
        text = (run_dir / name).read_text()
        changed = re.sub(f"(?m)({before})[0-9.]+", r"\g<1>7.77", text, count=1)
        assert changed != text
        (run_dir / name).write_text(changed)
    differs = verify(run_dir).of("differs")
    assert differs.keys() == befores.keys()
    assert all("7.77" in differences[0] for differences in differs.values())


def test_figures_that_changed_places_are_told(run_dir: Path) -> None:
    page = (run_dir / "report.html").read_text()
    cells = re.findall(r'<td class="n">([0-9.,]+)</td>', page)
    figure, other = next((a, b) for a, b in itertools.pairwise(cells) if a != b)
    swap = {f">{figure}<": f">{other}<", f">{other}<": f">{figure}<"}
    changed = re.sub("|".join(map(re.escape, swap)), lambda match: swap[match[0]], page)
    (run_dir / "report.html").write_text(changed)
    assert list(verify(run_dir).of("differs")) == ["report.html"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (
            [
                *("summary.json", "metrics.prom", "cells.csv", "bencher.json", HGRM),
                f"{OHA}/result.json",
            ],
            "the bundle has none, and one was derived",
        ),
        ([f"{OHA}/cell.json", f"{CEILING}/wrk.txt"], "the bundle has one, and none was derived"),
    ],
)
def test_a_file_too_few_is_told(run_dir: Path, names: list[str], words: str) -> None:
    for name in names:
        (run_dir / name).unlink()
    outcome = verify(run_dir)
    assert not outcome.verified
    for name in names:
        place = name if derived(name) else str(Path(name).parent / "result.json")
        assert outcome.of("differs")[place] == (words,)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(",true,", ",false,", 1),
        lambda text: text.replace("p99_ms,p99_9_ms", "p99_ms,p99_ms", 1),
        lambda text: text.replace("p99_ms,", "p99_ms,p99_ms,", 1),
        lambda text: text.replace("p99_ms,", "p99_s,", 1),
        lambda text: text[: text.rindex("\n", 0, -1) + 1],
        lambda text: f'{text}"',
    ],
    ids=["word", "column twice", "column more", "column renamed", "row less", "quote"],
)
def test_a_table_that_differs_in_anything_is_told(
    original: Path, tmp_path: Path, change: Callable[[str], str]
) -> None:
    assert compared(original / "cells.csv", tmp_path, change).differences


def compared(path: Path, folder: Path, change: Callable[[str], str]) -> Comparison:
    """Compare a document with itself as it was changed."""
    text = path.read_bytes().decode()
    (folder / path.name).write_bytes(change(text).encode())
    assert change(text) != text
    comparison = Comparison()
    comparison.files(folder / path.name, path)
    return comparison


def raw_files(run: Path) -> list[str]:
    """The raw files that a result names with their SHA-256 and that are there."""
    return [
        path.relative_to(run).as_posix()
        for place in (OHA, CLIENT, CEILING, FLOOR)
        for name in files.read(run / place / "result.json", Result).raw_sha256
        if (path := run / place / name).exists()
    ]


@given(pick=st.integers(0, 1000), where=st.integers(0, 10**9), mask=st.integers(1, 255))
def test_any_byte_of_a_raw_file_shows_in_its_result(
    original: Path, pick: int, where: int, mask: int
) -> None:
    """Even where the list of sums was made anew: result.json has the raw file's SHA-256 too."""
    names = raw_files(original)
    path = original / names[pick % len(names)]
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[where % len(whole)] ^= mask
    bundled = files.load(path.parent / "result.json")
    path.write_bytes(changed)
    try:
        in_force = judge_calibration.in_force(original, path.parent, THRESHOLDS)
        again = derive_result.build(path.parent, THRESHOLDS, *in_force)
    except errors.ResultError:
        # cell.json is no JSON any more: no result comes of it.
        assert path.name == "cell.json"
        return
    finally:
        path.write_bytes(whole)
    assert of_documents(bundled, json.loads(files.dump(again))).differences


def of_documents(bundled: Any, derived: Any) -> Comparison:
    comparison = Comparison()
    comparison._json(bundled, derived, "")
    return comparison


def test_a_hostile_document_does_not_end_in_a_crash(run_dir: Path) -> None:
    for name in ("calibration.json", f"{CLIENT}/run.json", "tuning.json"):
        (run_dir / name).write_text("[" * 100_000)
    outcome = verify(run_dir)
    assert "maximum recursion depth" in outcome.of("differs")["calibration.json"][0]
    assert "cannot be derived: " in outcome.of("differs")["claims.json"][0]


def test_a_document_is_named_as_in_the_bundle(run_dir: Path) -> None:
    change(run_dir / CLIENT / "cell.json", "schema", to="lab/1")
    outcome = verify(run_dir)
    words = f"{CLIENT}/cell.json has schema lab/1"
    assert f"not compared with each other: {words}" in "".join(outcome.notes)
    assert outcome.of("differs")[f"{CLIENT}/result.json"][0].startswith(
        f"cannot be derived: SchemaError: {words}"
    )


def test_documents_that_no_run_has_do_not_end_in_a_crash(run_dir: Path) -> None:
    gate = builders.plan(endpoint="hello", base="workers=1", head="workers=2").gate
    run = begun()
    files.write(
        run_dir / "plan.json",
        files.encode(replace(run, plan=replace(run.plan, gate=gate, study=None))),
    )
    assert "cannot be derived: AssertionError" in verify(run_dir).of("differs")["claims.json"][0]
    (run_dir / CEILING / "cell.json").unlink()
    (run_dir / CEILING / "cell.json").mkdir()
    (run_dir / CEILING / "cell.json" / "x").touch()
    assert f"{CEILING}/result.json" in verify(run_dir).of("differs")


def test_a_plan_that_would_take_hours_to_follow_is_refused(run_dir: Path) -> None:
    change(run_dir / "plan.json", "plan", "options", "repetitions", to=10**12)
    with pytest.raises(bundle.BundleError, match="has a plan of 1,000,000,000,000 repetitions, li"):
        verify(run_dir)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("plan", "study"), {"kind": 7}, r"plan.json: .* at `\$.plan.study"),
        (("thresholds",), {"rate_min": "<script>"}, r"plan.json: .* at `\$.thresholds`"),
        (("thresholds",), None, r"plan.json: Expected `object`, got `null` - at `\$.thresholds`"),
        (("schema",), "lab/1", "plan.json has schema lab/1, and this version of the lab reads"),
    ],
)
def test_a_run_whose_plan_cannot_be_used_is_refused(
    run_dir: Path, place: tuple[str, ...], value: object, words: str
) -> None:
    change(run_dir / "plan.json", *place, to=value)
    with pytest.raises(errors.ResultError, match=words):
        verify(run_dir)


@pytest.mark.parametrize("name", ["plan.json", "manifest.json"])
def test_a_run_with_a_hostile_plan_or_manifest_is_refused(run_dir: Path, name: str) -> None:
    (run_dir / name).write_text("[" * 100_000)
    with pytest.raises(errors.ResultError, match=f"{name} is truncated or no JSON"):
        verify(run_dir)


def test_lines_of_a_verification_are_limited(run_dir: Path) -> None:
    page = (run_dir / "report.html").read_text()
    (run_dir / "report.html").write_text(re.sub("[1-9]", "0", page))
    (run_dir / "metrics.prom").write_text("x 1\n" * 10_000)
    for place in (OHA, CLIENT, CEILING, FLOOR):
        document = files.load(run_dir / place / "result.json")
        document["per_second"] = {str(number): 7 for number in range(10_000)}
        (run_dir / place / "result.json").write_bytes(files.dump(document))
    lines = verify(run_dir).lines()
    assert len(lines) < 80
    assert max(map(len, lines)) < 400
    assert any(re.fullmatch(r"  and [\d,]+ more", line) for line in lines)
    assert any(re.fullmatch(r"Differs too: \d+ more files?\.", line) for line in lines)


def test_the_thresholds_of_when_it_began_are_gone_by(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files.read(run_dir / CLIENT / "result.json", Result).validity.valid
    # A copy of this lab, of no known revision, with another threshold.
    root = tmp_path / "lab"
    for part in ("files", "roles/report", "docs/lessons"):
        shutil.copytree(ROOT / part, root / part)
    monkeypatch.setattr(rederive, "THRESHOLDS", builders.thresholds(duration_min=0.5))
    outcome = verify(run_dir, root)
    assert outcome.verified
    notes = "\n".join(outcome.lines())
    assert "duration_min: 0.95 when the run began, 0.5 in this lab; judged by the former" in notes
    assert "steal_max: 0.1 when the run began, 0.01 in this lab" in notes
    assert "this is lab revision unknown" in notes


def test_of_its_own_lab_nothing_may_be_more_or_drawn_otherwise(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = run_dir / "report.html"
    document = files.load(run_dir / OHA / "result.json")
    del document["send_delay_us"]["p50"]
    # As long as it was: the page has the size of each file.
    size = (run_dir / OHA / "result.json").stat().st_size
    (run_dir / OHA / "result.json").write_bytes(files.dump(document).ljust(size, b"\n"))
    drawn = re.sub('(?<=<path d="M )[0-9]', "7", page.read_text())
    assert drawn != page.read_text()
    page.write_text(drawn)
    outcome = verify(run_dir)
    altered = {"report.html", f"{OHA}/result.json"}
    doubtful = outcome.of("not verified")
    assert {name for name in doubtful if derived(name)} == altered
    assert outcome.of("differs") == {}
    assert not outcome.verified
    monkeypatch.setattr(revision, "of", lambda root: CLEAN)
    outcome = verify(run_dir)
    assert set(outcome.of("differs")) == altered
    assert not outcome.verified
    lines = "\n".join(outcome.lines())
    assert "send_delay_us.p50: nothing in the bundle, " in lines
    assert "words, layout or drawings are not" in lines


def without_rows(page: str) -> str:
    return re.sub(r"<tr>.*?</tr>", "", page, flags=re.DOTALL)


ALTERATIONS: dict[str, Callable[[str], str]] = {
    "rows deleted": without_rows,
    "a script added": lambda page: page.replace("</body>", "<script>alert()</script></body>"),
    "failed turned into valid": lambda page: re.sub(
        r"(>[^<0-9]*)failed(?=[^0-9>]*<)", r"\1valid", page
    ),
    "a table hidden": lambda page: page.replace("<table", '<table style="display: none"'),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_an_altered_report_is_another_with_the_same_figures(
    original: Path, tmp_path: Path, name: str
) -> None:
    comparison = compared(original / "report.html", tmp_path, ALTERATIONS[name])
    assert comparison.differences == []
    assert comparison.more == ["its figures are the same; its words, layout or drawings are not"]


def test_an_altered_report_is_named_and_the_derived_one_is_put_beside_it(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bundle's own manifest says that another revision of the lab made it."""
    page = (run_dir / "report.html").read_text()
    (run_dir / "report.html").write_text(without_rows(page))
    outcome = verify(run_dir)
    source, *sentence = outcome.of("not verified")["report.html"]
    assert source.startswith(f"made by lab 0.2.0, revision {'0' * 40}, and this is lab ")
    assert sentence == ["its figures are the same; its words, layout or drawings are not"]
    assert not outcome.verified
    assert f"Not verified ({source}):\n  report.html: its figures are" in "\n".join(outcome.lines())
    folder = keep(outcome, run_dir.parent / "bundle.tar.gz")
    assert outcome.refusal(folder) == (
        f"Not verified: report.html. Verify again with lab revision {'0' * 40}, or trust only the "
        f"report as derived again, in {folder}."
    )
    assert folder == run_dir.parent / "bundle.derived"
    assert (folder / "report.html").read_text() == page
    listed = (folder / "files.txt").read_text().splitlines()
    assert {line.split("\t")[1] for line in listed} == set(outcome.files)
    assert f"not verified\treport.html\t{source}\t{sentence[0]}" in listed
    monkeypatch.setattr(revision, "of", lambda root: CLEAN)
    assert set(verify(run_dir).of("differs")) == {"report.html"}


def test_where_nothing_can_be_put_beside_the_bundle_is_told(run_dir: Path) -> None:
    outcome = verify(run_dir)
    (run_dir.parent / "bundle.derived").write_text("in its place")
    with pytest.raises(bundle.BundleError, match=r"cannot be written to .*/bundle\.derived: "):
        keep(outcome, run_dir.parent / "bundle.tar.gz")


def test_a_document_in_an_unknown_place_differs(run_dir: Path) -> None:
    (run_dir / "logs" / "report.html").write_text("<p>fast</p>")
    outcome = verify(run_dir)
    assert outcome.of("differs")["logs/report.html"] == ("the lab gives no file this name",)


def test_a_hash_of_a_file_that_is_not_there_or_another_is_told(run_dir: Path) -> None:
    """Even if the lab derives the same wrong hash again, as from a file of hashes within."""
    outcome = Outcome(run_dir, "", None, None, None)
    change(run_dir / OHA / "result.json", "raw_sha256", "absent.json", to="0" * 64)
    change(run_dir / OHA / "result.json", "raw_sha256", "run.json", to="0" * 64)
    change(run_dir / CLIENT / "result.json", "raw_sha256", "/etc/pass\x1bwd", to="0" * 64)
    sums = {name: files.digest((run_dir / name).read_bytes()) for name in bundle.names(run_dir)}
    rederive._check_hashes(run_dir, sums, outcome)
    doubtful = outcome.of("not verified")
    missing = ("named by its result.json, and not in the bundle",)
    assert doubtful[f"{OHA}/absent.json"] == doubtful[f"{CLIENT}//etc/pass\x1bwd"] == missing
    its = sums[f"{OHA}/run.json"]
    assert outcome.of("differs") == {
        f"{OHA}/run.json": (f"SHA-256 {its}, and its result.json names {'0' * 64}",)
    }
    assert all(line.isprintable() for line in outcome.lines())


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two SSH keys, and a list of signers that has the maker's."""
    folder = tmp_path_factory.mktemp("keys")
    keys = {name: ssh.new(folder / name) for name in ("maker", "forger")}
    signers = folder / "signers"
    signers.write_text(f'maker@example.com namespaces="loadlab" {ssh.public(keys["maker"])}')
    return {**keys, "signers": signers}


def signed_by(run_dir: Path, key: Path) -> str:
    """Pack the run, signed; return the key's fingerprint."""
    sign = partial(signature.sign, key=key, announce=None)
    signer = bundle.pack(run_dir, run_dir.parent / "bundle.tar.gz", sign)["signer"]
    assert signer == ssh.fingerprint(key)
    return signer


def forge(run_dir: Path) -> None:
    """Replace raw files and every document that follows from them."""
    ping = run_dir / "calibration/link/rep-1/ping.txt"
    ping.write_text(PING.replace("0.055", "0.049"))
    for path in run_dir.rglob("result.json"):
        path.unlink()
    derive_all(run_dir)


def test_the_signer_is_named(run_dir: Path, keys: dict[str, Path]) -> None:
    fingerprint = signed_by(run_dir, keys["maker"])
    once = (run_dir.parent / "bundle.tar.gz").read_bytes()
    assert signed_by(run_dir, keys["maker"]) == fingerprint
    assert (run_dir.parent / "bundle.tar.gz").read_bytes() == once
    listed = f"Signed by maker@example.com, {fingerprint}."
    unlisted = f"Signed by {fingerprint}, not in a list of signers that you gave."
    for signers, line in ((None, unlisted), (keys["signers"], listed)):
        outcome = verify_packed(run_dir, signers=signers)
        assert outcome.verified
        assert line in outcome.lines()


def test_what_was_replaced_together_is_found_out_by_the_signature(
    run_dir: Path, keys: dict[str, Path]
) -> None:
    signed_by(run_dir, keys["maker"])
    into = run_dir.parent / "unpacked"
    into.mkdir()
    kept = builders.present(unpack(run_dir.parent / "bundle.tar.gz", into).signature)
    forge(run_dir)
    # Without a signature all of it agrees.
    outcome = verify(run_dir)
    assert outcome.verified
    assert any(line.startswith("Not signed: ") for line in outcome.lines())
    # The signature of what it was.
    bundle.pack(run_dir, run_dir.parent / "bundle.tar.gz", lambda sums: Signed(kept, ""))
    with pytest.raises(SignatureError, match="files: they were replaced after it was signed"):
        verify_packed(run_dir)
    # A signature of the forger's own, and none at all, where the maker's is demanded.
    fingerprint = signed_by(run_dir, keys["forger"])
    outcome = verify_packed(run_dir, signers=keys["signers"])
    assert f"Signed by {fingerprint}, not in {keys['signers']}." in outcome.lines()
    assert not outcome.verified
    assert outcome.refusal(run_dir) == f"No signer of {keys['signers']} signed it."
    bundle.pack(run_dir, run_dir.parent / "bundle.tar.gz")
    assert not verify_packed(run_dir, signers=keys["signers"]).verified


def test_a_repetition_that_is_another_again_is_found_though_all_is_derived_again(
    run_dir: Path,
) -> None:
    """Neither a signature nor a document that was left over shows it."""
    measured_again(run_dir, CLIENT)
    forge(run_dir)
    outcome = verify(run_dir)
    assert not outcome.verified
    name = f"{CLIENT.replace('rep-1', 'rep-2')}/result.json"
    assert list(outcome.of("differs")) == [name]
    first, *more = outcome.of("differs")[name]
    assert first.endswith(f"is the same file as in {CLIENT}")
    assert more[0].endswith(f"s before the end of {CLIENT}")


def test_every_repetition_has_the_calibration_of_its_time(run_dir: Path) -> None:
    """A run gone on with is calibrated anew: what was measured before keeps the one it had."""
    link = run_dir / "calibration" / "link"
    shutil.copytree(link / "rep-1", link / "rep-2")
    for part in (CEILING, FLOOR):
        shutil.copytree(run_dir / part, run_dir / part.replace("rep-1", "rep-2"))
    last = files.read(run_dir / CLIENT / "run.json", GeneratorRun)
    second = run_dir / CEILING.replace("rep-1", "rep-2") / "run.json"
    moments = files.read(second, GeneratorRun)
    second.write_bytes(files.encode(replace(moments, finished=last.started + 1)))
    slow = link / "rep-2" / "iperf3-server_to_client.json"
    slow.write_text((FIXTURES / "iperf3" / "forward.json").read_text())

    def received(calibration: Calibration | None) -> float | None:
        iperf3 = calibration.iperf3 if calibration else None
        return iperf3.server_to_client.bits_per_second if iperf3 else None

    def bits(place: str) -> float | None:
        return received(*judge_calibration.in_force(run_dir, run_dir / place, THRESHOLDS))

    first = judge_calibration.derive(CalibrationDir(run_dir / "calibration"), 1, "oha", THRESHOLDS)
    newest = judge_calibration.derive(CalibrationDir(run_dir / "calibration"), 2, "oha", THRESHOLDS)
    figure, other = received(first), received(newest)
    assert figure != other
    (run_dir / "calibration.json").write_bytes(files.encode(newest))
    # oha's was before both, the client's between them.
    assert (bits(OHA), bits(CLIENT)) == (None, figure)
    second.write_bytes(files.encode(replace(moments, finished=last.started - 1)))
    assert bits(CLIENT) == other
    (link / "rep-2" / "ping.txt").write_text("ping: connect: Network is unreachable\n")
    assert bits(CLIENT) == figure
    (run_dir / CLIENT / "run.json").write_text("{")
    assert bits(CLIENT) is None


leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
documents = st.recursive(
    leaves | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(documents)
def test_a_document_is_as_itself(document: Any) -> None:
    comparison = of_documents(document, json.loads(json.dumps(document)))
    assert (comparison.differences, comparison.more) == ([], [])


@given(st.lists(leaves | st.text(), min_size=1), st.data())
def test_any_other_value_is_told(values: list[Any], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(values) - 1))
    other = copy.copy(values)
    other[index] = data.draw(st.none() | st.booleans() | st.integers() | st.text())
    differences = of_documents({"a": values}, {"a": other}).differences
    pair = values[index], other[index]
    if all(isinstance(value, int | float) and type(value) is not bool for value in pair):
        same = abs(pair[0] - pair[1]) <= TOLERANCE * max(map(abs, pair))
    else:
        same = type(pair[0]) is type(pair[1]) and pair[0] == pair[1]
    assert [words[: len(f"a[{index}]: ")] for words in differences] == (
        [] if same else [f"a[{index}]: "]
    )


def test_a_histogram_is_what_it_counts() -> None:
    histogram = histograms.from_values([1, 2, 3, 1000])
    packed = histograms.encode(histogram)
    other = histograms.encode(histograms.from_values([1, 2, 3, 2000]))
    document = {"format": histograms.FORMAT, "unit": "us", "data": packed}
    for data, words in ((packed, 0), (other, 1), ("no histogram", 1)):
        pair = {**document, "note": 1}, {**document, "data": data, "note": 1}
        assert len(of_documents(*pair).differences) == words
    assert of_documents({**document, "unit": "ms"}, document).differences == [
        'unit: "ms" in the bundle, "us" derived'
    ]


def test_each_pair_is_judged_by_its_own_calibration(run_dir: Path) -> None:
    shutil.copytree(run_dir / "calibration", run_dir / "calibration-server2")
    document = builders.calibration()
    (run_dir / "calibration-server2.json").write_bytes(files.encode(document))
    setup = files.read(run_dir / CLIENT / "cell.json", RepetitionSetup)
    for server, own in (("server2", True), ("server", False)):
        path = run_dir / CLIENT / "cell.json"
        path.write_bytes(files.encode(replace(setup, server=server)))
        assert (
            judge_calibration.in_force(run_dir, run_dir / CLIENT, THRESHOLDS) == [document]
        ) is own
