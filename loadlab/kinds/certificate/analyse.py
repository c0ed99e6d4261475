"""Compare what the lab reports of known faults with what was injected."""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from loadlab.kinds.study import sampling
from loadlab.model import (
    Certificate,
    CertificateReference,
    CertifiedFigure,
    CertifiedTest,
    Expectation,
    PlannedStudy,
    Reason,
    Repetition,
    Summary,
    Truth,
)
from loadlab.plan import plan_document as plans
from loadlab.reasons.row import names
from loadlab.run import documents, formatting
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import RunDir
from loadlab.stats import histograms

# Class of an error -> the fault server's name of the answers that cause it.
_ANSWERS = {"errors.status_5xx": "error", "errors.read": "truncated"}


class Injected(Struct, frozen=True):
    """What the fault server did to the requests of one load: a line of its log."""

    name: str
    requests: int
    answers: dict[str, int]  #: Kind of answer -> count.
    cpu_s: float  #: CPU time of the server during the load, seconds.
    residence_us: list[tuple[int, int]]  #: (µs from the complete request to its answer, count).
    kernel_s: float = 0.0  #: The part that it burned inside the kernel on purpose.


class _Line(Struct, frozen=True):
    injected: Injected


def injected(run: RunDir) -> dict[str, Injected]:
    """Return name of a load -> what the fault server logged of it last.

    Raises ResultError for a line that is not understood.
    """
    loads = {}
    for log in sorted(run.logs.glob("*.log")):
        for text in re.findall(r'\{"injected": .*\}$', documents.text(log), re.MULTILINE):
            try:
                line = msgspec.json.decode(text, type=_Line).injected
            except msgspec.DecodeError as problem:
                raise ResultError(f"{log.name}: {problem}: {text[:80]}") from problem
            loads[line.name] = line
    return loads


def newest(run_dir: Path) -> CertificateReference | None:
    """Return the newest certificate of hosts like a run's; None where there is none.

    The certificates are those of the runs in the same folder that this version of the lab can read.
    Hosts are alike where plan.json records the same of them.
    """
    hosts = plans.read(run_dir).hosts
    certificates: list[CertificateReference] = []
    for run in map(RunDir, sorted(run_dir.parent.iterdir())):
        if not run.certificate.exists() or run.path.is_symlink() or run.path == run_dir:
            continue
        try:
            certificate = documents.read(run.certificate, Certificate)
            certified_hosts = plans.read(run.path).hosts
        except ResultError:
            # Another run's torn files do not fail this one.
            continue
        if certificate.finished is not None and certified_hosts == hosts:
            tests = certified(certificate)
            certificates.append(
                CertificateReference(
                    run_id=certificate.run_id,
                    finished=certificate.finished,
                    tests=len(tests),
                    failed=[test.name for test in tests if not test.passed],
                    void=[test.name for test in tests if is_void(test)],
                )
            )
    return max(certificates, key=lambda reference: reference.finished, default=None)


def certified(certificate: Certificate) -> list[CertifiedTest]:
    """Return the tests of a certificate, without those of other generators."""
    return [test for test in certificate.tests if not test.beside]


def is_void(test: CertifiedTest) -> bool:
    """Return whether a test says nothing of the lab: it was not measured, or is void against what
    is expected."""
    unexpected = test.valid is None or (test.expected_valid and not test.valid)
    return not test.passed and unexpected


def build(
    summary: Summary,
    study: PlannedStudy,
    generators: Mapping[str, str],
    logged: Mapping[str, Injected],
) -> Certificate:
    """Return the certificate of a run.

    ``generators``: planned cell_id -> its generator. ``logged``: see injected().
    """
    tests = []
    for name, expected in study.expectations.items():
        cell_id = study.cells[name][0]
        tests.append(_test(name, expected, cell_id, generators[cell_id], summary, logged.get(name)))
    return Certificate(
        run_id=summary.run_id,
        finished=formatting.latest(
            repetition.finished for cell in summary.cells for repetition in cell.repetitions
        ),
        tests=tests,
        noise=summary.noise_floor,
        passed=all(test.passed for test in tests if not test.beside),
    )


