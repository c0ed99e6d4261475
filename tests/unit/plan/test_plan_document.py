from msgspec.structs import replace

from loadlab.plan.plan_document import PlannedComparison, Resumption, Run, resumed
from tests.unit import builders


def run(started: str, comparisons: str, controls: list[tuple[str, str]]) -> Run:
    compared = [PlannedComparison(by="tuning", base="a", head=head) for head in comparisons]
    plan = replace(builders.plan(), comparisons=compared, aa_controls=controls)
    return Run(
        started=started,
        argv=["lab.yml", started],
        plan=plan,
        inventory_args="",
        place="",
        thresholds=builders.thresholds(),
    )


def test_resumed_run_keeps_its_start_and_its_comparisons() -> None:
    first, now = run("1", "b", [("a", "a-again")]), run("2", "bc", [])
    rerun = resumed(first, now)
    assert (rerun.started, rerun.argv) == ("1", ["lab.yml", "1"])
    assert [comparison.head for comparison in rerun.plan.comparisons] == ["b", "c"]
    assert rerun.plan.aa_controls == [("a", "a-again")]
    assert rerun.resumed == [Resumption(started="2", argv=["lab.yml", "2"])]
    again = resumed(rerun, replace(now, started="3"))
    assert [comparison.started for comparison in again.resumed or ()] == ["2", "3"]


def test_resumed_run_keeps_its_hosts() -> None:
    first = replace(run("1", "", []), hosts={"server": {}}, inventory_args="-i x")
    kept = resumed(first, run("2", "", []))
    assert (kept.hosts, kept.inventory_args) == ({"server": {}}, "-i x")
