"""A comparison of variants from its plan to its verdict: blocks are added as in a run, with results
of a simulated machine."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from loadlab.kinds import derive_run
from loadlab.kinds.budget import Pace
from loadlab.kinds.gate import analyse as verdict
from loadlab.kinds.gate import blocks_decided as blocks
from loadlab.kinds.gate import kind, show, sides, words
from loadlab.model import (
    Answer,
    Facts,
    Item,
    LaneTimes,
    Reason,
    ResponseTime,
    Result,
    Saturated,
    ServiceProcesses,
    Verdict,
    VerdictRow,
    VoidCount,
)
from loadlab.model.metric_rows import GATES
from loadlab.plan import plan_document, schedule
from loadlab.plan.modes.stopping import TRIES
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records, cell_records
from loadlab.run import documents
from loadlab.run.errors import PlanError
from loadlab.run.run_dir import RunDir
from loadlab.stats import sequential
from tests.unit import builders

EACH_S = 5.0


def plan(**given: object) -> Plan:
    return builders.plan(
        **{
            **{"endpoint": "hello", "base": "workers=1", "head": "workers=2"},
            **{"rate": 1000, "budget": "20m", **given},
        }
    )


@dataclass
class Machine:
    """Measures what the plan asks for, and keeps the results.

    ``truth``: cpu, goodput, p50, p99 and so on -> the head's, as a multiple of the base's.
    ``noise``: of what is measured alone; CPU and p50 of a load of several lanes have a quarter.
    """

    plan: Plan
    truth: Mapping[str, float] = field(default_factory=dict)
    noise: float = 0.02
    failed: float = 0.0
    changed: str = "head"
    # Slower in truth, though it is the base again.
    control: float = 1.0
    busy: float = 0.3
    requests: int = 3000
    # cell_id and repetition of void measurements.
    void: set[tuple[str, int]] = field(default_factory=set)
    now: float = 1_795_000_000.0
    found: dict[str, list[Result]] = field(default_factory=dict)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    # What becomes of a measurement; cells -> how often they failed in a row.
    change: Callable[[Item, Result], Result] = lambda item, result: result
    failures: dict[str, int] = field(default_factory=dict)

    def records(self) -> Records:
        return {name: cell_records(several) for name, several in self.found.items()}

    def run(self) -> Verdict:
        """Measure one invocation's blocks; return the verdict."""
        began, before = self.now, schedule.blocks_done(self.plan, self.records(), {})
        while True:
            pace = Pace(began, self.now, before)
            left = blocks.blocks(self.plan, self.records(), self.failures, pace)
            if not self.load(plan_document.with_blocks(self.plan, left)):
                return self.verdict()

    def load(self, now: Plan) -> bool:
        """Measure the next load of a plan; return whether there was one."""
        item = schedule.next_item(now, self.records(), self.failures, None, 0)
        if item is None:
            return False
        self.now += EACH_S
        for lane in item.measured:
            result = self.change(lane, self.measure(lane, item.repetition, item.block))
            result = replace(result, blocks=item.blocks)
            self.found.setdefault(lane.cell_id, []).append(result)
        return True

    def verdict(self) -> Verdict:
        return verdict.build("run", builders.present(self.plan.gate), self.records())

    def measure(self, item: Item, repetition: int, block: int | None) -> Result:
        head = item.cell.variant == self.changed

        def times(name: str) -> float:
            truth = self.truth.get(name, 1.0) if head else 1.0
            if item.purpose == "aa_control" and name == "cpu":
                truth *= self.control
            noise = self.noise / (4 if item.cell.load.lanes and name in ("cpu", "p50") else 1)
            return truth * math.exp(self.random.normal(0, noise))

        requests = self.requests
        failed = int(requests * self.failed) if head else 0
        response_time = ResponseTime(
            mean_us=1000.0,
            p50_us=900 * times("p50"),
            p99_us=4000 * times("p99"),
            requests=requests,
            failed=failed,
        )
        server = builders.telemetry(
            processes=ServiceProcesses(
                reverse_proxy=None,
                postgresql=None,
                application=builders.processes(
                    cpu_s=0.3 * times("cpu"), rss_max_bytes=int(80e6 * times("memory"))
                ),
            )
        )
        goodput = 20_000 * times("goodput")
        hosts = builders.present(builders.result().telemetry)
        return builders.result_of(
            item,
            repetition=repetition,
            block=block,
            validity=replace(builders.valid(), valid=(item.cell_id, repetition) not in self.void),
            started=self.now - 3,
            finished=self.now - 0.001 * (item.purpose == "aa_control"),
            requests=requests,
            responses=requests,
            scheduled=requests,
            reverse_proxy_requests=requests,
            ok=requests - failed,
            goodput=goodput,
            saturated=None
            if item.cell.load.lanes is None
            else Saturated(goodput=goodput, right=3000, slices=20, seconds=4.0, cut=0),
            response_time=response_time if item.cell.load.mode == "constant" else None,
            lane_times=None
            if item.cell.load.lanes is None
            else LaneTimes(p50_us=response_time.p50_us, p99_us=response_time.p99_us),
            telemetry=replace(hosts, server=replace(server, cpu_busy=self.busy)),
        )


