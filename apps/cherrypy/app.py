"""The lab's endpoints on CherryPy. Contract: files/endpoints.yml."""

import time
from pathlib import Path
from typing import Any

import cherrypy
import database
import jinja2
import work

# CherryPy has no template engine of its own.
templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    auto_reload=False,
)


def compact_json(*args: Any, **kwargs: Any) -> bytes:
    # CherryPy's own has spaces.
    return work.dumps(cherrypy.serving.request._json_inner_handler(*args, **kwargs))


class Items:
    @cherrypy.expose
    @cherrypy.tools.json_in(force=False)
    @cherrypy.tools.json_out()
    def items(self, item_id: str = "") -> dict[str, Any]:
        """Read, create or update an item, by the request's method."""
        request, found = cherrypy.request, None
        if request.method == "POST" and not item_id:
            cherrypy.response.status = 201
            found = work.created(database.query(database.CREATE, work.to_create(request.json)))
        elif request.method == "GET" and item_id.isdecimal():
            found = work.item(database.query(database.READ, [int(item_id)]))
        elif request.method == "PUT" and item_id.isdecimal():
            values = work.to_update(int(item_id), request.json)
            found = work.updated(database.query(database.UPDATE, values))
        if found is None:
            raise cherrypy.NotFound()
        return found


class Lab:
    crud = Items()

    @cherrypy.expose
    @cherrypy.tools.json_out()
    def index(self) -> dict[str, str]:
        return {"hello": "world"}

    @cherrypy.expose
    def hello(self) -> bytes:
        cherrypy.response.headers["Content-Type"] = work.TEXT
        return work.HELLO.encode()

    @cherrypy.expose
    @cherrypy.tools.json_out()
    def agents(self) -> dict[str, Any]:
        return work.agents(database.query(work.AGENTS))

    @cherrypy.expose
    @cherrypy.tools.json_out()
    def write(self) -> dict[str, int]:
        return work.written(database.query(work.WRITE))

    @cherrypy.expose
    def render_name(self) -> bytes:
        cherrypy.response.headers["Content-Type"] = work.HTML
        return templates.get_template("name.html").render(name=work.NAME).encode()

    @cherrypy.expose
    def render_table(self) -> bytes:
        cherrypy.response.headers["Content-Type"] = work.HTML
        return templates.get_template("table.html").render(rows=work.TABLE).encode()

    @cherrypy.expose
    def fortunes(self) -> bytes:
        cherrypy.response.headers["Content-Type"] = work.HTML
        found = work.fortunes(database.query(work.FORTUNES))
        return templates.get_template("fortunes.html").render(fortunes=found).encode()

    @cherrypy.expose
    @cherrypy.tools.json_out()
    def lookup(self) -> dict[str, int]:
        return {"found": work.lookup()}

    @cherrypy.expose
    @cherrypy.tools.json_out()
    def sleep(self) -> dict[str, int]:
        time.sleep(0.05)
        return {"slept_ms": 50}


# Another server runs it: no reloading, no signal handlers, no log of requests. That server is told
# of errors.
cherrypy.config.update({"environment": "embedded", "log.wsgi": True})
# Waitress's command prints what reaches the root of Python's logging.
cherrypy.log.access_log.propagate = False
application = cherrypy.tree.mount(
    Lab(),
    "",
    {
        "/": {
            "tools.json_out.handler": compact_json,
            # It would write Content-Type anew, without the space.
            "tools.encode.on": False,
        }
    },
)
