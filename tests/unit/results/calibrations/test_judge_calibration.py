import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.lab.bench.plugins.action.calibration import ActionModule
from msgspec.structs import asdict, replace

from loadlab.generators import oha_database
from loadlab.model import Calibration, CalibrationOrigin, Ceiling, Iperf3, Result
from loadlab.report.words import calibration_words as words
from loadlab.results.calibrations import calibration_reuse, judge_calibration
from loadlab.results.calibrations.judge_calibration import CalibrationError
from loadlab.run import documents, errors
from loadlab.run.run_dir import CalibrationDir
from loadlab.telemetry.iperf3 import Iperf3Error
from tests.unit import builders
from tests.unit.builders import present
from tests.unit.results import recorded
from tests.unit.results.recorded import FIXTURES

ORIGIN = {"run_id": "first", "measured": 1795195774.0}
PING = """\
PING 10.77.1.11 (10.77.1.11) 56(84) bytes of data.

--- 10.77.1.11 ping statistics ---
50 packets transmitted, 50 received, 0% packet loss, time 788ms
rtt min/avg/max/mdev = 0.043/0.055/1.136/0.012 ms
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The third calibration of a run: wrk's recording as its ceiling, oha's as its floor."""
    ceiling = recorded.copy("wrk", tmp_path / "ceiling" / "rep-3")
    # As the plan of a calibration has it: the generator's maximum fills the client.
    recorded.change_cell(ceiling, expected_void=["generator_cpu"])
    recorded.copy("oha", tmp_path / "floor" / "rep-3")
    recorded.put_clock_ahead(ceiling / "telemetry-server.prom.gz")
    link = tmp_path / "link" / "rep-3"
    link.mkdir(parents=True)
    for name, recording in {"client_to_server": "forward", "server_to_client": "reverse"}.items():
        shutil.copy(FIXTURES / "iperf3" / f"{recording}.json", link / f"iperf3-{name}.json")
    (link / "ping.txt").write_text(PING)
    (link / "conditions.json").write_bytes(documents.dump({**ORIGIN, "conditions": {}}))
    return tmp_path


def iperf3(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FIXTURES / "iperf3" / f"{name}.json").read_text())
    return document


def derive(folder: Path, generator: str = "oha") -> Calibration:
    return judge_calibration.derive(CalibrationDir(folder), 3, generator, builders.thresholds())


def test_round_trip_in_microseconds() -> None:
    found = asdict(judge_calibration.round_trip(PING))
    assert found == pytest.approx({"min": 43, "mean": 55, "max": 1136, "mdev": 12})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ping: connect: Network is unreachable",
        "50 packets transmitted, 0 received, 100% packet loss, time 788ms\n",
        "round-trip min/avg/max = 0.043/0.055/1.136 ms",
    ],
)
def test_a_ping_without_round_trips_is_shown(text: str) -> None:
    told = re.escape(f"ping's output has no round-trip times: {text!r}")
    with pytest.raises(CalibrationError, match=f"^{told}$"):
        judge_calibration.round_trip(text)


def test_calibration_is_derived_from_its_raw_files(folder: Path) -> None:
    found = derive(folder)
    documents.encode(found)
    ceiling, floor = (
        documents.read(folder / part / "rep-3" / "result.json", Result)
        for part in ("ceiling", "floor")
    )
    telemetry = present(ceiling.telemetry)
    assert found.ceiling == Ceiling(
        requests_per_second=present(ceiling.rate_achieved),
        connections=8,
        duration_s=present(ceiling.duration_s),
        client_cpu_busy=telemetry.client.cpu_busy,
        server_cpu_busy=telemetry.server.cpu_busy,
        generator="wrk",
    )
    # 1,594 answers do not support the percentiles above the p99.
    few = {"p99_9": None, "p99_99": None}
    assert found.baseline_latency_us == replace(present(floor.latency_us), **few)
    assert found.send_delay_us == replace(present(floor.send_delay_us), **few)
    assert present(found.send_delay_us).p99 is not None
    there, back = (iperf3(name)["end"] for name in ("forward", "reverse"))
    link = found.iperf3
    for direction, end in ((link.client_to_server, there), (link.server_to_client, back)):
        assert direction.bits_per_second == end["sum_received"]["bits_per_second"]
    assert found.round_trip_us.max == pytest.approx(1136)
    # Scraped on one machine: its clock and the controller's are the same, nearly.
    assert found.clock_offset_s.client == pytest.approx(0, abs=1)
    assert found.clock_offset_s.server == pytest.approx(1000, abs=1)
    left = {path.name for path in (folder / "floor" / "rep-3").iterdir()}
    assert oha_database.REDUCED in left
    assert oha_database.DATABASE not in left


def test_the_higher_figure_of_one_and_several_streams_is_the_links(folder: Path) -> None:
    one = derive(folder).iperf3
    assert one.lower is None
    assert one.client_to_server.core_limited
    link = folder / "link" / "rep-3"
    # Higher than one stream's, and lower.
    for name, bits in (("client_to_server", 9e11), ("server_to_client", 1e9)):
        document = iperf3("four")
        document["end"]["sum_received"]["bits_per_second"] = bits
        (link / f"iperf3-several-{name}.json").write_text(json.dumps(document))
    found = derive(folder)
    documents.encode(found)
    there, lower = found.iperf3.client_to_server, present(found.iperf3.lower)
    assert (there.bits_per_second, there.streams) == (9e11, 4)
    assert found.iperf3.server_to_client == one.server_to_client
    assert lower["client_to_server"] == one.client_to_server
    assert lower["server_to_client"].streams == 4
    first = words.summary(found).splitlines()[0]
    was = one.client_to_server.bits_per_second / 1e9
    assert f"Link 900.0 Gb/s to the server (iperf3 with 4 streams; {was:.1f} with 1)" in first
    assert "back (iperf3 with 1 stream; 1.0 with 4)" in first


