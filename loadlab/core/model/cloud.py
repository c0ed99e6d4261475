"""The cloud instances of a run, and their cost."""

from typing import Annotated

from loadlab.core.model.base import NotNegative, Record, doc


class CloudInstance(Record, kw_only=True, frozen=True):
    """One instance that was a host of the run."""

    host: Annotated[str, doc("Inventory name of the host.")]
    instance_id: Annotated[str, doc("Id of the instance.")]
    type: Annotated[str, doc("Instance type.")]
    image: Annotated[str, doc("Id of the machine image.")]
    zone: Annotated[str, doc("Availability zone.")]
    tenancy: Annotated[
        str, doc("default: the hardware is shared with other accounts. dedicated: it is not.")
    ]
    spot: Annotated[bool, doc("Whether it was bought as spot.")]
    launched: Annotated[str, doc("Time of its creation, ISO 8601 with its offset.")]
    hours: Annotated[
        NotNegative,
        doc("Hours from its creation to the last collection of results; it lives on after that."),
    ]
    usd_per_hour: Annotated[
        NotNegative | None,
        doc(
            "List price on demand with disk and public address, USD per hour; null where "
            "files/aws_prices.yml lacks the type or region, and for spot and dedicated tenancy."
        ),
    ]
    usd: Annotated[
        NotNegative | None, doc("hours times usd_per_hour, USD; null where the price is.")
    ]
    prices_of: Annotated[str, doc("Date of the list of prices, ISO 8601.")]
