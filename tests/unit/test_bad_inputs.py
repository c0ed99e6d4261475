"""What a user may type wrongly, and the words with which it is refused. No row needs hosts or root.

What Python decides is asked of the functions that the playbooks call; a few rows go through
ansible-playbook, one for each way in which a refusal reaches the user.
"""

import datetime
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from ansible.parsing.splitter import parse_kv
from jinja2.nativetypes import NativeEnvironment
from msgspec.structs import replace

from loadlab import __main__ as commands
from loadlab.bundle import original as originals
from loadlab.hosts import local_lab, pairs
from loadlab.kinds import plan_run as plans
from loadlab.plan import check_options, user_options
from loadlab.plan.plan_document import items
from loadlab.plan.user_options import Request
from loadlab.run import documents
from loadlab.run.catalog import load_yaml
from tests.unit import builders, plays

ROOT = Path(__file__).parents[2]
SPECS = builders.SPECS
NOW = datetime.datetime(2026, 11, 20, 17, 16, 47)
HERE = "containers of this machine with Debian trixie"

# Nobody listens at either.
AWAY = {"ansible_host": "127.0.0.1", "ansible_port": 1, "test_address": "192.0.2.1"}
AWAY_TOO = {**AWAY, "ansible_host": "127.0.0.2"}
# Inventories, {group: {host: its variables}}, by the word after -i.
INVENTORIES: dict[str, dict[str, dict[str, Any]]] = {
    "away": {"servers": {"server": {**AWAY, "mine": 1}}, "clients": {"client": AWAY_TOO}},
    "one-name": {"servers": {"host": AWAY}, "clients": {"host": AWAY}},
    "one-address": {"servers": {"a": AWAY}, "clients": {"b": AWAY}},
    "cut-off": {"servers": {"a": {**AWAY, "internet": False}}, "clients": {"b": AWAY_TOO}},
    "wordy": {"servers": {"a": {**AWAY, "iperf3_seconds": "long"}}, "clients": {"b": AWAY_TOO}},
    "inventory/aws": {"servers": {"server": AWAY}, "clients": {"client": AWAY_TOO}},
    "ipv6": {"servers": {"a": {**AWAY, "test_address": "fd00::1"}}, "clients": {"b": AWAY_TOO}},
    "no-client": {"servers": {"a": AWAY}, "clients": {}},
    "no-host": {"servers": {}, "clients": {}},
    "spare": {"servers": {"a": {}}, "clients": {"b": {}, "c": {}}},
    "nobody": {"servers": {"a": {}}, "clients": {"b": {"serves": "z"}}},
    "uneven": {"servers": {"a": {}, "b": {}}, "clients": {"c": {}, "d": {}, "e": {"serves": "a"}}},
    "unnamed": {"servers": {"a": {}}, "clients": {"b": {}, "c d": {"serves": "a"}}},
    "three": {
        "servers": {"a": {}},
        "clients": {"b": {}, "c": {"serves": "a"}, "d": {"serves": "a"}},
    },
}

# Two requests in 11 s, and a POST.
LOG = ROOT / "tests/fixtures/access.csv"
PNG = next((ROOT / "docs/images").glob("*.png"))
CELL = {"name": "one", "options": {"framework": "aiohttp", "endpoint": "index"}}
TWO = {"name": "two", "options": {"framework": "aiohttp", "endpoint": "index,hello"}}
CLAIM = {"statement": "so", "metric": "goodput", "at_most": 1}


def of_rate(rate: Any) -> dict[str, Any]:
    return {"cells": [{**CELL, "options": {**CELL["options"], "rate": rate}}, TWO]}  # type: ignore[dict-item]


def following(framework: str) -> dict[str, Any]:
    return {"name": framework, "options": {"framework": framework, "replay": str(LOG)}}


STUDIES: dict[str, dict[str, Any]] = {
    "cell": {"cells": [CELL], "scales": {"smoke": {}, "large": {"duration": 60}}},
    "zero": of_rate(0),
    "hollow": {"cells": [{**CELL, "options": {**CELL["options"], "connections": []}}]},  # type: ignore[dict-item]
    "typo": {"cells": [{**CELL, "options": {"raet": 1}}]},
    "loaded": {"cells": [{**CELL, "options": {"framework": "aiohttp", "load": "crud"}}]},
    "old": {"cells": [{**CELL, "options": {"framework": "aiohttp", "front": "none"}}]},
    "mute": {"cells": [CELL], "claims": [{"statement": "so"}]},
    "ghost": {"cells": [CELL], "claims": [{**CLAIM, "cell": "z"}]},
    "several": {"cells": [TWO], "claims": [{**CLAIM, "cell": "two"}]},
    "unbound": {
        "cells": [CELL],
        "claims": [{"statement": "so", "metric": "goodput", "cell": "one"}],
    },
    "half": of_rate({"fraction": 0.8}),
    "nothing": of_rate({"fraction": 0, "of": ["two"]}),
    "of-nobody": of_rate({"fraction": 0.8, "of": ["nobody"]}),
    "of-several": of_rate({"fraction": 0.8, "of": ["two"]}),
    "paths": {"cells": [following("aiohttp"), following("fault_server")]},
    "one-log": {"cells": [CELL, {**TWO, "options": {"framework": "aiohttp", "replay": str(LOG)}}]},
    "short-log": {"cells": [following("aiohttp")], "options": {"duration": 10}},
    "rated-log": {"cells": [following("aiohttp")], "options": {"rate": 10}},
}

