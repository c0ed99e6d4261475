"""metronome: write its plan, and turn its files into a Measurement.

metronome is the program of the folder metronome/. It sends request i when it is due, i/rate seconds
after the start, on a connection that is free. Of each request it records when it was due, sent,
when the client's kernel had the answer and when the program read it.

- Latency counts from when a request was due to when the client's kernel had the whole answer. So a
  generator that reads late does not make an answer look slow. Service time counts from the sending.
- The generator's own part of a latency is what the request, though due, waited for the generator
  while a connection was free, and what those before it did so slowed the line. The ideal latency
  is without it (metronome/src/own.rs).
- Of each request it records whether its answer was right: status, length and content of the body.
- A load of several lanes goes to several servers, each with its own connections. It leaves a folder
  of files for each. The lanes take turns: request by request (metronome/src/turns.rs), in a closed
  loop slice by slice (metronome/src/slices.rs). There a request is due when it is sent.
"""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np

from loadlab.generators.attribution import Schedule
from loadlab.generators.generator import Answer, Generator, Kind, Request
from loadlab.generators.measurement import (
    ERROR_CLASSES,
    GeneratorError,
    Lateness,
    Measurement,
    SentShape,
    VisitCounts,
    Waited,
)
from loadlab.generators.metronome_records import (
    ANSWERED,
    KEPT,
    RECORDS,
    UNITS_S,
    UNITS_US,
    Reader,
    read,
)
from loadlab.generators.metronome_summary import (
    NAME,
    OUTCOMES,
    OUTPUT,
    PlannedKind,
    Summary,
    read_summary,
)
from loadlab.model import Facts, Load, Opened, Reason, Saturated, Stops
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.run import documents
from loadlab.stats import histograms

# Base name of the files of the closed loop after a load of several lanes.
SATURATION = "saturation"


def of_lane(
    folder: Path, load: Load, kinds: Mapping[str, int] = MappingProxyType({})
) -> tuple[Measurement, set[str]]:
    """Return the Measurement of one lane from its own files, and the names of the files beside.

    ``load``: of each lane; ``kinds``: of its mix. Raises GeneratorError as measure does.
    """
    summary = read_summary(folder / OUTPUT)
    _refuse_other_mix(summary, kinds)
    if load.rate is None:
        return _of_closed_loop(folder, summary, load)
    # The lanes share the schedule of all.
    schedule = dataclasses.replace(_schedule(load, summary.lanes), kinds=kinds)
    share = schedule.scheduled / summary.lanes
    if abs(summary.scheduled - share) >= 1:
        raise GeneratorError(
            f"{OUTPUT} is of {summary.scheduled} requests, not of about {share:.0f}, the share of "
            f"one of {summary.lanes} lanes"
        )
    measurement, name = _measure(folder, summary, schedule)
    if load.lanes is None or not load.lanes.closed_s:
        return measurement, {name}
    saturation = f"{SATURATION}.json"
    saturated = closed_loop(folder / saturation)
    # Of its other checks, the load before has its own.
    own = [
        reason
        for reason in _failed_checks(read_summary(folder / saturation))
        if reason.facts["check"] == "turnaround"
    ]
    findings = [*measurement.findings, *own]
    measured = dataclasses.replace(measurement, saturated=saturated, findings=findings)
    return measured, {name, saturation}


def _of_closed_loop(folder: Path, summary: Summary, load: Load) -> tuple[Measurement, set[str]]:
    """Return the Measurement of a lane that is a closed loop, and the names of the files beside.

    Goodput is that of its slices; other answers count in proportion. Each second of the file counts
    as one request of a schedule, for there is none.
    """
    saturated = closed_loop(folder / OUTPUT)
    measurement, name = _measure(folder, summary, _schedule(load, 1, rate=1.0))
    answered = measurement.responses / measurement.ok if measurement.ok else 0.0
    return dataclasses.replace(
        measurement,
        scheduled=None,
        unsent=None,
        duration_s=summary.finished - summary.started,
        rate_achieved=saturated.goodput * answered
        if answered
        else measurement.responses / saturated.seconds,
        goodput=saturated.goodput,
        latency_from="sent",
        ideal=None,
        send_delay_us=None,
        lateness=None,
        waited=None,
    ), {name}


