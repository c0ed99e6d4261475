"""Hardware, network card, kernel state and cloud instance of a host, as the manifest has them."""

from typing import Literal

from loadlab.model.base import Count, NotNegative, Positive, Record


class Nic(Record, kw_only=True, frozen=True):
    """Network card of the link that carries the load."""

    name: str  #: Name of the interface.
    driver: str | None  #: Driver of the card; null where unknown.
    speed_mbit: Positive | None  #: Speed of the link, Mb/s, 1 or more; null where unknown.
    #: full: both directions at once. half: one at a time. Null where unknown.
    duplex: Literal["full", "half"] | None
    queues: Positive | None  #: Number of receive queues, 1 or more; null where unknown.
    #: Interrupt number of the card to the processors that handle it; null where unknown.
    interrupts: dict[str, list[Count]] | None
    #: Offloads of the card or the kernel, by ethtool's name; null where unknown.
    offloads: dict[str, bool] | None
    #: Those of offloads that the card does not let be changed; absent where there is none.
    offloads_fixed: list[str] | None = None
    #: Largest packet without its Ethernet header, bytes; absent where unknown.
    mtu: Positive | None = None
    #: Receive queues whose packets the kernel spreads over processors (RPS); absent where unknown.
    rps_queues: Count | None = None
    #: Transmit queues with processors of their own (XPS); absent where unknown.
    xps_queues: Count | None = None
    #: How long the card gathers packets for one interrupt, by ethtool's name: µs, frames, on or
    #: off; absent where unknown.
    coalescing: dict[str, str] | None = None


class Hardware(Record, kw_only=True, frozen=True):
    """Hardware properties that affect the steadiness of a measurement, read when the load
    began; null where the host lacks or does not report a property.
    """

    nic: Nic | None  #: Network card of the link that carries the load; null where unknown.
    management_nic: str | None  #: Interface that the controller connects to; null where unknown.
    #: CPU frequency governor to the number of processors that use it; null where unknown.
    governors: dict[str, Positive] | None
    #: True where processors may exceed their nominal frequency; null where unknown.
    turbo: bool | None
    smt: bool | None  #: True where processors share cores; null where unknown.
    #: Number of NUMA nodes with processors, 1 or more; null where unknown.
    numa_nodes: Positive | None
    #: True where the kernel's clock is synchronised; null in a container.
    clock_synchronised: bool | None
    #: Cards below a bond or a VLAN that carries the load; absent where `nic` is a card.
    cards: list[Nic] | None = None
    #: Driver of the processors' idle states; none where the kernel has no such states; absent where
    #: unknown.
    idle_driver: str | None = None
    #: Idle state that some processor may enter to the time that it takes to leave it, µs; absent
    #: where there are no states.
    idle_states_us: dict[str, Count] | None = None
    #: True where the lab keeps the processors awake while it measures: idle, they poll.
    kept_awake: bool = False
    #: True where the kernel moves memory between NUMA nodes; absent where unknown.
    numa_balancing: bool | None = None
    #: State of the service irqbalance; absent where it is not installed.
    irqbalance: str | None = None
    #: Number of firewall rules; absent where no program reads them.
    firewall_rules: Count | None = None
    #: Connections that the kernel tracks; absent where unknown.
    conntrack_entries: Count | None = None
    #: Most connections that it tracks, 0 where the module is not loaded; absent where unknown.
    conntrack_max: Count | None = None


class LaunchedInstance(Record, kw_only=True, frozen=True):
    """What an instance is."""

    instance_id: str  #: Id of the instance.
    type: str  #: Instance type.
    image: str  #: Id of the machine image.
    zone: str  #: Availability zone.
    tenancy: str  #: default: the hardware is shared with other accounts. dedicated: it is not.
    spot: bool  #: Whether it was bought as spot.
    launched: str  #: Time of its creation, ISO 8601 with its offset.


class CloudInstance(LaunchedInstance, kw_only=True, frozen=True):
    """One instance that was a host of the run."""

    host: str  #: Inventory name of the host.
    #: Hours from its creation to the last collection of results; it lives on after that.
    hours: NotNegative
    #: List price on demand with disk and public address, USD per hour; null where
    #: files/aws_prices.yml lacks the type or region, and for spot and dedicated tenancy.
    usd_per_hour: NotNegative | None
    usd: NotNegative | None  #: hours times usd_per_hour, USD; null where the price is.
    prices_of: str  #: Date of the list of prices, ISO 8601.
