"""Applications that know nothing of the lab, from nothing to a verified rate."""

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import ROOT, SERVER, playbook, results, run, ssh

pytestmark = pytest.mark.lab

SECRET = "swordfish-4711"


# Guide of docs/guides.md -> the folder that it makes, and what the lab says of the callable there.
GUIDES = {
    "Django": ("shop", "shop.wsgi:application speaks WSGI"),
    "FastAPI": ("items", "main:app speaks ASGI"),
    "Flask": ("notes", "app:app speaks WSGI"),
}


def guided(guide: str, place: Path) -> Path:
    """Make a guide's application by its blocks before the first measurement; return its folder."""
    page = (ROOT / "docs/guides.md").read_text()
    section = page.split(f"\n## {guide}\n")[1].split("\n    ansible-playbook ")[0]
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    (place / "lab").mkdir()
    for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL):
        words = ["bash", "-ec", block]
        subprocess.run(words, cwd=place / "lab", env={**os.environ, "PATH": tools}, check=True)
    return place / GUIDES[guide][0]


def shop(place: Path) -> Path:
    """The application of docs/your_application.md: it admits whom it gave a token and a cookie."""
    files = {
        "requirements.txt": "flask\n",
        "requests.yml": """
        login:
          {method: POST, path: /login, body: user=anna&password=pear, schema: {required: [token]}}
        product: /products/7
        add:
          method: POST
          path: /carts
          headers: {Authorization: "Bearer {token}"}
          body: {product: 7}
          status: 201
          schema: {required: [cart]}
        cart:
          path: /carts/{cart}
          headers: {Authorization: "Bearer {token}"}
        order:
          method: POST
          path: /orders
          headers: {Authorization: "Bearer {token}"}
          body: {cart: "{cart}"}
          status: 201
        """,
        "app.py": """
        import hmac
        import secrets

        from flask import Flask, abort, jsonify, request

        app = Flask(__name__)


        def signed(text):
            return f"{text}.{hmac.new(b'key', text.encode(), 'sha256').hexdigest()}"


        def check(name):
            if not hmac.compare_digest(name, signed(name.partition(".")[0])):
                abort(401)


        @app.before_request
        def admit():
            if request.path.startswith(("/carts", "/orders")):
                token = request.headers.get("Authorization", "").removeprefix("Bearer ")
                check(token)
                if request.cookies.get("visit") != token[:8]:
                    abort(401)


        @app.post("/login")
        def login():
            token = signed(secrets.token_hex(8))
            answer = jsonify(token=token)
            answer.set_cookie("visit", token[:8], httponly=True)
            return answer


        @app.get("/products/<int:number>")
        def product(number):
            return jsonify(id=number, name="pear")


        @app.post("/carts")
        def add():
            return jsonify(cart={"id": signed(secrets.token_hex(8)), "products": [7]}), 201


        @app.get("/carts/<cart>")
        def show(cart):
            check(cart)
            return jsonify(products=[7])


        @app.post("/orders")
        def order():
            check(request.get_json()["cart"])
            return jsonify(ordered=True), 201
        """,
    }
    (place / "shop").mkdir()
    for name, text in files.items():
        (place / "shop" / name).write_text(textwrap.dedent(text).lstrip())
    return place / "shop"


def measured(folder: Path, run_id: str, **options: Any) -> str:
    """Measure an application at one rate, once, for a second; return what was printed."""
    load = {"rate": 50, "connections": 4, "duration": 1, "warmup": 0}
    return run("lab.yml", app=str(folder), run_id=run_id, **load, **options)


@pytest.mark.parametrize("guide", GUIDES)
def test_application_of_a_guide_is_measured(guide: str, tmp_path: Path, run_id: str) -> None:
    folder = guided(guide, tmp_path)
    names = [*yaml.safe_load((folder / "requests.yml").read_text())]
    assert len(names) == 2
    begun = time.monotonic()
    printed = measured(folder, run_id, endpoint=names)
    assert time.monotonic() - begun < 600
    assert GUIDES[guide][1] in " ".join(printed.split())
    answers = json.loads((ROOT / "results" / run_id / "answers.json").read_text())
    assert set(answers) == {"static", *names}
    cells = results(run_id)
    assert set(cells) == {f"{tool} {name}" for tool in ("metronome", "wrk") for name in names}
    for one in cells.values():
        assert one["error"] is None
        assert one["ok"] == one["responses"] > 0
        assert sum(one["errors"].values()) == 0


def test_visitors_log_in_and_order(tmp_path: Path, run_id: str) -> None:
    """The ready session with shorter thinking; visitors come in the first half of the load."""
    ready = (ROOT / "files/loads/shop.yml").read_text()
    load = tmp_path / "quick.yml"
    quick = re.sub(r"(mean: |think: )[0-9.]+", r"\g<1>0.1", ready)
    load.write_text(re.sub(r"(?m)^(rate|duration): .*$", "", quick))
    come = {"ramp": "0:20,2:20,2:0,4:0", "connections": 4, "warmup": 1}
    run("lab.yml", app=str(shop(tmp_path)), load=str(load), run_id=run_id, **come)
    (visited,) = results(run_id).values()
    assert visited["error"] is None
    visits = visited["visits"]
    assert (visits["scheduled"], visits["started"], visits["completed"]) == (40, 40, 40)
    assert visited["ok"] == visited["scheduled"] == 40 * 6
    # Five times of thinking.
    assert 300_000 < visits["p50_us"] < 1_500_000


def test_secrets_of_an_application_stay_where_they_belong(tmp_path: Path, run_id: str) -> None:
    folder = guided("Flask", tmp_path)
    (folder / "prod.env").write_text(f"SECRET={SECRET}\n")
    for name, line in {
        "app.yml": "environment: prod.env",
        "app.py": "os.environ['SECRET']",
    }.items():
        with (folder / name).open("a") as file:
            file.write(f"{line}\n")
    printed = measured(folder, run_id)
    kept = (ROOT / "results" / run_id).rglob("*")
    texts = [path.read_bytes() for path in kept if path.is_file()]
    assert SECRET.encode() not in b"".join(texts)
    assert SECRET not in printed
    environment = "/etc/loadlab/application.env"
    assert ssh(SERVER, f"stat -c '%U %a' {environment}").split() == ["root", "600"]
    assert SECRET in ssh(SERVER, f"cat {environment}")
    elsewhere = "/opt/loadlab /etc/systemd /usr/local/lib/loadlab /var/log"
    secret = f"cut -d= -f2 {environment}"
    assert ssh(SERVER, f"{secret} | grep -rlFf - {elsewhere} || true") == ""
    told = ssh(SERVER, "ps axwwo args; journalctl --no-pager --output=cat --lines=5000")
    assert SECRET not in told
    (folder / "prod.env").write_text(f"SECRET={SECRET}-changed\n")
    again = run("playbooks/deploy.yml", "--diff", "--check", "-v", run_id=run_id)
    assert "Copy the environment file" in again
    assert SECRET not in again


def test_what_the_object_speaks_decides(tmp_path: Path, run_id: str) -> None:
    """The manifest says otherwise; the server asks the object before any load."""
    folder = guided("FastAPI", tmp_path)
    (folder / "app.yml").write_text("module: main:app\ninterface: wsgi\n")
    process = playbook("lab.yml", app=str(folder), run_id=run_id, duration=1, warmup=0)
    printed, _ = process.communicate(timeout=600)
    assert process.returncode != 0
    assert "main:app of" in printed
    assert "is asgi, and was taken for wsgi" in " ".join(printed.split())
    assert not (ROOT / "results" / run_id / "cells").exists()