def closed_loop(path: Path) -> Saturated:
    """Return what a lane of a closed loop served, from its metronome.json.

    The first of several slices opens the connections and does not count. Raises GeneratorError
    where it is truncated or of a load at a rate, and where its sums are not those of its slices.
    """
    summary = read_summary(path)
    closed = summary.closed
    if closed is None:
        raise GeneratorError(f"{path.name} is of a load at a rate, not of a closed loop")
    sums = [math.fsum(column) for column in zip(*closed.by_slice, strict=True)][1:]
    written = [closed.seconds, closed.right, closed.drained_s]
    if (
        not len(closed.by_slice) == closed.slices > 0
        or closed.seconds <= 0
        or closed.right > summary.outcomes["right"]
        or not np.allclose(sums, written, rtol=0, atol=1e-6)
    ):
        raise GeneratorError(f"{path.name}: its slices do not add up to their sums")
    counted = closed.by_slice[1:] or closed.by_slice
    right, seconds = sum(row[2] for row in counted), math.fsum(row[1] for row in counted)
    length = summary.finished - summary.started
    return Saturated(
        goodput=right / seconds,
        right=right,
        slices=len(counted),
        seconds=seconds,
        cut=closed.cut,
        started=summary.started,
        finished=summary.finished,
        turns=min(1.0, math.fsum(row[1] for row in closed.by_slice) / length) if length else None,
    )


@dataclass(frozen=True)
class _Share:
    """What is known of the requests of a load, or of one kind, besides their records."""

    sent: int
    scheduled: int
    unsent_own: int
    unsent_waits_us: list[tuple[int, int]] | None
    errors: dict[str, int]


def measure(folder: Path, schedule: Schedule) -> tuple[Measurement, str]:
    """Return the Measurement of the files in a folder, and the name of the file of requests.

    Rates count the answers before the deadline, divided by the deadline minus the fastest service
    time: no answer can arrive during that first time.

    Raises GeneratorError where a file is absent or truncated, and where two do not agree.
    """
    summary = read_summary(folder / OUTPUT)
    visits = summary.visits
    if (visits.steps if visits else 0) != schedule.steps:
        raise GeneratorError(f"{OUTPUT} is of {'another' if visits else 'no'} session")
    planned = visits.scheduled if visits else summary.scheduled
    if planned != schedule.scheduled:
        things = "visits" if visits else "requests"
        raise GeneratorError(f"{OUTPUT} is of {planned} {things}, not of {schedule.scheduled}")
    if schedule.arrivals is not None or schedule.replay or visits:
        schedule = dataclasses.replace(schedule, due_by_second=summary.due_by_second)
    if summary.plan.replay != schedule.replay:
        raise GeneratorError(f"{OUTPUT} is of {'a' if summary.plan.replay else 'no'} log")
    arrivals = summary.plan.come
    if arrivals != schedule.arrivals:
        raise GeneratorError(
            f"{OUTPUT} is of {arrivals or 'constant'} arrivals, not of "
            f"{schedule.arrivals or 'constant'} ones"
        )
    _refuse_other_mix(summary, schedule.kinds)
    return _measure(folder, summary, schedule)


def _refuse_other_mix(summary: Summary, kinds: Mapping[str, int]) -> None:
    # In their order, which numbers them.
    if [*summary.weights.items()] != [*kinds.items()]:
        raise GeneratorError(f"{OUTPUT} is of a mix {summary.weights}, not of {dict(kinds)}")


