"""The lab's endpoints on Flask. Contract: files/endpoints.yml."""

import json
import os
import time
from typing import Any

import database
import urllib3
import work
from flask import Flask, Response, abort, render_template, request
from flask.json.provider import JSONProvider


class CompactJSON(JSONProvider):
    # Flask's own sorts the keys and puts a newline at the end.
    def dumps(self, obj: Any, **kwargs: Any) -> str:
        return work.dumps(obj).decode()

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        return json.loads(s, **kwargs)


pool = database.Pool()
# Keeps as many connections as Gunicorn's gevent worker has requests at once.
http = urllib3.PoolManager(maxsize=1000)

application = Flask(__name__)
application.json = CompactJSON(application)


@application.get("/index")
def index() -> dict[str, str]:
    return {"hello": "world"}


@application.get("/hello")
def hello() -> Response:
    return Response(work.HELLO, content_type=work.TEXT)


@application.get("/agents")
def agents() -> dict[str, Any]:
    return work.agents(database.query(work.AGENTS))


@application.get("/agents_with_pool")
def agents_with_pool() -> dict[str, Any]:
    return work.agents(pool.query(work.AGENTS))


@application.get("/write")
def write() -> dict[str, int]:
    return work.written(pool.query(work.WRITE))


@application.get("/render_name")
def render_name() -> str:
    return render_template("name.html", name=work.NAME)


@application.get("/render_table")
def render_table() -> str:
    return render_template("table.html", rows=work.TABLE)


@application.get("/fortunes")
def fortunes() -> str:
    return render_template("fortunes.html", fortunes=work.fortunes(pool.query(work.FORTUNES)))


@application.get("/crud/items/<int:item_id>")
def crud_read(item_id: int) -> dict[str, Any]:
    return work.item(pool.query(database.READ, [item_id])) or abort(404)


@application.post("/crud/items")
def crud_create() -> tuple[dict[str, Any], int]:
    values = work.to_create(request.get_json())
    return work.created(pool.query(database.CREATE, values)), 201


@application.put("/crud/items/<int:item_id>")
def crud_update(item_id: int) -> dict[str, Any]:
    values = work.to_update(item_id, request.get_json())
    return work.updated(pool.query(database.UPDATE, values)) or abort(404)


@application.get("/lookup")
def lookup() -> dict[str, int]:
    return {"found": work.lookup()}


@application.get("/sleep")
def sleep() -> dict[str, int]:
    time.sleep(0.05)
    return {"slept_ms": 50}


@application.get("/cpu")
def cpu() -> dict[str, int]:
    work.cpu_work()
    return {"worked_ms": 500}


@application.get("/upstream")
def upstream() -> Response:
    answer = http.request("GET", os.environ["LAB_UPSTREAM"])
    return Response(answer.data, answer.status, content_type=work.TEXT)


@application.get("/book")
def book() -> Response:
    time.sleep(work.book_delay())
    return Response(work.book(), content_type=work.HTML)