def rows(found: Verdict, head: int = 0) -> dict[str, VerdictRow]:
    return {row.metric: row for row in found.heads[head].rows}


def answers(found: Verdict, head: int = 0) -> dict[str, str]:
    return {name: row.answer for name, row in rows(found, head).items()}


def test_run_ends_when_every_metric_is_decided() -> None:
    found = Machine(plan(), {"cpu": 1.1, "p99": 0.8}).run()
    assert answers(found) == {
        "cpu": "slower",
        "goodput": "no difference",
        "p50": "no difference",
        "p99": "faster",
        "memory": "no difference",
        "errors": "no difference",
    }
    assert found.answer == "slower"
    cpu = rows(found)["cpu"]
    assert cpu.base == pytest.approx(100, rel=0.03)
    assert 0 < builders.present(cpu.low) < 0.1 < builders.present(cpu.high)
    # Who divides the two values shown gets the difference shown.
    shown = [row for row in found.heads[0].rows if row.relative]
    assert len(shown) == 5
    for row in shown:
        assert row.base
        assert row.head
        assert row.head / row.base - 1 == pytest.approx(row.value)
    # One load of 3 s a block; the budget of 20 minutes would allow 240 of these.
    assert 7 <= found.blocks < 45
    assert found.measured_s == pytest.approx(found.blocks * 3)


def test_colour_of_the_sentence_follows_from_all_answers() -> None:
    (head,) = Machine(plan(), {"cpu": 1.3}).run().heads
    better, worse = replace(head.rows[0], answer="faster"), replace(head.rows[0], answer="slower")
    same, undecided = (replace(better, answer=name) for name in ("no difference", "undecided"))
    states: list[tuple[str, Answer, list[VerdictRow]]] = [
        ("missed", "slower", [worse, same]),
        ("decided", "slower", [worse, better]),
        ("held", "faster", [better, same]),
        ("decided", "undecided", [better, undecided]),
        ("inconclusive", "undecided", [same, undecided]),
        ("same", "no difference", [same]),
    ]
    for state, answer, rows in states:
        assert kind.state(replace(head, answer=answer, rows=rows)) == state


def test_run_ends_with_its_budget_and_finishes_the_block() -> None:
    machine = Machine(plan(budget="5m"), noise=0.2)
    found = machine.run()
    assert found.answer == "undecided"
    assert any(row.is_open for row in rows(found).values())
    # 300 s, 5 s a block.
    assert found.blocks == 60
    assert {len(several) for several in machine.found.values()} == {60}
    # Another invocation adds blocks; the pause does not count.
    machine.now += 3600
    machine.plan = plan_document.with_blocks(machine.plan, 120)
    again = machine.run()
    assert again.blocks == 120
    # Loads of 3 s, of which the lanes do not end at the same moment.
    assert found.measured_s == pytest.approx(60 * 3)
    assert again.measured_s == pytest.approx(2 * found.measured_s)


def test_the_first_set_up_of_the_variants_takes_nothing_from_the_budget() -> None:
    class Slow(Machine):
        def load(self, now: Plan) -> bool:
            self.now += 0 if self.found else 170
            return super().load(now)

    # 180 s, 5 s a block.
    assert Slow(plan(budget="3m"), noise=0.2).run().blocks == 36


@pytest.mark.parametrize("ahead_s", [-3600, 3600])
def test_another_clock_of_the_client_makes_the_budget_no_longer(ahead_s: float) -> None:
    def shifted(item: Item, result: Result) -> Result:
        assert result.started
        return replace(result, started=result.started + ahead_s)

    assert Machine(plan(budget="1m"), noise=0.2, change=shifted).run().blocks == 12


