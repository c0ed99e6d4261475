"""Words for a calibration on the terminal."""

from loadlab.model import Calibration, CalibrationOrigin, Iperf3, Iperf3Direction
from loadlab.report.words import reason as reason_words
from loadlab.run.formatting import count, plural


def summary(calibration: Calibration) -> str:
    """Return the calibration in one or two lines."""
    link, ceiling = calibration.iperf3, calibration.ceiling
    forth, back = (
        f"{throughput.bits_per_second / 1e9:.1f} {towards}{_streams(throughput, link, direction)}"
        for direction, towards, throughput in (
            ("client_to_server", "Gb/s to the server", link.client_to_server),
            ("server_to_client", "back", link.server_to_client),
        )
    )
    lines = [
        f"Link {forth}, {back}, round trip {calibration.round_trip_us.mean:.0f} µs; ceiling "
        f"{ceiling.generator} against nginx alone {count(ceiling.requests_per_second)} requests/s"
    ]
    baseline, delay = calibration.baseline_latency_us, calibration.send_delay_us
    if baseline:
        late = delay.p99 if delay else None
        # p99 is withheld where the generator made too much of it.
        p99 = "" if baseline.p99 is None else f"p99 {_ms(baseline.p99, 2)} ms, "
        lines.append(
            f"Baseline latency of {calibration.generator} at the requested rate: "
            f"p50 {_ms(baseline.p50, 2)} ms, {p99}max {_ms(baseline.max, 1)} ms"
            + ("" if late is None else f"; send delay p99 {_ms(late, 2)} ms")
        )
    return "\n".join([*lines, *disturbed(calibration)])


def _streams(throughput: Iperf3Direction, link: Iperf3, direction: str) -> str:
    """Return with how many streams the link's figure was measured, where one filled a core."""
    lower = (link.lower or {}).get(direction)
    if lower is None:
        return ""
    other = f"{lower.bits_per_second / 1e9:.1f} with {lower.streams}"
    return f" (iperf3 with {plural(throughput.streams, 'stream')}; {other})"


def disturbed(calibration: Calibration) -> list[str]:
    """Return a line for each part of the calibration that is void, with its reasons."""
    return [
        f"{part}: {'; '.join(reason_words(reason) for reason in reasons)}"
        for part, reasons in (
            ("The link is not judged", calibration.link_reasons),
            ("The ceiling is void and refuses no rate", calibration.ceiling_reasons),
        )
        if reasons
    ]


def reused(origin: CalibrationOrigin, now: float) -> str:
    """Return which run measured a calibration that is used again; ``now`` is in unix seconds."""
    age = now - origin.measured
    words = f"{age:.0f} s" if age < 90 else f"{age / 60:.0f} min"
    return f"Calibration of run {origin.run_id}, {words} ago"


def _ms(us: float | None, places: int) -> str:
    return "-" if us is None else f"{us / 1000:.{places}f}"
