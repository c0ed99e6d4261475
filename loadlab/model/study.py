"""Studies and lessons: the files that name cells, claims and published figures."""

from typing import Annotated

from msgspec import Meta, field

from loadlab.model.base import Above0, Name, NotNegative, Positive, Record, doc
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

    fraction: Annotated[
        Annotated[float, Meta(gt=0, le=2)], doc("Of the least of these saturations, up to 2.")
    ]
    of: Annotated[
        Annotated[list[str], Meta(min_length=1)], doc("Names of the study's cells that saturate.")
    ]


class StudyRate(Record, kw_only=True, frozen=True):
    """A published rate and what stands for it at this scale."""

    name: Annotated[str, doc("Name of the rate, which a cell's option `rate` may be.")]
    statement: Annotated[str, doc("How it follows from what was published.")]
    published: Annotated[float | None, doc("As published, requests/s.")]
    here: Annotated[
        float | SaturationRate | None, doc("Here: requests/s, or a fraction of saturations.")
    ]


class StudySetting(Record, kw_only=True, frozen=True, omit_defaults=False):
    """An option that has another value here than at the published scale."""

    name: Annotated[str, doc("Name of the option.")]
    published: Annotated[OptionValue, doc("Its value at the published scale.")]
    here: Annotated[OptionValue, doc("Its value in this run; null for its default.")]


class StudyErratum(Record, kw_only=True, frozen=True):
    """An error of the source, and how it is to be read."""

    mistake: Annotated[str, doc("The mistake.")]
    printed: Annotated[str, doc("What the source says.")]
    corrected: Annotated[str, doc("How it is to be read.")]
    where: Annotated[str | None, doc("Place in the source.")] = None
    cell: Annotated[str | None, doc("Name of the cell that shows it here.")] = None
    metric: Annotated[str | None, doc("The metric that shows it.")] = None


class PublishedFigures(Record, kw_only=True, frozen=True):
    """A group of published figures."""

    title: Annotated[str, doc("What the figures are of.")]
    where: Annotated[str, doc("Place in the source.")]
    reference: Annotated[str | None, doc("Name of the cell that the others are compared to.")] = (
        None
    )
    not_reproduced: Annotated[
        str | None, doc("Why none of them is measured here; the names are then free text.")
    ] = None
    cells: Annotated[
        dict[str, dict[str, float]],
        doc(
            "Name of a cell, or <name>@<connections> for a level of a sweep -> metric -> figure in "
            "the metric's unit."
        ),
    ]


class StudySetup(Record, kw_only=True, frozen=True):
    """The published set-up."""

    server: Annotated[str | None, doc("The server in words.")] = None
    client: Annotated[str | None, doc("The client in words.")] = None
    link: Annotated[str | None, doc("The link between them in words.")] = None
    versions: Annotated[dict[str, str] | None, doc("Package -> version.")] = None


class StudyPublication(Record, kw_only=True, frozen=True):
    """What was published elsewhere."""

    question: Annotated[str | None, doc("What the study asks.")] = None
    source: Annotated[
        dict[str, str] | None, doc("title, author, date, url, and more where known.")
    ] = None
    setup: Annotated[StudySetup | None, doc("The published set-up.")] = None
    settings: Annotated[list[StudySetting], doc("Options that differ from the published scale.")]
    rates: Annotated[list[StudyRate], doc("Published rates and what stands for them here.")]
    figures: Annotated[list[PublishedFigures], doc("Published figures by group.")]
    errata: Annotated[list[StudyErratum], doc("Errors of the source.")]
    differs: Annotated[
        list[str], doc("Sentences on differences that no document of the run records.")
    ]


class Truth(Record, kw_only=True, frozen=True):
    """One figure whose true value is known. Without `value` and `fraction` the server logged it."""

    metric: Annotated[
        str,
        doc(
            "Figure of the result: latency_us.<percentile>, errors.<class>, unsent, or "
            "server_cpu_us, the application's CPU time for each request, or server_kernel_us, the "
            "part of it in the kernel."
        ),
    ]
    value: Annotated[NotNegative | None, doc("True value, in the metric's unit.")] = None
    fraction: Annotated[Above0 | None, doc("True value as a fraction of the requests.")] = None
    within: Annotated[NotNegative, doc("Largest error, as a fraction of the true value.")] = 0.0
    slack: Annotated[NotNegative, doc("Largest error beside that, in the metric's unit.")] = 0.0