@pytest.mark.parametrize("before", [1, 2])
def test_pause_after_few_blocks_does_not_count(before: int) -> None:
    machine = Machine(plan(budget="40s"), noise=0.2)
    for _ in range(before):
        assert machine.load(machine.plan)
    machine.now += 3600
    # 40 s, 5 s a block; the time of the first is the plan's guess where no other is known.
    assert machine.run().blocks >= before + 2


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_run_says_how_much_longer_an_undecided_metric_takes(seed: int) -> None:
    machine = Machine(plan(budget="1m"), noise=0.08, random=np.random.default_rng(seed))
    machine.run()
    gate = builders.present(machine.plan.gate)
    further_s = blocks.further_s(gate, machine.records())
    assert further_s["p99"] > 60

    def p99_after(seconds: float) -> str:
        planned = replace(machine.plan, gate=replace(gate, budget_s=seconds))
        random = np.random.default_rng(seed + 9)
        more = Machine(planned, noise=0.08, now=machine.now, random=random)
        more.found = {name: [*results] for name, results in machine.found.items()}
        return answers(more.run())["p99"]

    assert p99_after(further_s["p99"] / 4) == "undecided"
    assert p99_after(further_s["p99"] * 1.6) == "no difference"


def test_run_without_an_interval_names_the_time_until_the_first() -> None:
    machine = Machine(plan(budget="40s"), {"cpu": 1.1})
    assert machine.run().blocks == 2
    further_s = blocks.further_s(builders.present(machine.plan.gate), machine.records())
    starts = [builders.present(rep.started) for rep in next(iter(machine.found.values()))]
    assert further_s == pytest.approx(dict.fromkeys(GATES, 2 * (starts[1] - starts[0])))


def test_run_names_the_budget_that_decides_and_what_no_budget_does() -> None:
    assert words.next_steps("play -e run_id=a", {}) == []
    further_s = {"p99": 610.0, "goodput": 40.0, "p50": math.inf}
    assert words.next_steps("play -e run_id=a", further_s) == [
        "Next: play -e run_id=a -e budget=11m",
        "      # by the noise so far this decides goodput at saturation in about 60 s, p99 in "
        "about 11 min",
        "No budget is likely to decide p50: give a higher rate (-e rate=), or quieter hosts.",
    ]
    first = words.next_steps("play -e run_id=a", dict.fromkeys(GATES, 440.0), is_first=True)
    assert first[-1] == "      # the first answer takes about 8 min"


def further_s(machine: Machine) -> dict[str, float]:
    machine.run()
    return blocks.further_s(builders.present(machine.plan.gate), machine.records())


def test_budget_for_too_few_requests_is_by_how_many_are_missing() -> None:
    # The head has 120 in 12 blocks, and 2,995 are needed; the base, measured twice, has 240.
    assert further_s(Machine(plan(budget="1m"), requests=10)) == {"errors": 288 * EACH_S}


def test_no_budget_is_named_for_what_blocks_do_not_decide() -> None:
    assert further_s(Machine(plan(budget="2m"), {"cpu": 1.1}, control=1.2)) == {"cpu": math.inf}


def test_no_budget_is_named_that_is_longer_than_one_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "EACH_S", 7200.0)
    random = np.random.default_rng(0)
    assert further_s(Machine(plan(budget="24h"), noise=0.08, random=random))["p99"] == math.inf


def test_decided_run_is_not_continued() -> None:
    machine = Machine(plan(), {"cpu": 1.3})
    blocks = machine.run().blocks
    assert machine.run().blocks == blocks


def test_difference_within_the_noise_of_the_control_is_not_told() -> None:
    found = Machine(plan(budget="10m"), {"cpu": 1.1}, control=1.2).run()
    assert answers(found)["cpu"] == "undecided"
    assert rows(found)["cpu"].reason.code == "looks_within_noise"


def test_head_that_fails_more_requests_is_slower_and_in_nothing_faster() -> None:
    found = Machine(plan(), {"p50": 0.5, "cpu": 0.5}, failed=0.02).run()
    assert answers(found)["errors"] == "slower"
    assert rows(found)["errors"].value == pytest.approx(0.02)
    assert rows(found)["p50"].reason.code == "better_failed_more"
    assert "faster" not in answers(found).values()
    assert found.answer == "slower"
    # It is no fraction of the base's, which are none.
    line = words.after_block(9, {"head": found.heads[0].rows})
    assert "failed requests more (+2.00 points)" in line


