"""The evidence by which a repetition is judged."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from loadlab.generators.measurement import Measurement
from loadlab.model import Calibration, Cell, ErrorCounts, HostTelemetry, Reason
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.results.repetitions.latencies_due import DueRequests


@dataclass(frozen=True)
class LoadEvidence:
    """What a load is judged by: of one client, or of several together."""

    requests: DueRequests
    cell: Cell  #: With the load offered.
    server: HostTelemetry  #: The server's telemetry during the load.
    #: Requests that the reverse proxy counted; None where it did not, or for one of several
    #: clients.
    reverse_proxy_requests: int | None = None

    @property
    def measurement(self) -> Measurement:
        return self.requests.measurement

    @property
    def thresholds(self) -> Thresholds:
        return self.requests.thresholds

    @property
    def errors(self) -> ErrorCounts:
        """Failed requests by class."""
        return self.requests.errors


@dataclass(frozen=True, kw_only=True)
class ClientEvidence(LoadEvidence):
    """What the load of one client is judged by."""

    client: HostTelemetry  #: Its telemetry during the load.
    calibration: Calibration | None  #: Of that client and the server; None where there is none.
    exit_code: int  #: Of its generator.
    emulated: Sequence[str] = ()  #: Names of the hosts whose processors are emulated.

    @property
    def hosts(self) -> dict[str, HostTelemetry]:
        """Telemetry of both hosts, by role."""
        return {"server": self.server, "client": self.client}


LoadRule: TypeAlias = Callable[[LoadEvidence], Iterator[Reason]]

ClientRule: TypeAlias = Callable[[ClientEvidence], Iterator[Reason]]
