from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from loadlab.analysis import result, summary
from loadlab.core import documents
from loadlab.core.errors import ResultError
from loadlab.core.schema import SchemaError, validate
from loadlab.stats import histograms

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
SCHEMA = ROOT / "files" / "schema" / "lab-1.schema.json"
THRESHOLDS = yaml.safe_load((ROOT / "files" / "verdict.yml").read_text()) | {"steal_max": 1}


def parse(text: str) -> list[Metric]:
    return list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def real() -> dict[str, dict[str, Any]]:
    return {
        name: result.build(FIXTURES / f"rep-{name}", THRESHOLDS, None)
        for name in ("oha", "wrk", "python")
    }


def repetition(base: dict[str, Any], number: int, **changed: Any) -> dict[str, Any]:
    return {**copy.deepcopy(base), "repetition": number, **changed}


def with_values(base: dict[str, Any], number: int, values: list[int]) -> dict[str, Any]:
    encoded = histograms.encode(histograms.from_values(np.array(values)))
    return repetition(base, number, histogram={**base["histogram"], "data": encoded})


VOID = {"valid": False, "reasons": ["steal: 0.5 on server, limit 0.01"], "findings": []}


def test_repetitions_merge_by_adding_histograms(real: dict[str, dict[str, Any]]) -> None:
    slow, fast = [5000] * 10, [1000] * 990
    results = [
        with_values(repetition(real["oha"], 1, goodput=100.0), 1, slow),
        with_values(repetition(real["oha"], 2, goodput=300.0), 2, fast),
        with_values(repetition(real["oha"], 3, goodput=900.0, verdict=VOID), 3, [9_000_000] * 500),
    ]
    found = summary.merge(results)
    assert (found["n"], found["n_void"]) == (2, 1)
    assert found["goodput"]["median"] == 200
    assert (found["goodput"]["min"], found["goodput"]["max"]) == (100, 300)
    assert found["requests"] == 2 * real["oha"]["requests"]
    # Of 1000 values 990 are fast: the p99 of neither repetition, nor a mean of both.
    assert found["latency_us"]["p99"] == pytest.approx(1000, rel=1e-3)
    assert found["latency_interval_us"]["p99"]["low"] == pytest.approx(1000, rel=1e-3)
    assert found["latency_interval_us"]["p99"]["high"] == pytest.approx(5000, rel=1e-3)
    assert found["latency_us"]["p99_9"] is None
    assert found["latency_interval_us"]["p99_9"] == {
        "low": None,
        "high": None,
        "why": "1,000 answers, a p99.9 takes 10,000: 10 must lie above it",
    }
    assert found["percentile_curve"][-1] == [100.0, found["latency_us"]["max"]]


def test_nothing_valid_is_null(real: dict[str, dict[str, Any]]) -> None:
    found = summary.merge([repetition(real["oha"], 1, verdict=VOID)])
    assert (found["n"], found["n_void"], found["requests"]) == (0, 1, None)
    assert found["goodput"] is found["errors"] is found["latency_from"] is None
    assert set(found["latency_us"].values()) == {None}


def test_a_closed_loop_has_no_unsent_to_sum(real: dict[str, dict[str, Any]]) -> None:
    found = summary.merge([real["wrk"], repetition(real["wrk"], 2)])
    assert found["unsent"] is found["scheduled"] is None
    assert found["responses"] == 2 * real["wrk"]["responses"]


