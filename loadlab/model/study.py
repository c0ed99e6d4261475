"""Studies and lessons: the files that name cells, claims and published figures."""

from typing import Annotated

from msgspec import Meta, field

from loadlab.model.base import Above0, Name, NotNegative, Positive, Record
from loadlab.model.cell import Injection, Stall
from loadlab.model.claims import ClaimStatement, Published, StudyClaim
from loadlab.model.lesson import Lesson
from loadlab.model.statistics import AblationPower

Scalar = str | int | float | bool | None
# The value of a main variable, as a file or the command line has it.
OptionValue = Scalar | list[Scalar] | dict[str, Scalar | list[Scalar]]
GivenOptions = dict[str, OptionValue]


class SaturationRate(Record, kw_only=True, frozen=True):
    """A rate relative to the machine: a fraction of the closed-loop goodput of other cells."""

    fraction: Annotated[float, Meta(gt=0, le=2)]  #: Of the least of these saturations, up to 2.
    of: Annotated[list[str], Meta(min_length=1)]  #: Names of the study's cells that saturate.


class StudyRate(Record, kw_only=True, frozen=True):
    """A published rate and what stands for it at this scale."""

    name: str  #: Name of the rate, which a cell's option `rate` may be.
    statement: str  #: How it follows from what was published.
    published: float | None  #: As published, requests/s.
    here: float | SaturationRate | None  #: Here: requests/s, or a fraction of saturations.


class StudySetting(Record, kw_only=True, frozen=True, omit_defaults=False):
    """An option that has another value here than at the published scale."""

    name: str  #: Name of the option.
    published: OptionValue  #: Its value at the published scale.
    here: OptionValue  #: Its value in this run; null for its default.


class StudyErratum(Record, kw_only=True, frozen=True):
    """An error of the source, and how it is to be read."""

    mistake: str  #: The mistake.
    printed: str  #: What the source says.
    corrected: str  #: How it is to be read.
    where: str | None = None  #: Place in the source.
    cell: str | None = None  #: Name of the cell that shows it here.
    metric: str | None = None  #: The metric that shows it.


class PublishedFigures(Record, kw_only=True, frozen=True):
    """A group of published figures."""

    title: str  #: What the figures are of.
    where: str  #: Place in the source.
    reference: str | None = None  #: Name of the cell that the others are compared to.
    #: Why none of them is measured here; the names are then free text.
    not_reproduced: str | None = None
    #: Name of a cell, or <name>@<connections> for a level of a sweep -> metric -> figure in the
    #: metric's unit.
    cells: dict[str, dict[str, float]]


class StudySetup(Record, kw_only=True, frozen=True):
    """The published set-up."""

    server: str | None = None  #: The server in words.
    client: str | None = None  #: The client in words.
    link: str | None = None  #: The link between them in words.
    versions: dict[str, str] | None = None  #: Package -> version.


class StudyPublication(Record, kw_only=True, frozen=True):
    """What was published elsewhere."""

    question: str | None = None  #: What the study asks.
    source: dict[str, str] | None = None  #: title, author, date, url, and more where known.
    setup: StudySetup | None = None  #: The published set-up.
    settings: list[StudySetting]  #: Options that differ from the published scale.
    rates: list[StudyRate]  #: Published rates and what stands for them here.
    figures: list[PublishedFigures]  #: Published figures by group.
    errata: list[StudyErratum]  #: Errors of the source.
    differs: list[str]  #: Sentences on differences that no document of the run records.


class Truth(Record, kw_only=True, frozen=True):
    """One figure whose true value is known. Without `value` and `fraction` the server logged it."""

    #: Figure of the result: latency_us.<percentile>, errors.<class>, unsent, or server_cpu_us, the
    #: application's CPU time for each request, or server_kernel_us, the part of it in the kernel.
    metric: str
    value: NotNegative | None = None  #: True value, in the metric's unit.
    fraction: Above0 | None = None  #: True value as a fraction of the requests.
    within: NotNegative = 0.0  #: Largest error, as a fraction of the true value.
    slack: NotNegative = 0.0  #: Largest error beside that, in the metric's unit.


class Expectation(Record, kw_only=True, frozen=True):
    """What a measurement with injected faults has to show."""

    fault: str  #: What is injected, in words.
    truths: list[Truth] = field(default_factory=list)  #: Figures whose true value is known.
    #: Whether it is only shown beside the others: what another generator reports.
    beside: bool = False
    valid: bool = True  #: Whether the repetition has to be valid.
    #: Codes of void reasons, one of which a void repetition has to have.
    reasons: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  #: Codes of findings that it has to have.


class StudyLoad(Record, kw_only=True, frozen=True):
    """What a cell of a study has besides its options."""

    #: Codes of void reasons that are the subject of the cell.
    expected_void: list[str] | None = None
    burst_every_s: Above0 | None = None  #: Seconds between the bursts of a closed loop.
    stall: Stall | None = None  #: The application is stopped during the load.
    #: Endpoint that one more client asks throughout the load.
    background_endpoint: str | None = None
    injection: Injection | None = None  #: Known faults during the load.
    #: What it has to show; it is then measured once and is in no comparison.
    expectation: Expectation | None = None


class StudyCell(StudyLoad, kw_only=True, frozen=True):
    """One named set of options of a study, after its matrix and scale are applied."""

    name: str  #: Name that claims and figures use.
    variant: str | None = None  #: Name of its variant, of a comparison of variants.
    options: GivenOptions  #: Main variables of this cell, which nothing overrides.
    #: Names of these whose values were made of the run's own variables.
    derived: list[str] = field(default_factory=list)


