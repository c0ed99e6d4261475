"""Each limit is named from its evidence, and none where the cell met the objective."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.kinds import troubleshooting
from loadlab.model import (
    AcceptQueue,
    Cell,
    CellLimit,
    Database,
    Facts,
    LaneTurns,
    Latency,
    Processes,
    Reason,
    Repetition,
    Replay,
    ReverseProxyLog,
    Saturated,
    ServiceProcesses,
    Sessions,
    TcpConnections,
    Telemetry,
    Validity,
)
from loadlab.reasons import limit_reasons
from loadlab.report.words import limits_words as words
from loadlab.results.limits import judge_limits
from loadlab.results.limits.judge_limits import RULES
from loadlab.results.limits.limit_evidence import check
from loadlab.run import documents
from loadlab.stats import histograms
from loadlab.telemetry import pyspy
from tests.unit import builders
from tests.unit.builders import present, processes

CLOSED = builders.load(generator="wrk", mode="closed", rate=None, connections=64)


def services(**cpu: float | tuple[float, float] | Processes) -> ServiceProcesses:
    """The services' CPU, a fraction of all cores; with a second number, of the busiest thread."""
    found: dict[str, Processes | None] = dict.fromkeys(ServiceProcesses.__struct_fields__)
    for name, used in cpu.items():
        if not isinstance(used, Processes):
            part, thread = used if isinstance(used, tuple) else (used, 0.0)
            used = processes(
                cpu=part, cpu_s=6 * part, busiest_process=thread, busiest_thread=thread
            )
        found[name] = used
    return ServiceProcesses(**found)


def queue(service: str, mean: float, most: int, limit: int = 4096) -> AcceptQueue:
    return AcceptQueue(service=service, socket="s", limit=limit, depth=[most], mean_depth=mean)


def database(*activity: tuple[str, str | None, float], **changes: Any) -> Database:
    """A database's connections: state, wait and mean number of each."""
    found = Database(
        connections_max=10,
        sessions=0,
        transactions=6000,
        wal_syncs=0,
        connections_limit=97,
        activity=[Sessions(state=state, wait=wait, mean=mean) for state, wait, mean in activity],
        statements=[],
    )
    return replace(found, **changes)


def log(**errors: int) -> ReverseProxyLog:
    nothing: dict[str, Any] = dict.fromkeys(ReverseProxyLog.__struct_fields__)
    return ReverseProxyLog(**{**nothing, "requests": 0, "errors": errors})


def round_trips(rtt_us: float, least_rtt_us: float) -> TcpConnections:
    return TcpConnections(
        samples=9, rtt_us=rtt_us, least_rtt_us=least_rtt_us, window=10, unsent_bytes=0,
        retransmitted=0,
    )  # fmt: skip


def latency(**us: float | None) -> Latency:
    return replace(present(builders.repetition().latency_us), **us)


def judged(limit: Reason) -> CellLimit:
    return CellLimit(
        limit=limit, agree=3, of=3, ruled_out=[], unrecorded=[], mean_us=None, account=[]
    )


def cell(**changes: Any) -> Cell:
    return builders.cell(**{"load": CLOSED, **changes})


def slow(mean_us: float = 64_000, **changes: Any) -> Repetition:
    """A closed loop of 64 connections, 1,000 answers/s; a change of ``server`` is its telemetry."""
    server, client = changes.pop("server", {}), changes.pop("client", {})
    both = Telemetry(
        server=builders.telemetry(**{"cpu_busy": 0.3, "foreign_cpu": 0.0, **server}),
        client=builders.telemetry(**client),
    )
    fields = {
        "telemetry": both,
        "goodput": 1000.0,
        "rate_achieved": 1000.0,
        "requests": 6000,
        "responses": 6000,
        "ok": 6000,
        "reverse_proxy_requests": None,
        "mean_service_time_us": mean_us,
        "validity": builders.valid(),
        "response_time": None,
        **changes,
    }
    return builders.repetition(**fields)


def limit(rep: Repetition, of: Cell | None = None) -> CellLimit:
    found = present(judge_limits.of_cell(of or cell(), [rep]))
    # Every limit that the analysis names has words.
    assert words.whole(found)
    assert all(code and text for code, text in words.ruled_out(found) if text)
    return found


def void(code: str, **facts: Any) -> Validity:
    return Validity(valid=False, reasons=[Reason(code=code, value=0.5, facts=facts)], findings=[])