def test_what_does_not_belong_together_does_not_merge(real: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(ResultError, match="2 cells"):
        summary.merge([real["oha"], real["wrk"]])
    with pytest.raises(ResultError, match="intended and sent"):
        summary.merge([real["oha"], repetition(real["oha"], 2, latency_from="sent")])


def store(run_dir: Path, *results: dict[str, Any]) -> Path:
    for found in results:
        directory = run_dir / "cells" / found["cell_id"] / f"rep-{found['repetition']}"
        directory.mkdir(parents=True)
        documents.write(directory / "result.json", documents.dump(found))
    return run_dir


@pytest.fixture
def run_dir(tmp_path: Path, real: dict[str, dict[str, Any]]) -> Path:
    failed = repetition(real["oha"], 11, verdict=VOID, error="it broke")
    failed.update(dict.fromkeys(("requests", "telemetry", "histogram", "errors")))
    return store(
        tmp_path / "20260101-aiohttp",
        real["wrk"],
        failed,
        repetition(real["oha"], 2),
        real["oha"],
    )


def test_a_summary_is_rebuilt_byte_for_byte(run_dir: Path) -> None:
    found = summary.summary(run_dir)
    validate(found, "summary", SCHEMA)
    assert documents.dump(summary.summary(run_dir)) == documents.dump(found)
    assert found["run_id"] == "20260101-aiohttp"
    assert [cell["cell_id"] for cell in found["cells"]] == [
        "aiohttp-oha-400rps",
        "aiohttp-wrk-closed",
    ]
    oha = found["cells"][0]
    assert [r["repetition"] for r in oha["repetitions"]] == [1, 2, 11]
    assert (oha["statistics"]["n"], oha["statistics"]["n_void"]) == (2, 1)
    assert oha["repetitions"][2]["error"] == "it broke"
    assert "per_second" not in oha["repetitions"][0]["telemetry"]["server"]


def test_a_summary_by_way_of_the_latest_link_is_the_same(run_dir: Path) -> None:
    link = run_dir.parent / "latest"
    link.symlink_to(run_dir.name)
    assert summary.summary(link) == summary.summary(run_dir)


def test_a_result_in_anothers_place_is_refused(
    run_dir: Path, real: dict[str, dict[str, Any]]
) -> None:
    path = run_dir / "cells" / "aiohttp-oha-400rps" / "rep-2" / "result.json"
    documents.write(path, documents.dump(real["oha"]))
    with pytest.raises(ResultError, match=r"rep-2/result\.json is of .* repetition 1"):
        summary.summary(run_dir)
    other = repetition(real["oha"], 2)
    other["cell"]["load"]["connections"] = 9
    documents.write(path, documents.dump(other))
    with pytest.raises(ResultError, match="another cell"):
        summary.summary(run_dir)


def test_open_metrics_parse_and_are_in_base_units(run_dir: Path) -> None:
    document = summary.summary(run_dir)
    text = summary.open_metrics(document)
    assert summary.open_metrics(document) == text
    families = {family.name: family for family in parse(text)}
    assert all(family.type == "gauge" for family in families.values())

    def value(name: str, cell: str, **labels: str) -> float:
        (found,) = [
            sample.value
            for sample in families[name].samples
            if sample.labels["cell"] == cell
            and all(sample.labels[key] == labels[key] for key in labels)
        ]
        return float(found)

    oha = document["cells"][0]["statistics"]
    cell = "aiohttp-oha-400rps"
    assert value("lab_goodput_requests_per_second", cell) == oha["goodput"]["median"]
    assert value("lab_valid_repetitions", cell, rate="400", mode="constant") == 2
    assert value("lab_void_repetitions", cell) == 1
    assert value("lab_unsent_requests", cell) == oha["unsent"] == 12
    assert value("lab_errors", cell, **{"class": "timeout"}) == 0
    assert value("lab_latency_seconds", cell, quantile="0.99") == pytest.approx(
        oha["latency_us"]["p99"] / 1e6
    )
    # 3188 answers do not carry it.
    quantiles = {
        s.labels["quantile"]
        for s in families["lab_latency_seconds"].samples
        if s.labels["cell"] == cell
    }
    assert quantiles == {"0.5", "0.75", "0.9", "0.95", "0.99", "1"}
    assert value("lab_reactivity_seconds", cell) == oha["reactivity"]["mean_us"] / 1e6
    assert value("lab_valid_repetitions", "aiohttp-wrk-closed", rate="") == 1
    assert {s.labels["cell"] for s in families["lab_unsent_requests"].samples} == {cell}


def test_python_clients_merge(real: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    first = real["python"]
    second = repetition(first, 2)
    second["client"].update(seconds=first["client"]["seconds"] + 2, failures={"EADDRNOTAVAIL": 5})
    void = repetition(first, 3, verdict=VOID)
    found = summary.summary(store(tmp_path / "r", first, second, void))
    validate(found, "summary", SCHEMA)
    client = found["cells"][0]["statistics"]["client"]
    assert client["seconds"]["median"] == first["client"]["seconds"] + 1
    assert client["cpu_s"]["max"] == sum(first["client"]["cpu_s"].values())
    assert client["max_rss_bytes"]["min"] == first["client"]["max_rss_bytes"]
    assert client["failures"] == {"EADDRNOTAVAIL": 5, "EMFILE": 985}
    assert summary.merge([real["oha"]])["client"] is None
    text = summary.open_metrics(found)
    samples = {(s.name, s.labels.get("cause")): s.value for f in parse(text) for s in f.samples}
    assert samples["lab_client_seconds", None] == client["seconds"]["median"]
    assert samples["lab_client_resident_memory_max_bytes", None] == 52_559_872
    assert samples["lab_client_failures", "EMFILE"] == 985
    assert "nan" not in text.lower()
    assert "None" not in text


def test_answers_of_which_none_is_ok_have_no_latency_to_show(
    real: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    none = histograms.empty()
    refused = repetition(real["python"], 1, ok=0, latency_us=histograms.summary(none))
    refused["histogram"]["data"] = histograms.encode(none)
    text = summary.open_metrics(summary.summary(store(tmp_path / "r", refused)))
    names = {s.name for f in parse(text) for s in f.samples}
    assert "lab_goodput_requests_per_second" in names
    assert "lab_latency_seconds" not in names


def test_void_and_calibration_cells_have_no_figures(
    tmp_path: Path, real: dict[str, dict[str, Any]]
) -> None:
    run = store(
        tmp_path / "r",
        repetition(real["oha"], 1, verdict=VOID),
        repetition(real["wrk"], 1, purpose="calibration"),
    )
    text = summary.open_metrics(summary.summary(run))
    names = {s.name for f in parse(text) for s in f.samples}
    assert names == {"lab_valid_repetitions", "lab_void_repetitions"}


@pytest.fixture
def compared(tmp_path: Path, real: dict[str, dict[str, Any]]) -> Path:
    """Five repetitions each of a cell, its twin, and one with half as much goodput."""
    results = []
    for name, factor in (("stock", 1.0), ("stock-twin", 1.0), ("production", 0.5)):
        for number in range(1, 6):
            one = repetition(real["oha"], number, cell_id=name)
            one["purpose"] = "twin" if name.endswith("twin") else "measure"
            one["cell"]["tuning"] = name.removesuffix("-twin")
            one["goodput"] *= factor + number / 1000
            results.append(one)
    run = store(tmp_path / "r", *results)
    asked = {
        "comparisons": [{"by": "tuning", "base": "stock", "head": "production"}],
        "twins": [["stock", "stock-twin"]],
    }
    documents.write(run / "plan.json", documents.dump({"plan": asked}))
    return run


def test_a_summary_compares_what_the_plan_says(compared: Path) -> None:
    found = summary.summary(compared)
    validate(found, "summary", SCHEMA)
    assert documents.dump(summary.summary(compared)) == documents.dump(found)
    (one,) = found["comparisons"]
    assert [row["conclusion"] for row in one["rows"]] == ["lower", "no difference", "no difference"]
    assert [row["metric"] for row in found["noise_floor"]] == ["goodput", "p50", "p99"]
    (compared / "plan.json").write_text('{"plan": {}}')
    found = summary.summary(compared)
    assert (found["comparisons"], found["noise_floor"]) == ([], [])
    validate(found, "summary", SCHEMA)


def test_the_metrics_of_a_comparison(compared: Path) -> None:
    found = summary.summary(compared)
    samples = {
        (s.name, s.labels.get("metric"), s.labels.get("bound")): s
        for family in parse(summary.open_metrics(found))
        for s in family.samples
    }
    row = found["comparisons"][0]["rows"][0]
    apart = samples["lab_difference_ratio", "goodput", None]
    assert (apart.labels["base"], apart.labels["head"]) == ("stock", "production")
    assert apart.value == row["difference"]["value"] < -0.49
    assert samples["lab_difference_bound_ratio", "goodput", "low"].value == row["difference"]["low"]
    assert samples["lab_noise_floor_ratio", "goodput", None].value == row["noise_floor"]
    cells = {s.labels.get("cell") for s in samples.values()} - {None}
    assert "stock-twin" not in cells


def test_what_cannot_be_compared_has_no_metrics(compared: Path) -> None:
    for path in compared.glob("cells/production/*/result.json"):
        documents.write(path, documents.dump({**documents.load(path), "verdict": VOID}))
    found = summary.summary(compared)
    validate(found, "summary", SCHEMA)
    assert {row["why"] for row in found["comparisons"][0]["rows"]} == {
        "no valid repetition of the head: steal"
    }
    names = {s.name for family in parse(summary.open_metrics(found)) for s in family.samples}
    assert "lab_difference_ratio" not in names


LATENCY = dict.fromkeys(histograms.SUMMARY_KEYS, 5.0)
CALIBRATION: dict[str, Any] = {
    "schema": "lab/1",
    "generator": "oha",
    "iperf3": {
        way: {
            "bits_per_second": 1e9,
            "retransmits": 0,
            "seconds": 3.0,
            "cpu_percent": {"local": 50.0, "remote": 60.0},
        }
        for way in ("client_to_server", "server_to_client")
    },
    "ceiling": {
        "requests_per_second": 60_000.0,
        "connections": 64,
        "duration_s": 5.0,
        "client_cpu_busy": 1.0,
        "server_cpu_busy": 0.9,
        "generator": "wrk",
    },
    "jitter_us": LATENCY,
    "floor_us": LATENCY,
    "round_trip_us": {"min": 20.0, "mean": 30.0, "max": 90.0, "mdev": 5.0},
    "clock_offset_s": {"server": -0.001, "client": 0.0},
}
MANIFEST: dict[str, Any] = {
    "schema": "lab/1",
    "run_id": "r",
    "started": "2026-01-01T00:00:00+00:00",
    "finished": None,
    "lab": {"revision": "a" * 40, "dirty": False},
    "command": {"argv": ["ansible-playbook"], "extra_vars": {"rate": 5}},
    "controller": {"python": "3.11"},
    "hosts": {
        "server": {
            "role": "server",
            "cpu_model": "x",
            "cores": 2,
            "cpus": [0],
            "memory_bytes": 1,
            "kernel": "6",
            "os": "Debian 13",
            "virtualisation": "kvm",
            "clock_source": "tsc",
            "governor": None,
            "nofile": 20_000,
            "packages": {"nginx": "1.26"},
        }
    },
    "pins": {"oha": "1.16.0"},
    "plan": {},
}
TUNING: dict[str, Any] = {
    "schema": "lab/1",
    "profile": "p",
    "hosts": {
        "server": [
            {
                "key": "net.core.somaxconn",
                "requested": "4096",
                "before": "128",
                "after": "4096",
                "state": "applied",
                "required": True,
                "reason": "backlog",
            }
        ]
    },
}


@pytest.mark.parametrize(
    ("name", "document", "place", "value"),
    [
        ("calibration", CALIBRATION, ("ceiling", "client_cpu_busy"), 1.5),
        ("calibration", CALIBRATION, ("iperf3", "client_to_server", "retransmits"), -1),
        ("manifest", MANIFEST, ("hosts", "server", "role"), "database"),
        ("manifest", MANIFEST, ("lab", "colour"), "red"),
        ("tuning", TUNING, ("hosts", "server", 0, "state"), "maybe"),
        ("tuning", TUNING, ("hosts", "server", 0, "after"), 4096),
    ],
)
def test_the_schema_names_place_and_value(
    name: str, document: dict[str, Any], place: tuple[Any, ...], value: Any
) -> None:
    validate(document, name, SCHEMA)
    wrong = copy.deepcopy(document)
    inner: Any = wrong
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(SchemaError, match=str(value)) as error:
        validate(wrong, name, SCHEMA)
    assert "/".join(map(str, place[:-1])) in str(error.value)


def test_only_documents_have_a_definition() -> None:
    with pytest.raises(SchemaError, match="part_cell"):
        validate({}, "part_cell", SCHEMA)
