"""The properties of tests/unit/generators/test_attribution.py, over many more examples."""

from hypothesis import given, settings

from tests.simulation import properties


@given(properties.ANY_SERVER)
@settings(max_examples=2000, deadline=None)
def test_ideal_generator_is_never_late_whatever_the_server_does(case: properties.Case) -> None:
    properties.ideal_generator(case)


@given(properties.GENERATOR_STALLS)
@settings(max_examples=2000, deadline=None)
def test_ideal_server_hides_no_stall_of_the_generator(case: properties.Case) -> None:
    properties.ideal_server(case)
