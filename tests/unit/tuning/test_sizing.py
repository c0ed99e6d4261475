from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.hosts.probe import HostProbe
from loadlab.run.catalog import load_yaml
from loadlab.run.errors import PlanError
from loadlab.stacks.reverse_proxies import reverse_proxy
from loadlab.tuning import profiles, sizing
from loadlab.tuning.profiles import Computed, HostSetting, ServiceSetting
from loadlab.tuning.sizing import OpenFiles, Pool, PooledStack, Sizes
from tests.unit import builders, stand_ins

ROOT = Path(__file__).parents[3]
PROFILES = {
    path.stem: profiles.tuning_profile(ROOT, path.stem)
    for path in sorted((ROOT / "files" / "tuning").glob("*.yml"))
}
MANIFESTS: dict[str, Any] = {
    path.parent.name: load_yaml(path) for path in ROOT.glob("apps/*/app.yml")
}
SIZE = Sizes(memory=4096, cores=4, connections=44)


def host(cores: int = 4, memory_mb: int = 8192, booted: int = 100) -> HostProbe:
    cpus = list(range(cores))
    found = replace(
        builders.host_probe().manifest, cores=cores, cpus=cpus, memory_bytes=memory_mb * 1024**2
    )
    return builders.host_probe(booted=booted, cpus=cpus, manifest=found)


def stack(workers: int | None = None, threads: int = 1, pool_size: int = 10) -> PooledStack:
    app = Pool(pool_size=pool_size)
    return PooledStack(framework="aiohttp", app=app, workers=workers, threads=threads)


def setting(name: str, value: str) -> ServiceSetting:
    return ServiceSetting(name=name, value=value, reason="why")


def test_the_sizes_of_a_host() -> None:
    one = host()
    assert sizing.sizes(one, [one, host(booted=102)], [], 10) == replace(SIZE, memory=8192)
    # Hosts on one machine share its memory.
    assert sizing.sizes(one, [one, host(booted=101)], [], 10).memory == 4096
    # The largest pool, whatever the stack's own is: all have the same PostgreSQL.
    assert sizing.sizes(one, [one], [stack(8, 5, 0), stack()], 10).connections == 120


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (16384, "16384"),
        ("1024\t65535 ", "1024 65535"),
        ("off", "off"),
        (Computed(of="cores"), "4"),
        (Computed(of="memory", times=0.25, unit="MB"), "1024MB"),
        (Computed(of="memory", times=0.25, at_most=512, unit="MB"), "512MB"),
        (Computed(of="memory", times=0.001, at_least=8, unit="MB"), "8MB"),
        (Computed(of="connections", plus=40, at_least=200), "200"),
        (Computed(of="cores", times=0.3), "1"),
    ],
)
def test_value_is_sized_to_the_host(wanted: Any, expected: str) -> None:
    assert sizing.value(wanted, SIZE) == expected


def test_settings_of_a_host_are_those_of_its_groups_with_its_values() -> None:
    channels = Computed(of="cores")
    profile = replace(
        PROFILES["stock"],
        sysctl=[HostSetting(key="a", value=1, hosts=["servers"], reason="why")],
        machine=[HostSetting(key="b", value=channels, hosts=["servers", "clients"], reason="why")],
        postgresql=[setting("jit", "off")],
    )
    for groups, expected in (
        (["lab", "servers"], [("a", "1"), ("b", "4")]),
        (["lab", "clients"], [("b", "4")]),
        (["lab"], []),
    ):
        settings = sizing.machine_settings(profile, groups, SIZE)
        assert [(entry.key, entry.value) for entry in settings] == expected
    (jit,) = sizing.postgresql_settings(profile, SIZE)
    assert (jit.key, jit.value, jit.required) == ("postgresql.jit", "off", True)


