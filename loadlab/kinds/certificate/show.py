"""The part of the page on a certificate: known faults beside what the lab reports of them."""

from __future__ import annotations

from loadlab.kinds.certificate import words
from loadlab.kinds.certificate.analyse import certified
from loadlab.model import Certificate, CertifiedTest, NoiseFloor
from loadlab.report.html import Cells, Headline, Part, Row, Section, Table, TableCell, link, table
from loadlab.report.words import quantities
from loadlab.run import formatting
from loadlab.run.run_dir import CERTIFICATE

_STATES = {True: "held", False: "missed"}


def headline(certificate: Certificate) -> Headline:
    """Return whether the lab reported the truth."""
    return Headline(_STATES[certificate.passed], words.sentence(certificate), anchor="certificate")


def section(certificate: Certificate) -> Section:
    """Return the section; noise without an A/A control is left out."""
    tables = [
        (_figures(certificate), "claims"),
        (_beside(certificate), ""),
        (_validity(certificate), "claims"),
        (_noise(certificate), ""),
    ]
    parts = [Part(table=table, css=css) for table, css in tables if table]
    return Section("certificate", "Certificate", "Certificate", parts)


def _figures(certificate: Certificate) -> Table:
    rows = [row for test in certified(certificate) for row in _figures_of(test)]
    return table(
        "What the lab reports of each known fault, beside the true value: what the server logged "
        "by its own clock, or what the fault is by its definition.",
        ["test", "fault", "figure", "reported", "true", "error", "largest error", "result"],
        rows,
        "   nnnn ",
        sources=[link(CERTIFICATE)],
    )


def _beside(certificate: Certificate) -> Table | None:
    """Return what each generator reports of the same truths; None without another's."""
    others = [test for test in certificate.tests if test.beside]
    if not others:
        return None
    faults = {test.fault for test in others}
    rows: list[Cells] = [
        [
            test.generator,
            test.fault,
            test.name,
            figure.metric,
            words.value(figure.metric, figure.reported),
            words.value(figure.metric, figure.true),
            words.error(figure),
        ]
        for test in certificate.tests
        if test.beside or test.fault in faults
        for figure in test.figures
        if figure.metric.startswith("latency_us.")
    ]
    return table(
        "What each generator reports of the same truths. Those of other generators decide nothing.",
        ["generator", "fault", "test", "figure", "reported", "true", "error"],
        rows,
        "    nnn",
        sources=[link(CERTIFICATE)],
    )


def _figures_of(test: CertifiedTest) -> list[Row]:
    return [
        Row([
            test.name,
            test.fault,
            figure.metric,
            words.value(figure.metric, figure.reported),
            words.value(figure.metric, figure.true),
            words.error(figure),
            words.value(figure.metric, figure.limit),
            _result(figure.passed),
        ])
        for figure in test.figures
    ]  # fmt: skip


def _validity(certificate: Certificate) -> Table:
    rows: list[Cells] = [
        [test.name, test.fault, words.expected(test), words.reported(test), _result(test.passed)]
        for test in certified(certificate)
    ]
    return table(
        "Whether each measurement is valid. A fault of the server never makes one void; a fault of "
        "the generator, or of a neighbour on the hosts, always does.",
        ["test", "fault", "expected", "reported", "result"],
        rows,
        sources=[link(CERTIFICATE)],
    )


def _noise(certificate: Certificate) -> Table | None:
    if not certificate.noise:
        return None
    rows: list[Cells] = [_noise_row(floor) for floor in certificate.noise]
    return table(
        "How much one cell differs from itself here, measured twice in every block.",
        ["metric", "difference", "interval", "noise floor"],
        rows,
        " nnn",
        sources=[link(CERTIFICATE)],
    )


def _noise_row(floor: NoiseFloor) -> Cells:
    difference = floor.difference
    return [
        quantities.label(floor.metric),
        formatting.signed(difference.value),
        formatting.span(difference.low, difference.high),
        formatting.percent(floor.noise_floor) if floor.noise_floor is not None else formatting.NONE,
    ]


def _result(passed: bool) -> TableCell:
    return TableCell("passed" if passed else "failed", css=_STATES[passed])
