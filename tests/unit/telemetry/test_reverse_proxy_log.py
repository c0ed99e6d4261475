import pytest

from loadlab.model import ReverseProxyLog
from loadlab.run.methods import ROOT
from loadlab.stacks.reverse_proxies import reverse_proxy
from loadlab.telemetry import reverse_proxy_log
from loadlab.telemetry.recordings import TelemetryError
from tests.unit import builders

# nginx 1.22 writes these.
BEFORE = "request\t99.900\t9.000\t9.000\t9.000"
PLAIN = "request\t101.000\t0.004\t0.001\t0.003"
TWO_TRIES = "request\t101.100\t0.006\t-, 0.001\t0.000, 0.005"
FROM_NGINX = "request\t101.200\t0.002\t-\t-"
FULL = (
    "error +0100 1970/01/01 01:01:40 [alert] 7#7: 768 worker_connections are not enough",
    "error +0100 1970/01/01 01:01:40 [alert] 7#7: *9 768 worker_connections are not enough while "
    "connecting to upstream, client: 10.77.1.12",
)
QUEUE = (
    "error +0100 1970/01/01 01:01:40 [error] 7#7: *1 connect() to unix:/run/loadlab/app.sock "
    "failed (11: Resource temporarily unavailable) while connecting to upstream, client: 10.77.1.12"
)
CLOSED = (
    "error +0100 1970/01/01 01:01:40 [error] 7#7: *1 upstream prematurely closed connection while "
    "reading response header from upstream, client: 10.77.1.12",
    "error +0100 1970/01/01 01:01:40 [error] 7#7: *1 recv() failed (104: Connection reset by peer) "
    "while reading response header from upstream, client: 10.77.1.12",
)
# Its connection was not closed before it was used.
BROKEN_OFF = (
    "error +0100 1970/01/01 01:01:40 [error] 7#7: *1 upstream prematurely closed connection while "
    "reading upstream, client: 10.77.1.12"
)
# The client's own reset is no error of the application.
CLIENT = (
    "error +0100 1970/01/01 01:01:40 [info] 7#7: *1 recv() failed (104: Connection reset by peer) "
    "while sending to client, client: 10.77.1.12"
)


def summarised(lines: list[str], start: float, end: float) -> ReverseProxyLog:
    form = builders.present(reverse_proxy(ROOT, "nginx").log)
    return reverse_proxy_log.summarise(lines, form, start, end)


def test_requests_of_the_load_have_their_mean_times() -> None:
    found = summarised([BEFORE, PLAIN, TWO_TRIES, FROM_NGINX], 100.0, 102.0)
    assert found.requests == 3
    assert found.mean_us == pytest.approx(4000)
    assert found.upstream_us == pytest.approx(4000)
    assert found.upstream_connect_us == pytest.approx(1000)
    assert found.upstream_p99_us == pytest.approx(5000)
    assert found.errors == {}


def test_errors_are_counted_by_their_kind() -> None:
    found = summarised([PLAIN, *FULL, QUEUE, *CLOSED, BROKEN_OFF, CLIENT], 100.0, 102.0)
    assert found.errors == {"accept_queue": 1, "upstream_closed": 2, "connections": 2}


@pytest.mark.parametrize(("start", "counted"), [(100.9, 2), (98.2, 2), (101.0, 0), (95.0, 0)])
def test_errors_of_a_warm_up_or_after_the_load_do_not_count(start: float, counted: int) -> None:
    """nginx writes whole seconds, so an error may have been in any part of its second."""
    found = summarised([PLAIN, *CLOSED], start, start + 3)
    assert sum(found.errors.values()) == counted


def test_line_on_an_error_without_a_time_continues_the_one_before() -> None:
    rest = f"error +0000 {CLOSED[1].partition('7#7: ')[2]}"
    assert summarised([CLOSED[0], rest], 100.0, 102.0).errors == {"upstream_closed": 2}
    assert summarised([CLOSED[0], rest], 110.0, 112.0).errors == {}


def test_times_are_unknown_without_requests() -> None:
    found = summarised([], 100.0, 102.0)
    assert (found.requests, found.mean_us, found.upstream_us) == (0, None, None)


def test_line_that_is_not_whole_may_be_the_last_alone() -> None:
    part = PLAIN[:20]
    assert summarised([PLAIN, part, *FULL], 100.0, 102.0).requests == 1
    with pytest.raises(TelemetryError, match="line 1 of the reverse proxy's log"):
        summarised([part, PLAIN], 100.0, 102.0)
    for time in ("fast", "9" * 400):
        with pytest.raises(TelemetryError, match="line 1 of the reverse proxy's log"):
            summarised([PLAIN.replace("0.004", time)], 100.0, 102.0)
    assert summarised([PLAIN, "error +0100"], 100.0, 102.0).errors == {}
