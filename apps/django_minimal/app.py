"""The lab's endpoints on Django without middleware. Contract: files/endpoints.yml."""

import json
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import database
import work
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection, models
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_http_methods, require_POST

options = database.parameters()

settings.configure(
    # Nothing that is signed outlives the process.
    SECRET_KEY=secrets.token_hex(),
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=[],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "DIRS": [Path(__file__).parent / "templates"],
        }
    ],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": options.pop("dbname"),
            "OPTIONS": options,
            # A new connection for each request.
            "CONN_MAX_AGE": 0,
        }
    },
    # Without it, Django tells nobody of its errors.
    LOGGING={
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"console": {"class": "logging.StreamHandler"}},
        "root": {"handlers": ["console"], "level": "ERROR"},
    },
)
application = get_wsgi_application()


class Agent(models.Model):
    id = models.IntegerField(primary_key=True)
    first_name = models.TextField()
    last_name = models.TextField()
    extension = models.TextField()
    email = models.TextField()

    class Meta:
        app_label = "lab"
        db_table = "agents"
        managed = False


class LoginStatus(models.Model):
    agent = models.OneToOneField(Agent, models.DO_NOTHING, primary_key=True)
    status = models.TextField()
    since = models.TextField()

    class Meta:
        app_label = "lab"
        db_table = "login_status"
        managed = False


def sized(response: HttpResponse) -> HttpResponse:
    # CommonMiddleware would do it.
    response.headers["Content-Length"] = str(len(response.content))
    return response


def compact_json(value: dict, status: int = 200) -> HttpResponse:
    return sized(JsonResponse(value, status=status, json_dumps_params={"separators": (",", ":")}))


def rows(statement: str, values: Sequence[Any] | None = None) -> Sequence[Any]:
    """Return the rows of a statement, over Django's connection."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


def index(request: HttpRequest) -> HttpResponse:
    return compact_json({"hello": "world"})


def hello(request: HttpRequest) -> HttpResponse:
    return sized(HttpResponse(work.HELLO, content_type=work.TEXT))


def agents(request: HttpRequest) -> HttpResponse:
    return compact_json(work.agents(rows(work.AGENTS)))


def agents_with_orm(request: HttpRequest) -> HttpResponse:
    found = (
        (
            row.agent.id,
            row.agent.first_name,
            row.agent.last_name,
            row.agent.extension,
            row.agent.email,
            row.status,
            row.since,
        )
        for row in LoginStatus.objects.select_related("agent").order_by("agent_id")
    )
    return compact_json(work.agents(found))


def write(request: HttpRequest) -> HttpResponse:
    return compact_json(work.written(rows(work.WRITE)))


def render_name(request: HttpRequest) -> HttpResponse:
    return sized(render(request, "name.html", {"name": work.NAME}))


def render_table(request: HttpRequest) -> HttpResponse:
    return sized(render(request, "table.html", {"rows": work.TABLE}))


def fortunes(request: HttpRequest) -> HttpResponse:
    found = work.fortunes(rows(work.FORTUNES))
    return sized(render(request, "fortunes.html", {"fortunes": found}))


@require_POST
def crud_create(request: HttpRequest) -> HttpResponse:
    values = work.to_create(json.loads(request.body))
    return compact_json(work.created(rows(database.CREATE, values)), status=201)


@require_http_methods(["GET", "PUT"])
def crud_item(request: HttpRequest, item_id: int) -> HttpResponse:
    if request.method == "PUT":
        values = work.to_update(item_id, json.loads(request.body))
        found = work.updated(rows(database.UPDATE, values))
    else:
        found = work.item(rows(database.READ, [item_id]))
    if found is None:
        raise Http404
    return compact_json(found)


def lookup(request: HttpRequest) -> HttpResponse:
    return compact_json({"found": work.lookup()})


def sleep(request: HttpRequest) -> HttpResponse:
    time.sleep(0.05)
    return compact_json({"slept_ms": 50})


urlpatterns = [
    path("index", index),
    path("hello", hello),
    path("agents", agents),
    path("agents_with_orm", agents_with_orm),
    path("write", write),
    path("render_name", render_name),
    path("render_table", render_table),
    path("fortunes", fortunes),
    path("crud/items", crud_create),
    path("crud/items/<int:item_id>", crud_item),
    path("lookup", lookup),
    path("sleep", sleep),
]
