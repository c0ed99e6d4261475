"""The words for what a run needs."""

from __future__ import annotations

from loadlab.report.words import needs_words
from tests.unit import builders
from tests.unit.builders import present


def test_what_a_run_needs_is_told_in_round_figures() -> None:
    many = builders.plan(generator="oha", rate=6000, duration=300, warmup=10, endpoint="index")
    assert needs_words.told(present(many.needs)) == (
        "Needs at least 140 MiB of disk and 620 MiB of memory on each client; 370 MiB of disk here"
    )


def test_what_every_machine_has_is_not_told() -> None:
    small = builders.plan(rate=500, duration=5, warmup=1, endpoint="index")
    assert needs_words.told(present(small.needs)) == ""