def test_where_only_the_closed_loop_is_used_there_is_no_floor(folder: Path) -> None:
    shutil.rmtree(folder / "floor")
    found = derive(folder, "wrk")
    assert (found.baseline_latency_us, found.send_delay_us) == (None, None)
    assert len(words.summary(found).splitlines()) == 1


def use_again(run_dir: Path, number: int) -> dict[str, Any]:
    """What a run does that looks for a calibration of the last hour."""
    builders.write_plan(run_dir, builders.plan())
    arguments: dict[str, Any] = {
        "dir": str(run_dir / "calibration"), "repetition": number, "link": None,
        "hosts": ["server", "client"], "conditions": {"rate": 1000}, "generator": "oha",
    }  # fmt: skip
    return ActionModule.__new__(ActionModule).act(arguments)


def test_a_calibration_is_used_again(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With the same numbers, from files of the run's own, also where that run used it again."""
    results = tmp_path_factory.mktemp("results")
    first = shutil.copytree(folder, results / "first" / "calibration")
    conditions = calibration_reuse.conditions({"rate": 1000}, None, ["server", "client"])
    origin: dict[str, Any] = {"run_id": "first", "measured": time.time() - 60}
    link = first / "link" / "rep-3"
    builders.write_plan(results / "first", builders.plan())
    (link / "conditions.json").write_bytes(documents.dump({**origin, "conditions": conditions}))
    made = judge_calibration.derive(CalibrationDir(first), 3, "oha", builders.thresholds())

    for run_id in ("second", "third"):
        again = use_again(results / run_id, 1)
        assert re.fullmatch(r"Calibration of run first, \d+ (s|min) ago", again["reused"])
        assert documents.decode(again["calibration"], Calibration, "again") == made
        assert made.origin == CalibrationOrigin(**origin)
        assert documents.read(results / run_id / "calibration.json", Calibration) == made
        shutil.rmtree(first, ignore_errors=True)
    # The run goes on: what is in force stays so, under its number.
    again = use_again(results / "third", 2)
    assert documents.decode(again["calibration"], Calibration, "again") == made
    assert CalibrationDir(results / "third" / "calibration").numbers() == [1]

    # A raw file that is damaged is no calibration, and leaves nothing behind.
    (results / "second/calibration/ceiling/rep-1/wrk.txt").write_text("Running 5s test")
    shutil.rmtree(results / "third")
    assert use_again(results / "fourth", 1) == {"found": False}
    assert CalibrationDir(results / "fourth" / "calibration").numbers() == []


@pytest.mark.parametrize("part", ["ceiling", "floor"])
def test_a_part_that_failed_is_named(folder: Path, part: str) -> None:
    (folder / part / "rep-3" / "error.txt").write_text("nginx did not start\n")
    with pytest.raises(
        CalibrationError, match=f"^{folder.name}/{part}/rep-3: nginx did not start$"
    ):
        derive(folder)


@pytest.mark.parametrize("name", ["ping.txt", "iperf3-server_to_client.json"])
def test_a_missing_file_of_the_link_is_named(folder: Path, name: str) -> None:
    (folder / "link" / "rep-3" / name).unlink()
    with pytest.raises(errors.ResultError, match=f"^{name} is not there$"):
        derive(folder)


def test_a_failed_iperf3_says_so_itself(folder: Path) -> None:
    link = folder / "link" / "rep-3"
    shutil.copy(FIXTURES / "iperf3" / "error.json", link / "iperf3-client_to_server.json")
    with pytest.raises(Iperf3Error, match=re.escape(iperf3("error")["error"])):
        derive(folder)


def test_the_calibration_in_words() -> None:
    measured = builders.calibration()
    latency = present(measured.baseline_latency_us)
    direction = measured.iperf3.client_to_server
    found = replace(
        measured,
        generator="oha",
        iperf3=Iperf3(
            client_to_server=replace(direction, bits_per_second=15.26e9),
            server_to_client=replace(direction, bits_per_second=9.41e9),
        ),
        round_trip_us=replace(measured.round_trip_us, mean=55.4),
        ceiling=replace(measured.ceiling, generator="wrk", requests_per_second=61234.5),
        baseline_latency_us=replace(latency, p50=140.0, p99=1450.0, max=12_340.0),
        send_delay_us=replace(latency, p99=70.0),
    )
    link = (
        "Link 15.3 Gb/s to the server, 9.4 back, round trip 55 µs; ceiling wrk against nginx "
        "alone 61,234 requests/s"
    )
    floor = "Baseline latency of oha at the requested rate: p50 0.14 ms, p99 1.45 ms, max 12.3 ms"
    assert words.summary(found) == f"{link}\n{floor}; send delay p99 0.07 ms"
    assert words.summary(replace(found, send_delay_us=None)) == f"{link}\n{floor}"
    assert words.summary(replace(found, baseline_latency_us=None, send_delay_us=None)) == link
