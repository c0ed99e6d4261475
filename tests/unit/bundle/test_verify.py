from __future__ import annotations

import copy
import gzip
import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.analysis import calibration, derive, result
from loadlab.bundle import archive as bundle
from loadlab.bundle import verify as rederive
from loadlab.bundle.verify import Comparison, Outcome
from loadlab.core import documents as files
from loadlab.core import errors, revision, thresholds
from loadlab.core.model import (
    SCHEMA,
    Calibration,
    CalibrationConditions,
    ClaimStatement,
    GeneratorRun,
    LabRevision,
    PlannedStudy,
    RepetitionSetup,
    Result,
    StudyClaim,
    StudyPublication,
)
from loadlab.core.run_dir import CalibrationDir, derived
from loadlab.generators import oha_database
from loadlab.report import page as report
from loadlab.scheduling.plan import Run
from loadlab.stats import histograms
from tests.unit import builders

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
TEMPLATE = ROOT / "roles" / "report" / "templates" / "report.html.j2"
OHA, CLIENT = "cells/aiohttp-oha-400rps/rep-1", "cells/python-async-emfile/rep-1"
CEILING, FLOOR = "calibration/ceiling/rep-1", "calibration/floor/rep-1"
PING = "rtt min/avg/max/mdev = 0.043/0.055/1.136/0.012 ms\n"
CLEAN = LabRevision(version="0.2.0", revision="0" * 40, dirty=False)
STUDY = PlannedStudy(
    kind="study",
    name="small",
    scale=None,
    description="one claim",
    claims=[
        StudyClaim(
            statement="It answers",
            all=[ClaimStatement(metric="goodput", cell="client", at_least=1)],
        )
    ],
    cells={"client": ["python-async-emfile"]},
    left_out_keys={},
    publication=StudyPublication(settings=[], rates=[], figures=[], errata=[], differs=[]),
)
# The recordings were made on a machine that was shared.
THRESHOLDS = builders.thresholds(steal_max=0.1, late_max=0.02)


def begun() -> Run:
    """Return plan.json of a run of one study."""
    plan = replace(builders.plan(), run_id="a-run", study=STUDY)
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
    shutil.copytree(run / OHA, run / OHA.replace("rep-1", "rep-2"))
    failed = run / OHA.replace("rep-1", "rep-2")
    setup = files.read(failed / "cell.json", RepetitionSetup)
    (failed / "cell.json").write_bytes(files.encode(replace(setup, repetition=2)))
    (failed / "error.txt").write_text("gunicorn did not start\n")
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
    found = calibration.derive(CalibrationDir(run / "calibration"), 1, "oha", THRESHOLDS)
    files.write(run / "calibration.json", files.encode(found))
    derive.results(run, False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revision, "of", lambda root: CLEAN)
        derive.describe(run, ROOT, {}, {"python": "3.11"})
    derive.summary(run)
    files.write(run / "report.html", report.render(TEMPLATE, report.build(run)))
    return run


