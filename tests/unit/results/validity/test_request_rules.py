from dataclasses import replace
from typing import Any

import msgspec
import pytest

from loadlab.report import words
from tests.unit import builders
from tests.unit.builders import telemetry as host
from tests.unit.results.validity.judging import CONSTANT, GOOD, NONE, batch, codes, judged


def test_fewer_requests_than_connections_need_fewer_connections() -> None:
    few = replace(GOOD, requests=40, responses=40, scheduled=40)
    assert judged(few, client=host(sockets={"established_max": 40})).valid


@pytest.mark.parametrize(
    ("cell", "load", "kept"),
    [
        ({}, {"keepalive": True}, True),
        ({}, {"keepalive": False}, False),
        ({"reverse_proxy": "none", "upstream_keepalive": True}, {}, True),
        # The application server closes the clients' own.
        ({"reverse_proxy": "none", "upstream_keepalive": False}, {}, False),
    ],
)
def test_connections_for_one_request_are_not_counted(
    cell: dict[str, Any], load: dict[str, Any], kept: bool
) -> None:
    found = judged(
        client=host(sockets={"established_max": 3}),
        load=msgspec.structs.replace(CONSTANT, **{"keepalive": None, **load}),
        cell=builders.cell(**cell),
    )
    assert codes(found.reasons) == (["connections"] if kept else [])


@pytest.mark.parametrize(
    ("nginx", "off"), [(30_064, None), (30_065, 65), (29_890, None), (29_826, None), (29_825, 65)]
)
def test_requests_that_nginx_and_the_generator_count_differently(
    nginx: int, off: int | None
) -> None:
    """Each connection may have one under way; 110 failed, whether or not nginx saw them."""
    measured = replace(GOOD, responses=29_890, errors={**NONE, "timeout": 110})
    found = judged(measured, nginx=nginx)
    assert found.valid
    differ = [one for one in found.findings if one.code == "counts_differ"]
    assert [one.value for one in differ] == [off] * (off is not None)


def test_open_files_name_the_limit_and_the_remedy() -> None:
    (finding,) = batch({"EMFILE": 8_985}).findings[:-1]
    text = words.reason(finding)
    for part in ("8,985 of 10,000 requests", "EMFILE", "1,024", "-e open_files=", "ulimit -n"):
        assert part in text


def test_fewer_open_files_than_asked_are_told() -> None:
    (finding,) = batch({}, {"open_files": 20_000}).findings[:-1]
    assert finding.code == "open_files_granted"
    assert words.reason(finding).startswith("1,024 granted of 20,000 asked")


@pytest.mark.parametrize(
    ("reuse", "remedy", "other"),
    [(False, "-e python_keepalive=true", "fewer"), (True, "Have fewer under way", "TIME-WAIT")],
)
def test_local_ports_name_the_limit_and_the_remedy(reuse: bool, remedy: str, other: str) -> None:
    (finding,) = batch({"EADDRNOTAVAIL": 7_100}, {"reuse": reuse}).findings[:-1]
    text = words.reason(finding)
    for part in ("7,100 of 10,000", "28,232, 32768 to 60999", "ip_local_port_range", remedy):
        assert part in text
    assert other not in text
