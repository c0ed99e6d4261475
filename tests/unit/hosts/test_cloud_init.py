"""When a host's first boot is not accepted; the documents are those of cloud-init 25.1 and 22.4."""

from __future__ import annotations

import json
from typing import Any

from loadlab.hosts import cloud_init

STAGE: dict[str, Any] = {
    "errors": [],
    "finished": 1763805601.9,
    "recoverable_errors": {},
    "start": 1763805600.1,
}
DONE: dict[str, Any] = {
    "boot_status_code": "enabled-by-generator",
    "datasource": "ec2",
    "detail": "DataSourceEc2Local",
    "errors": [],
    "extended_status": "done",
    "init": STAGE,
    "init-local": STAGE,
    "last_update": "Sat, 22 Nov 2025 10:00:02 +0000",
    "modules-config": STAGE,
    "modules-final": STAGE,
    "recoverable_errors": {},
    "stage": None,
    "status": "done",
}
OLD: dict[str, Any] = {
    "_schema_version": "1",
    "boot_status_code": "enabled-by-generator",
    "datasource": "ec2",
    "detail": "DataSourceEc2Local",
    "errors": [],
    "last_update": "Sat, 22 Nov 2025 10:00:02 +0000",
    "status": "done",
}
BOOTCMD = (
    "('bootcmd', ProcessExecutionError(\"Unexpected error while running command.\\nCommand: "
    "['/bin/sh', '/var/tmp/cloud-init/tmpz_51qj.sh']\\nExit code: 1\\nReason: -\"))"
)


def refusal(**changes: object) -> str:
    return cloud_init.refusal(json.dumps({**DONE, **changes}, indent=1))


def test_cloud_init_that_did_all_is_accepted() -> None:
    assert refusal() == ""
    assert cloud_init.refusal(json.dumps(OLD)) == ""


def test_cloud_init_refuses_a_bootcmd_that_failed() -> None:
    told = refusal(
        status="error",
        extended_status="error - done",
        errors=[BOOTCMD, BOOTCMD],
        recoverable_errors={"WARNING": ["Failed to run bootcmd module"]},
    )
    assert told.startswith("cloud-init says 'error' of the first boot: ('bootcmd', ")
    assert told.count("Exit code: 1") == 1
    assert told.endswith("; WARNING: Failed to run bootcmd module")


def test_cloud_init_refuses_a_warning_of_a_boot_that_is_done() -> None:
    told = refusal(
        extended_status="degraded done",
        recoverable_errors={"WARNING": ["Package update\nfailed"]},
    )
    assert told == "cloud-init says 'done' of the first boot: WARNING: Package update failed"


def test_cloud_init_accepts_a_key_that_is_deprecated_only() -> None:
    level = {"DEPRECATED": ["The chpasswd multiline string is deprecated in 22.2"]}
    assert refusal(extended_status="degraded done", recoverable_errors=level) == ""


def test_cloud_init_refuses_an_error_without_a_message() -> None:
    # Where systemd says that a unit failed, and no stage recorded why.
    assert refusal(status="error", extended_status="error - done") == (
        "cloud-init says 'error' of the first boot: DataSourceEc2Local"
    )


def test_cloud_init_refuses_a_boot_that_it_took_no_part_in() -> None:
    told = refusal(status="disabled", detail="Cloud-init disabled by cloud-init-generator")
    assert told.endswith(
        "'disabled' of the first boot: Cloud-init disabled by cloud-init-generator"
    )


def test_cloud_init_refuses_what_is_no_status() -> None:
    assert "It printed: nothing" in cloud_init.refusal("")
    assert "It printed: Traceback of Python" in cloud_init.refusal("Traceback\nof Python")
    assert "missing required field `status`" in cloud_init.refusal("{}")
