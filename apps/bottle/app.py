"""The lab's endpoints on Bottle. Contract: files/endpoints.yml."""

import time
from pathlib import Path
from typing import Any

import bottle
import database
import work
from bottle import Bottle, JSONPlugin, abort, request, response, template

bottle.TEMPLATE_PATH[:] = [str(Path(__file__).parent / "views")]

application = Bottle()
# Bottle's own JSON has spaces.
application.uninstall(JSONPlugin)
application.install(JSONPlugin(work.dumps))


@application.get("/index")
def index() -> dict[str, str]:
    return {"hello": "world"}


@application.get("/hello")
def hello() -> str:
    response.content_type = work.TEXT
    return work.HELLO


@application.get("/agents")
def agents() -> dict[str, Any]:
    return work.agents(database.query(work.AGENTS))


@application.get("/write")
def write() -> dict[str, int]:
    return work.written(database.query(work.WRITE))


@application.get("/render_name")
def render_name() -> str:
    response.content_type = work.HTML
    return template("name", name=work.NAME)


@application.get("/render_table")
def render_table() -> str:
    response.content_type = work.HTML
    return template("table", rows=work.TABLE)


@application.get("/fortunes")
def fortunes() -> str:
    response.content_type = work.HTML
    return template("fortunes", fortunes=work.fortunes(database.query(work.FORTUNES)))


@application.get("/crud/items/<item_id:int>")
def crud_read(item_id: int) -> dict[str, Any]:
    return work.item(database.query(database.READ, [item_id])) or abort(404)


@application.post("/crud/items")
def crud_create() -> dict[str, Any]:
    response.status = 201
    return work.created(database.query(database.CREATE, work.to_create(request.json)))


@application.put("/crud/items/<item_id:int>")
def crud_update(item_id: int) -> dict[str, Any]:
    values = work.to_update(item_id, request.json)
    return work.updated(database.query(database.UPDATE, values)) or abort(404)


@application.get("/lookup")
def lookup() -> dict[str, int]:
    return {"found": work.lookup()}


@application.get("/sleep")
def sleep() -> dict[str, int]:
    time.sleep(0.05)
    return {"slept_ms": 50}
