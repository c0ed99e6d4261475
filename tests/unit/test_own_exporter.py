"""Whether an exporter is that of a host, by when both say that they were booted."""

import pytest
from ansible_collections.lab.bench.plugins.action import own_exporter

from loadlab.telemetry import exporter

URL = "http://127.77.1.11:9109/metrics"
BOOTED = 1795224996
PAGE = """# HELP node_boot_time_seconds Node boot time, in unixtime.
# TYPE node_boot_time_seconds gauge
node_boot_time_seconds {}
node_time_seconds 1.795225e+09
"""


def ask(monkeypatch: pytest.MonkeyPatch, page: str | Exception) -> None:
    def fetch(url: str) -> str:
        assert url == URL
        if isinstance(page, Exception):
            raise page
        return page

    monkeypatch.setattr(exporter, "fetch", fetch)
    action = own_exporter.ActionModule.__new__(own_exporter.ActionModule)
    assert action.act({"url": URL, "booted": BOOTED}) == {}


@pytest.mark.parametrize("seconds", ["1.795224996e+09", "1795224996"])
def test_own_exporter_that_answers_for_this_host_is_accepted(
    monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    ask(monkeypatch, PAGE.format(seconds))


def test_another_machines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="is another machine's") as refusal:
        ask(monkeypatch, PAGE.format("1.795224997e+09"))
    assert str(refusal.value).startswith(
        f"The telemetry at {URL} is another machine's: that was booted at 2026-11-21 01:36:37 UTC, "
        "and this host at 2026-11-21 01:36:36 UTC."
    )
    assert str(refusal.value).endswith("No load was offered.")


@pytest.mark.parametrize(
    "page",
    [
        ConnectionRefusedError(111, "Connection refused"),
        TimeoutError("no end after 2.0 s"),
        PAGE.replace("\nnode_boot", "\nnode_boat").format("1.795224996e+09"),
        PAGE.format("1e300"),
        PAGE.format("nan"),
        PAGE.format("-1"),
        PAGE.format(""),
        PAGE.format("1795224996") + "node_boot_time_seconds 1795224996\n",
        "",
    ],
    ids=str,
)
def test_one_that_does_not_tell_is_refused(
    monkeypatch: pytest.MonkeyPatch, page: str | Exception
) -> None:
    with pytest.raises(ValueError, match=f"cannot be read at {URL}: ") as refusal:
        ask(monkeypatch, page)
    assert str(refusal.value).endswith("No load was offered.")