# Of a file; and what a refusal shows of it.
LONG = 256 * "n"
PATH = f"{59 * 'n'}…', of 256 characters, is no path of a file. Give one with at most 255 bytes in"
# A file that opens and cannot be read.
MEMORY = "/proc/self/mem"
GENERATORS = "metronome, oha, wrk2, wrk, python-sync, python-async, python-bounded"
A = "lab.yml -e framework=aiohttp"
F = "lab.yml -e framework=flask"
AB = "playbooks/ab.yml -e framework=aiohttp -e endpoint=hello"
B = f"{AB} -e base=workers=1 -e head=workers=2"
X = f"{A} -e mix=index:1,agents:1"
L = f"{A} -e replay={LOG}"
M = "playbooks/matrix.yml -e endpoint=hello -e framework"
COMMANDS: list[tuple[str, str]] = [
    # Names.
    (f"{A} -e durration=5", "durration: nothing reads a variable of this name. Did you mean dura"),
    (f"""{A} -e '{{"conections": 5}}'""", "Did you mean connections?"),
    (f"{A} -e colour=blue", "colour: nothing reads a variable of this name. The main ones are:"),
    (f"{A} -e plan=x", "plan: nothing reads a variable of this name."),
    (f"{A} -e 'rat=5 worker=2'", "worker: nothing reads a variable of this name. Did you mean wo"),
    (f"{A} -e oha_binray=/bin/x", "Did you mean oha_binary? All are described in roles/*/meta/"),
    ("playbooks/teardown.yml -e bse=a", "bse: nothing reads a variable of this name. Did you mean"),
    (f"{A} -e iperf3_seconds=long", "iperf3_seconds: 'long' is not a whole number. It stands for:"),
    (f"{A} -e local_hosts_fresh=maybe", "local_hosts_fresh: 'maybe' is neither true nor false."),
    (f"{A} -e local_hosts_subnet=10.777", "'10.777' is not the first two numbers of private IPv4"),
    ("playbooks/unmonitor.yml -e monitoring_state=/etc", "/etc is not the lab's: its mark, the fi"),
    (f"{A} -e aws_hosts_image=arch", "aws_hosts_image: 'arch' is not known. There are: debian-12"),
    (f"{A} -e local_hosts_kind=vm", "'vm' is not known. There are: container, machine."),
    (f"{A} -e local_hosts_release=sid", "'sid' is not known. There are: trixie, bookworm, noble."),
    # Names that options had before.
    (
        f"{A} -e front=none -e reuse=no",
        "front is now called reverse_proxy, reuse is now called python_keepalive. Use the new name "
        "in -e; the values are the same.",
    ),
    ("playbooks/hosts.yml -e internet=false", "internet is now called hosts_online. Use the new"),
    ("lab.yml -i inventory/aws -e yes=true", "yes is now called aws_hosts_auto_approve."),
    ("playbooks/hosts.yml -i wordy", "iperf3_seconds: 'long' is not a whole number. It stands for"),
    ("playbooks/hosts.yml -i cut-off", "internet is now called hosts_online. Use the new name in"),
    ("lab.yml -e study=huge", f"files/studies/huge.yml: {18 * '9'}… has 400 digits, and a who"),
    ("lab.yml -e study=torn", "files/studies/torn.yml: while parsing a flow node"),
    ("lab.yml -e study=old", "study old, cell one: front is now called reverse_proxy. Use the new"),
    # Empty.
    (f"{A} -e endpoint=", "endpoint: it is empty. There are: agents, agents_with_orm,"),
    ("lab.yml -e framework=", "framework: it is empty. There are: aiohttp, api_hour, bottle,"),
    (f"{A} -e generator=", f"generator: it is empty. There are: {GENERATORS}. Give one, or leave"),
    (f"{A} -e rate=", "rate: it is empty. Give a number from 0.1 to 1000000 requests per second, "),
    (f"{A} -e tls=", "tls: it is empty. There are: true, false. Give one, or leave tls out."),
    (f"{A} -e run_id=", "run_id: it is empty. Give -e run_id=<value>, or leave run_id out."),
    (f"""{A} -e '{{"tuning": []}}'""", "tuning: it is empty. There are: before-linux-5.4, few-por"),
    ("playbooks/study.yml -e study=", "study: it is empty. There are: "),
    (f"{A} -e endpoint=,", "endpoint: there is none to measure. Give one or several of aiohttp's"),
    # Numbers, truths, choices.
    (f"{A} -e rate=0", "rate: 0 is out of range. Give a number from 0.1 to 1000000 requests per s"),
    (f"{A} -e rate=1,fast", "rate: 'fast' is not a number"),
    (
        f"""{A} -e '{{"rate": {{"fraction": 0.5, "of": ["x"]}}}}'""",
        "rate: a fraction of a saturation is for the cells of a study's file. Give a number of",
    ),
    (f"{A} -e rate=,", "rate: '' is not a number"),
    (f"{A} -e connections=2.5", "connections: '2.5' is not a whole number. Give a number from 1"),
    (f"{A} -e tls=maybe", "tls: 'maybe' is neither true nor false. Give -e tls=true."),
    (f"{A} -e generator=ab", f"generator: 'ab' is not known. There are: {GENERATORS}."),
    (f"{A} -e reverse_proxy=apache", "reverse_proxy: 'apache' is not known. There are: nginx, non"),
    # Files that are not there.
    ("lab.yml", "framework: none was given. Give one with -e framework=<name>. There are: aiohttp"),
    ("lab.yml -e framework=nosuch", "framework: 'nosuch' is not known. There are: aiohttp, api_h"),
    ("lab.yml -e framework=../files", "framework: '../files' is not known. There are: aiohttp"),
    ("lab.yml -e app=/nowhere", "app: '/nowhere' is no folder. Give a folder with the files "),
    ("lab.yml -e app=files", "files' needs a requirements.txt, a pyproject.toml with [project], o"),
    ("lab.yml -e app=apps/flask -e module=app", "module: 'app' is no module and callable. Give"),
    (f"{A} -e endpoint=/", "endpoint: '/' is not known. There are: agents, agents_with_orm,"),
    (f"{A} -e endpoint=nosuch", "endpoint: 'nosuch' is not known. There are: agents, agents_with"),
    ("lab.yml -e framework=nginx -e endpoint=agents", "endpoint of nginx: 'agents' is not known."),
    ("lab.yml -e framework=twisted -e generator=python-sync", "endpoint: there is none to measur"),
    (f"{A} -e tuning=fast", "tuning: 'fast' is not known. There are: before-linux-5.4, few-ports"),
    (f"{A} -e tuning=stock-without-z", "key of the tuning profile stock: 'z' is not known. There"),
    (f"{A} -e network=wan", "network: 'wan' is not known. There are: continental, deep_queue, "),
    ("playbooks/tune.yml -e network=wan", "network: 'wan' is not known."),
    # Stacks.
    ("lab.yml -e framework=twisted -e server=gunicorn", "Gunicorn has no worker that runs Twiste"),
    (f"{A} -e driver=psycopg2", "driver: aiohttp has no driver psycopg2. It has: asyncpg."),
    (f"{F} -e driver=asyncpg", "driver: flask has no driver asyncpg. It has: psycopg2, psycopg."),
    (f"{F} -e driver=mysql", "driver: 'mysql' is not known. There are: psycopg2, psycopg, asyncpg"),
    ("lab.yml -e framework=golang -e driver=psycopg", "golang has no driver psycopg. It has: none"),
    (f"{F} -e python=2.7", "python: '2.7' is no Python. Give a version such as 3.14 or 3.14.2, "),
    ("lab.yml -e framework=nodejs -e python=3.14", "nodejs is not an application of Python."),
    (f"{F} -e server=uwsgi -e python=3.14", "Debian's package of it has Debian's Python"),
    (f"{F} -e server=native", "flask does not run with server=native: "),
    (f"{F} -e server=caddy", "server: 'caddy' is not known. There are: granian, gunicorn, h"),
    (f"{F} -e server=hypercorn", "server=hypercorn: hypercorn runs no WSGI applications. It run"),
    (f"{F} -e server=waitress -e workers=2", "flask does not run with server=waitress workers=2."),
    (
        "lab.yml -e framework=fastapi -e worker_class=asgi -e backlog=64",
        "fastapi does not run with worker_class=asgi backlog=64.",
    ),
    ("lab.yml -e framework=tornado -e server=uwsgi", "tornado does not run with server=uwsgi on "),
    (f"{A} -e backlog=65535", "backlog: 65535 is more than the tuning profile production admits"),
    (f"{F} -e reverse_proxy=none -e transport=unix", "with transport=tcp and not transport=unix."),
    (
        f"{F} -e reverse_proxy=none -e server=uwsgi -e protocol=fastcgi",
        "with protocol=http and not protocol=fast",
    ),
    ("lab.yml -e framework=nginx -e reverse_proxy=none", "reverse_proxy: nginx is answered by ngi"),
    (f"{F} -e reverse_proxy=none -e upstream_keepalive=no", "upstream_keepalive is of the reverse"),
    # The load.
    (f"{F} -e reverse_proxy=none -e tls=true", "tls: with reverse_proxy=none nothing speaks it. L"),
    (f"{A} -e http2=true", "http2: it is spoken over TLS only. Give -e tls=true with it."),
    (f"{A} -e http2=true -e tls=true -e generator=wrk", "http2: generator=wrk speaks HTTP/1.1 on"),
    (f"{A} -e http2=true -e tls=true -e keepalive=no", "keepalive: HTTP/2 keeps its connections"),
    (f"{A} -e headers=X-Lab", "headers: 'X-Lab' with '' is no header: a name has letters, digit"),
    (f"""{A} -e '{{"headers": {{"Host": "b"}}}}'""", "headers: Host is not to be set, it is the"),
    (f"""{A} -e '{{"headers": ["A: 1", "a: 2"]}}'""", "headers: a is there twice. Give it once."),
    (f"""{A} -e '{{"headers": {{"A": "{"a" * 4096}"}}}}'""", "headers: 4101 bytes in all, at mo"),
    ("lab.yml -e framework=golang -e profile=true", "profile: golang is not written in Python"),
    (f"{A} -e generator=python-sync -e profile=true", "profile: a worker of the application is "),
    (f"{A} -e rate=100,200 -e profile=true", "profile: it is of one load, and a sweep or an slo"),
    (f"{A} -e generator=python-sync -e trace=true", "trace: the server is traced under load, and"),
    (f"{A} -e slo=errors=0 -e trace=true", "trace: it is of one load, and a sweep or an slo goes"),
    (f"{A} -e rate=100,200 -e curve=true", "curve: it cannot be measured: it belongs to one const"),
    (f"{A} -e slo=errors=0 -e curve=true", "curve: it cannot be measured: it belongs to one const"),
    (f"{A} -e generator=wrk -e curve=true", "curve: it cannot be measured: generator=wrk is a clo"),
    (f"{A} -e generator=wrk2 -e curve=true", "generator=wrk2 measures at least 30 s of a rate. Le"),
    ("lab.yml -e study=cell -e curve=true", "curve: it cannot be measured: a study, lesson, com"),
    (f"{F} -e server=uwsgi -e protocol=http -e profile=true", "profile: uWSGI's HTTP router sta"),
    (f"{A} -e generator=wrk2 -e duration=29", "duration: 29 s is too short for generator=wrk2,"),
    (f"{A} -e generator=wrk2 -e rate=0.5", "rate: 0.5 is not a whole number, and generator=wrk2"),
    (f"{A} -e generator=wrk2 -e warmup=2.5", "warmup: 2.5 is not a whole number"),
    (f"{A} -e generator=wrk2 -e rate=1,2.5", "rate: 2.5 is not a whole number"),
    ("playbooks/hosts.yml -e generator=wrk2 -e duration=30.5", "Give -e duration=31, or another"),
    (f"{A} -e connections=open:0", "connections: 'open:0' has no limit from 1 to 60,000. Give it"),
    (f"{A} -e connections=open:many", "-e connections=open:<limit>, or -e connections=open for 10"),
    (f"{A} -e connections=open,64", "connections: 'open' is not a number. Give a number from 1 to"),
    (f"{A} -e connections=open -e generator=wrk2", "connections: generator=wrk2 opens a fixed"),
    (f"{A} -e connections=open -e tls=true -e http2=true", "connections: generator=oha opens a fi"),
    (f"{A} -e connections=open -e keepalive=false", "connections: keepalive=false opens a connect"),
    (f"{B} -e connections=open", "connections: variants are compared in a closed loop, in which n"),
    (f"{M}=aiohttp -e connections=open:9", "connections: candidates are compared in a closed loop"),
    (f"{A} -e arrivals=random", "arrivals: 'random' is none of constant, poisson, gamma:<smoothn"),
    (f"{A} -e arrivals=gamma", "arrivals: 'gamma' has no number, or one out of range. Give a smoo"),
    (f"{A} -e arrivals=gamma:nan", "Give a smoothness from 0.25 to 100, for example -e arrivals="),
    (f"{A} -e arrivals=mmpp:9:2", "arrivals: 'mmpp:9:2' has other numbers than these three: busy"),
    (f"{A} -e arrivals=mmpp:0.5:2:1", "arrivals: 'mmpp:0.5:2:1' has other numbers than these thre"),
    (f"{A} -e arrivals=mmpp:9:-2:1", "arrivals: 'mmpp:9:-2:1' has other numbers than these three:"),
    (f"{A} -e arrivals=mmpp:nan:2:1", "arrivals: 'mmpp:nan:2:1' has other numbers than these thre"),
    (f"{A} -e arrivals=bursts:1", "Give a number of requests from 2 to 10000, for example -e arr"),
    (f"{A} -e arrivals=poisson -e rate=1e6 -e duration=60", "a client holds the due times of 20,0"),
    (f"{A} -e arrivals=poisson -e generator=wrk2", "arrivals: generator=wrk2 sends at a constant"),
    (
        f"{A} -e arrivals=bursts:50 -e rate=4 -e duration=9",
        "has 36 requests, less than a burst. Gi",
    ),
    (f"{A} -e arrivals=bursts:5 -e generator=wrk", "arrivals: 'bursts:5' would change nothing: ge"),
    (f"{A} -e mix=index", "mix: 'index' is no endpoint with its weight, a whole number from 1. Gi"),
    (f"{A} -e mix=index:0,agents:1", "mix: 'index:0' is no endpoint with its weight, a whole numb"),
    (f"{A} -e mix=index:1", "has 1 endpoint, and a mix has 2 to 16. Of one, give -e endpoint=inde"),
    (f"{A} -e mix=index:1,index:2", "mix: index is there twice. Give it once, with one weight."),
    (f"{A} -e mix={','.join(f'e{n}:1' for n in range(17))}", "has 17 endpoints, and a mix has 2 t"),
    (f"{A} -e mix=index:999,agents:2", "add up to 1,001, and each block of so many requests has"),
    (f"{A} -e mix=index:1,nosuch:1", "mix: 'nosuch' is not known. There are: agents,"),
    ("lab.yml -e framework=nginx -e mix=hello:1,agents:1", "mix of nginx: 'agents' is not known."),
    (f"{X} -e endpoint=index", "endpoint: the mix index:1,agents:1 names the endpoints. Leave end"),
    (f"{X} -e generator=wrk2", "mix: 'index:1,agents:1' would change nothing: generator=wrk2 does"),
    (f"{X} -e keep_requests=false", "mix: the kind of a request is in its record, and keep_reques"),
    (f"{X} -e rate=1e6 -e duration=60", "mix: 60,000,000 requests, and a client keeps the records"),
    (f"{X} -e curve=true", "curve: it cannot be measured: its rates follow a closed loop, whose g"),
    (
        f"{X.replace('lab.yml', 'playbooks/ab.yml')} -e base=workers=1 -e head=workers=2",
        "rate: none was given. Without one it is a fraction of what base serves of one kind of",
    ),
    (
        "playbooks/matrix.yml -e framework=django -e mix=index:1,agents:1",
        "mix: candidates are compared with 'index:1,agents:1' side by side alone, and these cannot",
    ),
    (f"{A} -e load=nosuch", "load: 'nosuch' is not known. There are: crud, day, djangobench, s"),
    (f"{A} -e load={LONG[4:]}.yml", f"load: '{PATH}"),
    (f"{A} -e load=./nosuch.yml", "nosuch.yml' is no file. Give a name of files/loads/, or the pa"),
    (f"{A} -e load={ROOT}/files/studies/quick.yml", "quick.yml: Expected `bool | int | float |"),
    (f"{A} -e load={ROOT}/apps/flask/app.yml", "app.yml has description, which is no option of a"),
    (f"{A} -e load=crud -e endpoint=index", "endpoint: the mix crud_read:75,crud_update:15,crud_c"),
    ("playbooks/matrix.yml -e framework=aiohttp -e load=shop", "has no place in a matrix: the can"),
    (f"{A} -e replay={LONG}", f"replay: '{PATH}"),
    (f"{A} -e replay={MEMORY}", f"replay: '{MEMORY}' is no path of a file. Give one that y"),
    (f"{A} -e replay=nosuch.log", "nosuch.log' is no file. Give an access log in nginx's combined"),
    (f"{A} -e speed=2", "speed: '2' is of a log, and there is none. Give one with -e replay=<log>"),
    (f"{L} -e rate=5", "rate: the log of replay has its own. Leave rate or replay"),
    *(
        (
            f"{L} -e {given}",
            f"{given.partition('=')[0]}: '{given.partition('=')[2]}' has no place beside replay",
        )
        for given in ("endpoint=index", "mix=index:1,hello:1", "ramp=1..2", "arrivals=poisson")
    ),
    (f"{L} -e generator=wrk2", "replay: generator=wrk2 follows no log. Give -e generator=metronom"),
    (f"{L} -e keep_requests=false", "replay: the time and the kind of a request are in its record"),
    (f"{L} -e duration=10", "replay: the log lasts 11 s at speed 1, and duration allows 10 s."),
    (f"{L} -e speed=0.1", "replay: at speed 0.1 the log has 0.018 requests per second, and 0.1 is"),
    (f"{L} -e curve=true", "curve: it cannot be measured: its rates follow a clos"),
    ("playbooks/matrix.yml -e framework=aiohttp -e replay=x", "replay: 'x' has no place in a matr"),
    (f"{A} -e ramp=100", "ramp: '100' is no ramp, as it has 1 rate. Give 2 to 1,000 rates from 0 "),
    (f"{A} -e ramp=100..fast", "ramp: '100..fast' is no ramp. Give 2 to 1,000 rates from 0 to 1,"),
    (f"{A} -e ramp=0..0", "ramp: '0..0' asks for no request: its rates are 0, or it has no length"),
    (f"{A} -e ramp=5:10,5:20", "ramp: '5:10,5:20' asks for no request: its rates are 0, or it ha"),
    (f"{A} -e ramp=0:10,-5:20", "ramp: '0:10,-5:20' is no ramp. Give 2 to 1,000 rates from 0 to 1"),
    (f"{A} -e ramp=0:1,9:5,8:5", "ramp: '0:1,9:5,8:5' goes back from second 9 to 8. Give the sec"),
    (f"{A} -e ramp=0:1,1:nan", "ramp: '0:1,1:nan' is no ramp. Give 2 to 1,000 rates from 0 to 1,0"),
    (f"{A} -e ramp=0:0.02,60:0.06", "rate: 0.04 is out of range. Give a number from 0.1 to 100000"),
    (f"{A} -e ramp=0:100,0.5:100", "duration: 0.5 is out of range. Give a number from 1 to 86400"),
    (f"{A} -e overload=true -e rate=1,2", "overload: it cannot be measured: it belongs to"),
    (f"{A} -e overload=true -e generator=wrk", "overload: it cannot be measured: it belongs to"),
    (f"{A} -e overload=true -e generator=oha", "overload: it cannot be measured: generator=oha"),
    (f"{A} -e overload=true -e mix=index:1,agents:1", "overload: it cannot be measured: it fol"),
    (f"{A} -e overload=true -e keep_requests=false", "overload: it cannot be measured: the time"),
    (f"{A} -i three -e overload=true", "overload: it cannot be measured: 3 clients offer the load"),
    (f"{B} -e overload=true", "overload: 'true' has no place beside base and he"),
    ("playbooks/study.yml -e study=quick -e overload=true", "overload: it cannot be measured: a s"),
    (f"{A} -i three -e arrivals=mmpp:9:2:0.5", "arrivals: 3 clients offer the load, and mmpp:9:2:"),
    (f"{A} -e ramp=absent.csv", "ramp: 'absent.csv' cannot be read: No such file or directory. Gi"),
    (f"{A} -e ramp=1..3 -e rate=2", "rate: the ramp 1..3 has a mean rate. Leave rate or ramp out."),
    (f"{A} -e ramp=1..3 -e slo=errors=0", "ramp: an slo searches one rate, and a ramp has many."),
    (f"{A} -e ramp=1..3 -e generator=wrk2 ", "ramp: generator=wrk2 sends at a constant rate alon"),
    # Sweeps and objectives.
    (f"{A} -e rate=1,2 -e connections=1,2", "rate and connections both have several values: 1,2"),
    (f"{A} -e rate=1,2 -e generator=wrk", "rate: 1,2 with generator=wrk, which has no rate"),
    (f"{A} -e connections=1,2 -e generator=python-sync", "python-sync, which makes a number of r"),
    (f"{A} -e rate=1,2 -e slo=errors=0", "rate: 1,2 with slo, which searches the rate"),
    (f"{A} -e connections=1,2 -e slo=errors=0", "connections: 1,2 with slo"),
    (f"{A} -e slo=p99_ms=9,p99_ms=5", "slo: p99_ms is there twice. Give it once."),
    (f"{A} -e generator=wrk -e slo=errors=0", "slo: it is for a rate, and generator=wrk is a cl"),
    (f"{A} -e generator=python-sync -e slo=errors=0", "generator=python-sync makes a number of r"),
    (f"{A} -e rate=0.5 -e slo=errors=0", "rate: 0.5 is below 1, the lowest that a search for slo"),
    (f"{A} -e slo=p98_ms=3", "slo: 'p98_ms' is not known. There are: p50_ms, p90_ms"),
    (f"{A} -e slo=,", "slo: ',' says nothing. Give one or several of p50_ms, p90_ms"),
    (f"{A} -e slo=p99_ms=30000", "slo: p99_ms=30000 is not below the request timeout of 30 s"),
    (f"{A} -e slo=p99_ms=9000 -e request_timeout=5", "slo: p99_ms=9000 is not below the request"),
    (f"{A} -e slo=p99_ms=fast", "slo: p99_ms: 'fast' is not a number. Give milliseconds above 0"),
    (f"{A} -e slo=errors=2", "slo: errors: 2 is out of range. Give a fraction of the requests fr"),
    # What nothing that is measured would read.
    (f"{A} -e requests=10", "requests: '10' would change nothing: generator=metronome does not re"),
    (f"{A} -e requests=10", "python-sync, python-async, python-bounded alone would. Leave request"),
    (f"{A} -e open_files=99", "open_files: '99' would change nothing: generator=metr"),
    (f"{A} -e generator=wrk -e python_keepalive=no", "python_keepalive: 'no' would change nothing"),
    (f"{A} -e generator=wrk -e rate=9", "rate: '9' would change nothing: generator=wrk does not"),
    (f"{A} -e generator=wrk -e keep_requests=yes", "keep_requests: 'yes' would change nothing:"),
    (f"{A} -e generator=wrk -e oha_binary=/x", "oha_binary: it would change nothing: generator="),
    (f"{A} -e generator=python-sync -e connections=9", "connections: '9' would change nothing: "),
    (f"{A} -e generator=python-async -e duration=9", "duration: '9' would change nothing: genera"),
    (f"{A} -e generator=python-async -e keepalive=no", "keepalive: 'no' would change nothing"),
    ("playbooks/hosts.yml -e generator=wrk -e rate=9", "rate: '9' would change nothing"),
    ("lab.yml -e study=paths", "cell fault_server: replay: fault_server has not all paths of the"),
    ("lab.yml -e study=one-log", "study one-log, cell two: replay: a run follows one log at one s"),
    (
        "lab.yml -e study=short-log",
        "cell aiohttp: replay: the log lasts 11 s at speed 1, and durati",
    ),
    (
        "lab.yml -e study=rated-log",
        "study rated-log, cell aiohttp: rate: the log of replay has its ",
    ),
    ("lab.yml -e study=cell -e framework=flask", "framework: 'flask' would change nothing: each "),
    ("lab.yml -e study=cell -e requests=10", "requests: '10' would change nothing: generator=metr"),
    # Variants.
    (f"{AB} -e head=workers=2", "base: none was given. Name what differs from the other options"),
    (f"{AB} -e base=workers=1,workers=4 -e head=workers=2", "base: workers is there twice. Give i"),
    (f"{AB} -e base=workers=1 -e head=kernel=6.12", "head: 'kernel' cannot differ between varia"),
    (f"{AB} -e base=workers=1 -e head=ref=nosuch", "head: git rev-parse failed: fatal: "),
    (f"{AB} -e base=workers=1 -e head={PNG}", f"{PNG} has no option and value a line: it is no te"),
    (f"{B} -e connections=8,16", "connections: variants are compared at one number of connections"),
    ("playbooks/matrix.yml", "framework: none was given. Give one with -e framework=<name>. There"),
    (f"{M}=nginx", "framework: nginx is answered by nginx itself, which has no workers to choose."),
    (f"{M}=flask -e workers=2", "workers: '2' has no place in a matrix: the candidates differ in"),
    (f"{M}=flask -e tuning=stock,production", "tuning: candidates are compared at one tuning. Giv"),
    ("playbooks/matrix.yml -e framework=flask", "endpoint: candidates are compared at one endpoin"),
    (f"{M}=flask -e budget=5m", "budget: 5 min is too little for 24 candidates: it takes 11 min"),
    (f"{B} -e workers=2", "workers: '2' would change nothing: each cell of the comparison has its"),
    (f"{M}=flask -e trace=true", "trace: 'true' has no place in a matrix: a trace belongs to one"),
    (f"{M}=flask -e http2=true", "http2: 'true' has no place in a matrix: the generator of the cl"),
    (f"{M}=flask -e scale=local", "scale: 'local' has no place in a matrix: it is of a study."),
    (f"{M}=flask -e budget=5", "budget: '5' is no time from 30s to 24h."),
    (f"{AB} -e base=app={LONG} -e head=workers=2", f"app: '{PATH}"),
    (f"{AB} -e base={LONG} -e head=workers=2", f"base: '{PATH}"),
    (f"{AB} -e baseline={LONG} -e head=workers=2", f"baseline: '{PATH}"),
    (f"{AB} -e baseline={MEMORY} -e head=workers=2", f"baseline: '{MEMORY}' is no path of a file"),
    (f"{AB} -e baseline=nosuch.json -e head=workers=2", "baseline: 'nosuch.json' is no file."),
    # Studies and lessons.
    ("playbooks/study.yml", "study: none was given. Give one with -e study=<name>. There are:"),
    ("playbooks/lesson.yml", "lesson: none was given. Give one with -e lesson=<name>. There are:"),
    (
        "playbooks/study.yml -e study=certificate -e rate=5000",
        "rate: a certificate knows what its faults do at its own rates. Leave rate out.",
    ),
    ("playbooks/study.yml -e study=nosuch", "study: 'nosuch' is not known. There are: "),
    ("playbooks/lesson.yml -e lesson=nosuch", "lesson: 'nosuch' is not known. There are: buffe"),
    ("lab.yml -e study=cell -e lesson=keepalive", "were both given. Give one."),
    ("playbooks/lesson.yml -e stage=nosuch", "stage: 'nosuch' is not known. There are: run, exer"),
    ("playbooks/lesson.yml -e stage=check", "run_id: none was given, and results/latest names no"),
    ("playbooks/lesson.yml -e stage=check -e run_id=whole", "the run whole is of none. Begin with"),
    ("lab.yml -e study=cell -e scale=huge", "scale of study cell: 'huge' is not known. There ar"),
    ("lab.yml -e study=zero -e scale=smoke", "scale: the study zero has one size. Leave scale"),
    (
        "lab.yml -e study=cell -e budget=5m",
        "budget: '5m' is for variants and candidates. Give it t",
    ),
    (
        "playbooks/lesson.yml -e lesson=keepalive -e budget=5m",
        "budget: '5m' is for variants and ca",
    ),
    (f"{B} -e slo=p99_ms=9", "slo: 'p99_ms=9' has no place beside base and head: all variants a"),
    (
        f"{M}=flask -e arrivals=poisson",
        "arrivals: 'poisson' has no place in a matrix: the candidat",
    ),
    (
        f"{B} -e tls=yes -e http2=yes",
        "http2: 'yes' has no place beside base and head: the generato",
    ),
    (f"{B} -e duration=300", "budget: 3 min is less than a block takes, 5 min, and the first answ"),
    (f"{B} -e duration=300", "needs 4. Give at least -e budget=21m, or a shorter -e duration=."),
    (f"{B} -e duration=86400 -e budget=20m", "needs 4. Give a shorter -e duration=."),
    (f"{B} -e scale=local", "scale: 'local' has no place beside base and head: it is of a study."),
    (f"{A} -e scale=local", "scale: 'local' is of a study only. Give -e study=<name>."),
    ("lab.yml -e study=cell -e rate=0", "study cell, cell one: rate: 0 is out of range"),
    ("lab.yml -e study=zero", "study zero, cell one: rate: 0 is out of range"),
    (
        "lab.yml -e study=hollow",
        "study hollow, cell one: connections: it is empty. Give one or sev",
    ),
    ("lab.yml -e study=typo", "cell one: option: 'raet' is not known. There are: app, arrivals, b"),
    ("lab.yml -e study=loaded", "cell one: option: 'load' is not known. There are: app, arrivals,"),
    ("lab.yml -e study=mute", "files/studies/mute.yml: Object missing required field `metric`"),
    ("lab.yml -e study=ghost", "study ghost: the claim 'so' names 'z', which stands for 0 cells"),
    ("lab.yml -e study=several", "2 cells and not one. Give its cell one endpoint and one tuning."),
    ("lab.yml -e study=unbound", "at_least or at_most wrongly"),
    ("lab.yml -e study=half", "rate: {'fraction': 0.8} is no fraction of a saturation: Object"),
    ("lab.yml -e study=nothing", "Expected `float` > 0.0 - at `$.fraction`. Give fraction, above"),
    ("lab.yml -e study=of-nobody", "'nobody' is not known. There are: one, two."),
    ("lab.yml -e study=of-several", "rate: of: 'two' is no one cell that a closed loop can satu"),
    # Runs.
    (f"{A} -e run_id=../escape", "run_id: '../escape' cannot name a folder in results/."),
    (f"{A} -e run_id=latest", "run_id: 'latest' cannot name a folder in results/. Give 1 to 64 le"),
    ("lab.yml -e run_id=nosuch", "run_id: 'nosuch' is not in results/. There are, the newest fir"),
    ("lab.yml -e run_id=nosuch", "or begin this one with -e framework=<name>."),
    ("playbooks/study.yml -e run_id=nosuch", "or begin this one with -e study=<name>."),
    *(
        (f"playbooks/{stage}.yml {words} -e run_id=nosuch", "run_id: 'nosuch' is not in results/.")
        for stage, words in (
            ("report", ""),
            ("collect", ""),
            ("calibrate", "-e framework=aiohttp"),
            ("load", "-e framework=aiohttp"),
            ("deploy", ""),
            ("tune", ""),
            ("untune", ""),
        )
    ),
    ("playbooks/report.yml", "run_id: none was given, and results/latest names no run. There are,"),
    ("playbooks/load.yml", "or begin one with lab.yml and -e framework=<name>."),
    ("lab.yml -e run_id=done -i away", f"run_id: 'done' was begun on {HERE}, and would go on wit"),
    ("lab.yml -e run_id=empty -i three", "run_id: 'empty' was begun with 1 client to a server, a"),
    (
        "lab.yml -e run_id=done -e study=cell",
        "run_id: 'done' is a run of lab.yml, and would become",
    ),
    (
        f"{B} -e run_id=done",
        "of playbooks/ab.yml. Give another -e run_id=<name>, or go on with ansib",
    ),
    (
        "playbooks/load.yml -e run_id=done -e study=cell",
        "one of playbooks/study.yml -e study=cell. ",
    ),
    # A run to repeat.
    (f"{A} -e like=", "like: it is empty. Give -e like=<value>, or leave like out."),
    ("lab.yml -e like=nosuch", "like: 'nosuch' is neither a bundle nor a run. Give the path of an"),
    ("lab.yml -e like=~nosuch/x.tar.gz", "like: '~nosuch/x.tar.gz' is neither a bundle nor a run"),
    (f"lab.yml -e like={MEMORY}", f"like: '{MEMORY}' is no path of a file. Give one that y"),
    (f"lab.yml -e like={ROOT}/README.md", "README.md' does not begin as a bundle does. It is refu"),
    ("lab.yml -e like=done", "like: the run 'done' has no manifest.json: it was not finished. Fin"),
    ("lab.yml -e like=older", "like: the run 'older' cannot be read: "),
    ("lab.yml -e like=older", "has schema lab/1, and this version of the lab reads"),
    ("lab.yml -e like=gone", "like: the run gone cannot be repeated here. study: 'removed' is not"),
    ("lab.yml -e like=whole -e run_id=done", "like: it begins a new run, and run_id: 'done' has b"),
    ("lab.yml -e like=whole -e run_id=whole", "like: it begins a new run, and run_id: 'whole' has"),
    ("lab.yml -e like=whole -e rate=0", "cannot be repeated here. rate: 0 is out of range. Give a"),
    ("lab.yml -e like=whole -e study=cell", "ran no study, and study: 'cell' was given. Give one "),
    ("playbooks/study.yml -e like=whole", "study: none was given. Give one with -e study=<name>."),
    ("lab.yml -e like=whole -i three", "with 1 client to a server, and the inventory has 3. Give"),
    ("playbooks/load.yml -e like=whole", "like: it begins a new run, and this stage goes on with"),
    # Inventories.
    (f"{A} -i one-name", "has the host host in both groups, servers and clients. Two on one mach"),
    (f"{A} -i one-address", "has the hosts a and b at one address, 127.0.0.1."),
    (f"{A} -i ipv6", "has the host a with test_address: 'fd00::1', an IPv6 address. Load, iperf3"),
    (f"{A} -i no-client", "has 1 host in the group servers and 0 in clients; the lab needs a cl"),
    (f"{A} -i no-host", "has no hosts in the group servers and 0 in clients"),
    (f"{A} -i spare", "has 1 host in the group servers and 2 in clients"),
    (f"{A} -i nobody", "has the client b with serves: 'z', which is no host of the group servers"),
    (f"{A} -i uneven", "has not as many clients to each server (a 2, b 1)."),
    (f"{A} -i unnamed", "has the client 'c d', which cannot name a folder"),
    (f"{A} -i three -e connections=2", "connections: 2 cannot be split over the 3 clients of a se"),
    (f"{A} -i three -e generator=wrk2 -e rate=2", "rate: 2 cannot be split over the 3 clients"),
    (f"{A} -i three -e arrivals=gamma:0.5", "arrivals: 3 clients offer the load, and gamma:0.5 of"),
    (f"{A} -i three -e generator=python-sync", "generator: python-sync is itself what is measured"),
]

