"""Applications that know nothing of the lab, from nothing to a verified rate."""

import json
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, SERVER, playbook, results, run, ssh

pytestmark = pytest.mark.lab

SECRET = "swordfish-4711"


def made(place: Path, **files: str) -> Path:
    """An application's folder; dots of names are underscores."""
    place.mkdir(exist_ok=True)
    for name, text in files.items():
        (place / name.replace("_", ".")).write_text(textwrap.dedent(text).lstrip())
    return place


def django(place: Path) -> Path:
    """What `django-admin startproject` makes with its admin, and one view."""
    uv = str(Path(sys.executable).with_name("uv"))
    start = [uv, "tool", "run", "--from", "django", "django-admin", "startproject", "shop"]
    subprocess.run(start, cwd=place, check=True)
    (place / "shop" / "shop" / "urls.py").write_text(
        textwrap.dedent(
            """
            from django.contrib import admin
            from django.http import HttpResponse
            from django.urls import path

            urlpatterns = [
                path("", lambda request: HttpResponse("Hello from the shop")),
                path("admin/", admin.site.urls),
            ]
            """
        )
    )
    return made(
        place / "shop",
        requirements_txt="django\n",
        app_yml="migrate: python manage.py migrate\n",
        requests_yml="""
        login: {path: /admin/login/, status: 200, pattern: csrfmiddlewaretoken}
        home: /
        """,
    )


def fastapi(place: Path) -> Path:
    return made(
        place / "items",
        pyproject_toml="""
        [project]
        name = "items"
        version = "1"
        dependencies = ["fastapi"]
        """,
        main_py="""
        from fastapi import FastAPI
        from pydantic import BaseModel

        app = FastAPI()


        class Item(BaseModel):
            name: str


        @app.get("/")
        async def root() -> dict[str, str]:
            return {"message": "Hello World"}


        @app.post("/items", status_code=201)
        async def create(item: Item) -> Item:
            return item
        """,
        requests_yml="""
        create: {method: POST, path: /items, body: {name: pear}, status: 201, json: {name: pear}}
        root: /
        """,
    )


def flask(place: Path) -> Path:
    return made(
        place / "notes",
        requirements_txt="flask\npsycopg2-binary\n",
        prod_env=f"SECRET={SECRET}\n",
        dump_sql="""
        CREATE TABLE note (id serial PRIMARY KEY, text text NOT NULL);
        INSERT INTO note (text) VALUES ('one'), ('two');
        """,
        app_yml="""
        database: postgresql
        dump: dump.sql
        environment: prod.env
        """,
        requests_yml="""
        notes: {path: /, schema: {type: array, minItems: 2}}
        add: {method: POST, path: /, body: text=milk, status: 201, pattern: "^[0-9]+$"}
        """,
        app_py="""
        import os

        import psycopg2
        from flask import Flask, jsonify, request

        app = Flask(__name__)
        assert os.environ["SECRET"]


        def rows(statement, *values):
            with psycopg2.connect(os.environ["DATABASE_URL"]) as connection:
                with connection.cursor() as cursor:
                    cursor.execute(statement, values)
                    return cursor.fetchall()


        @app.get("/")
        def notes():
            return jsonify(rows("SELECT id, text FROM note ORDER BY id LIMIT 5"))


        @app.post("/")
        def add():
            statement = "INSERT INTO note (text) VALUES (%s) RETURNING id"
            return str(rows(statement, request.form["text"])[0][0]), 201
        """,
    )


def shop(place: Path) -> Path:
    """The application of docs/your_application.md: it admits whom it gave a token and a cookie."""
    return made(
        place / "shop",
        requirements_txt="flask\n",
        requests_yml="""
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
        app_py="""
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
    )


STRANGERS = {
    "django": (django, "shop.wsgi:application speaks WSGI"),
    "fastapi": (fastapi, "main:app speaks ASGI"),
    "flask": (flask, "app:app speaks WSGI"),
}
TWO = {"django": ["login", "home"], "fastapi": ["create", "root"], "flask": ["notes", "add"]}


def measured(folder: Path, run_id: str, **options: Any) -> str:
    """Measure an application at one rate, once, for a second; return what was printed."""
    load = {"rate": 50, "connections": 4, "duration": 1, "warmup": 0}
    return run("lab.yml", app=str(folder), run_id=run_id, **load, **options)


@pytest.mark.parametrize("name", STRANGERS)
def test_application_from_outside_is_measured(name: str, tmp_path: Path, run_id: str) -> None:
    make, found = STRANGERS[name]
    folder = make(tmp_path)
    begun = time.monotonic()
    printed = measured(folder, run_id, endpoint=TWO[name])
    assert time.monotonic() - begun < 600
    assert found in " ".join(printed.split())
    answers = json.loads((ROOT / "results" / run_id / "answers.json").read_text())
    assert set(answers) == {"static", *TWO[name]}
    cells = results(run_id)
    assert set(cells) == {f"{tool} {one}" for tool in ("metronome", "wrk") for one in TWO[name]}
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
    folder = flask(tmp_path)
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
    folder = fastapi(tmp_path)
    (folder / "app.yml").write_text("module: main:app\ninterface: wsgi\n")
    process = playbook("lab.yml", app=str(folder), run_id=run_id, duration=1, warmup=0)
    printed, _ = process.communicate(timeout=600)
    assert process.returncode != 0
    assert "main:app of" in printed
    assert "is asgi, and was taken for wsgi" in " ".join(printed.split())
    assert not (ROOT / "results" / run_id / "cells").exists()