FULL: dict[str, Any] = {"cpu_busy": 0.99}
# The most connections in the queue of each second.
STOPPED = [0, 126, 126, 0, 0]
SATURATED = Validity(
    valid=True, reasons=[],
    findings=[Reason(code="saturated", value=0.53, facts={
        "resource": "connections", "connections_used": 8.0, "connections_usable": 8,
    })],
)  # fmt: skip


class Case(NamedTuple):
    """A limit, the repetition that it is named from, and its cell if it is not cell()."""

    code: str
    rep: Repetition
    of: Cell | None = None


def of_server(code: str, of: Cell | None = None, **telemetry: Any) -> Case:
    """A limit that the server's telemetry names."""
    return Case(code, slow(server=telemetry), of)


def one_of_four(code: str, **telemetry: Any) -> Case:
    return of_server(code, cores=4, **telemetry)


TURNS = processes(cpu=0.25, busiest_process=0.99, busiest_thread=0.3)
WITHHELD = processes(cpu=0.1, busiest_thread=0.1, longest_wait=0.86)
CROWDED_OUT = processes(cpu=0.35, busiest_thread=0.35, longest_wait=0.45)
OVER_TCP = cell(server="uwsgi", worker_class=None, protocol="uwsgi", transport="tcp")
UWSGI = cell(server="uwsgi", worker_class=None)
ALONE = builders.cell(load=replace(CLOSED, connections=1))
UNNAMED_FLUSHES = database(("active", None, 0.9), ("idle", None, 9.1), wal_syncs=6000)


def at_rate(rate: float, connections: int) -> Cell:
    load = replace(CLOSED, mode="constant", rate=rate, connections=connections)
    return builders.cell(load=load)


def saturated(mean_us: float, goodput: float, fastest_us: float) -> Repetition:
    """A rate whose connections all waited for answers."""
    us = latency(min=fastest_us)
    changes = {"rate_achieved": goodput, "goodput": goodput, "validity": SATURATED}
    return slow(mean_us, latency_us=us, **changes)


