"""original.json and reproduction.json: the run that another one repeats, and how they compare."""

from typing import Annotated, Literal

from msgspec import field

from loadlab.model.base import SCHEMA, Count, Json, Name, Record, Sha256, doc
from loadlab.model.options import Options
from loadlab.model.run import LabRevision, ManifestHost, TuningLedger
from loadlab.model.study import GivenOptions
from loadlab.model.summary import Comparison, NoiseFloor, Summary
from loadlab.model.thresholds import Thresholds

# What two runs are compared in, besides their figures.
Part = Literal[
    "option",
    "input",
    "pin",
    "lock file",
    "threshold",
    "lab",
    "controller",
    "hardware",
    "kernel",
    "package",
    "tuning",
]


class Source(Record, kw_only=True, frozen=True):
    """Where an original comes from, and how far it was verified."""

    run_id: Annotated[Name, doc("Name of the run.")]
    started: Annotated[str, doc("Start of the run, ISO 8601 with its offset.")]
    lab: Annotated[LabRevision, doc("The lab that measured it.")]
    sha256: Annotated[
        Sha256 | None, doc("SHA-256 of its bundle; absent where it is a run in results/.")
    ] = None
    signer: Annotated[
        str | None, doc("Fingerprint of the key that signed the bundle; absent where none did.")
    ] = None
    unverified: Annotated[
        list[str],
        doc(
            "Documents of the bundle that could not be verified, as another revision of the lab "
            "made them; absent where there are none."
        ),
    ] = field(default_factory=list)


class Recipe(Record, kw_only=True, frozen=True):
    """What decides what a run measures, but its hosts."""

    given_options: Annotated[GivenOptions, doc("Main variables that were given, name -> value.")]
    options: Annotated[Options, doc("The checked values; of a study those of its first cell.")]
    scale: Annotated[str | None, doc("Scale of the study; absent without one.")] = None
    made_with: Annotated[
        dict[str, str],
        doc(
            "Variables of the role that made its hosts, such as the instance types; absent where "
            "no role made them."
        ),
    ] = field(default_factory=dict)
    inputs: Annotated[
        dict[str, Sha256],
        doc("SHA-256 of each application, endpoint, tuning and network profile, by its name."),
    ]
    thresholds: Annotated[Thresholds, doc("Thresholds that the run is judged by.")]
    lab: Annotated[LabRevision, doc("Version and revision of the lab.")]
    pins: Annotated[dict[str, str], doc("Every pinned item, name to version.")]
    locks: Annotated[dict[str, Sha256], doc("Lock file to its SHA-256.")]


class Original(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """original.json: the run that this one repeats."""

    source: Annotated[Source, doc("Where it comes from.")]
    recipe: Annotated[Recipe, doc("What decided what it measured.")]
    hosts: Annotated[dict[str, ManifestHost], doc("Inventory name of the host to its description.")]
    controller: Annotated[dict[str, str], doc("Properties of its controller.")]
    summary: Annotated[Summary, doc("Its summary.json.")]
    ledgers: Annotated[list[TuningLedger], doc("Its ledgers, that of the first profile first.")]


class Deviation(Record, kw_only=True, frozen=True):
    """One thing in which a reproduction differs from its original."""

    of: Annotated[
        str | None, doc("What it is of: a host or an application; absent where the run.")
    ] = None
    name: Annotated[str, doc("Name of the thing.")]
    original: Annotated[Json, doc("Value in the original; null where it has none.")]
    here: Annotated[Json, doc("Value here; null where there is none.")]
    requested: Annotated[
        bool, doc("True where the user asked for it with -e beside like; absent otherwise.")
    ] = False


class ReproductionPart(Record, kw_only=True, frozen=True):
    """One part in which both runs are compared."""

    part: Annotated[Part, doc("Kind of the things that are compared.")]
    same: Annotated[Count, doc("Number of things that are the same in both.")]
    deviations: Annotated[list[Deviation], doc("The things that differ.")]


class Reproduction(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """reproduction.json: how a run compares with the run that it repeats."""

    run_id: Annotated[Name, doc("Name of this run.")]
    original: Annotated[Source, doc("The run that it repeats.")]
    parts: Annotated[list[ReproductionPart], doc("What differs between the runs, but figures.")]
    comparisons: Annotated[
        list[Comparison],
        doc("Each cell that both measured. The base is the original, the head is this run."),
    ]
    noise_floor: Annotated[list[NoiseFloor], doc("The A/A controls of both runs.")]
    only_original: Annotated[
        list[Name], doc("cell_id of each cell that the original alone measured.")
    ]
    only_here: Annotated[list[Name], doc("cell_id of each cell that this run alone measured.")]