def _measure(folder: Path, summary: Summary, schedule: Schedule) -> tuple[Measurement, str]:
    reader, name = read(folder, schedule)
    outcomes = reader.totals.outcomes
    if outcomes != [summary.outcomes[outcome] for outcome in OUTCOMES]:
        raise GeneratorError(f"{name} has {outcomes}, {OUTPUT} has {summary.outcomes}")
    counts = np.array([own.totals.outcomes for own in reader.kinds])
    if reader.kinds and counts.sum(axis=0).tolist() != outcomes:
        raise GeneratorError(f"{name} does not say of which kind each request is")
    # Another load says it in its shape.
    if summary.lanes > 1 and reader.mix_off:
        raise GeneratorError(f"{name} has {reader.mix_off} blocks of the mix with other counts")
    whole = _Share(
        summary.sent,
        summary.scheduled,
        summary.unsent_own,
        summary.unsent_waits_us,
        # An earlier metronome counted right answers too, of which a status such as 404 can be.
        errors_by_class(summary.outcomes, reader.wrong if RECORDS in name else summary.statuses),
    )
    series, totals = reader.seconds.series(), reader.totals
    fastest_s = (totals.fastest or 0) / UNITS_S if totals.in_time else 0.0
    span_s = schedule.duration_s - fastest_s
    return dataclasses.replace(
        _counted(reader, whole, summary, schedule.duration_s, span_s),
        kinds={
            kind.name: _counted(own, _of_kind(own, kind), summary, schedule.duration_s, span_s)
            # A closed loop has none of each.
            for kind, own in zip(summary.kinds if reader.kinds else (), reader.kinds, strict=True)
        },
        per_second=msgspec.structs.replace(
            # In place of a status the reader gives whether the answer was right.
            series.per_second(lambda right, _: bool(right)),
            scheduled=series.intended
            if summary.lanes == 1 and summary.closed is None
            else summary.due_by_second,
            came=[second.came for second in reader.answers] or None,
        ),
        stops=Stops(
            total_s=summary.gaps.total_s,
            longest_s=summary.gaps.longest_s,
            causes={name: cause.total_s for name, cause in summary.gaps.causes.items()},
        ),
        sent_shape=_sent_shape(summary, reader.mix_off),
        visits=_visits(reader, summary),
        answers=reader.answers,
        bursts=reader.bursts,
        due_us=reader.due_us,
        services_us=reader.services_us,
        polling_s=summary.polling_by_second,
        opened=_opened(summary),
        findings=[*_failure_kinds(summary), *_failed_checks(summary)],
    ), name


def _of_kind(reader: Reader, kind: PlannedKind) -> _Share:
    outcomes = dict(zip(OUTCOMES, reader.totals.outcomes, strict=True))
    errors = errors_by_class(outcomes, reader.wrong)
    return _Share(
        sum(outcomes.values()), kind.scheduled, kind.unsent_own, kind.unsent_waits_us, errors
    )


def _counted(
    reader: Reader, share: _Share, summary: Summary, duration_s: float, span_s: float
) -> Measurement:
    """Return the Measurement of the requests that a reader counted; ``span_s``: of the whole load,
    by which rates are divided, so that those of the kinds add up."""
    totals = reader.totals
    answered = sum(totals.outcomes[:ANSWERED])
    exact = histograms.add_up(
        *map(np.concatenate, zip(totals.right.exact, totals.wrong.exact, strict=True))
    )
    histogram = histograms.from_counts(*exact)
    pacing = totals.pacing.exact
    return Measurement(
        generator=NAME,
        requests=share.sent,
        responses=answered,
        ok=totals.outcomes[0],
        errors=share.errors,
        aborted=0,
        scheduled=share.scheduled,
        unsent=share.scheduled - share.sent,
        duration_s=max(duration_s, summary.finished - summary.started),
        rate_achieved=totals.in_time / span_s,
        goodput=totals.right_in_time / span_s,
        mean_service_us=totals.service / UNITS_US / answered if answered else None,
        histogram=histogram,
        latency_us=histograms.summary(histogram, exact),
        latency_from="intended",
        ideal=histograms.from_counts(*totals.ideal.exact),
        send_delay_us=histograms.summary(histograms.from_counts(*pacing), pacing)
        if len(pacing[0])
        else None,
        lateness=Lateness(0, 0, share.unsent_own, hidden=False),
        waited=Waited(
            totals.right.exact,
            totals.wrong.exact,
            unanswered=share.sent - answered,
            unsent=share.scheduled - share.sent,
            left_out=share.unsent_own,
            unsent_us=None
            if share.unsent_waits_us is None
            else histograms.add_up(*np.array(share.unsent_waits_us, np.int64).reshape(-1, 2).T),
        ),
        span=(summary.started, summary.finished),
    )


