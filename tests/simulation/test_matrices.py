"""How often a matrix finds the best of 24 candidates in half an hour, or one as good.

tests/unit/analysis/test_matrix.py has a small version.
"""

from __future__ import annotations

import pytest

from tests.simulation import matrices

RUNS = 100


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1])
def test_what_a_matrix_chooses_is_the_best_or_within_5_percent_of_it(noise: float) -> None:
    made, right, seconds = matrices.plan(budget="30m"), 0, 0.0
    for seed in range(RUNS):
        machine = matrices.Machine(made, matrices.spread(made, seed), noise=noise, seed=seed)
        right += matrices.nearly(machine, machine.run())
        seconds = max(seconds, machine.now - matrices.BEGAN)
    print(f"noise {noise:.0%}: {right} of {RUNS} right, at most {seconds:.0f} s")
    assert right >= 0.95 * RUNS
    # A block that was begun is finished.
    assert seconds <= 1800 + 2 * matrices.EACH_S
