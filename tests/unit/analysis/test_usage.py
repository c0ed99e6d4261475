from __future__ import annotations

from msgspec.structs import replace

from loadlab.analysis import usage
from loadlab.core.model import Processes, Repetition, ServiceProcesses
from tests.unit import builders
from tests.unit.builders import present

USED = builders.processes()


def repetition(nginx_requests: int | None = 1000, **services: Processes | None) -> Repetition:
    recorded = ServiceProcesses(
        **{"nginx": None, "application": None, "postgresql": None, **services}
    )
    hosts = present(builders.repetition().telemetry)
    hosts = replace(hosts, server=replace(hosts.server, processes=recorded))
    return builders.repetition(telemetry=hosts, nginx_requests=nginx_requests, responses=500)


def test_cpu_time_of_all_services_is_by_request_to_nginx_or_by_answer() -> None:
    assert usage.all_cpu_us(repetition(nginx=USED, application=USED)) == 1000
    assert usage.all_cpu_us(repetition(None, application=USED)) == 1000


def test_cpu_time_is_unknown_where_that_of_one_service_is() -> None:
    lost = replace(USED, cpu_s=None)
    assert usage.all_cpu_us(repetition(nginx=USED, application=lost)) is None
    assert usage.all_cpu_us(repetition()) is None
    assert usage.all_cpu_us(builders.repetition(telemetry=None)) is None
