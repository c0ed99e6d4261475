"""A certificate: what the lab reports of known faults beside what was injected."""

from pathlib import Path

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from loadlab.kinds.certificate import analyse, words
from loadlab.kinds.certificate.analyse import Injected
from loadlab.model import (
    SCHEMA,
    Certificate,
    CertifiedTest,
    Expectation,
    Reason,
    Repetition,
    SaturationGoodput,
    ScaledRate,
    ServiceProcesses,
    Truth,
    Validity,
)
from loadlab.report.first_screen.key_facts import LabTests
from loadlab.run import documents
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import RunDir
from tests.unit.builders import (
    plan,
    planned_study,
    present,
    processes,
    repetition,
    summary,
    valid,
    void,
    write_plan,
)

LOGGED = Injected("stall", 100, {"right": 95, "error": 5}, 0.2, [(50_000, 90), (1_000_000, 10)])
FOUND = summary()
CELL = FOUND.cells[0]


def certify(expected: Expectation, rep: Repetition, log: Injected | None = LOGGED) -> CertifiedTest:
    study = planned_study(cells={"stall": [CELL.cell_id]}, expectations={"stall": expected})
    found = replace(FOUND, cells=[replace(CELL, repetitions=[rep])])
    generators = {CELL.cell_id: "metronome"}
    built = analyse.build(found, study, generators, {} if log is None else {"stall": log})
    assert built.passed == built.tests[0].passed
    return built.tests[0]


def reported(metric: str, value: float) -> Repetition:
    rep = repetition(requests=100)
    if metric.startswith("latency_us."):
        assert rep.latency_us
        latency = replace(rep.latency_us, **{metric.removeprefix("latency_us."): value})
        return replace(rep, latency_us=latency)
    assert rep.errors
    return replace(rep, errors=replace(rep.errors, status_5xx=int(value)))


@pytest.mark.parametrize(
    ("truth", "value", "passed"),
    [
        (Truth(metric="latency_us.p99", within=0.02), 1_019_000, True),
        (Truth(metric="latency_us.p99", within=0.02), 1_021_000, False),
        (Truth(metric="latency_us.p99", within=0.02), 979_000, False),
        (Truth(metric="latency_us.p50", within=0.02), 50_400, True),
        (Truth(metric="errors.status_5xx"), 5, True),
        (Truth(metric="errors.status_5xx"), 4, False),
        (Truth(metric="errors.status_5xx", fraction=0.04), 4, True),
        (Truth(metric="errors.status_5xx", fraction=0.04, slack=1), 5, True),
        (Truth(metric="errors.status_5xx", value=7), 5, False),
    ],
)
def test_a_figure_passes_within_its_limit_only(truth: Truth, value: float, passed: bool) -> None:
    test = certify(Expectation(fault="", truths=[truth]), reported(truth.metric, value))
    assert [figure.passed for figure in test.figures] == [passed]
    assert test.passed is passed


def test_a_percentile_that_the_lab_withheld_is_not_untrue() -> None:
    """Too much of the p99 was the generator's own; the p50 is judged all the same."""
    truths = [Truth(metric=f"latency_us.{name}", within=0.02) for name in ("p50", "p99")]
    own = Reason(code="own_part", value=107.0, limit=66.0, facts={"percentiles": ["p99"]})
    found = Validity(valid=True, reasons=[], findings=[own])
    for value, passed in ((50_400.0, True), (60_000.0, False)):
        rep = replace(reported("latency_us.p50", value), validity=found)
        test = certify(Expectation(fault="", truths=truths), rep)
        assert [figure.withheld for figure in test.figures] == [False, True]
        assert test.passed is passed
    certificate = Certificate(run_id="r", finished=None, tests=[test], noise=[], passed=False)
    assert words.sentence(certificate) == (
        "The lab reported the truth in 0 of 1 test. It was wrong in stall. "
        "1 percentile is not shown, as the generator's own delay was too large a part."
    )
    assert words.lab_tests(certificate) == LabTests(
        measured="this load-testing tool itself (the lab): 1 test with a deliberate delay, error "
        "or load of known size.",
        beside="",
        trust="Yes: every test could be judged.",
    )
    void = replace(test, passed=False, valid=False, expected_valid=True)
    for tests, trust in (
        ([void], "No: none of 1 test could be judged."),
        ([test, void], "With care: 1 of 2 tests could not be judged."),
        ([test, void, void], "With much care: 2 of 3 tests could not be judged."),
    ):
        assert words.lab_tests(replace(certificate, tests=tests)).trust == trust


def test_a_figure_without_a_log_fails_and_has_no_true_value() -> None:
    expected = Expectation(fault="", truths=[Truth(metric="latency_us.p99", within=0.02)])
    (figure,) = certify(expected, repetition(), None).figures
    assert (figure.true, figure.limit, figure.passed) == (None, None, False)


