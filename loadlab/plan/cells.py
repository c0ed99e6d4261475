"""Expand checked options into cells: each endpoint under each tuning at each load."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.generators.access_log import Survey
from loadlab.model import Cell, Item, Load, Options, Purpose, StudyCell, kinds_of
from loadlab.plan import cell_ids
from loadlab.plan.check_options import CLIENTS_ENDPOINT
from loadlab.plan.load_options import arrivals, mix, replay, sessions
from loadlab.plan.modes.mode import beside
from loadlab.plan.plan_document import PlannedComparison
from loadlab.run.catalog import known
from loadlab.run.errors import PlanError
from loadlab.stacks.application import App
from loadlab.stacks.contract import CONTRACT_SLACK_MS, Contract, Contracts
from loadlab.stacks.requests import BODY_BYTES_MAX
from loadlab.stacks.stacks import Stack, default_driver

# Seconds. The closed loop beside a constant rate only finds the limit, so it may be short.
CLOSED_LOOP_DURATION_S = 5
CLOSED_LOOP_WARMUP_S = 2
# Connections of the closed loop beside a load that opens its own on demand.
CLOSED_LOOP_CONNECTIONS = 64


def endpoints(
    contracts: Contracts, options: Options, app: App, log: Survey | None = None
) -> Contracts:
    """Return the contracts of the endpoints to measure, name -> contract, in the order asked.

    ``contracts``: of the application's endpoints and of others; ``log``: of a replay. Raises
    PlanError for an unknown endpoint, where none is left to measure, and for one that the generator
    cannot request.
    """
    option, names = "endpoint", options.endpoint
    if log is not None and log.endpoints:
        option, names = replay.OPTION, [*log.endpoints]
    elif options.sessions is not None:
        option, names = sessions.OPTION, [*sessions.weights(sessions.steps(options.sessions))]
    elif options.mix is not None:
        option, names = mix.OPTION, [*kinds_of(options.mix)]
    elif names is None and registry.get(options.generator).mode == "batch":
        names = [name for name in app.endpoints if name == CLIENTS_ENDPOINT]
    elif names is None:
        names = [name for name in app.endpoints if contracts[name].measured]
    if not names:
        raise PlanError(
            f"endpoint: there is none to measure. Give one or several of {options.framework}'s "
            f"with -e endpoint=<name>,<name>. There are: {', '.join(app.endpoints)}."
        )
    for name in names:
        known(option, name, sorted(contracts))
        known(f"{option} of {options.framework}", name, app.endpoints)
        _refuse_request(options, name, contracts[name])
    size = sum(len(contracts[name].body.encode()) for name in names)
    if option in (mix.OPTION, replay.OPTION, sessions.OPTION) and size > BODY_BYTES_MAX:
        raise PlanError(
            f"{option}: the bodies of its requests have {size:,} bytes together, and a command "
            f"line has room for {BODY_BYTES_MAX:,}. Leave a request out, or shorten its body."
        )
    if options.sessions is not None:
        sessions.refuse_values(sessions.steps(options.sessions), contracts)
    return {name: contracts[name] for name in names}


def _refuse_request(options: Options, name: str, contract: Contract) -> None:
    """Raise PlanError where the generator cannot send an endpoint's request."""
    generator = registry.get(options.generator)
    if generator.mode == "batch" and (contract.method != "GET" or contract.headers):
        raise PlanError(
            f"generator: {generator.name} requests GET without headers of the endpoint's own, and "
            f"{name} is {contract.method} with {', '.join(contract.headers) or 'none'}. Give "
            f"-e generator={registry.first('constant')}."
        )
    if options.http2 and "host" in map(str.lower, contract.headers):
        raise PlanError(
            f"http2: {name} has the header Host, which HTTP/2 replaces. Leave http2 out."
        )


def loads(options: Options, log: Survey | None = None) -> list[Load]:
    """Return the loads asked for: a batch, or each number of connections at each rate."""
    generator = registry.get(options.generator)
    common: dict[str, Any] = {
        "generator": generator.name,
        "mode": generator.mode,
        "clients": options.clients if options.clients > 1 else None,
        "timeout_s": options.request_timeout,
        "tls": options.tls or None,
        "http2": options.http2 or None,
        "headers": options.headers or None,
    }
    if generator.mode == "batch":
        # Of a Python client, which is the subject of its measurement.
        assert generator.at_once is not None
        return [
            Load(
                rate=None,
                requests=options.requests,
                connections=generator.at_once(options.requests, options.connections[0]),
                open_files=options.open_files,
                reuse=options.python_keepalive,
                duration_s=None,
                warmup_s=0,
                **common,
            )
        ]
    is_constant, shape = generator.mode == "constant", arrivals.asked(options)
    rates: list[float | None] = [*options.rate] if is_constant else []
    rule = options.saturation_rate if is_constant else None
    return [
        Load(
            rate=rate,
            arrivals=shape if arrivals.OPTION in generator.options else None,
            replay=log.replay if log is not None else None,
            session=sessions.steps(options.sessions) if options.sessions else None,
            fraction=rule.fraction if rule is not None else None,
            of_saturation=rule.of if rule is not None else None,
            connections=connections,
            on_demand=options.on_demand or None,
            duration_s=options.duration,
            warmup_s=options.warmup,
            keepalive=options.keepalive,
            **common,
        )
        for connections, rate in itertools.product(options.connections, rates or [None])
    ]


def closed_connections(most: int, *, on_demand: bool) -> int:
    """Return how many connections a closed loop keeps beside a load of at most ``most``."""
    return min(most, CLOSED_LOOP_CONNECTIONS) if on_demand else most


