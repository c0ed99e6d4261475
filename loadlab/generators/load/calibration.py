"""Plan a calibration: short loads against a constant answer of nginx."""

from msgspec import Struct

from loadlab.generators import registry

# Seconds of warm-up of each load.
WARMUP_S = 1
# Seconds that measuring the link takes, about.
LINK_S = 10


class CalibrationPlan(Struct):
    """The measurements of a calibration."""

    #: The ceiling (saturation throughput) and, for a generator with a constant rate, the floor (the
    #: latency that it adds at the requested rate), each as the role load_run takes it.
    measurements: list[dict[str, object]]
    programs: list[str]  #: Executables of the generators that measure.
    snaps: list[str]  #: Those of them that are snaps.
    constant: bool  #: Whether the generator has a constant rate, and so a floor.
    about_s: float  #: Seconds that it takes.


def plan(
    name: str,
    *,
    rate: float,
    connections: int,
    seconds: int,
    tls: bool,
    tuning: str,
    network: str,
    repetition: int,
) -> CalibrationPlan:
    """Return the calibration for a load of the generator ``name``.

    ``rate`` is in requests/s, ``seconds`` the duration of each load, longer for a generator that
    needs longer. ``repetition`` is the number of the calibration in the run.
    """
    entry = registry.get(name)
    constant = entry.mode == "constant"
    load = {"connections": connections, "warmup_s": WARMUP_S, **({"tls": True} if tls else {})}
    cell = {
        "framework": "nginx",
        "server": "native",
        "transport": "none",
        "protocol": "http",
        "endpoint": "static",
        "tuning": tuning,
        "network": network,
    }
    saturating = registry.get(registry.saturating())
    measuring = [saturating, entry] if constant else [saturating]
    closed = {"generator": saturating.name, "mode": "closed", "rate": None, "duration_s": seconds}
    # A busy client is expected in the ceiling: it is the generator's maximum.
    cells = {"ceiling": {**cell, "expected_void": ["generator_cpu"], "load": {**load, **closed}}}
    durations = [seconds]
    if constant:
        durations.append(max(seconds, entry.duration_min_s))
        own = {"generator": name, "mode": "constant", "rate": rate, "duration_s": durations[1]}
        cells["floor"] = {**cell, "load": {**load, **own}}
    return CalibrationPlan(
        measurements=[
            {
                "cell_id": part,
                "purpose": "calibration",
                "repetition": repetition,
                "cell": planned_cell,
                "position": index + 1,
                "total": len(cells),
                "seconds_left": sum(durations[index:]) + WARMUP_S * (len(cells) - index),
            }
            for index, (part, planned_cell) in enumerate(cells.items())
        ],
        programs=[generator.program for generator in measuring],
        snaps=[generator.snap for generator in measuring if generator.snap],
        constant=constant,
        about_s=sum(durations) + LINK_S,
    )