@pytest.mark.parametrize(("share", "passed"), [(0.5, True), (0.6, False)])
def test_time_in_the_kernel_is_beside_what_was_burned_there(share: float, passed: bool) -> None:
    """The application used 5 ms of CPU for each of 100 requests, half of it on purpose inside."""
    log = replace(LOGGED, cpu_s=0.5, kernel_s=0.25)
    hosts = present(repetition().telemetry)
    services = ServiceProcesses(
        reverse_proxy=None, application=processes(cpu_s=0.5, system_share=share), postgresql=None
    )
    server = replace(hosts.server, processes=services)
    rep = repetition(requests=100, telemetry=replace(hosts, server=server))
    truths = [Truth(metric=f"server_{name}_us", within=0.03) for name in ("cpu", "kernel")]
    figures = certify(Expectation(fault="", truths=truths), rep, log).figures
    assert [figure.true for figure in figures] == [5000, 2500]
    assert [figure.passed for figure in figures] == [True, passed]


VOID = Expectation(fault="", valid=False, reasons=["foreign_cpu", "generator_cpu"])
VALID = Expectation(fault="")
WITH_FINDING = Expectation(fault="", findings=["retransmits"])


def with_finding(code: str) -> Validity:
    return Validity(valid=True, reasons=[], findings=[Reason(code=code)])


@pytest.mark.parametrize(
    ("expected", "validity", "passed"),
    [
        # A fault of the instrument has to void for its reason.
        (VOID, void("foreign_cpu"), True),
        (VOID, void("steal"), False),
        (VOID, with_finding("foreign_cpu"), False),
        # A fault of the server may not void.
        (VALID, void("steal"), False),
        (VALID, valid(), True),
        # An expected finding has to be there.
        (WITH_FINDING, valid(), False),
        (WITH_FINDING, with_finding("retransmits"), True),
    ],
)
def test_a_test_passes_with_the_validity_that_it_expects_only(
    expected: Expectation, validity: Validity, passed: bool
) -> None:
    assert certify(expected, repetition(validity=validity)).passed is passed


def test_a_test_whose_rate_is_unknown_says_nothing_of_the_lab() -> None:
    """A busy machine voids each closed loop that the rate is a fraction of."""
    steal = Reason(code="steal", value=0.2, limit=0.1, facts={"host": "server"})
    busy = Validity(valid=False, reasons=[steal], findings=[])
    full = replace(CELL, cell_id="full", repetitions=[repetition(validity=busy)])
    rate = ScaledRate(
        cells=["twice"],
        fraction=2,
        of=[SaturationGoodput(cell="twice", cell_id="full", goodput=None)],
        rate=None,
    )
    expected = Expectation(fault="too much", valid=False, reasons=["own_median"])
    study = planned_study(cells={"twice": ["twice"]}, expectations={"twice": expected})
    built = analyse.build(
        replace(FOUND, cells=[full], rates=[rate]), study, {"twice": "metronome"}, {}
    )
    (test,) = built.tests
    assert (test.generator, test.valid, test.passed) == ("metronome", None, False)
    assert words.reported(test) == (
        "its rate is a fraction of a closed loop that was not valid: twice; "
        "another machine took 20 % of the CPU"
    )
    assert words.sentence(built) == (
        "The lab reported the truth in 0 of 1 test. It was wrong in none. "
        "1 test has no valid measurement: its rate is a fraction of a closed loop that was not "
        "valid: twice; another machine took 20 % of the CPU."
    )


def test_the_log_is_read_to_the_last_load_of_a_name(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.logs.mkdir()
    line = '2026-11-22T10:00:00.000000+0000 server python[7]: {{"injected": {}}}'
    one = '{"name": "a", "requests": 1, "answers": {}, "cpu_s": 0.1, "residence_us": [[5, 1]]}'
    run.log("server").write_text(
        "\n".join(["some words", line.format(one), line.format(one.replace("1,", "2,", 1))])
    )
    assert analyse.injected(run) == {"a": Injected("a", 2, {}, 0.1, [(5, 1)])}
    run.log("server").write_text(line.format('{"name": 1}'))
    with pytest.raises(ResultError, match=r"server\.log: Expected `str`, got `int`"):
        analyse.injected(run)


def test_the_newest_certificate_is_of_this_schema(tmp_path: Path) -> None:
    """One of another version stays in results/ and says nothing, nor does a torn run."""
    for run_id, schema, finished in (
        ("first", SCHEMA, "2026-11-21T10:00:00Z"),
        ("second", SCHEMA, "2026-11-22T10:00:00Z"),
        ("other", "lab/2", "2026-11-23T10:00:00Z"),
        ("torn", SCHEMA, "2026-11-23T11:00:00Z"),
        ("mine", SCHEMA, "2026-11-24T10:00:00Z"),
    ):
        write_plan(tmp_path / run_id, plan())
        found = Certificate(run_id=run_id, finished=finished, tests=[], noise=[], passed=True)
        document = {**to_builtins(found), "schema": schema}
        documents.write(RunDir(tmp_path / run_id).certificate, documents.dump(document))
    RunDir(tmp_path / "torn").plan.unlink()
    newest = analyse.newest(tmp_path / "mine")
    assert newest
    assert newest.run_id == "second"
