"""A matrix of the candidates of one server on the hosts, to its choice and the files of each."""

import json

import pytest

from .conftest import CLIENT, ROOT, playbook, ssh
from .figures import figures

pytestmark = pytest.mark.lab


def test_matrix_chooses_a_candidate_and_keeps_the_files_of_each(run_id: str) -> None:
    """sync keeps no connection, and gthread with threads does: it has more goodput."""
    process = playbook(
        "playbooks/matrix.yml",
        framework="plain_wsgi",
        endpoint="hello",
        server="gunicorn",
        budget="15m",
        run_id=run_id,
    )
    output, _ = process.communicate(timeout=1800)
    assert process.returncode == 0, output[-6000:]
    folder = ROOT / "results" / run_id
    found = json.loads((folder / "matrix.json").read_text())
    rows = {row["name"]: row for row in found["candidates"]}
    assert "Matrix: " in output
    assert found["blocks"] >= 1
    # A block that was begun is finished.
    assert found["measured_s"] <= 16 * 60
    # The server's own default contends whatever it reached in the rounds.
    assert rows["gunicorn-sync-1x1"]["contends"]
    assert found["chosen"] in {found["best"], *(lead["name"] for lead in found["leads"])}
    with figures():
        assert rows[found["best"]]["goodput"] >= rows["gunicorn-sync-1x1"]["goodput"]
    for row in rows.values():
        kept = folder / "stacks" / row["stack"]
        unit = (kept / "loadlab-app.service").read_text()
        assert f"--workers {row['workers']} --threads {row['threads']} " in unit
        assert "upstream application" in (kept / "reverse_proxy.conf").read_text()
    assert 'id="matrix"' in (folder / "report.html").read_text()
    # The lab's own generator refuses no later run.
    assert "/usr/local/bin/metronome" in ssh(CLIENT, "cat /var/lib/loadlab-owned").split()
