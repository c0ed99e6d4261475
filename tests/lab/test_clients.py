"""Several clients to a server: what they did together is the sum of what each did."""

import json
import re
from pathlib import Path

import pytest

from loadlab.bundle import archive, verify
from loadlab.model import Calibration, Result
from loadlab.reasons.validity_reasons import THRESHOLDS
from loadlab.run import documents

from .conftest import ROOT, results, run

pytestmark = pytest.mark.lab

LIMIT = THRESHOLDS.start_spread_max_s


def test_two_clients_offer_one_load(run_id: str, tmp_path: Path) -> None:
    asked = {"framework": "nginx", "endpoint": "hello", "rate": 401, "connections": 5}
    short = {"duration": 3, "warmup": 1, "untune": True}
    told = run("lab.yml", inventory="inventory/local_clients", **asked, **short, run_id=run_id)
    # Each host ends as it was, before the report.
    restored = told.partition("Untune")[2].partition("Report:")[0]
    for host in ("server", "client", "clientb"):
        assert re.search(rf"{host}: [1-9]\d* settings of the machine are as they", restored), told
    found = results(run_id)
    assert set(found) == {"metronome hello", "wrk hello"}
    for result in found.values():
        documents.decode(result, Result, "result.json")
        assert result["error"] is None
        clients = result["clients"]
        assert [(one["name"], one["connections"]) for one in clients] == [
            ("client", 3),
            ("clientb", 2),
        ]
        for count in ("requests", "responses"):
            assert result[count] == sum(one[count] for one in clients)
            assert min(one[count] for one in clients) > 0
        # They began together, and each was judged for itself.
        begun = [one["started"] - one["clock_offset_s"] for one in clients]
        assert max(begun) - min(begun) < LIMIT
        assert result["validity"]["valid"] == all(one["validity"]["valid"] for one in clients)
        for one in clients:
            assert one["validity"]["valid"] == (not one["validity"]["reasons"])
    constant = found["metronome hello"]
    assert [one["rate"] for one in constant["clients"]] == [201, 200]
    assert constant["scheduled"] == 401 * 3
    # What the server counted is what the clients counted together, to the request.
    assert constant["reverse_proxy_requests"] == constant["requests"]

    folder = ROOT / "results" / run_id
    for name in ("calibration", "calibration+clientb"):
        documents.read(folder / f"{name}.json", Calibration)
    for name in ("manifest", "tuning"):
        hosts = json.loads((folder / f"{name}.json").read_text())["hosts"]
        assert set(hosts) == {"server", "client", "clientb"}
    assert "part of the load. Counts and histograms" in (folder / "report.html").read_text()
    # All of it is derived again from the raw files of both.
    archive.pack(folder, tmp_path / "run.tar.gz")
    (tmp_path / "again").mkdir()
    outcome = verify.verify(tmp_path / "run.tar.gz", ROOT, tmp_path / "again")
    assert outcome.verified, outcome.lines()