def test_head_that_answers_nothing_in_the_closed_loop_is_slower() -> None:
    def silent(item: Item, result: Result) -> Result:
        if item.cell.variant != "head":
            return result
        return replace(result, saturated=replace(builders.present(result.saturated), goodput=0.0))

    found = Machine(plan(budget="1m"), change=silent).run()
    goodput = rows(found)["goodput"]
    assert (goodput.answer, goodput.value, goodput.head) == ("slower", -1, 0)
    assert goodput.base == pytest.approx(20_000, rel=0.05)
    sentence = words.sentence(found, found.heads[0])
    assert re.search(
        r"worse in goodput at saturation \(0\.0 against [\d,]+ correct answers/s, -100 %\)",
        sentence,
    )


def test_equal_percentiles_of_a_crowded_load_show_nothing() -> None:
    found = Machine(plan(), busy=0.9).run()
    assert {name: answer for name, answer in answers(found).items() if answer == "undecided"} == {
        "p50": "undecided",
        "p99": "undecided",
    }
    reason = rows(found)["p50"].reason
    assert (reason.code, reason.value) == ("lanes_crowded", 0.9)
    assert not rows(found)["p50"].is_open
    # A difference is one there, too.
    assert answers(Machine(plan(), {"p50": 1.1}, busy=0.9).run())["p50"] == "slower"


@pytest.mark.parametrize(
    ("variants", "answer"),
    [(("base", "head"), "undecided"), (("base",), "undecided"), ((), "no difference")],
)
def test_equal_goodput_shows_nothing_where_the_generator_may_be_the_limit(
    variants: tuple[str, ...], answer: Answer
) -> None:
    facts: Facts = {"check": "turnaround"}
    finding = Reason(code="self_check", value=0.31, limit=0.2, facts=facts)

    def slow(item: Item, result: Result) -> Result:
        findings = [finding] if item.cell.variant in variants else []
        return replace(result, validity=replace(result.validity, findings=findings))

    goodput = rows(Machine(plan(), change=slow).run())["goodput"]
    assert (goodput.answer, goodput.is_open) == (answer, False)
    if variants:
        assert words.why(goodput).startswith("the generator took 31 % of the connections' time")
    # A difference is one there, too.
    verdict = Machine(plan(), {"goodput": 0.8}, change=slow).run()
    assert answers(verdict)["goodput"] == "slower"


def test_metric_without_a_value_does_not_hold_the_run() -> None:
    found = Machine(plan(), change=lambda _, result: replace(result, telemetry=None)).run()
    assert answers(found)["cpu"] == "undecided"
    assert rows(found)["memory"].reason.code == "value_absent"
    assert not any(row.is_open for row in rows(found).values())


def test_what_cannot_be_compared_is_shown_of_both_sides() -> None:
    p99 = rows(Machine(plan(budget="1m"), requests=100).run())["p99"]
    assert (p99.reason.code, p99.value) == ("few_answers_compared", None)
    assert (p99.base, p99.head) == pytest.approx((4000, 4000), rel=0.1)


def test_too_few_answers_are_why_a_load_of_several_lanes_has_no_p99() -> None:
    def without(_: Item, result: Result) -> Result:
        return replace(result, lane_times=LaneTimes(p50_us=900.0, p99_us=None))

    verdict = Machine(plan(budget="1m"), requests=352, change=without).run()
    p99 = rows(verdict)["p99"]
    assert p99.reason.code == "few_answers_compared"
    assert words.why(p99).startswith("a repetition of the base has 352 answers, too few for a p99")
    load = builders.present(verdict.cell).load
    needed = math.ceil(1.2 * builders.present(load.duration_s) * 1000 / 352)
    longer = f"For p99 a new run needs longer loads and more budget: -e duration={needed}"
    assert words.longer_load(verdict) == [longer]
    assert words.longer_load(Machine(plan(budget="1m")).run()) == []


def test_variant_without_a_valid_repetition_is_named() -> None:
    def void(item: Item, result: Result) -> Result:
        if item.cell.variant == "head" and item.cell.load.mode == "closed":
            return replace(result, validity=builders.void("generator_cpu"))
        return result

    found = Machine(plan(budget="15m", head="tuning=stock"), change=void).run()
    why = rows(found)["goodput"].reason
    assert (why.code, why.facts) == ("side_not_valid", {"side": "head", "void": ["generator_cpu"]})
    assert rows(found)["goodput"].is_open
    assert answers(found)["cpu"] == "no difference"