@pytest.fixture
def run_dir(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "a-run"))


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the lab that derives were the very one that made the run, without changes."""


def verify(run_dir: Path, root: Path = ROOT) -> Outcome:
    """Pack the run as it is now, with sums that are right, and verify that elsewhere."""
    archive = run_dir.parent / "bundle.tar.gz"
    bundle.pack(run_dir, archive)
    scratch = run_dir.parent / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    return rederive.verify(archive, root, scratch)


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
    assert outcome.same
    assert (outcome.differences, outcome.more) == ({}, {})
    documents = [path for path in run_dir.rglob("*") if derived(path.name)]
    assert outcome.documents == len(documents) == 11
    assert outcome.numbers > 1000
    assert outcome.raw == sum(path.is_file() for path in run_dir.rglob("*")) - len(documents)
    assert outcome.lines()[-1].startswith(f"Same: {outcome.numbers:,} numbers in 11 documents of")


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
    assert not outcome.same
    for name, *_, words in NUMBERS:
        assert any(words in told for told in outcome.differences[name]), words
    assert NUMBERS[0][-1] in "\n".join(outcome.lines())


@pytest.mark.parametrize("name", ["metrics.prom", "report.html"])
def test_a_figure_of_a_text_that_the_documents_do_not_give_is_told(
    run_dir: Path, name: str
) -> None:
    path = run_dir / name
    text = path.read_text()
    before = "^lab_goodput.*} " if name == "metrics.prom" else "p99 "
    changed = re.sub(f"(?m)({before})[0-9.]+", r"\g<1>7.77", text, count=1)
    assert changed != text
    path.write_text(changed)
    outcome = verify(run_dir)
    assert "7.77" in outcome.differences[name][0]


def test_figures_that_changed_places_are_told(run_dir: Path) -> None:
    page = (run_dir / "report.html").read_text()
    cells = re.findall(r'<td class="n">([0-9.,]+)</td>', page)
    one, other = next((a, b) for a, b in itertools.pairwise(cells) if a != b)
    swap = {f">{one}<": f">{other}<", f">{other}<": f">{one}<"}
    changed = re.sub("|".join(map(re.escape, swap)), lambda found: swap[found[0]], page)
    (run_dir / "report.html").write_text(changed)
    assert list(verify(run_dir).differences) == ["report.html"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("summary.json", "the bundle has none, and one was derived"),
        ("metrics.prom", "the bundle has none, and one was derived"),
        (f"{OHA}/result.json", "the bundle has none, and one was derived"),
        (f"{OHA}/cell.json", "the bundle has one, and none was derived"),
        (f"{CEILING}/wrk.txt", "the bundle has one, and none was derived"),
    ],
)
def test_a_file_too_few_is_told(run_dir: Path, name: str, words: str) -> None:
    (run_dir / name).unlink()
    outcome = verify(run_dir)
    assert not outcome.same
    place = name if derived(name) else str(Path(name).parent / "result.json")
    assert outcome.differences[place] == [words]


def raw_files(run: Path) -> list[str]:
    """The raw files that a result names with their SHA-256 and that are there."""
    return [
        path.relative_to(run).as_posix()
        for place in (OHA, CLIENT, CEILING)
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
    given = files.load(path.parent / "result.json")
    path.write_bytes(changed)
    try:
        in_force = calibration.in_force(original, path.parent)
        again = result.build(path.parent, THRESHOLDS, *in_force)
    except errors.ResultError:
        # cell.json is no JSON any more: no result comes of it.
        assert path.name == "cell.json"
        return
    finally:
        path.write_bytes(whole)
    compared = Comparison()
    compared._json(given, json.loads(files.dump(again)), "")
    assert compared.differences


def test_a_hostile_document_does_not_end_in_a_crash(run_dir: Path) -> None:
    (run_dir / "calibration.json").write_text("[" * 100_000)
    (run_dir / CLIENT / "run.json").write_text("[" * 100_000)
    (run_dir / "tuning.json").write_text("[" * 100_000)
    outcome = verify(run_dir)
    assert "maximum recursion depth" in outcome.differences["calibration.json"][0]
    assert "cannot be derived: " in outcome.differences["claims.json"][0]


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("plan", "study"), {"kind": 7}, r"plan.json: .* at `\$.plan.study"),
        (("thresholds",), {"rate_min": "<script>"}, r"plan.json: .* at `\$.thresholds`"),
        (("thresholds",), None, r"plan.json: Expected `object`, got `null` - at `\$.thresholds`"),
        (("schema",), "lab/1", "plan.json has schema lab/1, from version 0.1 of the lab"),
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


def test_what_is_told_is_bounded(run_dir: Path) -> None:
    page = (run_dir / "report.html").read_text()
    (run_dir / "report.html").write_text(re.sub("[1-9]", "0", page))
    (run_dir / "metrics.prom").write_text("x 1\n" * 10_000)
    for place in (OHA, CLIENT, CEILING, FLOOR):
        document = files.load(run_dir / place / "result.json")
        document["per_second"] = {str(number): 7 for number in range(10_000)}
        (run_dir / place / "result.json").write_bytes(files.dump(document))
    lines = verify(run_dir).lines()
    assert len(lines) < 50
    assert max(map(len, lines)) < 400
    assert any(re.fullmatch(r"  and [\d,]+ more", line) for line in lines)
    assert re.fullmatch(r"And \d+ more documents differ.", lines[-1])


def other_lab(tmp_path: Path, **limits: float) -> Path:
    """A copy of this lab, of no known revision, with other thresholds."""
    root = tmp_path / "lab"
    for part in ("files", "roles/report", "docs/lessons"):
        shutil.copytree(ROOT / part, root / part)
    own = msgspec.to_builtins(builders.thresholds(**limits))
    (root / thresholds.FILE).write_text(yaml.safe_dump(own))
    return root


def test_the_thresholds_of_when_it_began_are_gone_by(run_dir: Path, tmp_path: Path) -> None:
    assert files.read(run_dir / CLIENT / "result.json", Result).validity.valid
    outcome = verify(run_dir, other_lab(tmp_path, duration_min=0.5))
    assert outcome.same
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
    assert set(outcome.more) == {"report.html", f"{OHA}/result.json"}
    assert outcome.same
    monkeypatch.setattr(revision, "of", lambda root: CLEAN)
    outcome = verify(run_dir)
    assert not outcome.same
    lines = "\n".join(outcome.lines())
    assert "send_delay_us.p50: nothing in the bundle, " in lines
    assert "words, layout or drawings are not" in lines


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

    def received(found: Calibration | None) -> float | None:
        return None if found is None else found.iperf3.server_to_client.bits_per_second

    def bits(place: str) -> float | None:
        (found,) = calibration.in_force(run_dir, run_dir / place)
        return received(found)

    first = calibration.derive(CalibrationDir(run_dir / "calibration"), 1, "oha", THRESHOLDS)
    newest = calibration.derive(CalibrationDir(run_dir / "calibration"), 2, "oha", THRESHOLDS)
    one, other = received(first), received(newest)
    assert one != other
    (run_dir / "calibration.json").write_bytes(files.encode(newest))
    # oha's was before both, the client's between them.
    assert (bits(OHA), bits(CLIENT)) == (None, one)
    second.write_bytes(files.encode(replace(moments, finished=last.started - 1)))
    assert bits(CLIENT) == other
    (link / "rep-2" / "ping.txt").write_text("ping: connect: Network is unreachable\n")
    assert bits(CLIENT) == one
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
    compared = Comparison()
    compared._json(document, json.loads(json.dumps(document)), "")
    assert (compared.differences, compared.more) == ([], [])


@given(st.lists(leaves | st.text(), min_size=1), st.data())
def test_any_other_value_is_told(values: list[Any], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(values) - 1))
    other = copy.copy(values)
    other[index] = data.draw(st.none() | st.booleans() | st.integers() | st.text())
    compared = Comparison()
    compared._json({"a": values}, {"a": other}, "")
    one, two = values[index], other[index]
    numbers = all(isinstance(each, int | float) and type(each) is not bool for each in (one, two))
    if numbers:
        same = abs(one - two) <= rederive.TOLERANCE * max(abs(one), abs(two))
    else:
        same = type(one) is type(two) and one == two
    assert [told[: len(f"a[{index}]: ")] for told in compared.differences] == (
        [] if same else [f"a[{index}]: "]
    )


def test_a_histogram_is_what_it_counts() -> None:
    histogram = histograms.from_values([1, 2, 3, 1000])
    packed = histograms.encode(histogram)
    other = histograms.encode(histograms.from_values([1, 2, 3, 2000]))
    for data, told in ((packed, 0), (other, 1), ("no histogram", 1)):
        compared = Comparison()
        document = {"format": histograms.FORMAT, "unit": "us", "data": packed}
        compared._json({**document, "note": 1}, {**document, "data": data, "note": 1}, "")
        assert len(compared.differences) == told


def test_each_pair_is_judged_by_its_own_calibration(run_dir: Path) -> None:
    shutil.copytree(run_dir / "calibration", run_dir / "calibration-server2")
    document = builders.calibration()
    (run_dir / "calibration-server2.json").write_bytes(files.encode(document))
    setup = files.read(run_dir / CLIENT / "cell.json", RepetitionSetup)
    for server, own in (("server2", True), ("server", False)):
        path = run_dir / CLIENT / "cell.json"
        path.write_bytes(files.encode(replace(setup, server=server)))
        assert (calibration.in_force(run_dir, run_dir / CLIENT) == [document]) is own