# python -m loadlab, which touches no host.
LOADLAB: list[tuple[str, str]] = [
    ("show", "run_id: 'latest' is not in results/. There are, the newest first: "),
    ("show ../x", "run_id: '../x' is not in results/."),
    ("compare", "base: none was given. There are, the newest first: "),
    ("compare done", "head: none was given. There are, the newest first: "),
    ("compare ../x done", "base: '../x' is no run with a summary.json in results/. There are, the"),
    ("compare done done", "base and head: 'done' was given twice. Give each run once."),
    ("compare done ../x", "Give two: python -m loadlab compare <base> <head>, or several a side"),
    ("compare done cut", "base: 'done' and head: 'cut' have no cell in common."),
    ("bundle", "run_id: 'latest' has no plan.json, manifest.json"),
    ("bundle done", "run_id: 'done' has no manifest.json, report.html and"),
    ("bundle ../x", "run_id: '../x' cannot name a folder in results/"),
    ("bundle cut", "run_id: 'cut' was cut off: 1 repetition without a "),
    ("bundle reported --sign /nosuch", "sign: '/nosuch' is not a file. Give your private key, for"),
    (f"bundle reported --sign {ROOT}/README.md", "README.md' is not a private key of SSH; ssh-key"),
    (f"verify {ROOT}/README.md --signers /nosuch", "signers: '/nosuch' is not a file. Give a file"),
    ("verify", "bundle: none was given. Give the path of an archive that python -m loadlab bundle"),
    ("verify nosuch", "bundle: 'nosuch' is not a file."),
    (f"verify {MEMORY}", f"bundle: '{MEMORY}' is no path of a file. Give one that you may read"),
    (f"verify {ROOT}/README.md --signers {MEMORY}", f"signers: '{MEMORY}' is no path of a file."),
    (f"verify {ROOT}/README.md", "does not begin as a bundle does. It is refused; nothing of it"),
    ("grade", "bundles: '' is no folder with bundles (*.tar.gz). Give the folder that has them."),
]