def _sent_shape(summary: Summary, mix_off: int | None) -> SentShape | None:
    """Return how the arrivals were kept; None of lanes, whose shape is that of their turns."""
    shape, planned = summary.shape, summary.plan.arrivals
    if shape is None or summary.lanes > 1:
        return None
    error = shape.gap_error_us
    other = summary.visits.seed if summary.visits else summary.mix_seed
    seed = planned.seed if planned and planned.seed is not None else other
    return SentShape(seed, (error.p50, error.p99), shape.off_by_second, mix_off)


def _opened(summary: Summary) -> Opened | None:
    """Return the connections that were opened on demand; None of a number that is kept open."""
    connects = summary.connects
    if not summary.plan.on_demand or connects is None:
        return None
    return Opened(count=connects.count, most=connects.most_open, waited=connects.waited)


def _visits(reader: Reader, summary: Summary) -> VisitCounts | None:
    """Return how the visits went; None without a session."""
    visits = summary.visits
    if visits is None or reader.visits is None:
        return None
    times = reader.visits.completed_us()
    # A right last answer ends a visit, unless the right answer lacks a value.
    if int(times[1].sum()) != visits.completed:
        raise GeneratorError(
            f"{OUTPUT} has {visits.completed} completed visits, {RECORDS} has {times[1].sum()}"
        )
    return VisitCounts(
        scheduled=visits.scheduled,
        started=visits.started,
        completed=visits.completed,
        broken=visits.broken,
        time_us=times,
    )


def _failure_kinds(summary: Summary) -> Iterator[Reason]:
    """Yield how requests without an answer failed, the most frequent kind first."""
    if summary.failures:
        kinds = sorted(summary.failures.items(), key=lambda kind: (-kind[1], kind[0]))
        yield Reason(
            code="failure_kinds",
            value=sum(summary.failures.values()),
            facts={"kinds": [f"{count:,} {name}" for name, count in kinds]},
        )


def _failed_checks(summary: Summary) -> Iterator[Reason]:
    """Yield each check of the generator on itself that failed."""
    for check in summary.checks:
        # The medians of a queue that grows on the server differ.
        if not check.kept and not (check.check == "halves" and summary.unsent):
            facts: Facts = {"check": check.check}
            yield Reason(code="self_check", value=check.value, limit=check.limit, facts=facts)


