"""The lab measures itself: every injected fault comes out as what it is."""

import json

import pytest

from .conftest import ROOT, run
from .figures import figures

pytestmark = pytest.mark.lab


def test_every_injected_fault_comes_out_as_what_it_is(run_id: str) -> None:
    output = run("playbooks/certify.yml", run_id=run_id, repetitions=1)
    certificate = json.loads((ROOT / "results" / run_id / "certificate.json").read_text())
    tests = {test["name"]: test for test in certificate["tests"]}
    assert len(tests) == 15 + 6 + 8
    # What is injected is counted exactly, on whatever machine.
    counted = [figure for test in tests.values() for figure in test["figures"]]
    assert {test["generator"] for test in tests.values()} == {"metronome", "oha", "wrk"}
    for figure in counted:
        if figure["metric"].startswith("errors."):
            assert figure["passed"], figure
    assert "The lab reported the truth in " in output
    with figures():
        for name, test in tests.items():
            if not test.get("beside"):
                assert test["passed"], (name, test["reasons"], test["figures"])