# Through ansible-playbook; of these a user sees nothing else, and nothing is left behind.
PROCESSES: list[tuple[str, list[str]]] = [
    (f"{A} -e durration=5", ["durration: nothing reads a variable of this name. Did you mean dur"]),
    (
        f"{A} -e generator=wrk2",
        [
            "wrk2 is in no package of Debian",
            "-e wrk2_binary=",
            "two machines of yours that have wrk2",
            "generator=metronome",
        ],
    ),
    (
        f"{A} -i away -e generator=wrk2 -e wrk2_binary=/bin/true",
        ["wrk2_binary: '/bin/true' is not wrk2: it has no option --rate"],
    ),
    (
        "playbooks/lesson.yml -e lesson=keepalive -e predict=b",
        ["predict: 'b' has 1 answer, and the lesson asks 3 questions.", "or -e predict=none."],
    ),
    (
        "playbooks/certify.yml -e study=quick",
        ["study: this playbook runs certificate. Leave study out, or give it to"],
    ),
    (
        f"{A} -e generator=oha -e oha_binary=/nosuch/oha",
        ["oha_binary: '/nosuch/oha' is not a file on this machine"],
    ),
    ("lab.yml -i away -e like=nosuch", ["like: 'nosuch' is neither a bundle nor a run."]),
    (
        f"{A} -i away -e generator=wrk -e tuning=mitigations-off",
        [
            "tuning: mitigations-off takes effect only when the hosts are booted again, which",
            "server, client may not be. Set tuning_may_reboot to true in the inventory, or",
        ],
    ),
    (
        "playbooks/teardown.yml -e local_hosts_state=/etc",
        ["/etc is not the lab's: its mark, the file .loadlab, is not in it.", "(touch /etc/.load"],
    ),
    (
        f"{A} -i one-address -e generator=wrk",
        ["has the hosts a and b at one address, 127.0.0.1", "See inventory/bare_metal/hosts.yml"],
    ),
    (
        # The inventory has a variable of this name.
        "playbooks/hosts.yml -i away -e generator=wrk -e mine=2",
        [
            "server: 127.0.0.1 does not answer over SSH: ssh: connect to host 127.0.0.1 port 1:",
            "client: 127.0.0.2 does not answer over SSH: ssh: connect to host 127.0.0.2 port 1:",
            "Connection refused. See that it is up and that ansible_host in the inventory",
            "Nothing was changed on the hosts.",
        ],
    ),
]


