"""certificate.json: how true the lab's figures are on two hosts."""

from typing import Annotated

from msgspec import field

from loadlab.model.base import SCHEMA, Count, NotNegative, Reason, Record, doc
from loadlab.model.summary import NoiseFloor


class CertificateReference(Record, kw_only=True, frozen=True):
    """The newest certificate of hosts like a run's."""

    run_id: Annotated[str, doc("Name of the certificate's run.")]
    finished: Annotated[str, doc("End of its last measurement, ISO 8601 UTC.")]
    tests: Annotated[Count, doc("Number of its tests.")]
    failed: Annotated[list[str], doc("Names of the tests that failed.")]
    void: Annotated[
        list[str], doc("Those of them that say nothing of the lab, without a valid measurement.")
    ] = field(default_factory=list)


class CertifiedFigure(Record, kw_only=True, frozen=True):
    """One figure of a measurement beside its true value, both in the metric's unit."""

    metric: Annotated[str, doc("Figure of the result, as in Truth.")]
    reported: Annotated[NotNegative | None, doc("What the lab reports; null where nothing.")]
    true: Annotated[
        NotNegative | None, doc("What was injected; null where the server did not log it.")
    ]
    limit: Annotated[NotNegative | None, doc("Largest error; null where `true` is.")]
    withheld: Annotated[
        bool, doc("Whether the lab withheld it, because too much of it was the generator's own.")
    ] = False
    passed: Annotated[bool, doc("Whether it was withheld, or the error is within the limit.")]


class CertifiedTest(Record, kw_only=True, frozen=True):
    """One measurement with known faults."""

    name: Annotated[str, doc("Name of the cell in files/studies/certificate.yml.")]
    cell_id: Annotated[str, doc("Name of the cell and of its folder.")]
    generator: Annotated[str, doc("Generator of its load.")]
    fault: Annotated[str, doc("What is injected, in words.")]
    expected_valid: Annotated[bool, doc("Whether the repetition has to be valid.")]
    expected_reasons: Annotated[
        list[str], doc("Codes of void reasons, one of which a void repetition has to have.")
    ]
    expected_findings: Annotated[list[str], doc("Codes of findings that it has to have.")]
    valid: Annotated[bool | None, doc("Whether it is valid; null where it was not measured.")]
    reasons: Annotated[
        list[Reason],
        doc(
            "Its void reasons, and those of its findings that are expected; why it was not "
            "measured where it was not."
        ),
    ]
    figures: Annotated[list[CertifiedFigure], doc("Its figures whose true value is known.")]
    passed: Annotated[bool, doc("Whether validity, reasons, findings and figures are as expected.")]
    beside: Annotated[
        bool, doc("Whether it is another generator's, shown beside the tests of the certificate.")
    ] = False


class Certificate(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """certificate.json: known faults beside what the lab reports of them."""

    run_id: Annotated[str, doc("Name of the run's folder.")]
    finished: Annotated[
        str | None, doc("End of the last measurement, ISO 8601 UTC; null where there is none.")
    ]
    tests: Annotated[list[CertifiedTest], doc("Measurements in the order of the file.")]
    noise: Annotated[list[NoiseFloor], doc("Differences of a cell from itself, for each metric.")]
    passed: Annotated[bool, doc("Whether every test passed.")]