class Expectation(Record, kw_only=True, frozen=True):
    """What a measurement with injected faults has to show."""

    fault: Annotated[str, doc("What is injected, in words.")]
    truths: Annotated[list[Truth], doc("Figures whose true value is known.")] = field(
        default_factory=list
    )
    beside: Annotated[
        bool, doc("Whether it is only shown beside the others: what another generator reports.")
    ] = False
    valid: Annotated[bool, doc("Whether the repetition has to be valid.")] = True
    reasons: Annotated[
        list[str], doc("Codes of void reasons, one of which a void repetition has to have.")
    ] = field(default_factory=list)
    findings: Annotated[list[str], doc("Codes of findings that it has to have.")] = field(
        default_factory=list
    )


class StudyLoad(Record, kw_only=True, frozen=True):
    """What a cell of a study has besides its options."""

    expected_void: Annotated[
        list[str] | None, doc("Codes of void reasons that are the subject of the cell.")
    ] = None
    burst_every_s: Annotated[Above0 | None, doc("Seconds between the bursts of a closed loop.")] = (
        None
    )
    stall: Annotated[Stall | None, doc("The application is stopped during the load.")] = None
    background_endpoint: Annotated[
        str | None, doc("Endpoint that one more client asks throughout the load.")
    ] = None
    injection: Annotated[Injection | None, doc("Known faults during the load.")] = None
    expectation: Annotated[
        Expectation | None,
        doc("What it has to show; it is then measured once and is in no comparison."),
    ] = None


class StudyCell(StudyLoad, kw_only=True, frozen=True):
    """One named set of options of a study, after its matrix and scale are applied."""

    name: Annotated[str, doc("Name that claims and figures use.")]
    variant: Annotated[str | None, doc("Name of its variant, of a comparison of variants.")] = None
    options: Annotated[GivenOptions, doc("Main variables of this cell, which nothing overrides.")]


class Variant(Record, kw_only=True, frozen=True):
    """One of the variants that are compared."""

    name: Annotated[str, doc("base; head, or of several head1, head2 and so on.")]
    definition: Annotated[str, doc("As the user defined it, such as workers=2,tuning=stock.")]
    options: Annotated[GivenOptions, doc("Main variables that it overrides, name -> value.")]
    commit: Annotated[
        str | None, doc("Commit of its application, where a git ref was given; else null.")
    ] = None


class Candidate(Record, kw_only=True, frozen=True):
    """One way to serve the application of a matrix."""

    name: Annotated[Name, doc("<server>[-<worker class>]-<workers>x<threads>.")]
    options: Annotated[GivenOptions, doc("Main variables that make its stack, name -> value.")]
    workers: Annotated[Positive, doc("Processes.")]
    threads: Annotated[Positive, doc("Threads of each process.")]
    own_default: Annotated[
        Name | None,
        doc(
            "Name of the candidate that its server starts where nobody names a number; null: it is "
            "none."
        ),
    ]
    rule: Annotated[
        Name | None,
        doc(
            "Name of the one with 2n+1 workers of one thread; null: its server has one process "
            "only, or that many open too many database connections."
        ),
    ]


class Study(Record, kw_only=True, frozen=True):
    """A study or lesson at one scale, as its file in files/studies or files/lessons says."""

    kind: Annotated[str, doc("study or lesson.")]
    name: Annotated[str, doc("Name of its file.")]
    scale: Annotated[str | None, doc("Its size; null where the file has only one.")]
    description: Annotated[str, doc("One line.")]
    options: Annotated[GivenOptions, doc("Main variables of all cells.")]
    cells: Annotated[list[StudyCell], doc("The cells that this scale has, in the file's order.")]
    claims: Annotated[list[StudyClaim], doc("The claims that this scale has.")]
    aa_controls: Annotated[bool, doc("Whether cells are measured twice for the noise floor.")]
    ablate: Annotated[
        str | None, doc("Tuning profile that is measured whole and without each of its keys.")
    ] = None
    lesson: Annotated[Lesson | None, doc("What a lesson asks and explains; absent of a study.")] = (
        None
    )
    publication: StudyPublication
    variants: Annotated[
        list[Variant], doc("The variants that it compares, the base first; else empty.")
    ] = field(default_factory=list)
    candidates: Annotated[
        list[Candidate], doc("The candidates of a matrix, one for each cell; else empty.")
    ] = field(default_factory=list)


