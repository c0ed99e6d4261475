"""The options of stack and load: no nginx, TLS, HTTP/2, headers, a profile, another Python."""

import json
import shlex
from collections import Counter

import pytest

from .conftest import ROOT, SERVER, TESTED, playbook, results, run, ssh, stages, study_file

pytestmark = pytest.mark.lab

SHORT = {"duration": 3, "warmup": 1, "rate": 200, "endpoint": "index"}
HEADER = "a 'quoted' \"word\" $HOME `id` %n"
SEEN = "/var/log/nginx/seen.log"
# nginx tells of each request over TLS what the application was told.
TELL = (
    r"s#access_log off;#log_format seen escape=none '$server_protocol|$ssl_protocol|$http_x_lab';"
    rf" access_log {SEEN} seen if=$https;#"
    "\n"
    # The sampled log of the application's requests would be in its place there.
    r"s#access_log /var/log/nginx/loadlab.log [^;]*;##"
)


def test_clients_ask_the_application_server_itself(run_id: str) -> None:
    """Gunicorn and uWSGI here; aiohttp's own server is what test_studies.py's clients ask."""
    cells = {
        "kept": {"server": "gunicorn", "generator": "metronome"},
        # One connection for each request.
        "unkept": {"server": "uwsgi", "generator": "wrk", "upstream_keepalive": False},
    }
    with study_file(cells, **SHORT, framework="plain_wsgi", reverse_proxy="none") as name:
        run("lab.yml", study=name, run_id=run_id)
    assert f"{TESTED['server']}:8000" in ssh(SERVER, f"ss -Hltnp src {TESTED['server']}")
    found = results(run_id)
    assert set(found) == {"metronome index", "wrk index"}
    for one in found.values():
        assert one["error"] is None
        assert one["ok"] == one["responses"] > 0
        assert sum(one["errors"].values()) == 0
        assert one.get("reverse_proxy_requests") is None
        assert one["cell"]["reverse_proxy"] == "none"


def test_tls_http2_headers_and_a_profile(run_id: str) -> None:
    asked = {
        **SHORT,
        "framework": "aiohttp",
        "tls": True,
        "http2": True,
        "headers": {"X-Lab": HEADER},
        "profile": True,
        # Long enough for the samples of who holds the lock.
        "duration": 6,
        "run_id": run_id,
    }
    run(*stages("hosts", "tune", "deploy"), **asked)
    ssh(SERVER, f"sed -i {shlex.quote(TELL)} /etc/nginx/nginx.conf && systemctl restart nginx")
    run(*stages("load", "collect", "report"), **asked)
    paths = (ROOT / "results" / run_id).glob("cells/*/rep-*/result.json")
    found = {one["purpose"]: one for one in (json.loads(p.read_text()) for p in paths)}
    assert set(found) == {"measure", "closed_loop", "py_spy"}
    assert [one["error"] for one in found.values()] == [None, None, None]
    for one in (found["measure"], found["py_spy"]):
        assert one["requests"] == one["reverse_proxy_requests"] == one["scheduled"] - one["unsent"]
        assert sum(one["errors"].values()) == 0
    wrk = found["closed_loop"]
    assert (
        0 <= wrk["reverse_proxy_requests"] - wrk["requests"] <= wrk["cell"]["load"]["connections"]
    )

    seen = Counter(ssh(SERVER, f"cat {SEEN}").splitlines())
    assert set(seen) == {f"HTTP/{v}|TLSv1.3|{HEADER}" for v in ("1.1", "2.0")}
    # The measured loads, their warm-ups, and what looked at the answer before.
    assert seen[f"HTTP/2.0|TLSv1.3|{HEADER}"] >= 2 * (200 * (3 + 1))
    assert ssh(SERVER, "stat -c '%a %U' /etc/nginx/loadlab/*.key").split() == ["600", "root"]

    # The profile is beside the result and in no statistic.
    profile = found["py_spy"]["py_spy"]
    assert profile["samples"] >= 50
    # 200 requests/s are little for it.
    assert 0.3 < profile["idle_fraction"] < 1
    assert profile["depth_median"] > 1
    assert 0 <= profile["gil_fraction"] < 0.7
    assert "gil.txt" in found["py_spy"]["raw_sha256"]
    assert found["measure"].get("py_spy") is None
    folder = ROOT / "results" / run_id
    assert "py_spy" not in (folder / "metrics.prom").read_text()
    page = (folder / "report.html").read_text()
    assert "Flame graph" in page
    assert "samples, 100.0 %" in page


def test_pypy_answers_the_requests_of_other_boards(run_id: str) -> None:
    """A page, a GET, a POST and a PUT, of an application without packages in C."""
    endpoints = ["fortunes", "crud_read", "crud_create", "crud_update"]
    asked = {**SHORT, "endpoint": ",".join(endpoints), "curve": False, "run_id": run_id}
    run("lab.yml", **asked, framework="plain_wsgi", driver="psycopg", python="pypy3")
    main = "$(systemctl show --value -p MainPID loadlab-app)"
    assert "pypy3" in ssh(SERVER, f"readlink /proc/{main}/exe")
    found = results(run_id)
    assert set(found) == {f"{name} {each}" for name in ("metronome", "wrk") for each in endpoints}
    for one in found.values():
        assert one["error"] is None
        assert one["ok"] == one["responses"] > 0
        assert one["cell"]["python"] == "pypy3"


def test_local_hosts_are_refused_a_trace(run_id: str) -> None:
    process = playbook("lab.yml", **SHORT, framework="aiohttp", trace=True, run_id=run_id)
    output, _ = process.communicate(timeout=600)
    assert process.returncode != 0
    assert (
        "server: trace=true needs bpftrace, which cannot run there: it is a container "
        "(systemd-nspawn), which may not call bpf(2). Leave trace out, or use a machine of its "
        "own. Nothing was changed on the hosts."
    ) in " ".join(output.split())
