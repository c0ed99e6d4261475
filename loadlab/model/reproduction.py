"""original.json and reproduction.json: the run that another one repeats, and how they compare."""

from typing import Literal

from msgspec import field

from loadlab.model.base import SCHEMA, Count, Json, Name, Record, Sha256
from loadlab.model.options import Options
from loadlab.model.run import LabRevision, ManifestHost, TuningLedger
from loadlab.model.study import GivenOptions
from loadlab.model.summary import Comparison, NoiseFloor, Summary

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

    run_id: Name  #: Name of the run.
    started: str  #: Start of the run, ISO 8601 with its offset.
    lab: LabRevision  #: The lab that measured it.
    sha256: Sha256 | None = None  #: SHA-256 of its bundle; absent where it is a run in results/.
    #: Fingerprint of the key that signed the bundle; absent where none did.
    signer: str | None = None
    #: Documents of the bundle that could not be verified, as another revision of the lab made them;
    #: absent where there are none.
    unverified: list[str] = field(default_factory=list)


class Recipe(Record, kw_only=True, frozen=True):
    """What decides what a run measures, but its hosts."""

    given_options: GivenOptions  #: Main variables that were given, name -> value.
    options: Options  #: The checked values; of a study those of its first cell.
    scale: str | None = None  #: Scale of the study; absent without one.
    #: Variables of the role that made its hosts, such as the instance types; absent where no role
    #: made them.
    made_with: dict[str, str] = field(default_factory=dict)
    #: SHA-256 of each application, endpoint, tuning and network profile, by its name.
    inputs: dict[str, Sha256]
    thresholds: dict[str, int | float]  #: Thresholds that the run is judged by, name to value.
    lab: LabRevision  #: Version and revision of the lab.
    pins: dict[str, str]  #: Every pinned item, name to version.
    locks: dict[str, Sha256]  #: Lock file to its SHA-256.


class Original(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """original.json: the run that this one repeats."""

    source: Source  #: Where it comes from.
    recipe: Recipe  #: What decided what it measured.
    hosts: dict[str, ManifestHost]  #: Inventory name of the host to its description.
    controller: dict[str, str]  #: Properties of its controller.
    summary: Summary  #: Its summary.json.
    ledgers: list[TuningLedger]  #: Its ledgers, that of the first profile first.


class Deviation(Record, kw_only=True, frozen=True):
    """One thing in which a reproduction differs from its original."""

    of: str | None = None  #: What it is of: a host or an application; absent where the run.
    name: str  #: Name of the thing.
    original: Json  #: Value in the original; null where it has none.
    here: Json  #: Value here; null where there is none.
    #: True where the user asked for it with -e beside like; absent otherwise.
    requested: bool = False


class ReproductionPart(Record, kw_only=True, frozen=True):
    """One part in which both runs are compared."""

    part: Part  #: Kind of the things that are compared.
    same: Count  #: Number of things that are the same in both.
    deviations: list[Deviation]  #: The things that differ.


class Reproduction(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """reproduction.json: how a run compares with the run that it repeats."""

    run_id: Name  #: Name of this run.
    original: Source  #: The run that it repeats.
    parts: list[ReproductionPart]  #: What differs between the runs, but figures.
    #: Each cell that both measured. The base is the original, the head is this run.
    comparisons: list[Comparison]
    noise_floor: list[NoiseFloor]  #: The A/A controls of both runs.
    only_original: list[Name]  #: cell_id of each cell that the original alone measured.
    only_here: list[Name]  #: cell_id of each cell that this run alone measured.
