"""Base classes, number types and the reason that all records share."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import Meta, Struct

# Version of the documents of a run, their key `schema`.
SCHEMA = "lab/3"

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[float, Meta(ge=0)]
Above0 = Annotated[float, Meta(gt=0)]
# The sum of fractions may exceed 1 by a rounding error.
Fraction = Annotated[float, Meta(ge=0, le=1.0000001)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
# A name that is safe as the name of a folder.
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


# A JSON value of free form. msgspec has no recursive types, and takes any value for it.
if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
else:
    Json = Any


def doc(text: str) -> Meta:
    """Return the metadata of a field: its meaning and unit, for the reader and the schema."""
    return Meta(description=text)


class Record(Struct, kw_only=True, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A record that is read from or written to a document.

    A field with the default None is absent from the document where it is None. Unknown keys are
    refused.
    """


# What a reason has beside its value and limit, by name.
Facts = dict[str, int | float | str | bool | list[str] | None]


class Reason(Record, kw_only=True, frozen=True):
    """Why a decision was taken, as data; loadlab/report/words has the words for each code."""

    code: str  #: Kind of the reason, such as generator_cpu or steal.
    #: The value that decided, in the code's unit; absent where there is none.
    value: int | float | str | None = None
    #: The limit that the value is compared with, in the same unit; absent without one.
    limit: int | float | str | None = None
    #: Further values that the words for this code use, by name; absent where there are none.
    #: `client` is the one of several clients that it is about.
    facts: Facts = {}