def typed(command: str) -> tuple[str, str, dict[str, Any]]:
    """(playbook, inventory or "", variables) of a command's words."""
    playbook, *words = shlex.split(command)
    inventory = ""
    variables: dict[str, Any] = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option == "-i":
            inventory = value
        else:
            variables |= yaml.safe_load(value) if value[0] == "{" else parse_kv(value)
    return playbook, inventory, variables


def flags(playbook: Path) -> dict[str, Any]:
    """What the first stage of a playbook gives to the role preflight."""

    def of(value: Any) -> Iterator[tuple[str, Any]]:
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            name = str(key)
            if name.startswith("preflight_"):
                yield name.removeprefix("preflight_"), child
            elif isinstance(child, dict | list):
                yield from of(child)

    content = load_yaml(playbook)
    first = content[0].get("ansible.builtin.import_playbook")
    return {**(flags(playbook.parent / first) if first else {}), **dict(of(content))}


def carry_out(lab: Path, command: str) -> None:
    """What a command does before it changes anything; raises its refusal."""
    if not command.split()[0].endswith(".yml"):
        commands.run(shlex.split(command), lab / "results")
        return
    playbook, inventory, variables = typed(command)
    groups = INVENTORIES[inventory] if inventory else INVENTORIES["away"]
    hosts = {name: host for group in groups.values() for name, host in group.items()}
    user_options.refuse_names(lab, list(SPECS), variables, [], hosts.values())
    if playbook == "playbooks/unmonitor.yml":
        raise ValueError(local_lab.directory_refusal(variables["monitoring_state"]))
    else:
        native = NativeEnvironment()
        servers, clients = (list(groups[name]) for name in ("servers", "clients"))
        serves = [groups["clients"][name].get("serves", "") for name in clients]
        host_pairs = pairs.of_inventory(servers, clients, serves)
        of_stage: dict[str, Any] = {
            name: native.from_string(flag).render(variables) if "{{" in str(flag) else flag
            for name, flag in flags(ROOT / playbook).items()
            if name in ("begin", "needs_framework", "needs_run", "kind", "stage")
        }
        request = Request(
            root=lab,
            specs=SPECS,
            given_options=check_options.given_of({name: variables.get(name, "") for name in SPECS}),
            begin=of_stage.get("begin", False),
            needs_framework=of_stage.get("needs_framework", True),
            now=NOW,
            python=None if inventory else "3.13",
            kind=of_stage.get("kind"),
            stage=of_stage.get("stage", "run"),
            pairs=max(1, len(host_pairs)),
            clients=max([len(pair.clients) for pair in host_pairs], default=1) or 1,
            host_kind="machines of yours" if inventory else HERE,
            needs_run=of_stage.get("needs_run", False),
            user=list(variables),
        )
        if variables.get("like") and request.begin:
            original = originals.read(variables["like"], lab)
            request = msgspec.structs.replace(request, original=original)
        plans.plan(request)
        places = {
            name: (host.get("ansible_host", ""), host.get("ansible_port", 22), "")
            for name, host in hosts.items()
        }
        links = {name: host.get("test_address", "") for name, host in hosts.items()}
        subnet = variables.get("local_hosts_subnet", "10.77")
        raise ValueError(
            pairs.refusal(servers, clients, serves, places, links)
            or local_lab.subnet_refusal(subnet, "")
        )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab's own files, studies beside them, and runs: done, cut (off), reported, empty."""
    root: Path = tmp_path_factory.mktemp("lab")
    for name in ("apps", "roles", "playbooks", "inventory"):
        (root / name).symlink_to(ROOT / name)
    for path in (ROOT / "files").iterdir():
        target = root / "files" / path.name
        target.parent.mkdir(exist_ok=True)
        target.mkdir() if path.name == "studies" else target.symlink_to(path)
    for path in (ROOT / "files/studies").iterdir():
        (root / "files/studies" / path.name).symlink_to(path)
    for name, study in STUDIES.items():
        text = yaml.safe_dump({"description": name, "aa_controls": False, **study})
        (root / "files/studies" / f"{name}.yml").write_text(text)
    (root / "files/studies/torn.yml").write_text("cells: [")
    (root / "files/studies/huge.yml").write_text(f"cells: {400 * '9'}")
    index = {"framework": "aiohttp", "endpoint": "index"}
    for name in ("done", "cut", "reported", "empty", "whole", "gone", "older"):
        folder = root / "results" / name
        (root / "results").mkdir(exist_ok=True)
        request = Request(
            root=root, specs=SPECS, given_options={**index, "run_id": name}, now=NOW, host_kind=HERE
        )
        planned = plans.plan(request)
        builders.write_plan(folder, planned)
        if name == "empty":
            continue
        item = items(planned.experiments)[0]
        rep = folder / "cells" / item.cell_id / "rep-1"
        rep.mkdir(parents=True)
        summary = replace(builders.summary(), cells=[builders.cell_summary(name, [], item.cell)])
        (folder / "summary.json").write_bytes(documents.encode(summary))
        if name in ("whole", "gone", "older"):
            manifest = replace(builders.manifest(), run_id=name)
            (folder / "manifest.json").write_bytes(documents.encode(manifest))
        if name == "gone":
            absent = replace(planned, given_options={"study": "removed"})
            builders.write_plan(folder, absent)
        if name == "older":
            text = (folder / "manifest.json").read_text()
            (folder / "manifest.json").write_text(text.replace("lab/3", "lab/1"))
        if name in ("cut", "reported"):
            (rep / "cell.json").touch()
            (folder / "manifest.json").touch()
            (folder / "report.html").touch()
        if name == "reported":
            (rep / "result.json").touch()
    return root