@pytest.mark.parametrize("cores", [1, 2, 8, 64, 256])
@pytest.mark.parametrize("memory_mb", [512, 4096, 24_000, 1_000_000])
def test_production_fits_every_host(cores: int, memory_mb: int) -> None:
    size = sizing.sizes(host(cores, memory_mb), [], [], sizing.largest_pool(ROOT))
    settings = sizing.postgresql_settings(PROFILES["production"], size)
    found = {entry.key.removeprefix("postgresql."): str(entry.value) for entry in settings}
    mb = {name: int(found[name].removesuffix("MB")) for name in found if found[name][-2:] == "MB"}
    assert 128 <= mb["shared_buffers"] <= max(128, memory_mb // 4)
    assert mb["shared_buffers"] <= mb["effective_cache_size"] <= max(256, memory_mb // 2)
    assert mb["work_mem"] * 250 <= max(1000, memory_mb)
    assert int(found["max_connections"]) >= 200
    assert int(found["max_parallel_workers"]) <= int(found["max_worker_processes"])


@pytest.mark.parametrize("app", sorted(MANIFESTS))
@pytest.mark.parametrize("cores", [1, 2, 16, 128])
@pytest.mark.parametrize("workers", [None, 1, 300])
@pytest.mark.parametrize("together", [1, 3])
def test_the_pools_of_all_workers_fit_productions_max_connections(
    app: str, cores: int, workers: int | None, together: int
) -> None:
    run = replace(stack(workers, 4, MANIFESTS[app]["pool_size"]), framework=app)
    size = sizing.sizes(host(cores), [], [run], sizing.largest_pool(ROOT), together)
    admitted = sizing.max_connections(PROFILES["production"], size)
    assert sizing.pools_refusal(run, cores, admitted, "production", together) is None
    # One more connection for each thread, as an endpoint without a pool opens it.
    pools = sizing.workers(run, cores) * (run.app.pool_size + run.threads)
    assert together * pools + sizing.RESERVED <= admitted


def test_pools_that_do_not_fit_are_refused_with_value_limit_and_remedy() -> None:
    assert (admitted := sizing.max_connections(PROFILES["stock"], SIZE)) == 100
    assert sizing.pools_refusal(stack(9), 1, admitted, "stock") is None
    assert sizing.pools_refusal(stack(pool_size=0), 500, admitted, "stock") is None
    assert sizing.pools_refusal(stack(), 10, admitted, "the tuning profile stock") == (
        "aiohttp would open 10 workers x 10 = 100 database connections, more than "
        "max_connections = 100 of the tuning profile stock leaves (96; 4 are kept for the "
        "superuser and for telemetry). Give fewer with -e workers=9, lower pool_size in "
        "apps/aiohttp/app.yml, or choose another profile with -e tuning=<name>."
    )
    assert "3 workers x 10 = 30 database connections" in str(
        sizing.pools_refusal(stack(1), 1, 30, "stock", together=3)
    )
    assert sizing.max_connections(PROFILES["gasc-2015"], SIZE) == 1000


def test_open_files_are_raised_where_the_profile_gives_too_few() -> None:
    key = "limit.systemd.nofile"
    limit = [HostSetting(key=key, value=65536, hosts=["servers"], reason="why")]
    assert sizing.open_files([], 64) == OpenFiles(needed=1024, raised=False)
    assert sizing.open_files([], 2000) == OpenFiles(needed=4512, raised=True)
    assert sizing.open_files(limit, 2000) == OpenFiles(needed=65536, raised=False)
    assert sizing.open_files(limit, 60000) == OpenFiles(needed=120512, raised=True)


def test_nginx_has_room_for_every_connection() -> None:
    nginx = reverse_proxy(ROOT, "nginx")
    asked = [setting("worker_connections", "1000"), setting("multi_accept", "on")]
    assert sizing.proxy_settings([], 64, nginx) == []
    assert sizing.proxy_settings(asked, 400, nginx) == asked
    for settings in ([], asked):
        found = {entry.name: entry.value for entry in sizing.proxy_settings(settings, 2000, nginx)}
        assert found == {"worker_connections": "4128"} | (
            {"multi_accept": "on"} if settings else {}
        )


def test_only_stacks_and_profiles_that_meet_are_held_against_each_other() -> None:
    stacks = {"small": stack(2), "large": stack(20)}
    planned = [("small", "stock"), ("large", "production")]

    def refusals() -> list[str]:
        return sizing.pools_refusals(stacks, PROFILES, planned, host(), sizing.largest_pool(ROOT))

    assert refusals() == []
    planned += [("large", "stock"), ("large", "stock")]
    (told,) = refusals()
    assert told.startswith("aiohttp would open 20 workers x 10 = 200 database connections")
    assert "of the tuning profile stock leaves" in told


def test_largest_pool_names_an_application_whose_manifest_is_malformed(tmp_path: Path) -> None:
    manifests = {"short": "module: app:app", "deep": "pool_size: 7"}
    stand_ins.tree(tmp_path, {f"apps/{name}/app.yml": text for name, text in manifests.items()})
    assert sizing.largest_pool(tmp_path) == 7
    stand_ins.tree(tmp_path, {"apps/torn/app.yml": "pool_size: many"})
    with pytest.raises(PlanError, match=r"^apps/torn/app\.yml: Expected `int`, got `str`"):
        sizing.largest_pool(tmp_path)
