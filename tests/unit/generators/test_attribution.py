"""Attribution over a simulated queue: what the server does is never the generator's fault."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadlab.generators.attribution import Attribution, added_fraction, attribute
from loadlab.generators.measurement import GeneratorError

# Fraction of the requests that the generator may make markedly later, and what marked is.
LIMIT, LEAST_S, LEAST_FRACTION = 0.005, 0.005, 0.1
TOLERANCE_S = 0.01

# (number, start) -> (seconds until the answer is complete, whether there is one).
Server = Callable[[int, float], tuple[float, bool]]


def simulate(
    rate: float,
    connections: int,
    duration_s: float,
    server: Server,
    stalls: list[tuple[float, float]] = [],  # noqa: B006
) -> Attribution:
    """Return the attribution of a run of an ideal generator that is stopped in ``stalls``.

    A stopped generator neither issues, starts nor reads; it goes on at the stall's end.
    """

    def running(time: float) -> float:
        for begin, end in stalls:
            if begin <= time < end:
                return end
        return time

    scheduled = math.ceil(round(rate * duration_s, 6))
    free = [0.0] * connections
    rows, missing = [], 0
    for number in range(scheduled):
        issued = running(number / rate)
        start = running(max(issued, free[0]))
        if start >= duration_s:
            break
        held, answered = server(number, start)
        end = running(start + held)
        heapq.heapreplace(free, end)
        if answered:
            rows.append((issued, start, end))
        else:
            missing += 1
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    issued_s, start_s, end_s = table.T
    return attribute(
        issued_s, start_s, end_s, rate, connections, scheduled, missing, duration_s, TOLERANCE_S
    )


def fraction(found: Attribution, rate: float, duration_s: float) -> float:
    return added_fraction(found, math.ceil(round(rate * duration_s, 6)), LEAST_S, LEAST_FRACTION)


def capacity(per_second: float, change_at: float = math.inf, factor: float = 1.0) -> Server:
    """A server of one worker, whose capacity changes by ``factor`` at ``change_at``."""
    ready = 0.0

    def serve(number: int, start: float) -> tuple[float, bool]:
        nonlocal ready
        begin = max(start, ready)
        ready = begin + 1 / (per_second * (factor if begin >= change_at else 1.0))
        return ready - start, True

    return serve


def stalled(begin: float, end: float, held: float = 0.001) -> Server:
    return lambda number, start: ((end - start if begin <= start < end else 0) + held, True)


def noisy(seed: int, mean: float, shape: float, failing: float) -> Server:
    """Service times of a Pareto distribution; a fraction fails."""
    random = np.random.default_rng(seed)
    return lambda number, start: (
        mean * float(random.pareto(shape)) + 1e-4,
        bool(random.random() >= failing),
    )


SERVERS: dict[str, Server] = {
    "hangs for the last half second": stalled(29.5, 30.5),
    "hangs in the middle": stalled(14, 16),
    "hangs from the start": stalled(0, 3),
    "answers nothing": lambda number, start: (40.0, False),
}


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
def test_stall_of_the_server_is_not_the_generators(server: Server) -> None:
    assert fraction(simulate(200, 32, 30, server), 200, 30) == 0


@pytest.mark.parametrize("part", [0.02, 0.25, 0.5, 0.75, 0.9, 0.97])
def test_collapse_of_the_server_is_not_the_generators(part: float) -> None:
    found = simulate(200, 32, 30, capacity(250, 30 * part, 0.5))
    assert fraction(found, 200, 30) == 0
    assert float(found.lateness_s.max()) < 1e-6


@given(
    seed=st.integers(0, 2**32 - 1),
    rate=st.floats(5, 400),
    connections=st.integers(1, 80),
    duration_s=st.floats(1, 4),
    mean=st.floats(1e-4, 0.5),
    shape=st.floats(1.05, 3),
    failing=st.sampled_from([0.0, 0.01, 0.3, 1.0]),
    hang=st.tuples(st.floats(0, 4), st.floats(0, 3)),
)
@settings(max_examples=300)
def test_ideal_generator_is_never_late_whatever_the_server_does(
    seed: int,
    rate: float,
    connections: int,
    duration_s: float,
    mean: float,
    shape: float,
    failing: float,
    hang: tuple[float, float],
) -> None:
    base = noisy(seed, mean, shape, failing)

    def server(number: int, start: float) -> tuple[float, bool]:
        held, answered = base(number, start)
        begin, length = hang
        return held + (begin + length - start if begin <= start < begin + length else 0), answered

    found = simulate(rate, connections, duration_s, server)
    assert found.unsent == 0
    assert float(found.lateness_s.max(initial=0)) < 1e-6
    assert float(found.added_s.max(initial=0)) < 1e-6


@given(
    rate=st.floats(50, 500),
    connections=st.integers(4, 64),
    duration_s=st.floats(2, 6),
    held=st.floats(1e-4, 2e-3),
    place=st.floats(0, 1),
    length=st.floats(0.02, 0.5),
)
@settings(max_examples=300)
def test_ideal_server_hides_no_stall_of_the_generator(
    rate: float, connections: int, duration_s: float, held: float, place: float, length: float
) -> None:
    # 1.5 % of the load's time, so that well above LIMIT of the requests fall into it.
    length = max(length, 0.015 * duration_s + LEAST_S + 2 / rate)
    begin = place * (duration_s - length)
    found = simulate(
        rate, connections, duration_s, lambda n, s: (held, True), [(begin, begin + length)]
    )
    assert fraction(found, rate, duration_s) > LIMIT


def test_stall_of_the_generator_at_the_end_counts_what_it_did_not_send() -> None:
    found = simulate(1000, 64, 10, lambda n, s: (0.001, True), [(9.7, 11)])
    assert found.unsent == pytest.approx(300 - 1000 * TOLERANCE_S, abs=2)


def test_latency_counts_from_the_schedule() -> None:
    found = simulate(1000, 64, 60, lambda n, s: (0.002, True), [(20, 20.55)])
    assert float(np.percentile(found.latency_s, 99.9)) == pytest.approx(0.49, abs=0.01)
    assert float(np.percentile(found.latency_s - found.added_s, 99.9)) < 0.02


def test_failed_requests_leave_the_turn_of_the_others_known() -> None:
    found = simulate(100, 50, 10, lambda n, s: (0.002, n % 100 != 7))
    assert float(np.abs(found.latency_s - 0.002).max()) < 1e-9
    assert not found.hidden


def test_requests_that_may_hold_every_connection_hide_who_was_late() -> None:
    assert simulate(100, 5, 10, lambda n, s: (0.002, n % 100 != 7)).hidden


def test_request_issued_before_its_turn_is_refused() -> None:
    times = np.array([0.0, 0.01, 0.02])
    with pytest.raises(GeneratorError, match=r"request 1 was issued .* before its turn at 50/s"):
        attribute(times, times, times + 0.001, 50, 4, 50, 0, 1, TOLERANCE_S)
