"""When a host's first boot is not accepted; the documents are those of cloud-init 25.1 and 22.4."""

import json
from typing import Any

import pytest

from loadlab.hosts.cloud_init import FirstBoot, first_boot

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
KEPT = ("boot_status_code", "datasource", "detail", "errors", "last_update", "status")
OLD = {"_schema_version": "1", **{key: DONE[key] for key in KEPT}}
BOOTCMD = (
    "('bootcmd', ProcessExecutionError(\"Unexpected error while running command.\\nCommand: "
    "['/bin/sh', '/var/tmp/cloud-init/tmpz_51qj.sh']\\nExit code: 1\\nReason: -\"))"
)


def judged(**changes: object) -> FirstBoot:
    return first_boot(json.dumps({**DONE, **changes}, indent=1))


def refusal(**changes: object) -> str:
    return judged(**changes).refusal


def test_cloud_init_that_did_all_is_accepted() -> None:
    assert judged() == first_boot(json.dumps(OLD)) == FirstBoot("", [])


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


def degraded(level: str, message: str) -> FirstBoot:
    return judged(extended_status="degraded done", recoverable_errors={level: [message]})


def test_cloud_init_accepts_a_boot_with_a_warning() -> None:
    # Of Debian's daily images, whose boot ends with status 2.
    said = "cloud-config failed schema validation!\nYou may run `cloud-init schema`."
    told = "WARNING: cloud-config failed schema validation! You may run `cloud-init schema`."
    assert degraded("WARNING", said) == FirstBoot("", [told])


@pytest.mark.parametrize(
    ("level", "message"), [("WARNING", "Package update\nfailed"), ("ERROR", "No disk found")]
)
def test_cloud_init_refuses_an_error_of_a_boot_that_is_done(level: str, message: str) -> None:
    told = "cloud-init says 'done' of the first boot: " + " ".join(f"{level}: {message}".split())
    assert degraded(level, message) == FirstBoot(told, [])


def test_cloud_init_accepts_a_key_that_is_deprecated_only() -> None:
    level = {"DEPRECATED": ["The chpasswd multiline string is deprecated in 22.2"]}
    assert judged(recoverable_errors=level) == FirstBoot("", [])


def test_cloud_init_refuses_an_error_without_a_message() -> None:
    # Where systemd says that a unit failed, and no stage recorded why.
    said = "cloud-init says '{}' of the first boot: {}"
    told = refusal(status="error", extended_status="error - done")
    assert told == said.format("error", "DataSourceEc2Local")
    # Or where it took no part.
    off = "Cloud-init disabled by cloud-init-generator"
    assert refusal(status="disabled", detail=off) == said.format("disabled", off)


def test_cloud_init_refuses_what_is_no_status() -> None:
    assert "It printed: nothing" in first_boot("").refusal
    assert "It printed: Traceback of Python" in first_boot("Traceback\nof Python").refusal
    assert "missing required field `status`" in first_boot("{}").refusal
