from pathlib import Path

from msgspec.structs import replace

from loadlab.plan import plan_document
from loadlab.plan.plan_document import PlannedComparison, Resumption, Run, resumed
from loadlab.run import documents
from tests.unit import builders


def run(folder: Path, started: str, comparisons: str, controls: list[tuple[str, str]]) -> Run:
    compared = [PlannedComparison(by="tuning", base="a", head=head) for head in comparisons]
    plan = replace(builders.plan(), comparisons=compared, aa_controls=controls)
    builders.write_plan(folder, plan)
    return replace(plan_document.read(folder), started=started, argv=["lab.yml", started])


def test_resumed_run_keeps_its_start_its_hosts_and_its_comparisons(tmp_path: Path) -> None:
    first, now = run(tmp_path, "1", "b", [("a", "a-again")]), run(tmp_path, "2", "bc", [])
    rerun = resumed(replace(first, hosts={"server": {}}, inventory_args="-i x"), now)
    assert (rerun.hosts, rerun.inventory_args) == ({"server": {}}, "-i x")
    assert (rerun.started, rerun.argv) == ("1", ["lab.yml", "1"])
    assert [comparison.head for comparison in rerun.plan.comparisons] == ["b", "c"]
    assert rerun.plan.aa_controls == [("a", "a-again")]
    assert rerun.resumed == [Resumption(started="2", argv=["lab.yml", "2"])]
    again = resumed(rerun, replace(now, started="3"))
    assert [comparison.started for comparison in again.resumed or ()] == ["2", "3"]


def test_resume_args_reach_the_hosts_of_the_run(tmp_path: Path) -> None:
    assert plan_document.resume_args(tmp_path) == f"-e run_id={tmp_path.name}"
    begun = replace(run(tmp_path, "1", "", []), inventory_args="-i inventory/aws")
    (tmp_path / "plan.json").write_bytes(documents.encode(begun))
    assert plan_document.resume_args(tmp_path) == f"-e run_id={tmp_path.name} -i inventory/aws"
