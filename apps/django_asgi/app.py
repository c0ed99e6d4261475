"""The lab's endpoints on Django's ASGI with its usual middleware. Contract: files/endpoints.yml."""

import asyncio
import contextlib
import json
import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import database
import work
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST
from psycopg_pool import AsyncConnectionPool

options = database.parameters()

settings.configure(
    # Nothing that is signed outlives the process.
    SECRET_KEY=secrets.token_hex(),
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    # What startproject lists, and the applications that it needs.
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "DIRS": [Path(__file__).parent / "templates"],
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ],
            },
        }
    ],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": options.pop("dbname"),
            "OPTIONS": options,
            # A new connection for each request of the object-relational mapper.
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
django = get_asgi_application()


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


def compact_json(value: dict, status: int = 200) -> JsonResponse:
    return JsonResponse(value, status=status, json_dumps_params={"separators": (",", ":")})


async def rows(statement: str, values: Sequence[Any] | None = None) -> list[tuple]:
    """Return the rows of a statement, over the pool, which Django's mapper does not share."""
    async with pool.connection() as connection:
        return await (await connection.execute(statement, values)).fetchall()


async def index(request: HttpRequest) -> HttpResponse:
    return compact_json({"hello": "world"})


async def hello(request: HttpRequest) -> HttpResponse:
    return HttpResponse(work.HELLO, content_type=work.TEXT)


async def agents(request: HttpRequest) -> HttpResponse:
    return compact_json(work.agents(await rows(work.AGENTS)))


async def agents_with_orm(request: HttpRequest) -> HttpResponse:
    found = [
        (
            row.agent.id,
            row.agent.first_name,
            row.agent.last_name,
            row.agent.extension,
            row.agent.email,
            row.status,
            row.since,
        )
        async for row in LoginStatus.objects.select_related("agent").order_by("agent_id")
    ]
    return compact_json(work.agents(found))


async def write(request: HttpRequest) -> HttpResponse:
    return compact_json(work.written(await rows(work.WRITE)))


async def render_name(request: HttpRequest) -> HttpResponse:
    return render(request, "name.html", {"name": work.NAME})


async def render_table(request: HttpRequest) -> HttpResponse:
    return render(request, "table.html", {"rows": work.TABLE})


async def fortunes(request: HttpRequest) -> HttpResponse:
    found = work.fortunes(await rows(work.FORTUNES))
    return render(request, "fortunes.html", {"fortunes": found})


@csrf_exempt
@require_POST
async def crud_create(request: HttpRequest) -> HttpResponse:
    values = work.to_create(json.loads(request.body))
    return compact_json(work.created(await rows(database.CREATE, values)), status=201)


@csrf_exempt
@require_http_methods(["GET", "PUT"])
async def crud_item(request: HttpRequest, item_id: int) -> HttpResponse:
    if request.method == "PUT":
        values = work.to_update(item_id, json.loads(request.body))
        found = work.updated(await rows(database.UPDATE, values))
    else:
        found = work.item(await rows(database.READ, [item_id]))
    if found is None:
        raise Http404
    return compact_json(found)


async def lookup(request: HttpRequest) -> HttpResponse:
    return compact_json({"found": work.lookup()})


async def sleep(request: HttpRequest) -> HttpResponse:
    await asyncio.sleep(0.05)
    return compact_json({"slept_ms": 50})


async def several_sleeps(request: HttpRequest) -> HttpResponse:
    await asyncio.sleep(0.05)
    await asyncio.gather(asyncio.sleep(0.05), asyncio.sleep(0.05))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.025):
            await asyncio.sleep(0.05)
    return compact_json({"slept_ms": 125})


async def cpu(request: HttpRequest) -> HttpResponse:
    work.cpu_work()
    return compact_json({"worked_ms": 500})


async def cpu_in_executor(request: HttpRequest) -> HttpResponse:
    await asyncio.get_running_loop().run_in_executor(None, work.cpu_work)
    return compact_json({"worked_ms": 500})


async def book(request: HttpRequest) -> HttpResponse:
    await asyncio.sleep(work.book_delay())
    return HttpResponse(work.book(), content_type=work.HTML)


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
    path("complex", several_sleeps),
    path("cpu", cpu),
    path("cpu_in_executor", cpu_in_executor),
    path("book", book),
]

# As many from the start as there will ever be: no connection is made under load.
size = int(os.environ["LAB_POOL_SIZE"])
pool = AsyncConnectionPool(
    os.environ["LAB_DATABASE"],
    min_size=size,
    max_size=size,
    kwargs={"autocommit": True},
    open=False,
)


async def application(scope: dict[str, Any], receive: Callable, send: Callable) -> None:
    if scope["type"] != "lifespan":
        await django(scope, receive, send)
        return
    # Django itself knows no lifespan.
    await receive()
    async with pool:
        await pool.wait()
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})