@pytest.mark.parametrize(("void_of_10", "answer"), [(7, "undecided"), (0, "faster")])
def test_a_head_that_loses_its_slower_repetitions_is_not_called_faster(
    void_of_10: int, answer: str
) -> None:
    """A stall voids the head alone: the repetitions that are left are its better ones."""

    def void(item: Item, result: Result) -> Result:
        is_head = item.cell.variant == "head" and item.cell.load.mode == "constant"
        if is_head and result.repetition % 10 < void_of_10:
            return replace(result, validity=builders.void("generator_stopped"))
        return result

    found = Machine(plan(budget="15m", head="tuning=stock"), {"p99": 0.8}, change=void).run()
    p99 = rows(found)["p99"]
    assert (p99.answer, p99.is_open) == (answer, answer == "undecided")
    counted = {(count.load, count.side): count for count in found.heads[0].voids}
    head, base = counted["constant", "head"], counted["constant", "base"]
    assert head.void == sum(number % 10 < void_of_10 for number in range(1, head.measured + 1))
    assert base.void == counted["saturated", "head"].void == 0
    both = head.measured + counted["saturated", "head"].measured
    control = base.measured + counted["saturated", "control"].measured
    told = f"A/A control 0 of {control}."
    sentences = [words.sentence(found, found.heads[0])] if head.void else []
    for shown in (*sentences, words.comment(found, None)):
        assert f"head {head.void} of {both}" in shown
        assert told in shown
    if void_of_10:
        assert p99.reason.code == "void_shares_differ"
        assert "their shares differ, p below 0.001" in words.comment(found, None)


def test_shares_of_void_repetitions_alike_decide_as_before() -> None:
    """Where a tenth of all repetitions is void by luck, the shares seldom differ."""
    random, differ = np.random.default_rng(1), 0
    row = rows(Machine(plan(), {"p99": 0.8}).run())["p99"]
    assert row.answer == "faster"
    for _ in range(300):
        head, rest = (int(random.binomial(count, 0.1)) for count in (40, 80))
        counted = [
            VoidCount(load="constant", side="head", void=head, measured=40),
            VoidCount(load="constant", side="base", void=rest, measured=80),
        ]
        differ += sides.without_uneven([row], counted)[0] != row
    assert differ / 300 <= 0.025


def test_run_ends_where_a_cell_is_abandoned() -> None:
    machine = Machine(plan())
    gate = builders.present(machine.plan.gate)
    machine.failures = {builders.present(gate.heads[0].cells.saturated): TRIES}
    machine.run()
    assert {len(several) for several in machine.found.values()} == {1}


def test_void_repetitions_are_in_no_row() -> None:
    machine = Machine(plan(), {"cpu": 1.2})
    found = machine.run()
    for several in machine.found.values():
        several[0] = replace(several[0], validity=builders.void("steal"))
    assert machine.verdict().blocks == found.blocks - 1


@pytest.mark.parametrize(
    ("answer", "fails", "status"),
    [
        ("slower", False, 3),
        ("slower", True, 3),
        ("undecided", False, 0),
        ("undecided", True, 10),
        ("faster", True, 0),
        ("no difference", True, 0),
    ],
)
def test_exit_status_follows_from_the_answer(answer: Answer, fails: bool, status: int) -> None:
    assert verdict.exit_status(answer, undecided_fails=fails) == status


