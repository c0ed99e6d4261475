"""An entry in the registry is all that a generator needs to be planned, run and read."""

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.generators import registry, wrk
from loadlab.generators.generator import Answer, Generator, Request
from loadlab.generators.measurement import Measurement
from loadlab.model import GivenOptions, Load
from loadlab.plan import cells, check_options
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.results.repetitions import derive_result
from loadlab.run.errors import PlanError
from tests.unit import builders

from .generators.test_load_run import CONSTANT, run, variables

ROOT = Path(__file__).parents[2]
SPECS = builders.SPECS


def command(request: Request, seconds: float, name: str) -> list[str]:
    return ["fake", f"--for={seconds:g}", f"--rate={request.rate:g}", f"--to={name}", request.url]


def measure(
    folder: Path, load: Load, answer: Answer, thresholds: Thresholds
) -> tuple[Measurement, set[str]]:
    text = (folder / "fake.txt").read_text()
    return wrk.measure(text, load.connections, answer.wire_bytes), set()


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Generator(
        name="fake",
        mode="constant",
        role="fake",
        output="fake.txt",
        command=command,
        measure=measure,
        options=("rate", "duration", "connections"),
        duration_min_s=20,
        duration_min_why="is slow",
        prints=True,
    )
    monkeypatch.setitem(registry.GENERATORS, "fake", entry)


def test_a_new_generator_is_planned() -> None:
    given: GivenOptions = {
        "framework": "aiohttp",
        "endpoint": "index",
        "generator": "fake",
        "duration": 25,
    }
    values = check_options.options(SPECS, given)
    check_options.refuse(ROOT, values)
    (load,) = cells.loads(values)
    assert (load.generator, load.mode) == ("fake", "constant")
    assert registry.calibrating(["fake", "wrk"]) == "fake"
    with pytest.raises(PlanError, match="generator=fake, which is slow"):
        check_options.refuse(ROOT, replace(values, duration=19))


def test_a_new_generator_is_run() -> None:
    given = variables(run({**CONSTANT, "generator": "fake"}).offers[0])
    url = "http://10.0.0.1:80/index"
    assert given["WARM_UP"] == f"timeout 42 fake --for=10 --rate=401 --to=warmup {url}"
    assert given["MEASURE"] == f"timeout 62 fake --for=30 --rate=401 --to=fake {url}"


def test_a_new_generator_is_read(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ROOT / "tests/fixtures/rep-wrk", tmp_path / "rep-1"))
    (folder / "wrk.txt").rename(folder / "fake.txt")
    cell = json.loads((folder / "cell.json").read_text())
    cell["cell"]["load"]["generator"] = "fake"
    (folder / "cell.json").write_text(json.dumps(cell))
    found = derive_result.build(folder, builders.thresholds(), None)
    assert found.error is None
    assert (found.requests or 0) > 0
    assert "fake.txt" in found.raw_sha256
