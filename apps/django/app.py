"""The lab's endpoints on Django with its usual middleware. Contract: files/endpoints.yml."""

import secrets
import time
from pathlib import Path

import database
import work
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection, models
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import path

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


def compact_json(value: dict) -> JsonResponse:
    return JsonResponse(value, json_dumps_params={"separators": (",", ":")})


def index(request: HttpRequest) -> HttpResponse:
    return compact_json({"hello": "world"})


def hello(request: HttpRequest) -> HttpResponse:
    return HttpResponse(work.HELLO, content_type=work.TEXT)


def agents(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(work.AGENTS)
        return compact_json(work.agents(cursor.fetchall()))


def agents_with_orm(request: HttpRequest) -> HttpResponse:
    rows = (
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
    return compact_json(work.agents(rows))


def write(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(work.WRITE)
        return compact_json(work.written(cursor.fetchall()))


def render_name(request: HttpRequest) -> HttpResponse:
    return render(request, "name.html", {"name": work.NAME})


def render_table(request: HttpRequest) -> HttpResponse:
    return render(request, "table.html", {"rows": work.TABLE})


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
    path("lookup", lookup),
    path("sleep", sleep),
]
