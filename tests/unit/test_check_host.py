"""The action lab.bench.check_host, with the plan as a play has it."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ansible_collections.lab.bench.plugins.action import check_host
from ansible_collections.lab.bench.plugins.plugin_utils.controller import for_ansible

from tests.unit import builders

ROOT = Path(__file__).parents[2]
MANY = {"workers": 100, "tuning": "stock"}


def check(*, is_server: bool, options: dict[str, Any] | None = None, **changed: Any) -> None:
    host = builders.host_probe(**{"programs": {"oha": "", "wrk": "", "wrk2": ""}, **changed})
    action = check_host.ActionModule.__new__(check_host.ActionModule)
    args = {
        "host": msgspec.to_builtins(host),
        "name": "one",
        "machine_ids": {"one": "5e0c", "two": "aaaa"},
        "test_address": "10.0.0.1",
        "is_server": is_server,
        "plan": for_ansible(builders.plan(**(options or {}))),
        "binaries": {"oha_binary": "", "wrk2_binary": ""},
        "controller": sys.executable,
        "fetched_sources": None,
        "root": str(ROOT),
    }
    assert action.act(args) == {}


def test_a_client_needs_room_for_the_rows_of_its_generator() -> None:
    """1.8 million requests, 80 bytes each on the disk and 360 in oha's memory."""
    many = {"generator": "oha", "rate": 6000, "duration": 300}
    with pytest.raises(
        ValueError, match=r"/var/lib has 95\.4 MiB free, and a measurement needs 140"
    ):
        check(is_server=False, options=many, free_bytes=100_000_000)
    with pytest.raises(ValueError, match="477 MiB of available memory, and the generator needs 61"):
        check(is_server=False, options=many, available_bytes=500_000_000)
    check(is_server=True, options=many, free_bytes=100_000_000, available_bytes=500_000_000)
    check(is_server=False, options={**many, "generator": "wrk"}, available_bytes=1)


def test_a_host_that_can_serve_is_not_refused() -> None:
    check(is_server=True)


def test_a_server_is_refused_by_rule_and_by_its_pools() -> None:
    with pytest.raises(ValueError, match=r"^one: .*would open 100 workers") as refused:
        check(is_server=True, options=MANY, os="fedora 43")
    assert "the lab knows Debian 12" in str(refused.value)
    assert str(refused.value).endswith(" Nothing was changed on the hosts.")


def test_a_client_is_refused_that_cannot_get_its_generator() -> None:
    options = {"generator": "wrk2", "duration": 30}
    check(is_server=True, options=options)
    with pytest.raises(ValueError, match="the generator wrk2 is not there"):
        check(is_server=False, options=options)


def test_only_a_server_has_to_let_its_kernel_be_traced() -> None:
    traced = {"trace": True}
    check(is_server=False, options=traced, untraced=["container"])
    check(is_server=True, untraced=["container"])
    with pytest.raises(ValueError, match="trace=true needs bpftrace, which cannot run there"):
        check(is_server=True, options=traced, untraced=["container"])