def _test(
    name: str,
    expected: Expectation,
    cell_id: str,
    generator: str,
    summary: Summary,
    log: Injected | None,
) -> CertifiedTest:
    cell = next((cell for cell in summary.cells if cell.cell_id == cell_id), None)
    rep = cell.repetitions[-1] if cell else None
    figures = [_figure(truth, rep, log) for truth in expected.truths]
    return CertifiedTest(
        name=name,
        cell_id=cell_id,
        generator=generator,
        fault=expected.fault,
        expected_valid=expected.valid,
        expected_reasons=expected.reasons,
        expected_findings=expected.findings,
        valid=rep.validity.valid if rep and rep.error is None else None,
        reasons=_reasons(expected, rep) if rep else sampling.unstarted(summary, [cell_id]),
        figures=figures,
        passed=_is_as_expected(expected, rep) and all(figure.passed for figure in figures),
        beside=expected.beside,
    )


def _reasons(expected: Expectation, rep: Repetition) -> list[Reason]:
    """Return the void reasons and the findings that are expected."""
    findings = [finding for finding in rep.validity.findings if finding.code in expected.findings]
    return [*rep.validity.reasons, *findings]


def _is_as_expected(expected: Expectation, rep: Repetition | None) -> bool:
    if rep is None or rep.error is not None or rep.validity.valid != expected.valid:
        return False
    reasons = {reason.code for reason in rep.validity.reasons}
    findings = {reason.code for reason in rep.validity.findings}
    explained = expected.valid or not expected.reasons or bool(reasons & {*expected.reasons})
    return explained and {*expected.findings} <= findings


def _figure(truth: Truth, rep: Repetition | None, log: Injected | None) -> CertifiedFigure:
    reported = _reported(truth.metric, rep) if rep and rep.error is None else None
    true = _true(truth, rep, log)
    limit, within = None, False
    if true is not None:
        limit = truth.within * true + truth.slack
        within = reported is not None and abs(reported - true) <= limit
    withheld = rep is not None and _is_withheld(truth.metric, rep)
    return CertifiedFigure(
        metric=truth.metric,
        reported=reported,
        true=true,
        limit=limit,
        withheld=withheld,
        passed=withheld or within,
    )


def _is_withheld(metric: str, rep: Repetition) -> bool:
    percentile = metric.removeprefix("latency_us.")
    return any(
        finding.code == "own_part" and percentile in names(finding, "percentiles")
        for finding in rep.validity.findings
    )


def _reported(metric: str, rep: Repetition) -> float | None:
    """Return a figure of a repetition in the metric's unit."""
    if metric in ("server_cpu_us", "server_kernel_us"):
        return _cpu_us(rep, in_kernel=metric == "server_kernel_us")
    value: object = msgspec.to_builtins(rep)
    for key in metric.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else None


def _cpu_us(rep: Repetition, *, in_kernel: bool) -> float | None:
    processes = rep.telemetry.server.processes if rep.telemetry else None
    application = processes.application if processes else None
    if application is None or application.cpu_s is None or not rep.requests:
        return None
    share = application.system_share if in_kernel else 1.0
    return None if share is None else share * application.cpu_s / rep.requests * 1e6


def _true(truth: Truth, rep: Repetition | None, log: Injected | None) -> float | None:
    """Return the true value of a figure; None where neither the file nor the log has it."""
    if truth.value is not None:
        return truth.value
    if truth.fraction is not None:
        return None if rep is None or rep.requests is None else truth.fraction * rep.requests
    if log is None:
        return None
    if truth.metric == "requests":
        return log.requests
    if truth.metric == "server_cpu_us":
        return log.cpu_s / log.requests * 1e6 if log.requests else None
    if truth.metric == "server_kernel_us":
        return log.kernel_s / log.requests * 1e6 if log.requests else None
    if truth.metric in _ANSWERS:
        return log.answers.get(_ANSWERS[truth.metric], 0)
    return _residence(truth.metric, log)


def _residence(metric: str, log: Injected) -> float | None:
    """Return a percentile of the time that requests spent in the server, µs."""
    pairs = np.array(log.residence_us, dtype=np.int64).reshape(-1, 2)
    if not len(pairs):
        return None
    counted = histograms.add_up(pairs[:, 0], pairs[:, 1])
    percentiles = histograms.summary(histograms.from_counts(*counted), counted)
    return percentiles.get(metric.removeprefix("latency_us."))