class PlannedStudy(Record, kw_only=True, frozen=True):
    """What a plan keeps of its study or lesson."""

    kind: Annotated[str, doc("study or lesson.")]
    name: Annotated[str, doc("Name of its file.")]
    scale: Annotated[str | None, doc("Its size; null where the file has only one.")]
    description: Annotated[str, doc("One line.")]
    claims: Annotated[list[StudyClaim], doc("The claims that this scale has.")]
    cells: Annotated[dict[str, list[str]], doc("Name of each cell -> the cell_ids it stands for.")]
    ablate: Annotated[
        str | None, doc("Tuning profile that is measured whole and without each of its keys.")
    ] = None
    left_out_keys: Annotated[
        dict[str, str],
        doc("Tuning profile of an ablation -> the key that it lacks; else empty."),
    ]
    expectations: Annotated[
        dict[str, Expectation], doc("Name of a cell with injected faults -> what it has to show.")
    ] = field(default_factory=dict)
    ablation_power: Annotated[
        AblationPower | None,
        doc("Repetitions from which one key is found, by the noise of files/methods.yml."),
    ] = None
    lesson: Annotated[Lesson | None, doc("What a lesson asks and explains; absent of a study.")] = (
        None
    )
    publication: StudyPublication


class FileCell(StudyLoad, kw_only=True, frozen=True):
    """An entry of `cells`: one cell, or the product of its matrix."""

    name: Annotated[str, doc("Name of the cell, or the beginning of each product's.")]
    options: Annotated[GivenOptions, doc("Main variables of it alone; nothing overrides them.")] = (
        field(default_factory=dict)
    )
    per_scale: Annotated[dict[str, GivenOptions], doc("Scale -> more of these.")] = field(
        default_factory=dict
    )
    scales: Annotated[list[str] | None, doc("The scales that have it; absent: all.")] = None
    matrix: Annotated[
        dict[str, list[Scalar] | dict[str, GivenOptions]],
        doc("Option -> its values, or any name -> {label: options}."),
    ] = field(default_factory=dict)


class FileRate(Record, kw_only=True, frozen=True):
    """An entry of `rates`."""

    statement: Annotated[str, doc("How the rule follows from what was published.")]
    rule: Annotated[SaturationRate | None, doc("The rate, but at the scale `published`.")] = None
    published: Annotated[float | None, doc("Requests/s as published, for that scale.")] = None


class FileClaim(Record, kw_only=True, frozen=True):
    """An entry of `claims`."""

    statement: Annotated[str, doc("The claim in words.")]
    all: Annotated[list[ClaimStatement], doc("What it says of the cells.")]
    published: Annotated[Published | None, doc("What the source says.")] = None
    scales: Annotated[list[str] | None, doc("The scales that have it; absent: all.")] = None


class FileFigures(Record, kw_only=True, frozen=True):
    """An entry of `figures`."""

    title: Annotated[str, doc("What the figures are of.")]
    where: Annotated[str, doc("Place in the source.")]
    reference: Annotated[str | None, doc("Name of the cell that others are compared with.")] = None
    not_reproduced: Annotated[
        str | None, doc("Why none of these is measured here; then the names are free text.")
    ] = None
    cells: Annotated[
        dict[str, dict[str, float | str]],
        doc(
            "Name of a cell, or <name>@<connections> for a level of a sweep -> metric -> a number "
            "in the metric's unit, or a number with a unit (16.1 ms)."
        ),
    ]


class StudyFile(Record, kw_only=True, frozen=True):
    """A file of files/studies/ or files/lessons/."""

    description: Annotated[str, doc("One line.")]
    options: Annotated[GivenOptions, doc("Main variables of all its cells.")] = field(
        default_factory=dict
    )
    scales: Annotated[dict[str, GivenOptions], doc("Name -> options of that size.")] = field(
        default_factory=dict
    )
    cells: Annotated[list[FileCell], doc("The cells.")] = field(
        default_factory=lambda: [FileCell(name="all")]
    )
    rates: Annotated[dict[str, FileRate], doc("Rates by name.")] = field(default_factory=dict)
    ablate: Annotated[str | None, doc("Tuning profile of an ablation.")] = None
    claims: Annotated[list[FileClaim], doc("The claims.")] = field(default_factory=list)
    lesson: Annotated[Lesson | None, doc("What a lesson asks and explains.")] = None
    aa_controls: Annotated[bool | None, doc("Whether cells are measured twice.")] = None
    question: Annotated[str | None, doc("What the study asks.")] = None
    source: Annotated[dict[str, str] | None, doc("Where it was published.")] = None
    setup: Annotated[StudySetup | None, doc("The published set-up.")] = None
    figures: Annotated[list[FileFigures], doc("Published figures.")] = field(default_factory=list)
    errata: Annotated[list[StudyErratum], doc("Errors of the source.")] = field(
        default_factory=list
    )
    differs: Annotated[list[str], doc("Differences that no document records.")] = field(
        default_factory=list
    )