@pytest.mark.parametrize(("command", "words"), COMMANDS + LOADLAB)
def test_wrong_command_is_refused_and_changes_nothing(lab: Path, command: str, words: str) -> None:
    before = set(lab.rglob("*"))
    with pytest.raises(ValueError, match=re.escape(words)):
        carry_out(lab, command)
    assert set(lab.rglob("*")) == before


def test_refusal_of_loadlab_is_a_sentence_and_status_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loadlab", "compare", "refused"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("base: 'refused' is no run with a summary.json in results/.")
    assert done.stderr.endswith(" Nothing was written.\n")


@pytest.mark.parametrize(
    "command",
    [
        # What the tests and molecule give, and what is a default and not the user's word.
        f"{A} -e iperf3_seconds=1 -e local_hosts_fresh=true -e ansible_become_password=x",
        """playbooks/tune.yml -e '{"run_id": "new", "framework": "aiohttp"}'""",
        "playbooks/tune.yml -e tuning=stock -e run_id=new",
        "playbooks/hosts.yml -e generator=wrk -e load_run_keep_requests=false",
        """playbooks/deploy.yml -e framework=aiohttp -e '{"local_hosts_preinstalled": []}'""",
        f"{A} -e generator=python-bounded -e connections=9 -e requests=10 -e open_files=99",
        f"{A} -e 'generator=oha oha_binary=/x hosts_online=no aws_hosts_max_lifetime=2 mine=3'",
        f"{A} -e aws_hosts_auto_approve=true",
        "lab.yml -e study=cell -e rate=5 -e scale=large -e duration=3",
        "lab.yml -e run_id=done",
        "lab.yml -e like=whole -e rate=5 -e run_id=another",
    ],
)
def test_right_command_is_accepted(lab: Path, command: str) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        carry_out(lab, command)


