"""Hardware, network card, kernel state and cloud instance of a host, as the manifest has them."""

from typing import Annotated, Literal

from loadlab.model.base import Count, NotNegative, Positive, Record, doc


class Nic(Record, kw_only=True, frozen=True):
    """Network card of the link that carries the load."""

    name: Annotated[str, doc("Name of the interface.")]
    driver: Annotated[str | None, doc("Driver of the card; null where unknown.")]
    speed_mbit: Annotated[
        Positive | None, doc("Speed of the link, Mb/s, 1 or more; null where unknown.")
    ]
    duplex: Annotated[
        Literal["full", "half"] | None,
        doc("full: both directions at once. half: one at a time. Null where unknown."),
    ]
    queues: Annotated[
        Positive | None, doc("Number of receive queues, 1 or more; null where unknown.")
    ]
    interrupts: Annotated[
        dict[str, list[Count]] | None,
        doc("Interrupt number of the card to the processors that handle it; null where unknown."),
    ]
    offloads: Annotated[
        dict[str, bool] | None,
        doc("Offloads of the card or the kernel, by ethtool's name; null where unknown."),
    ]
    offloads_fixed: Annotated[
        list[str] | None,
        doc("Those of offloads that the card does not let be changed; absent where there is none."),
    ] = None
    mtu: Annotated[
        Positive | None,
        doc("Largest packet without its Ethernet header, bytes; absent where unknown."),
    ] = None
    rps_queues: Annotated[
        Count | None,
        doc(
            "Receive queues whose packets the kernel spreads over processors (RPS); absent where "
            "unknown."
        ),
    ] = None
    xps_queues: Annotated[
        Count | None,
        doc("Transmit queues with processors of their own (XPS); absent where unknown."),
    ] = None
    coalescing: Annotated[
        dict[str, str] | None,
        doc(
            "How long the card gathers packets for one interrupt, by ethtool's name: µs, frames, "
            "on or off; absent where unknown."
        ),
    ] = None


class Hardware(Record, kw_only=True, frozen=True):
    """Hardware properties that affect the steadiness of a measurement, read when the load
    began; null where the host lacks or does not report a property.
    """

    nic: Annotated[
        Nic | None, doc("Network card of the link that carries the load; null where unknown.")
    ]
    management_nic: Annotated[
        str | None, doc("Interface that the controller connects to; null where unknown.")
    ]
    governors: Annotated[
        dict[str, Positive] | None,
        doc("CPU frequency governor to the number of processors that use it; null where unknown."),
    ]
    turbo: Annotated[
        bool | None,
        doc("True where processors may exceed their nominal frequency; null where unknown."),
    ]
    smt: Annotated[bool | None, doc("True where processors share cores; null where unknown.")]
    numa_nodes: Annotated[
        Positive | None, doc("Number of NUMA nodes with processors, 1 or more; null where unknown.")
    ]
    clock_synchronised: Annotated[
        bool | None, doc("True where the kernel's clock is synchronised; null in a container.")
    ]
    cards: Annotated[
        list[Nic] | None,
        doc("Cards below a bond or a VLAN that carries the load; absent where `nic` is a card."),
    ] = None
    idle_driver: Annotated[
        str | None,
        doc(
            "Driver of the processors' idle states; none where the kernel has no such states; "
            "absent where unknown."
        ),
    ] = None
    idle_states_us: Annotated[
        dict[str, Count] | None,
        doc(
            "Idle state that some processor may enter to the time that it takes to leave it, µs; "
            "absent where there are no states."
        ),
    ] = None
    numa_balancing: Annotated[
        bool | None,
        doc("True where the kernel moves memory between NUMA nodes; absent where unknown."),
    ] = None
    irqbalance: Annotated[
        str | None,
        doc("State of the service irqbalance; absent where it is not installed."),
    ] = None
    firewall_rules: Annotated[
        Count | None, doc("Number of firewall rules; absent where no program reads them.")
    ] = None
    conntrack_entries: Annotated[
        Count | None, doc("Connections that the kernel tracks; absent where unknown.")
    ] = None
    conntrack_max: Annotated[
        Count | None,
        doc(
            "Most connections that it tracks, 0 where the module is not loaded; absent where "
            "unknown."
        ),
    ] = None


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