class Variant(Record, kw_only=True, frozen=True):
    """One of the variants that are compared."""

    name: str  #: base; head, or of several head1, head2 and so on.
    definition: str  #: As the user defined it, such as workers=2,tuning=stock.
    options: GivenOptions  #: Main variables that it overrides, name -> value.
    commit: str | None = None  #: Commit of its application, where a git ref was given; else null.


class Candidate(Record, kw_only=True, frozen=True):
    """One way to serve the application of a matrix."""

    name: Name  #: <server>[-<worker class>]-<workers>x<threads>.
    options: GivenOptions  #: Main variables that make its stack, name -> value.
    workers: Positive  #: Processes.
    threads: Positive  #: Threads of each process.
    #: Name of the candidate that its server starts where nobody names a number; null: it is none.
    own_default: Name | None
    #: Name of the one with 2n+1 workers of one thread; null: its server has one process only, or
    #: that many open too many database connections.
    rule: Name | None


class ScaledStudy(Record, kw_only=True, frozen=True):
    """A study or lesson at one scale."""

    kind: str  #: study or lesson.
    name: str  #: Name of its file.
    scale: str | None  #: Its size; null where the file has only one.
    description: str  #: One line.
    claims: list[StudyClaim]  #: The claims that this scale has.
    #: Tuning profile that is measured whole and without each of its keys.
    ablate: str | None = None
    lesson: Lesson | None = None  #: What a lesson asks and explains; absent of a study.
    publication: StudyPublication


class Study(ScaledStudy, kw_only=True, frozen=True):
    """A study or lesson at one scale, as its file in files/studies or files/lessons says."""

    options: GivenOptions  #: Main variables of all cells.
    cells: list[StudyCell]  #: The cells that this scale has, in the file's order.
    aa_controls: bool  #: Whether cells are measured twice for the noise floor.
    #: The variants that it compares, the base first; else empty.
    variants: list[Variant] = field(default_factory=list)
    #: The candidates of a matrix, one for each cell; else empty.
    candidates: list[Candidate] = field(default_factory=list)


class PlannedStudy(ScaledStudy, kw_only=True, frozen=True):
    """What a plan keeps of its study or lesson."""

    cells: dict[str, list[str]]  #: Name of each cell -> the cell_ids it stands for.
    #: Tuning profile of an ablation -> the key that it lacks; else empty.
    left_out_keys: dict[str, str]
    #: Name of a cell with injected faults -> what it has to show.
    expectations: dict[str, Expectation] = field(default_factory=dict)
    #: Repetitions from which one key is found, by the noise of files/methods.yml.
    ablation_power: AblationPower | None = None


class FileCell(StudyLoad, kw_only=True, frozen=True):
    """An entry of `cells`: one cell, or the product of its matrix."""

    name: str  #: Name of the cell, or the beginning of each product's.
    #: Main variables of it alone; nothing overrides them.
    options: GivenOptions = field(default_factory=dict)
    per_scale: dict[str, GivenOptions] = field(default_factory=dict)  #: Scale -> more of these.
    scales: list[str] | None = None  #: The scales that have it; absent: all.
    #: Option -> its values, or any name -> {label: options}.
    matrix: dict[str, list[Scalar] | dict[str, GivenOptions]] = field(default_factory=dict)


class FileRate(Record, kw_only=True, frozen=True):
    """An entry of `rates`."""

    statement: str  #: How the rule follows from what was published.
    rule: SaturationRate | None = None  #: The rate, but at the scale `published`.
    published: float | None = None  #: Requests/s as published, for that scale.


class FileClaim(Record, kw_only=True, frozen=True):
    """An entry of `claims`."""

    statement: str  #: The claim in words.
    all: list[ClaimStatement]  #: What it says of the cells.
    published: Published | None = None  #: What the source says.
    scales: list[str] | None = None  #: The scales that have it; absent: all.


class FileFigures(Record, kw_only=True, frozen=True):
    """An entry of `figures`."""

    title: str  #: What the figures are of.
    where: str  #: Place in the source.
    reference: str | None = None  #: Name of the cell that others are compared with.
    #: Why none of these is measured here; then the names are free text.
    not_reproduced: str | None = None
    #: Name of a cell, or <name>@<connections> for a level of a sweep -> metric -> a number in the
    #: metric's unit, or a number with a unit (16.1 ms).
    cells: dict[str, dict[str, float | str]]


class StudyFile(Record, kw_only=True, frozen=True):
    """A file of files/studies/ or files/lessons/."""

    description: str  #: One line.
    options: GivenOptions = field(default_factory=dict)  #: Main variables of all its cells.
    scales: dict[str, GivenOptions] = field(default_factory=dict)  #: Name -> options of that size.
    cells: list[FileCell] = field(default_factory=lambda: [FileCell(name="all")])  #: The cells.
    rates: dict[str, FileRate] = field(default_factory=dict)  #: Rates by name.
    ablate: str | None = None  #: Tuning profile of an ablation.
    claims: list[FileClaim] = field(default_factory=list)  #: The claims.
    lesson: Lesson | None = None  #: What a lesson asks and explains.
    aa_controls: bool | None = None  #: Whether cells are measured twice.
    question: str | None = None  #: What the study asks.
    source: dict[str, str] | None = None  #: Where it was published.
    setup: StudySetup | None = None  #: The published set-up.
    figures: list[FileFigures] = field(default_factory=list)  #: Published figures.
    errata: list[StudyErratum] = field(default_factory=list)  #: Errors of the source.
    differs: list[str] = field(default_factory=list)  #: Differences that no document records.