def test_a_file_of_variables_and_a_playbook_of_ones_own(lab: Path, tmp_path: Path) -> None:
    """What a playbook reads may be given, and what it sets itself may not."""
    play = tmp_path / "play.yml"
    play.write_text(
        "- hosts: lab\n  vars: {own: 1, kept: !vault x}\n  tasks:\n"
        "    - ansible.builtin.raw: echo {{ wanted | default(own) }} {{ broken\n"
        "    - ansible.builtin.raw: echo {{ wanted | default(own) }}\n      register: seen\n"
    )
    hosts = [{"password": "{{ vaulted }}"}]
    names = user_options.readable(lab, [], [play], hosts)
    assert {"wanted", "vaulted", "password", "stage", "predict"} <= names
    assert not {"own", "seen", "kept", "preflight_plan", "plan", "verified"} & names


@pytest.mark.parametrize(("command", "words"), PROCESSES)
def test_playbook_prints_the_refusal_and_leaves_nothing_behind(
    tmp_path: Path, command: str, words: list[str]
) -> None:
    # hosts.yml begins no run.
    run_id = "" if "hosts.yml" in command else " -e run_id=refused"
    playbook, inventory, variables = typed(command + run_id)
    called = [playbook, *(word for pair in variables.items() for word in ("-e", "=".join(pair)))]
    if inventory:
        path = tmp_path / "hosts.yml"
        groups = {name: {"hosts": hosts} for name, hosts in INVENTORIES[inventory].items()}
        path.write_text(yaml.safe_dump({"lab": {"children": groups}}))
        called += ["-i", str(path)]
    done = plays.playbook(*called)
    lost = any("does not answer over SSH" in sentence for sentence in words)
    assert done.returncode == (4 if lost else 2), done.stdout + done.stderr
    output = " ".join(done.stdout.split())
    for sentence in words:
        assert sentence in output
    assert "Nothing was " in output
    assert not (ROOT / "results" / "refused").exists()
