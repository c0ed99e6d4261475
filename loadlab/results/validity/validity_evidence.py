"""The evidence by which a repetition is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from loadlab.generators.measurement import Measurement
from loadlab.model import (
    Calibration,
    Cell,
    ErrorCounts,
    HostTelemetry,
    Latency,
    OwnPart,
    Reason,
    Thresholds,
)


@dataclass(frozen=True)
class LoadEvidence:
    """What a load is judged by: of one client, or of several together.

    - cell: with the load offered
    - server: the server's telemetry during the load
    - reverse_proxy_requests: requests that the reverse proxy counted; None where it did not, or
      for one of several clients
    - latency: over all requests that were due, nothing withheld; own: the generator's part of it.
      None where the generator does not report its part
    - censored_s: how long the requests without an answer certainly waited, in all, seconds
    """

    measurement: Measurement
    cell: Cell
    server: HostTelemetry
    thresholds: Thresholds
    reverse_proxy_requests: int | None = None
    latency: Latency | None = None
    own: OwnPart | None = None
    censored_s: float = 0.0

    @property
    def errors(self) -> ErrorCounts:
        """Failed requests by class."""
        return msgspec.convert(self.measurement.errors, ErrorCounts)


@dataclass(frozen=True, kw_only=True)
class ClientEvidence(LoadEvidence):
    """What the load of one client is judged by.

    - client: its telemetry during the load
    - calibration: of that client and the server; None where there is none
    - exit_code: of its generator
    - emulated: names of the hosts whose processors are emulated
    """

    client: HostTelemetry
    calibration: Calibration | None
    exit_code: int
    emulated: Sequence[str] = ()

    @property
    def hosts(self) -> dict[str, HostTelemetry]:
        """Telemetry of both hosts, by role."""
        return {"server": self.server, "client": self.client}


LoadRule: TypeAlias = Callable[[LoadEvidence], Iterator[Reason]]

ClientRule: TypeAlias = Callable[[ClientEvidence], Iterator[Reason]]
