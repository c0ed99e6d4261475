from __future__ import annotations

import pytest

from loadlab.telemetry.busiest import busiest
from loadlab.telemetry.process_readings import Process


def process(started: int, **ran: float) -> Process:
    """A process whose threads t1, t2 … were on a core for these seconds."""
    ns = {int(name[1:]): round(seconds * 1e9) for name, seconds in ran.items()}
    return Process(started, own=0, ended=0, threads=len(ran), pages=1, ran=ns)


def test_busiest_process_and_thread_may_be_of_two_processes() -> None:
    before = {1: process(5, t1=1.0, t2=1.0), 2: process(5, t3=4.0)}
    after = {1: process(5, t1=1.6, t2=1.7), 2: process(5, t3=4.9)}
    assert busiest([before, after], 0.0) == pytest.approx((1.3, 0.9))


def test_busiest_counts_from_the_begin_of_the_load() -> None:
    """The load began when half of the time between the first two readings was over."""
    readings = [{1: process(5, t1=seconds)} for seconds in (1.0, 2.0, 3.0)]
    assert busiest(readings, 0.5) == pytest.approx((1.5, 1.5))


def test_busiest_counts_a_new_process_with_an_old_number_from_nothing() -> None:
    readings = [{1: process(5, t1=9.0)}, {1: process(8, t1=0.25)}]
    assert busiest(readings, 0.0) == pytest.approx((0.25, 0.25))


def test_busiest_is_unknown_without_the_times_of_threads() -> None:
    assert busiest([{1: process(5)}, {1: process(5)}], 0.0) == (None, None)
