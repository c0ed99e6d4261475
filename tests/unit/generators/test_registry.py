import json
from pathlib import Path

import pytest

from loadlab.generators import registry
from loadlab.generators.generator import Request
from loadlab.run.catalog import load_yaml
from loadlab.run.errors import PlanError

ROOT = Path(__file__).parents[3]
REQUEST = Request(
    url="http://10.0.0.1/index",
    connections=100,
    threads=6,
    timeout_s=2,
    body_bytes=17,
    rate=2000,
    requests=500,
    open_files=1024,
    reuse=True,
)

each_generator = pytest.mark.parametrize("name", registry.GENERATORS)


def test_the_generators_have_their_order() -> None:
    assert registry.names("constant") == ["metronome", "oha", "wrk2"]
    assert registry.names("closed") == ["wrk"]
    assert registry.names("batch") == ["python-sync", "python-async", "python-bounded"]
    assert registry.choices("generator") == [*registry.GENERATORS]
    assert registry.choices("framework") == []


def test_an_unknown_generator_is_refused() -> None:
    with pytest.raises(PlanError, match="There are: metronome, oha, wrk2, wrk, python-"):
        registry.get("ab")


@pytest.mark.parametrize(
    ("used", "found"),
    [
        (["wrk", "oha"], "oha"),
        (["oha", "metronome"], "metronome"),
        (["wrk2", "oha"], "oha"),
        (["wrk2"], "wrk2"),
        (["wrk"], "wrk"),
        (["python-sync"], "wrk"),
    ],
)
def test_the_calibration_is_for_the_constant_rate(used: list[str], found: str) -> None:
    assert registry.calibrating(used) == found


def test_an_option_has_its_readers() -> None:
    assert registry.readers("rate") == ["metronome", "oha", "wrk2"]
    assert registry.readers("connections") == [
        *("metronome", "oha", "wrk2", "wrk", "python-bounded")
    ]
    assert registry.readers("tuning") == []


@each_generator
def test_an_entry_matches_its_role_and_options(name: str) -> None:
    entry = registry.get(name)
    role = ROOT / "roles" / entry.role
    points = load_yaml(role / "meta/argument_specs.yml")["argument_specs"]
    # Generators may share a role.
    roles = [one for one in registry.GENERATORS.values() if one.role == entry.role]
    on_controller = {point for one in roles for point in one.on_controller}
    assert set(points) & {"main", "check", "begin", "finish"} == {"main"} | on_controller
    main = load_yaml(ROOT / "roles/run/meta/argument_specs.yml")
    own = points["main"]["options"]
    assert set(entry.options) <= {*main["argument_specs"]["main"]["options"], *own}
    assert entry.binary in ("", f"{entry.name}_binary")
    assert entry.output.startswith(f"{entry.name}.")
    assert (entry.at_once is not None) == (entry.mode == "batch")
    assert (entry.duration_min_s > 0) == bool(entry.duration_min_why)


@each_generator
def test_a_command_names_its_url_and_its_files(name: str) -> None:
    entry = registry.get(name)
    argv = entry.command(REQUEST, 10, "warmup")
    if name == "metronome":
        plan = json.loads(argv[-1])
        kind = plan["kinds"][0]
        assert plan["lanes"][0]["url"] + kind["path"] == REQUEST.url
        assert plan["output"] == "warmup"
        return
    assert REQUEST.url in argv
    _, _, ending = entry.output.partition(".")
    assert entry.prints != (f"warmup.{ending}" in argv)


COMMANDS = {
    "oha": "oha --no-tui --no-color --output-format json -o oha.json --db-url oha.sqlite -z 2.5s "
    "-w -q 2000 --latency-correction --redirect 0 -c 100 --worker-threads 6 -t 2s "
    "--connect-timeout 2s http://10.0.0.1/index",
    # It takes whole seconds alone.
    "wrk": "wrk -t 5 -c 100 -d 3s --latency --timeout 2s -s /usr/local/lib/loadlab/report.lua "
    "http://10.0.0.1/index",
    # Not on 6 threads: 16 connections on each would be 96.
    "wrk2": "wrk2 -t 5 -c 100 -d 2.5s -R 2000 --latency --u_latency --timeout 2s "
    "http://10.0.0.1/index",
    "python-async": "/opt/loadlab/clients/venv/bin/python /opt/loadlab/clients/client.py async "
    "http://10.0.0.1/index --requests 500 --connections 100 --open-files 1024 --reuse true "
    "--body-bytes 17 --timeout 2 --output python-async.json.gz --progress progress.txt",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_commands_of_the_generators(name: str) -> None:
    assert registry.get(name).command(REQUEST, 2.5, name) == COMMANDS[name].split()


def test_an_entry_is_described_for_roles() -> None:
    oha, wrk2 = registry.described(["oha", "wrk2"])
    assert oha["on_controller"] == ["check", "begin", "finish"]
    assert (oha["binary"], oha["built"], oha["snap"]) == ("oha_binary", True, "")
    assert (wrk2["binary"], wrk2["built"], wrk2["snap"]) == ("wrk2_binary", False, "wrk2")
