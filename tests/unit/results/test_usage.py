import pytest
from msgspec.structs import replace

from loadlab.model import Processes, Repetition
from loadlab.results import usage
from tests.unit import builders
from tests.unit.builders import present

USED = builders.processes()


def repetition(
    reverse_proxy_requests: int | None = 1000, **services: Processes | None
) -> Repetition:
    counted = builders.repetition(reverse_proxy_requests=reverse_proxy_requests, responses=500)
    return builders.with_services(counted, **services)


def test_cpu_time_of_all_services_is_by_request_to_nginx_or_by_answer() -> None:
    assert usage.all_cpu_us(repetition(reverse_proxy=USED, application=USED)) == 1000
    assert usage.all_cpu_us(repetition(None, application=USED)) == 1000


def cost(name: str, rep: Repetition) -> float | None:
    return usage.COMPUTED[name](rep)


def test_the_kernels_share_is_that_of_the_services_that_it_sampled() -> None:
    server = replace(USED, system_share=0.5)
    # Too little work for any tick of the kernel.
    idle = replace(USED, cpu_s=0.001, system_share=None)
    rep = repetition(
        reverse_proxy=server, application=replace(server, system_share=0.1), postgresql=idle
    )
    assert cost("cpu_us_per_request", rep) == pytest.approx(1001)
    assert cost("kernel_cpu_us_per_request", rep) == pytest.approx(1001 * 0.3)
    busy = repetition(reverse_proxy=server, postgresql=replace(idle, cpu_s=0.1))
    assert cost("kernel_cpu_us_per_request", busy) is None


def test_switches_are_of_all_services_but_one_that_hardly_worked() -> None:
    server = replace(USED, voluntary_switches=1500, involuntary_switches=500)
    ended = replace(USED, cpu_s=0.001, voluntary_switches=None, involuntary_switches=None)
    assert cost("switches_per_request", repetition(reverse_proxy=server, postgresql=ended)) == 2
    lost = replace(ended, cpu_s=0.1)
    assert cost("switches_per_request", repetition(reverse_proxy=server, postgresql=lost)) is None


def test_cpu_of_the_application_by_that_of_the_others_is_without_the_speed_of_the_machine() -> None:
    slow = replace(USED, cpu_s=3.0)
    proxy, database = replace(USED, cpu_s=0.5), replace(USED, cpu_s=1.0)
    beside = repetition(application=slow, reverse_proxy=proxy, postgresql=database)
    assert cost("application_cpu_relative", beside) == 2
    assert cost("application_cpu_relative", repetition(application=slow)) is None
    lost = repetition(application=slow, reverse_proxy=proxy, postgresql=replace(USED, cpu_s=None))
    assert cost("application_cpu_relative", lost) is None


def test_interrupts_and_energy_are_of_the_whole_server() -> None:
    rep = repetition(application=USED)
    host = present(rep.telemetry).server
    cpu = replace(host.cpu, irq=0.01, softirq=0.04)
    server = replace(host, cpu=cpu, cores=2, seconds=10.0, energy_j=25.0)
    # A request that hangs does not multiply the interrupts of the load.
    rep = replace(rep, duration_s=30.0, telemetry=replace(present(rep.telemetry), server=server))
    assert cost("interrupts_us_per_request", rep) == pytest.approx(1000)
    assert cost("joules_per_request", rep) == 0.025
    assert cost("joules_per_request", repetition(application=USED)) is None


def test_cpu_time_is_unknown_where_that_of_one_service_is() -> None:
    lost = replace(USED, cpu_s=None)
    assert usage.all_cpu_us(repetition(reverse_proxy=USED, application=lost)) is None
    assert usage.all_cpu_us(repetition()) is None
    assert usage.all_cpu_us(builders.repetition(telemetry=None)) is None