def test_verdict_is_derived_from_the_results_and_told(tmp_path: Path) -> None:
    machine = Machine(plan(), {"cpu": 1.1})
    machine.run()
    builders.write_plan(tmp_path, machine.plan)
    builders.store(tmp_path, *(one for several in machine.found.values() for one in several))
    derive_run.summary(tmp_path)
    found = documents.read(RunDir(tmp_path).verdict, Verdict)
    assert answers(found)["cpu"] == "slower"
    comment = words.comment(found, builders.manifest())
    assert "### Load test: ❌ more CPU per request\n" in comment
    (cpu,) = (line for line in comment.splitlines() if line.startswith("| CPU per request |"))
    assert "| **more** |" in cpu
    assert "µs" in cpu
    assert "Head `workers=2` against base `workers=1`" in comment
    assert "Environment: " in comment
    head, cpu, *_ = words.lines(found)
    assert head.startswith("head against base")
    assert cpu.startswith("CPU per request")
    sentence = words.sentence(found, found.heads[0])
    assert sentence.startswith("workers=2 against workers=1: worse in CPU per request (+10 %)")
    first, second, *_ = show.overview(found).rows
    assert re.fullmatch(r"CPU per request at [\d.,]+/s", first.cells[0].text)
    assert second.cells[0].text == "goodput at saturation"
    assert re.fullmatch(r"[\d.]+ µs", first.cells[1].text)
    assert re.fullmatch(r"[\d.]+ µs, \+10 % \(.*\)", first.cells[2].text)
    assert "worse" in first.cells[2].css
    group, answers_table = show.section(found).blocks
    assert "workers=2 against workers=1: CPU +" in str(group)
    assert "more" in str(group)
    assert "The head (workers=2) against the base (workers=1), " in str(answers_table)
    assert "the interval excludes equality" in str(answers_table)
    told = words.after_block(9, {"head": found.heads[0].rows})
    assert told.startswith("After block 9: CPU per request more (+")


@pytest.mark.parametrize(
    ("changed", "heading"),
    [
        ({"memory": 1.3}, "❌ more memory"),
        ({"memory": 0.7}, "✅ less memory"),
        ({"memory": 1.3, "cpu": 1.3}, "❌ more CPU per request and more memory"),
        ({"goodput": 0.7}, "❌ lower goodput at saturation"),
        ({"memory": 1.3, "p50": 1.3}, "❌ slower"),
        ({}, "✅ no difference"),
    ],
)
def test_only_a_worse_time_is_called_slower(changed: dict[str, float], heading: str) -> None:
    verdict = Machine(plan(), changed).run()
    assert words.comment(verdict, None).startswith(f"### Load test: {heading}\n")


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        (0.7, 1.3, "better in CPU per request (-30 %); worse in memory (+30 %)"),
        (0.9, 1.3, "worse in memory (+30 %); better in CPU per request (-9.9 %)"),
    ],
)
def test_the_larger_difference_comes_first(cpu: float, memory: float, expected: str) -> None:
    verdict = Machine(plan(), {"cpu": cpu, "memory": memory}).run()
    assert expected in words.sentence(verdict, verdict.heads[0])


def test_reason_of_several_metrics_is_told_once() -> None:
    comment = words.comment(
        Machine(plan(budget="1m", head="tuning=stock")).run(), builders.manifest()
    )
    assert "Undecided: CPU per request, goodput at saturation, p50, p99, " in comment
    assert comment.count("too few blocks") == 1


def test_several_heads_are_each_compared_with_the_base_and_share_the_error_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(plan(head="workers=2;workers=3"), {"cpu": 1.2}, changed="head2")
    found = machine.run()
    assert [head.name for head in found.heads] == ["head1", "head2"]
    assert set(answers(found, 0).values()) == {"no difference"}
    assert answers(found, 1)["cpu"] == "slower"
    assert [head.answer for head in found.heads] == ["no difference", "slower"]
    assert found.answer == "slower"
    assert verdict.error(2) == verdict.error(1) / 2
    monkeypatch.setattr(sequential, "ERROR_RATE", 1e-30)
    strict = rows(verdict.build("run", builders.present(machine.plan.gate), machine.records()), 1)
    assert strict["cpu"].low == rows(found, 1)["cpu"].low
    assert strict["cpu"].reason.code == "looks_not_sure"
    monkeypatch.undo()
    comment = words.comment(found, None)
    assert "Head 1 `workers=2` against base `workers=1`: ✅ no difference" in comment
    assert "Head 2 `workers=3` against base `workers=1`: ❌ more CPU per request" in comment
    lines = [line for line in words.lines(found) if " against base" in line]
    assert [line.split()[0] for line in lines] == ["workers=2", "workers=3"]
    tables = {head.name: head.rows for head in found.heads}
    assert "head1: no difference in 6 of 6 | head2: CPU" in words.after_block(9, tables)
    servers = ("server=uwsgi,workers=4", "server=granian,threads=2,workers=4")
    named = replace(
        found,
        base=replace(found.base, definition="server=gunicorn,workers=4"),
        heads=[
            replace(head, definition=definition)
            for head, definition in zip(found.heads, servers, strict=True)
        ],
    )
    assert list(words.definitions(named).values()) == ["Gunicorn", "uWSGI", "Granian, threads=2"]
    question = "How do uWSGI and Granian, threads=2 compare with Gunicorn, the base?"
    assert words.question(named) == question


