"""certificate.json: how true the lab's figures are on two hosts."""

from msgspec import field

from loadlab.model.base import SCHEMA, Count, NotNegative, Reason, Record
from loadlab.model.summary import NoiseFloor


class CertificateReference(Record, kw_only=True, frozen=True):
    """The newest certificate of hosts like a run's."""

    run_id: str  #: Name of the certificate's run.
    finished: str  #: End of its last measurement, ISO 8601 UTC.
    tests: Count  #: Number of its tests.
    failed: list[str]  #: Names of the tests that failed.
    #: Those of them that say nothing of the lab, without a valid measurement.
    void: list[str] = field(default_factory=list)


class CertifiedFigure(Record, kw_only=True, frozen=True):
    """One figure of a measurement beside its true value, both in the metric's unit."""

    metric: str  #: Figure of the result, as in Truth.
    reported: NotNegative | None  #: What the lab reports; null where nothing.
    true: NotNegative | None  #: What was injected; null where the server did not log it.
    limit: NotNegative | None  #: Largest error; null where `true` is.
    #: Whether the lab withheld it, because too much of it was the generator's own.
    withheld: bool = False
    passed: bool  #: Whether it was withheld, or the error is within the limit.


class CertifiedTest(Record, kw_only=True, frozen=True):
    """One measurement with known faults."""

    name: str  #: Name of the cell in files/studies/certificate.yml.
    cell_id: str  #: Name of the cell and of its folder.
    generator: str  #: Generator of its load.
    fault: str  #: What is injected, in words.
    expected_valid: bool  #: Whether the repetition has to be valid.
    #: Codes of void reasons, one of which a void repetition has to have.
    expected_reasons: list[str]
    expected_findings: list[str]  #: Codes of findings that it has to have.
    valid: bool | None  #: Whether it is valid; null where it was not measured.
    #: Its void reasons, and those of its findings that are expected; why it was not measured where
    #: it was not.
    reasons: list[Reason]
    figures: list[CertifiedFigure]  #: Its figures whose true value is known.
    passed: bool  #: Whether validity, reasons, findings and figures are as expected.
    #: Whether it is another generator's, shown beside the tests of the certificate.
    beside: bool = False


class Certificate(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """certificate.json: known faults beside what the lab reports of them."""

    run_id: str  #: Name of the run's folder.
    finished: str | None  #: End of the last measurement, ISO 8601 UTC; null where there is none.
    tests: list[CertifiedTest]  #: Measurements in the order of the file.
    noise: list[NoiseFloor]  #: Differences of a cell from itself, for each metric.
    passed: bool  #: Whether every test passed.