CASES = {
    "a worker's thread fills the only core": of_server(
        "worker_cpu", **FULL, processes=services(application=(0.96, 0.96), reverse_proxy=0.02)
    ),
    "a worker's thread fills one of four cores": one_of_four(
        "worker_cpu", processes=services(application=(0.245, 0.98), reverse_proxy=0.02)
    ),
    "threads of a Python process take turns": one_of_four(
        "worker_cpu", processes=services(application=TURNS)
    ),
    "all together fill the core": of_server(
        "cores_busy", **FULL, processes=services(application=0.53, reverse_proxy=0.45)
    ),
    "PostgreSQL fills the core": of_server(
        "database_cpu", **FULL, processes=services(application=0.2, postgresql=0.78)
    ),
    "nginx opens a TCP connection for each request of uWSGI": of_server(
        *("reverse_proxy_cpu", OVER_TCP), **FULL, tcp={"passive_opens": 6100},
        processes=services(application=0.28, reverse_proxy=0.7),
    ),
    "a worker of nginx fills one of four cores": one_of_four(
        "reverse_proxy_cpu", processes=services(application=0.1, reverse_proxy=(0.25, 0.99))
    ),
    "softirq fills one of four cores": one_of_four(
        "kernel_softirq", softirq_busiest_core=0.97, processes=services(application=0.1)
    ),
    "eight threads and 64 requests": Case(
        "too_few_threads", slow(), cell(worker_class="gthread", workers=1, threads=8)
    ),
    "uWSGI's workers leave requests in the accept queue": of_server(
        "too_few_threads", UWSGI, accept_queues=[queue("application", 60.0, 63)]
    ),
    "an accept queue overflows": of_server(
        "accept_queue", tcp={"listen_overflows": 90, "listen_drops": 90},
        accept_queues=[queue("application", 100.0, 129, 128)],
    ),
    # Of 30,000 requests 160 are 0.5 %, but they held 64 connections for 160 of 384 s.
    "few connections are refused, of which each holds one of a closed loop": Case(
        "accept_queue",
        slow(requests=30_000, ok=30_000, responses=30_000, duration_s=6.0,
             server={"tcp": {"listen_overflows": 160, "listen_drops": 160}}),
    ),
    "SYNs are dropped": of_server("syn_queue", tcp={"listen_drops": 70}),
    "sessions wait for a lock": of_server(
        "database_lock", database=database(("active", "Lock:relation", 9.8))
    ),
    "all of a pool waits for the disk": of_server(
        "pool_wait", database=database(("active", "LWLock:WALWrite", 9.9), wal_syncs=900)
    ),
    "one client waits for flushes that PostgreSQL does not name": Case(
        "disk", slow(900, server={"database": UNNAMED_FLUSHES}), ALONE
    ),
    "PostgreSQL is full": Case(
        "database_connections",
        slow(ok=5000, server={"database": database(("active", None, 0.1), connections_max=97)}),
    ),
    "the kernel kills for memory": Case(
        "memory",
        # What is killed closes its connections.
        slow(ok=5000, server={"oom_kills": 3, "reverse_proxy": log(upstream_closed=900)}),
    ),
    "memory is short": of_server("memory", memory_pressure=0.4),
    "requests wait for few pages": of_server("memory", swap_pages=60, memory_pressure=0.02),
    "a neighbour computes": Case(
        "neighbour", slow(validity=void("foreign_cpu", host="server", worst=0.9))
    ),
    "nginx refuses most, and the generator asks again at once": Case(
        "reverse_proxy_connections",
        slow(ok=400, validity=void("generator_cpu"),
             server={"reverse_proxy": log(connections=4610)}),
    ),
    "the generator is late": Case("client", slow(validity=void("generator_late"))),
    "a rate needs more connections than the load has": Case(
        "connections", saturated(50_000, 160.0, 49_000.0), at_rate(300.0, 8)
    ),
    "the line is full": Case("link", slow(validity=void("link", bits_per_second=2e7))),
    "the line is long": of_server("link", connections=round_trips(45_000, 44_000)),
    "nginx has no connection left": Case(
        "reverse_proxy_connections",
        slow(ok=5000, server={"reverse_proxy": log(connections=900)}),
    ),
    "nginx has no file left": Case(
        "open_files", slow(ok=5000, server={"reverse_proxy": log(open_files=900)})
    ),
    "nginx has no file left for most connections, which wait to be accepted": Case(
        "open_files",
        slow(ok=5976, server={"reverse_proxy": log(open_files=48),
                              "accept_queues": [queue("reverse_proxy", 46.8, 47)]}),
    ),
    "the application closes connections": Case(
        "upstream_closed", slow(ok=5000, server={"reverse_proxy": log(upstream_closed=900)})
    ),
    "acknowledgements are held": Case(
        "delayed_ack", slow(44_000, server={"tcp": {"delayed_acks": 5900}})
    ),
    "slow answers of unequal length hold back some": Case(
        "unknown", slow(50_000, server={"tcp": {"delayed_acks": 3200}})
    ),
    "a closed loop of one connection": Case(
        "connections", slow(400, server={"processes": services(application=0.3)}), ALONE
    ),
    "nothing explains the wait": Case("unknown", slow()),
    "a quota leaves the application a tenth of a core": of_server(
        "cpu_quota", cpu_busy=0.2, processes=services(application=WITHHELD)
    ),
    "others are on the core that a thread waits for": of_server(
        "unknown", cpu_busy=0.85, processes=services(application=CROWDED_OUT)
    ),
    # Recorded: tests/lab/limit_cases.py has the injected causes.
    "the application is stopped for 2 of 5 s": Case(
        "unknown",
        slow(220_898, rate_achieved=200.0, latency_us=latency(p99=1_900_000.0),
             server={"accept_queues": [replace(queue("application", 43.4, 0), depth=STOPPED)]}),
        builders.cell(server="native", worker_class=None),
    ),
    "a queue in the application fills all connections of a rate": Case(
        "unknown", saturated(794_609, 125.0, 8160.0), at_rate(200.0, 128)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_limit_is_named_from_its_evidence(name: str) -> None:
    code, rep, of = CASES[name]
    assert limit(rep, of).limit.code == code


def test_every_limit_has_words_and_a_case() -> None:
    cases = {code for code, _, _ in CASES.values()}
    assert set(limit_reasons.LIMITS) == cases | {"none"}


def test_a_row_and_a_rule_are_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe of CONTRIBUTING: it is found, ruled out or unrecorded, and is on the page."""
    row = limit_reasons.LimitRow("an example", "no example", "An example.", "another")
    # The first row is the limit, wherever its rule is.
    first = {"example": row, **limit_reasons.LIMITS}
    for module in (judge_limits, words, troubleshooting):
        monkeypatch.setattr(module, "LIMITS", first)
    full = slow(server={**FULL, "processes": services(application=0.5, reverse_proxy=0.4)})
    assert "example" in limit(full).unrecorded
    monkeypatch.setattr(judge_limits, "RULES", (*RULES, lambda _: check("example", False, 1)))
    assert ("example", "no example") in words.ruled_out(limit(full))
    monkeypatch.setattr(judge_limits, "RULES", (*RULES, lambda _: check("example", True, 1)))
    assert words.whole(limit(full)) == "Limited by an example. Next: another."
    assert "| **example** | An example. |" in troubleshooting.page(builders.ROOT)


HOSTS = st.fixed_dictionaries({
    "cpu_busy": st.floats(0, 0.6),
    "tcp": st.fixed_dictionaries({"listen_drops": st.integers(0, 9)}),
    "accept_queues": st.builds(queue, st.just("application"), st.floats(0, 99), st.just(1)).map(
        lambda one: [one]
    ),
    "memory_pressure": st.floats(0, 1),
    "processes": st.builds(
        services,
        application=st.tuples(st.floats(0, 0.4), st.floats(0, 1)),
        reverse_proxy=st.floats(0, 0.2),
    ),
    "database": st.builds(
        database, st.tuples(st.just("active"), st.just("Lock:tuple"), st.floats(0, 10))
    ),
})  # fmt: skip


@given(HOSTS, st.floats(1, 99_999), st.integers(5940, 6000))
def test_no_limit_is_named_where_the_rate_was_held_within_the_objective(
    server: dict[str, Any], p99_us: float, right: int
) -> None:
    rep = slow(server=server, ok=right, latency_us=latency(p99=p99_us))
    found = limit(rep, builders.cell())
    assert found.limit.code == "none"
    assert found.ruled_out == []


@pytest.mark.parametrize(
    "missed",
    [
        {"ok": 5939},
        {"validity": Validity(valid=True, reasons=[], findings=[Reason(code="backlog")])},
        {"mean_service_time_us": None},
    ],
)
def test_limit_of_a_missed_objective_is_looked_for(missed: dict[str, Any]) -> None:
    more: dict[str, Any] = (
        {"latency_us": latency(p99=150_000.0)} if "mean_service_time_us" in missed else {}
    )
    assert limit(slow(**missed, **more), builders.cell()).limit.code == "unknown"


STRAYS: dict[str, dict[str, Any]] = {
    "a refused connection": {"tcp": {"listen_overflows": 1, "listen_drops": 1}},
    "a dropped SYN": {"tcp": {"listen_drops": 1}},
    "a swapped page": {"swap_pages": 1},
    "idle pages written out": {"swap_pages": 64, "memory_pressure": 0.0},
    "a killed process of somebody else": {"oom_kills": 1},
    **{
        kind: {"reverse_proxy": log(**{kind: 1})}
        for kind in ("connections", "open_files", "accept_queue", "upstream_closed")
    },
}
WEIGHED = {
    *("accept_queue", "syn_queue", "reverse_proxy_connections", "open_files", "memory"),
    # Whoever fails so many requests may be what was killed.
    *("upstream_closed", "database_connections"),
}


@pytest.mark.parametrize("stray", STRAYS)
@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][0] not in WEIGHED])
def test_one_stray_event_is_no_limit(name: str, stray: str) -> None:
    code, rep, of = CASES[name]
    telemetry = present(rep.telemetry)
    event = builders.telemetry(**STRAYS[stray])
    changes = {field: getattr(event, field) for field in STRAYS[stray]}
    if "tcp" in changes:
        changes["tcp"] = replace(telemetry.server.tcp, **STRAYS[stray]["tcp"])
    server = replace(telemetry.server, **changes)
    disturbed = replace(rep, telemetry=replace(telemetry, server=server))
    assert limit(disturbed, of).limit.code == code


def test_a_cell_without_a_limit_is_told_with_the_figures_of_its_statistics() -> None:
    evidence: Facts = {"busy": 0.4, "rate": 500.0, "failed": 0}
    alone = Reason(code="none", value=3010.0, limit=100_000.0, facts=evidence)
    own = judged(alone)
    base = builders.cell_summary("base", [slow(), slow()]).statistics
    slowest = replace(base.latency_us, p99=3120.0)
    counts = {"requests": 5000, "ok": 4997, "aborted": 1}
    # Of all repetitions; the table leaves out one whose p99 is withheld.
    waits = replace(present(base.response_time), p99_us=2900.0)
    statistics = replace(base, response_time=waits, latency_us=slowest, **counts)
    told = words.sentence(present(judge_limits.pooled(own, statistics)))
    assert "500 requests/s came back with p99 3.12 ms" in told
    assert "2 failed requests" in told


def test_a_replay_without_a_limit_is_next_played_faster() -> None:
    replay = Replay(
        log_sha256="0" * 64, speed=5, query=False, lines=6000, requests=6000, busiest=1000,
        kinds=[("/hello", 6000)], left_out={},
    )  # fmt: skip
    played = builders.cell()
    played = replace(played, load=replace(played.load, replay=replay))
    rep = slow(server={}, ok=6000, latency_us=latency(p99=3000.0))
    assert words.following(limit(rep, played)) == "-e speed=10 sends the log twice as fast"
    assert "-e slo=" in words.following(limit(rep, builders.cell()))


def test_most_of_a_core_that_several_lanes_fill_is_not_of_one() -> None:
    used = services(application=0.2, reverse_proxy=0.1)
    full = slow(server={**FULL, "processes": used}, latency_us=latency(p99=200_000))
    lanes = builders.load(lanes=LaneTurns(slice_s=0.05))
    sentence = words.sentence(limit(full, builders.cell(load=lanes)))
    assert "busy; of that the stacks beside it " in sentence


def test_lanes_that_take_turns_are_judged_by_their_own_turns() -> None:
    """A quarter of the time is its own: 6,000 answers at 1,000/s of 24 s."""
    used = services(application=(0.18, 0.24), reverse_proxy=0.06)
    turns = replace(CLOSED, generator="metronome", lanes=LaneTurns(slice_s=0.05))
    rep = slow(server={**FULL, "processes": used}, duration_s=24.0)
    sentence = words.sentence(limit(rep, builders.cell(load=turns)))
    assert "busy; of that the application 73 %, the reverse proxy 24 %" in sentence
    # Cores are idle, and one thread works all of its turns.
    idle = replace(rep, telemetry=slow(server={"processes": used}).telemetry)
    assert limit(idle, builders.cell(load=turns)).limit.code == "worker_cpu"
    rate = builders.cell(load=builders.load(lanes=LaneTurns(slice_s=0.05, closed_s=24)))
    recorded = present(rep.telemetry).server
    closed = Saturated(
        goodput=1000.0, right=5900, slices=118, seconds=5.9, cut=0,
        started=100.0, finished=124.0, turns=0.25, server=recorded,
    )  # fmt: skip
    reps = [slow(saturated=closed), slow(saturated=None)]
    after = present(judge_limits.of_closed_loops(rate, reps))
    assert (after.limit.code, after.agree, after.of) == ("cores_busy", 1, 1)
    assert words.sentence(after) == sentence
    assert judge_limits.of_closed_loops(rate, reps[1:]) is None


def test_limit_of_a_cell_is_that_of_most_of_its_valid_repetitions() -> None:
    full = slow(server={**FULL, "processes": services(application=0.5, reverse_proxy=0.4)})
    late = slow(validity=void("generator_late"))
    found = present(judge_limits.of_cell(cell(), [late, full, slow(), full, late, late]))
    assert (found.limit.code, found.agree, found.of) == ("cores_busy", 2, 3)
    assert "(2 of 3 repetitions)" in words.sentence(found)
    assert present(judge_limits.of_cell(cell(), [late])).limit.code == "client"
    failed = builders.repetition(error="gone", telemetry=None)
    assert judge_limits.of_cell(cell(), [failed]) is None


@pytest.mark.parametrize(
    ("twice", "before", "code"),
    [
        (1320.0, "unknown", "connections"),
        (1320.0, "neighbour", "neighbour"),
        # Above the median, and not above the fastest by 5 %.
        (1150.0, "worker_cpu", "worker_cpu"),
        # What the lab inferred from the account, and more connections refute.
        (1050.0, "connections", "unknown"),
        (None, "connections", "connections"),
    ],
)
def test_a_closed_loop_is_limited_by_its_load_where_twice_its_connections_answer_more(
    twice: float | None, before: str, code: str
) -> None:
    own = judged(Reason(code=before, value=0.5, facts={"connections": 64, "busy": 0.5}))
    goodputs = (1000.0, 1050.0, 1100.0)
    base = builders.cell_summary("base", [slow(goodput=goodput) for goodput in goodputs], cell())
    doubled = cell(load=replace(CLOSED, connections=128))
    validity = builders.void("steal") if twice is None else builders.valid()
    check = builders.cell_summary(
        "check", [slow(goodput=twice or 2000.0, validity=validity)], doubled
    )
    found = present(judge_limits.of_ceiling(replace(base, limit=own), check))
    assert found.limit.code == code
    if code == "connections" and twice:
        assert words.whole(found).startswith(
            "Limited by the load: with twice its connections 1,320 right answers came per second, "
            "20 % more than in the fastest repetition (1,100). Next: -e connections=128."
        )
    elif code in ("worker_cpu", "unknown"):
        growth = {1150.0: "+4.5 %", 1050.0: "-4.5 %"}[present(twice)]
        told = f"twice the connections: {growth} right answers per second"
        assert ("connections", told) in words.ruled_out(found)


def test_connections_of_the_clients_are_not_those_of_nginx() -> None:
    busy = {**FULL, "tcp": {"passive_opens": 6100}, "processes": services(reverse_proxy=0.98)}
    alone = limit(slow(server=busy), cell(transport="none", protocol="none", server="native"))
    assert alone.limit.facts["opened"] == "clients"
    assert "clients that keep their connections" in words.whole(alone)


def test_round_trip_far_above_the_fastest_request_is_a_queue() -> None:
    tcp = round_trips(683_000, 523_000)
    found = limit(slow(834_000, latency_us=latency(min=81_000.0), server={"connections": tcp}))
    assert (found.limit.code, found.limit.facts["cause"]) == ("link", "queue")
    told = words.whole(found)
    assert "a round trip took 683 ms, and the fastest request 81.0 ms" in told
    assert told.endswith("-e lesson=bufferbloat")


def test_unknown_limit_names_what_was_ruled_out_and_what_was_not_recorded() -> None:
    found = limit(slow())
    assert "CPU 30 %" in words.sentence(found)
    assert "no refused connections" in words.sentence(found)
    assert "memory" in found.unrecorded
    assert "memory" not in [why.code for why in found.ruled_out]


def test_limit_of_a_service_that_the_cell_has_not_is_not_unrecorded() -> None:
    """Neither PostgreSQL where no endpoint asks it, nor an application behind nginx alone."""
    assert "worker_cpu" in limit(slow()).unrecorded
    alone = limit(slow(), cell(framework="nginx", server="native", transport="none"))
    assert not {"worker_cpu", "database_cpu"} & set(alone.unrecorded)
    direct = limit(slow(), cell(reverse_proxy="none", transport="tcp"))
    assert "reverse_proxy_cpu" not in direct.unrecorded


def test_limit_of_a_closed_loop_whose_every_request_failed_can_be_written() -> None:
    """An application that breaks off each connection: no answer, and no wait that is known."""
    unknown = latency(**dict.fromkeys(histograms.SUMMARY_KEYS))
    failed = slow(responses=0, ok=0, mean_service_time_us=None, latency_us=unknown)
    assert documents.encode(limit(failed))


def test_requests_that_a_closed_loop_cut_off_opened_database_connections_too() -> None:
    full = {**FULL, "processes": services(postgresql=0.78), "database": database(sessions=474)}
    cut_off = slow(responses=410, reverse_proxy_requests=474, server=full)
    assert "opened a connection to it (1.0 for each)" in words.sentence(limit(cut_off))


def test_profile_says_how_long_a_full_worker_held_the_lock() -> None:
    code, rep, of = CASES["a worker's thread fills the only core"]
    profile = pyspy.figures([(["work (app.py:1)"], 9)])
    assert judge_limits.profiled(limit(rep, of), profile) == limit(rep, of)
    found = present(judge_limits.profiled(limit(rep, of), replace(profile, gil_fraction=0.97)))
    assert (found.limit.code, found.limit.facts["gil"]) == (code, 0.97)
    assert "held Python's lock (GIL) 97 % of the time of its profile" in words.sentence(found)
    idle = judge_limits.profiled(limit(slow()), replace(profile, gil_fraction=0.97))
    assert idle == limit(slow())


def test_account_adds_up_to_the_mean_time_of_a_request() -> None:
    server = {
        "processes": services(application=0.3, reverse_proxy=0.1),
        "accept_queues": [queue("application", 20.0, 30)],
        "reverse_proxy": replace(log(), requests=100, upstream_us=50_000.0),
    }
    found = limit(slow(server=server))
    parts = {one.part: one.us for one in found.account}
    # 0.3 of 6 s for 6,000 requests; 20 waiting at 1,000 a second.
    assert parts["application_cpu"] == pytest.approx(300)
    assert parts["accept_queue"] == pytest.approx(20_000)
    assert parts["application_wait"] == pytest.approx(50_000 - 20_000 - 300)
    assert sum(parts.values()) == pytest.approx(present(found.mean_us))