def test_the_head_that_surely_has_the_most_goodput_comes_first(tmp_path: Path) -> None:
    def sentences(change: float) -> list[str]:
        machine = Machine(plan(head="workers=2;workers=3"), {"goodput": change}, changed="head2")
        documents.write(RunDir(tmp_path).verdict, documents.encode(machine.run()))
        return [headline.text for headline in kind.GateKind().headlines(RunDir(tmp_path))]

    first, second = sentences(1.5)
    assert first.startswith("workers=3 (most goodput) against workers=1: better in goodput")
    assert second.startswith("workers=2 against ")
    assert "most goodput" not in "".join(sentences(1.001))


def test_baseline_of_another_sitting_is_a_first_look_that_decides_nothing(tmp_path: Path) -> None:
    file = tmp_path / "verdict.json"
    documents.write(file, documents.encode(Machine(plan()).run()))
    given = {"base": "", "baseline": str(file), "head": "workers=2", "rate": ""}
    machine = Machine(plan(**given), {"cpu": 1.5})
    found = machine.run()
    # Beside its control, as the base was.
    assert machine.plan.lanes == [[*machine.found]]
    assert found.blocks == 5
    assert set(answers(found).values()) == {"undecided"}
    cpu = rows(found)["cpu"]
    assert cpu.value == pytest.approx(0.5, abs=0.1)
    assert (cpu.low, cpu.reason.code) == (None, "two_sittings")
    assert verdict.exit_status(found.answer, undecided_fails=True) == 10
    comment = words.comment(found, None)
    assert "two sittings differ though nothing is changed" in comment
    assert f"against base `workers=1` of `{file}`" in comment
    # The whole load is that of the baseline, or nothing is compared.
    refused: list[tuple[dict[str, object], str]] = [
        ({"rate": 500}, r"was measured with rate 1000.*, not 500"),
        ({"tls": True}, "was measured with tls none, not true"),
        ({"base": "workers=1"}, "baseline: it has no place beside base"),
        ({"baseline": "nowhere.json"}, "is no file"),
        ({"head": "workers=2;workers=3"}, "with one head"),
    ]
    for changes, told in refused:
        with pytest.raises(PlanError, match=told):
            plan(**{**given, **changes})


def test_a_head_that_is_given_up_does_not_end_the_gate_for_another() -> None:
    machine = Machine(plan(head="workers=2;workers=3"), noise=0.2)
    for _ in range(4):
        assert machine.load(machine.plan)
    gate = builders.present(machine.plan.gate)
    pace = Pace(machine.now - 20, machine.now, 0)
    first, second = (head.cells.constant for head in gate.heads)
    lost = {first: TRIES}
    assert blocks.blocks(machine.plan, machine.records(), lost, pace) > 4
    assert blocks.blocks(machine.plan, machine.records(), {**lost, second: TRIES}, pace) == 4
    base = {gate.base.cells.constant: TRIES}
    assert blocks.blocks(machine.plan, machine.records(), base, pace) == 4


def test_few_requests_do_not_show_that_none_fails() -> None:
    machine = Machine(plan(), requests=100)
    for _ in range(6):
        assert machine.load(machine.plan)
    row = rows(machine.verdict())["errors"]
    assert (row.answer, row.reason.code, row.reason.limit) == ("undecided", "few_requests", 2995)
    assert row.is_open


def test_a_block_has_a_load_that_is_valid_in_all_lanes() -> None:
    machine = Machine(plan())
    gate = builders.present(machine.plan.gate)
    machine.void = {(gate.heads[0].cells.constant, 1), (gate.control.constant, 2)}
    assert machine.load(machine.plan)
    assert machine.load(machine.plan)
    assert schedule.blocks_done(machine.plan, machine.records(), {}) == 0
    item = builders.present(schedule.next_item(machine.plan, machine.records(), {}, None, 0))
    assert (item.block, item.repetition) == (1, 3)


def test_the_comment_names_the_margin_of_each_metric() -> None:
    comment = words.comment(Machine(plan()).run(), None)
    assert (
        "within 1.0 % (CPU per request, p50), 5.0 % (goodput at saturation, p99, memory)" in comment
    )
    assert "0.1 % (failed requests)" in comment
