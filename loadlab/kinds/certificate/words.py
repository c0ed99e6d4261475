"""Words for certificate.json, once for terminal and page."""

from collections.abc import Sequence

from loadlab.kinds.certificate.analyse import certified, is_void
from loadlab.kinds.study import words as study_words
from loadlab.model import Certificate, CertifiedFigure, CertifiedTest
from loadlab.report import words
from loadlab.report.first_screen.key_facts import LabTests
from loadlab.report.words import quantities
from loadlab.run.formatting import NONE, percent, plural

# Of the server, by metric.
_FIGURES = {"server_cpu_us": "CPU of an answer", "server_kernel_us": "kernel CPU of an answer"}


def sentence(certificate: Certificate) -> str:
    """Return how many of the tests passed, which did not, which say nothing as they have no valid
    measurement, and how many percentiles the lab withheld."""
    tests = certified(certificate)
    count = plural(len(tests), "test")
    failed = [test for test in tests if not test.passed]
    void = [test for test in failed if is_void(test)]
    untrue = ", ".join(test.name for test in failed if test not in void)
    withheld = sum(own.withheld for test in tests for own in test.figures)
    passed = f"{len(tests) - len(failed)} of" if failed else "all"
    return " ".join(
        [
            f"The lab reported the truth in {passed} {count}{_furthest(tests)}.",
            *([f"It was wrong in {untrue or 'none'}."] if failed else []),
            *([_void(void)] if void else []),
            *([_withheld(withheld)] if withheld else []),
        ]
    )


def _furthest(tests: Sequence[CertifiedTest]) -> str:
    """Return how far the latencies of passed tests were from the truth; empty without any."""
    errors = [
        abs(figure.reported / figure.true - 1)
        for test in tests
        if test.passed
        for figure in test.figures
        if figure.metric.startswith("latency_us.") and figure.reported and figure.true
    ]
    return f"; latencies were at most {percent(max(errors))} off" if errors else ""


def lab_tests(certificate: Certificate) -> LabTests:
    """Return how many known faults were measured, beside them those of other generators, and how
    many tests could not be judged."""
    tests = certified(certificate)
    count, void = plural(len(tests), "test"), sum(map(is_void, tests))
    others = len(certificate.tests) - len(tests)
    trust = f"With care: {void} of {count} could not be judged."
    if not void:
        trust = "Yes: every test could be judged."
    elif void == len(tests):
        trust = f"No: none of {count} could be judged."
    elif void > len(tests) / 2:
        trust = trust.replace("With care", "With much care")
    return LabTests(
        measured=f"this load-testing tool itself (the lab): {count} with a deliberate delay, error "
        "or load of known size.",
        beside=f"beside them, {plural(others, 'test')} of other generators" if others else "",
        trust=trust,
    )


def _withheld(count: int) -> str:
    subject = f"{plural(count, 'percentile')} {'is' if count == 1 else 'are'}"
    return f"{subject} not shown, as the generator's own delay was too large a part."


def _void(tests: Sequence[CertifiedTest]) -> str:
    causes = study_words.void_reasons(reason for test in tests for reason in test.reasons)
    because = f": {causes}" if causes else ""
    verb = "has" if len(tests) == 1 else "have"
    return f"{plural(len(tests), 'test')} {verb} no valid measurement{because}."


def expected(test: CertifiedTest) -> str:
    """Return the validity that a test expects, with its codes."""
    if not test.expected_valid:
        codes = " or ".join(test.expected_reasons)
        return f"void: {codes}" if codes else "void"
    return ", ".join(["valid", *test.expected_findings])


def reported(test: CertifiedTest) -> str:
    """Return the validity that the lab reports, with its reasons."""
    if test.valid is None:
        return study_words.void_reasons(test.reasons) or "not measured"
    state = "valid" if test.valid else "void"
    return "; ".join([state, *map(words.coded, test.reasons)])


def figure(metric: str) -> str:
    """Return the name of a figure: p99 latency, CPU of an answer."""
    kind, _, name = metric.partition(".")
    match kind:
        case "latency_us":
            return f"{name} latency"
        case "errors":
            return f"errors, {name}"
    return _FIGURES.get(metric, metric)


def error(figure: CertifiedFigure) -> str:
    """Return the error of a figure in percent of its true value."""
    if figure.reported is None or not figure.true:
        return NONE
    return f"{(figure.reported / figure.true - 1) * 100:+.2f} %"


def value(metric: str, amount: float | None) -> str:
    """Return a figure with its unit."""
    return NONE if amount is None else quantities.quantity(metric, amount)
