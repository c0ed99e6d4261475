"""Properties of the judgement of a load, over a simulated generator and server."""

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.simulated import constant, hanging, judged, noisy, offer
from tests.unit import builders

LIMITS = builders.thresholds()


@dataclass(frozen=True)
class Case:
    """A load, its server and the times in which the generator is stopped."""

    rate: float
    connections: int
    duration_s: float
    seed: int = 0
    mean_s: float = 0.001
    shape: float = 2.0
    failing: float = 0.0
    broken: float = 0.0
    hang: tuple[float, float] = (0.0, 0.0)
    collapse: tuple[float, float] = (1.0, 1.0)
    stall: tuple[float, float] = (0.0, 0.0)


ANY_SERVER = st.builds(
    Case,
    rate=st.floats(5, 400),
    connections=st.integers(1, 80),
    duration_s=st.floats(1, 4),
    seed=st.integers(0, 2**32 - 1),
    mean_s=st.floats(1e-4, 0.5),
    shape=st.floats(1.05, 3),
    failing=st.sampled_from([0.0, 0.0, 0.01, 0.3, 1.0]),
    broken=st.sampled_from([0.0, 0.0, 0.1, 1.0]),
    # Where in the load it hangs, 1 at its end, and for how many seconds.
    hang=st.tuples(st.one_of(st.floats(0, 1), st.just(0.99)), st.floats(0, 3)),
    # Where in the load it becomes slower, and by what factor.
    collapse=st.tuples(st.floats(0, 1), st.floats(1, 50)),
)
GENERATOR_STALLS = st.builds(
    Case,
    rate=st.floats(50, 500),
    connections=st.integers(4, 64),
    duration_s=st.floats(2, 6),
    mean_s=st.floats(1e-4, 2e-3),
    stall=st.tuples(st.one_of(st.floats(0, 1), st.just(1.0)), st.floats(0.02, 0.5)),
)


def ideal_generator(case: Case) -> None:
    """Whatever the server does, nothing is void, and the generator was never late."""
    base = noisy(case.seed, case.mean_s, case.shape, case.failing, case.broken)
    begin, factor = case.collapse

    def slower(number: int, start: float) -> tuple[float, int]:
        held, status = base(number, start)
        return held * (factor if start >= begin * case.duration_s else 1), status

    server = hanging(slower, case.hang[0] * case.duration_s, case.hang[1])
    found = judged(offer(case.rate, case.connections, case.duration_s, server))
    assert found.reasons == []
    assert found.late == 0
    assert "late_tail" not in found.findings
    delay = found.measurement.send_delay_us
    assert delay is None or (delay["max"] or 0) <= 1
    measured = found.measurement
    assert measured.scheduled is not None
    if "late_hidden" not in found.findings:
        # Each request that was due is an answer or censored.
        assert measured.responses + found.latency.censored == measured.scheduled


def ideal_server(case: Case) -> None:
    """A stall of the generator above the limit is always void."""
    # 1 % of the load's time, so that twice the limit of the requests fall into it, and besides
    # the requests of a stall that the rule leaves out: those with a short wait, and the tail.
    tail_s = LIMITS.send_delay_p99_max_us / 1e6
    least = 0.01 * case.duration_s + LIMITS.late_least_s + tail_s + 2 / case.rate
    length = max(case.stall[1], least)
    begin = case.stall[0] * (case.duration_s - length)
    server = constant(case.mean_s)
    stalls = [(begin, begin + length)]
    found = judged(offer(case.rate, case.connections, case.duration_s, server, stalls))
    assert found.reasons == ["generator_late"]
