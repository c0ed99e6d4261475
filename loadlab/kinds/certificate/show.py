"""The part of the page on a certificate: known faults beside what the lab reports of them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from loadlab.kinds.certificate import words
from loadlab.kinds.certificate.analyse import certified, is_void
from loadlab.model import Certificate, CertifiedFigure, CertifiedTest, NoiseFloor
from loadlab.report.html import (
    Column,
    Group,
    Headline,
    Number,
    Section,
    Table,
    TableCell,
    link,
    present,
    table,
)
from loadlab.report.words import quantities
from loadlab.run import formatting
from loadlab.run.run_dir import CERTIFICATE

_STATES = {True: "held", False: "missed"}


def headline(certificate: Certificate) -> Headline:
    """Return whether the lab reported the truth."""
    failed = [test for test in certified(certificate) if not test.passed]
    state = "inconclusive" if failed and all(map(is_void, failed)) else _STATES[certificate.passed]
    return Headline(state, words.sentence(certificate), anchor="certificate")


def section(certificate: Certificate) -> Section:
    """Return the section; noise without an A/A control is left out."""
    blocks = present(
        Group([_figures(certificate)], "claims"),
        _beside(certificate),
        Group([_validity(certificate)], "claims"),
        _noise(certificate),
    )
    return Section("Certificate", blocks, "certificate", "Certificate")


class _Figure(NamedTuple):
    """A figure of a test."""

    test: CertifiedTest
    figure: CertifiedFigure


def _figures_of(tests: Iterable[CertifiedTest]) -> list[_Figure]:
    return [_Figure(test, figure) for test in tests for figure in test.figures]


_TEST: Column[_Figure] = Column("test", lambda row: row.test.name)
_FAULT: Column[_Figure] = Column("fault", lambda row: row.test.fault)
_ERROR: Sequence[Column[_Figure]] = [
    Column("figure", lambda row: words.figure(row.figure.metric)),
    Number("reported", lambda row: words.value(row.figure.metric, row.figure.reported)),
    Number("true", lambda row: words.value(row.figure.metric, row.figure.true)),
    Number("error", lambda row: words.error(row.figure)),
]


def _figures(certificate: Certificate) -> Table:
    return table(
        "What the lab reports of each known fault, beside the true value: what the server logged "
        "by its own clock, or what the fault is by its definition.",
        [
            _TEST,
            _FAULT,
            *_ERROR,
            Number("allowed error", lambda row: words.value(row.figure.metric, row.figure.limit)),
            Column("result", lambda row: _of_figure(row.figure)),
        ],
        _figures_of(certified(certificate)),
        sources=[link(CERTIFICATE)],
    )


def _beside(certificate: Certificate) -> Table | None:
    """Return what each generator reports of the same truths; None without another's."""
    faults = {test.fault for test in certificate.tests if test.beside}
    if not faults:
        return None
    tests = [test for test in certificate.tests if test.beside or test.fault in faults]
    return table(
        "What each generator reports of the same truths. Those of other generators decide nothing.",
        [Column("generator", lambda row: row.test.generator), _FAULT, _TEST, *_ERROR],
        [row for row in _figures_of(tests) if row.figure.metric.startswith("latency_us.")],
        sources=[link(CERTIFICATE)],
    )


_VALIDITY: Sequence[Column[CertifiedTest]] = [
    Column("test", lambda test: test.name),
    Column("fault", lambda test: test.fault),
    Column("expected", words.expected),
    Column("reported", words.reported),
    Column("result", lambda test: _result(test.passed)),
]


def _validity(certificate: Certificate) -> Table:
    return table(
        "Whether each measurement is valid. A fault of the server never makes one void; a fault of "
        "the generator, or of a neighbour on the hosts, always does.",
        _VALIDITY,
        certified(certificate),
        sources=[link(CERTIFICATE)],
    )


_NOISE: Sequence[Column[NoiseFloor]] = [
    Column("metric", lambda floor: quantities.label(floor.metric)),
    Number("difference", lambda floor: formatting.signed(floor.difference.value)),
    Number("interval", lambda floor: formatting.span(floor.difference.low, floor.difference.high)),
    Number("noise floor", lambda floor: formatting.percent(floor.noise_floor)),
]


def _noise(certificate: Certificate) -> Table | None:
    if not certificate.noise:
        return None
    return table(
        "How much one cell differs from itself here, measured twice in every block.",
        _NOISE,
        certificate.noise,
        sources=[link(CERTIFICATE)],
    )


def _of_figure(figure: CertifiedFigure) -> TableCell:
    return TableCell("withheld") if figure.withheld else _result(figure.passed)


def _result(passed: bool) -> TableCell:
    return TableCell("passed" if passed else "failed", css=_STATES[passed])