def errors_by_class(outcomes: Mapping[str, int], statuses: Mapping[int, int]) -> dict[str, int]:
    """Return the numbers of requests without a right answer, by class of errors.

    ``statuses``: of the answers with a wrong status, status -> their number; others below 400 do
    not matter.
    """
    wrong = Counter[int]()
    for status, count in statuses.items():
        wrong[status // 100] += count
    return {
        **dict.fromkeys(ERROR_CLASSES, 0),
        **{outcome: outcomes[outcome] for outcome in ("body", *OUTCOMES[ANSWERED:])},
        "status_4xx": wrong[4],
        "status_5xx": wrong[5],
        # What an earlier metronome counted below 400 may be right.
        "status_other": outcomes["status"] - wrong[4] - wrong[5],
    }


def _plan(request: Request, seconds: float, name: str) -> str:
    """Return the plan of a load, as JSON."""
    url = urlsplit(request.url)
    lanes: list[dict[str, str]] = [{"url": f"{url.scheme}://{url.netloc}"}]
    turns: dict[str, float] = {}
    way: dict[str, Any] = {"closed": True} if request.rate is None else {"rate": request.rate}
    kinds = [{"name": kind.name, "weight": kind.weight, **_kind(kind)} for kind in request.mix] or [
        _kind(request)
    ]
    shape: dict[str, Any] = {}
    if request.arrivals:
        shape = {"arrivals": msgspec.to_builtins(request.arrivals)}
        if ramp := shape["arrivals"].pop("ramp", None):
            shape["ramp"] = ramp
        if request.arrivals.is_random:
            shape["arrivals"]["seed"] = request.seed
        shape = {name: value for name, value in shape.items() if value}
    if request.replay:
        way = {"replay": request.replay.file}
        common = Request(
            f"{url.scheme}://{url.netloc}/", 1, 1, 1, None, headers=request.replay.headers
        )
        kinds = [_kind(common), *(map(_kind, request.mix) if request.mix else [_kind(request)])]
    elif request.session:
        names = [kind.name for kind in request.mix]
        shape["session"] = [
            {
                "kind": names.index(step.request) if names else 0,
                "think_s": step.think_s,
                "think_mean_s": step.think_mean_s,
                "take": [*step.take.items()],
            }
            for step in request.session
        ]
        shape["think_seed"] = request.seed
    elif request.mix:
        shape["mix_seed"] = request.seed
    if request.lanes:
        # Of one lane, the files are where those of a load of one server are.
        has_names = len(request.lanes.urls) > 1
        lanes = [
            {**({"name": lane} if has_names else {}), "url": at}
            for lane, at in request.lanes.urls.items()
        ]
        if request.rate is None:
            turns = {"slice_s": request.lanes.turns.slice_s}
    plan = {
        "format": "metronome plan/1",
        "output": name,
        "lanes": lanes,
        "kinds": kinds,
        "schedule": {**way, "duration_s": seconds, **turns, **shape},
        "connections": request.connections,
        "on_demand": request.on_demand,
        "threads": request.threads,
        "keepalive": request.keepalive,
        "timeout_s": request.timeout_s,
        "keep_requests": request.keep_requests,
    }
    return json.dumps(plan, separators=(",", ":"))


def _kind(request: Request | Kind) -> dict[str, object]:
    """Return a kind of request as the plan has it."""
    url = urlsplit(request.url)
    return {
        "method": request.method,
        "path": (url.path or "/") + (f"?{url.query}" if url.query else ""),
        "headers": [[header, text] for header, text in request.headers.items()],
        "body": request.body,
        "answer": {
            "status": request.status,
            "bytes": request.body_bytes,
            "body": request.body_file,
        },
    }


def _command(request: Request, seconds: float, name: str) -> list[str]:
    return [NAME, _plan(request, seconds, name)]


def _schedule(load: Load, lanes: int, rate: float | None = None) -> Schedule:
    """Return the schedule of the whole load, of all its lanes; ``rate``: in place of its own."""
    rate = rate or load.rate
    if rate is None or load.duration_s is None:
        raise GeneratorError(f"{NAME} ran without a rate or a duration")
    return Schedule(
        lanes * rate,
        load.duration_s,
        load.connections,
        load.arrivals,
        replay=load.replay is not None,
        steps=len(load.session or ()),
    )


def _measured(
    folder: Path, load: Load, answer: Answer, thresholds: Thresholds
) -> tuple[Measurement, set[str]]:
    kinds = answer.kinds if len(answer.kinds) > 1 else {}
    if load.lanes is not None:
        return of_lane(folder, load, kinds)
    schedule = dataclasses.replace(_schedule(load, 1), kinds=kinds)
    measurement, name = measure(folder, schedule)
    return measurement, {name}


def _keep(folder: Path, load: Load, thresholds: Thresholds, whole: bool) -> None:
    for name, packed in KEPT.items():
        if (folder / name).exists() and not (folder / packed).exists():
            documents.pack(folder / name, folder / packed, level=1)


def _discard(folder: Path) -> None:
    for name in KEPT:
        (folder / name).unlink(missing_ok=True)


GENERATORS = (
    Generator(
        name=NAME,
        mode="constant",
        role=NAME,
        on_controller=("check", "begin", "finish"),
        program=NAME,
        options=(
            *("rate", "duration", "warmup", "keepalive", "connections", "keep_requests"),
            *("arrivals", "ramp", "mix", "sessions", "replay", "speed", "replay_query"),
        ),
        output=OUTPUT,
        command=_command,
        measure=_measured,
        keep=_keep,
        discard=_discard,
        row_bytes=16,
        row_memory_bytes=64,
        memory_rows_max=6_000_000,
        on_demand=True,
        rows_max=20_000_000,
        row_kept_bytes=16,
    ),
)
