"""A reverse proxy is a folder: CONTRIBUTING.md, "Adding a reverse proxy"."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from loadlab.hosts import host_in_use
from loadlab.plan import check_options
from loadlab.run.errors import PlanError
from loadlab.stacks import reverse_proxies, stacks
from loadlab.telemetry import processes, services
from loadlab.telemetry.host_recording import Reading
from loadlab.telemetry.processes import Process, Recording
from loadlab.telemetry.recordings import Served, Window
from tests.unit import builders

ROOT = Path(__file__).parents[2]
OTHER = """
packages: [other]
port: 8090
transports: [tcp]
protocols: [http]
upstream_keepalive: [true, false]
configuration: /etc/other/other.conf
mark: written by the lab
check: other --check
writes: [/run]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("apps", "files"):
        shutil.copytree(ROOT / name, tmp_path / name)
    folder = tmp_path / reverse_proxies.FOLDER / "other"
    folder.mkdir()
    (folder / "reverse_proxy.yml").write_text(OTHER)
    (folder / "other.conf.j2").write_text("listen {{ reverse_proxy_address }}:8090\n")
    return tmp_path


def planned(tree: Path, **options: Any) -> stacks.Stack:
    asked = {"framework": "flask", "reverse_proxy": "other", "generator": "oha", **options}
    values = check_options.options(builders.SPECS, dict.fromkeys(builders.SPECS) | asked)
    stack = stacks.stack(tree, values, None)
    check_options.refuse_cells(values, stack)
    return stack


def test_a_folder_is_all_that_a_plan_needs(tree: Path) -> None:
    stack = planned(tree)
    assert (stack.reverse_proxy, stack.port, stack.transport) == ("other", 8090, "tcp")
    served = reverse_proxies.served(tree, "other", "10.0.0.1")
    # nginx answers the calibration beside it. Nothing counts requests, and there is no log.
    assert served.running == ["nginx", "other"]
    assert (served.url, served.status) == ("http://10.0.0.1:8090", "")
    assert served.units["other"] == "other.service"
    proxies = reverse_proxies.reverse_proxies(tree)
    assert reverse_proxies.proxy_files(proxies)["other"][0] == "/etc/other/other.conf"
    assert host_in_use.ports(proxies, 1)["8090"] == "other.service"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"transport": "unix"},
            "reverse_proxy: other asks the application server with transport=tcp and not "
            "transport=unix. Leave transport out, or choose another reverse_proxy.",
        ),
        ({"server": "uwsgi", "protocol": "uwsgi"}, "with protocol=http and not protocol=uwsgi."),
        ({"tls": True}, "tls: with reverse_proxy=other nothing speaks it."),
        (
            {"framework": "nginx"},
            "nginx is answered by nginx itself, which reverse_proxy=other leaves out.",
        ),
        (
            {"reverse_proxy": "third"},
            "reverse_proxy: 'third' is not known. There are: nginx, other, none. A new one is a "
            "folder in files/reverse_proxies/.",
        ),
    ],
)
def test_what_it_cannot_do_is_refused(tree: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError) as refusal:
        planned(tree, **options)
    assert words in str(refusal.value)


def test_its_cpu_time_is_that_of_the_reverse_proxy() -> None:
    groups = [
        {"other": {7: Process(1, 100 * t, 0, threads=1, pages=1)}, "nginx": {}} for t in range(4)
    ]
    recording = Recording(
        100, 4096, [processes.Reading(float(t), group) for t, group in enumerate(groups)]
    )
    window = Window(0.0, 3.0, warmed=False)
    used = processes.summarise(recording, window, 2, (), Served("other")).reverse_proxy
    assert used is not None
    assert used.cpu_s == pytest.approx(3)
    group = "/system.slice/other.service"
    readings = [Reading(float(t), own={group: 500_000 * t}) for t in range(4)]
    spent_s = services.spent_s(readings, window, Served("other"))
    assert spent_s["reverse_proxy"] == pytest.approx(1.5)


@pytest.mark.parametrize("name", reverse_proxies.reverse_proxies(ROOT))
def test_a_folder_has_the_template_of_its_configuration(name: str) -> None:
    own = reverse_proxies.reverse_proxy(ROOT, name)
    template = ROOT / reverse_proxies.FOLDER / name / f"{Path(own.configuration).name}.j2"
    assert "reverse_proxy_address" in template.read_text()
    assert own.connections in (None, *own.settings)
