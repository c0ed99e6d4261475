import pytest
from msgspec.structs import replace

from loadlab.report.words import planned_words
from tests.unit import builders
from tests.unit.builders import present


@pytest.mark.parametrize("usd", [0, 0.416])
def test_the_first_line_of_a_study_names_scale_measurements_time_and_price(
    usd: float,
) -> None:
    made = replace(builders.plan(framework=None, study="quick"), run_id="mine")
    line = planned_words.line(made, usd)
    assert line.startswith("Run mine, quick at scale local: 17 measurements of aiohttp, api_hour, ")
    price = ", about 0.42 USD on EC2 (list price)" if usd else ""
    assert line.endswith(f"at hello (17 remaining), about 68 s of load{price}")


def test_the_first_line_of_a_plain_run_names_no_scale() -> None:
    made = replace(builders.plan(endpoint="hello", repetitions=1), run_id="mine")
    assert planned_words.line(made, 0) == (
        f"Run mine: 2 measurements of aiohttp at hello (2 remaining), about "
        f"{made.load_seconds:.0f} s of load"
    )


def test_what_a_run_needs_is_told_in_round_figures() -> None:
    many = builders.plan(generator="oha", rate=6000, duration=300, warmup=10, endpoint="index")
    assert planned_words.needs(present(many.needs)) == (
        "Needs at least 140 MiB of disk and 620 MiB of memory on each client; 370 MiB of disk here"
    )


def test_what_every_machine_has_is_not_told() -> None:
    small = builders.plan(rate=500, duration=5, warmup=1, endpoint="index")
    assert planned_words.needs(present(small.needs)) == ""