def closed_loop(load: Load) -> Load:
    """Return the load of the short closed loop that shows a cell's limit.

    ``load`` is the cell's own load, which the result follows in connections, TLS and headers.
    Connections on demand are a fixed number there. The generator of the closed loop uses HTTP/1.1
    only.
    """
    return replace(
        load,
        generator=registry.saturating(),
        mode="closed",
        rate=None,
        arrivals=None,
        fraction=None,
        of_saturation=None,
        connections=closed_connections(load.connections, on_demand=load.on_demand is True),
        on_demand=None,
        duration_s=min(load.duration_s or 0, CLOSED_LOOP_DURATION_S),
        warmup_s=min(load.warmup_s, CLOSED_LOOP_WARMUP_S),
        burst_every_s=None,
        stall=None,
        injection=None,
        background_endpoint=None,
        http2=None,
    )


def expected_s(load: Load, contract: Contract) -> float:
    """Return about how many seconds the load takes, warm-up included."""
    if load.requests is None:
        return (load.duration_s or 0) + load.warmup_s
    least = contract.minimum_ms
    longest = max(least, (contract.maximum_ms or 0) - CONTRACT_SLACK_MS)
    # Sequential requests take the mean time each, concurrent ones the longest.
    rounds = load.requests / load.connections
    return max(longest, rounds * (least + longest) / 2) / 1000 + 1


def items(
    options: Options,
    stack: Stack,
    backlogs: Mapping[str, int],
    contracts: Contracts,
    entry: StudyCell | None = None,
    log: Survey | None = None,
) -> list[Item]:
    """Return the cells of every endpoint, or of their mix, under each tuning.

    Without ``entry``, a study's cell, a constant rate also gets one short closed loop, which shows
    the cell's limit; a mix, a replay and a session have none, as its generator sends one kind of
    request.
    ``backlogs``: tuning -> backlog. ``contracts``: endpoint -> contract.
    """
    planned = []
    first = next(iter(contracts.values()))
    together = options.mix if log is None else replay.endpoint(log, [*contracts])
    if options.sessions:
        together = sessions.endpoint(sessions.steps(options.sessions))
    measured = {together: first} if together else contracts
    purpose: Purpose = "injection" if entry is not None and entry.expectation else "measure"
    for tuning, (endpoint, contract) in itertools.product(options.tuning, measured.items()):
        for load in loads(options, log):
            cell = _cell(options, stack, backlogs[tuning], endpoint, tuning, entry, load)
            planned.append(
                Item(
                    cell_id=cell_ids.cell_id(cell, purpose),
                    purpose=purpose,
                    cell=cell,
                    stack=cell_ids.stack_id(cell),
                    expected_s=expected_s(cell.load, contract),
                )
            )
        last = planned[-1]
        if entry is None and last.cell.load.mode == "constant" and not together:
            planned.append(beside(last, closed_loop(last.cell.load), "closed_loop"))
    return planned


def _cell(
    options: Options,
    stack: Stack,
    backlog: int,
    endpoint: str,
    tuning: str,
    entry: StudyCell | None,
    load: Load,
) -> Cell:
    return Cell(
        framework=stack.framework,
        app=options.app,
        server=stack.server,
        transport=stack.transport,
        protocol=stack.protocol,
        worker_class=stack.worker_class,
        event_loop=stack.event_loop,
        upstream_keepalive=stack.upstream_keepalive,
        workers=stack.workers,
        threads=stack.threads,
        server_keepalive_s=stack.server_keepalive,
        backlog=backlog,
        driver=stack.driver if stack.driver != default_driver(stack.app) else None,
        python=stack.python,
        reverse_proxy=stack.reverse_proxy,
        endpoint=endpoint,
        tuning=tuning,
        network=options.network,
        variant=entry.variant if entry is not None else None,
        expected_void=entry.expected_void if entry is not None else None,
        load=_with_entry(load, entry),
    )


def _with_entry(load: Load, entry: StudyCell | None) -> Load:
    if entry is None:
        return load
    if entry.burst_every_s is not None and load.mode != "closed":
        raise PlanError(
            f"burst_every_s: the cell {entry.name} has one, and generator={load.generator} is no "
            f"closed loop. Give generator={registry.saturating()}, or leave burst_every_s out."
        )
    return replace(
        load,
        burst_every_s=entry.burst_every_s,
        stall=entry.stall,
        injection=entry.injection,
        background_endpoint=entry.background_endpoint,
    )


def comparisons(planned: Iterable[Item], backlogs: Mapping[str, int]) -> list[PlannedComparison]:
    """Return the comparisons of measured cells that differ only in their tuning.

    The base is the first such cell. A backlog that is its tuning's own, by ``backlogs``, is part of
    the tuning.
    """
    bases: dict[bytes, list[Item]] = {}
    compared = []
    for item in planned:
        if item.purpose != "measure":
            continue
        key = msgspec.json.encode(replace(item.cell, tuning="", backlog=None, expected_void=None))
        alike = bases.setdefault(key, [])
        comparable = (base for base in alike if _is_comparable(base.cell, item.cell, backlogs))
        if (base := next(comparable, None)) is None:
            alike.append(item)
        # A study may name a cell twice: alone, and as one level of a sweep.
        elif base.cell_id != item.cell_id:
            compared.append(PlannedComparison(by="tuning", base=base.cell_id, head=item.cell_id))
    return compared


def _is_comparable(base: Cell, head: Cell, backlogs: Mapping[str, int]) -> bool:
    """Return whether two cells that are else alike differ in nothing but their tuning."""
    owned = all(cell.backlog == backlogs[cell.tuning] for cell in (base, head))
    return owned or base.backlog == head.backlog
