import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from loadlab.stacks.callables import Source

ASK = Path(__file__).parents[3] / "roles/app_server/files/ask-interface.py"
FLASK = "from flask import Flask\n"
STARTPROJECT = (
    "import os\nfrom django.core.{0} import get_{0}_application\n"
    "application = get_{0}_application()\n"
)
CALLED = "class Mine:\n    async def __call__(self, scope, receive, send): ...\napp = Mine()"


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        (f"{FLASK}app = Flask(__name__)", "wsgi"),
        ("import flask\napp = flask.Flask(__name__)", "wsgi"),
        ("import fastapi as f\napp = f.FastAPI()", "asgi"),
        ("from falcon import App\napp = App()", "wsgi"),
        ("from falcon.asgi import App\napp = App()", "asgi"),
        (STARTPROJECT.format("wsgi") + "app = application", "wsgi"),
        (STARTPROJECT.format("asgi") + "app = application", "asgi"),
        ("def app(environ, start_response): ...", "wsgi"),
        ("async def app(scope, receive, send): ...", "asgi"),
        ("def app(one): ...", None),
        ("async def app(one): ...", None),
        (f"{FLASK}def make():\n    made = Flask('x')\n    return made\napp = make()", "wsgi"),
        (f"{FLASK}class Mine(Flask): ...\napp = Mine('x')", "wsgi"),
        (CALLED, "asgi"),
        ("class Mine:\n    def __call__(self, environ, start): ...\napp = Mine()", "wsgi"),
        (f"from proxy import Fix\n{FLASK}app = Fix(Flask('x'), hops=1)", "wsgi"),
        (f"from a2wsgi import WSGIMiddleware\n{FLASK}app = WSGIMiddleware(Flask('x'))", "asgi"),
        ("from pyramid.config import Configurator\napp = Configurator().make_wsgi_app()", "wsgi"),
        (f"{FLASK}if True:\n    app = Flask('x')\nelse:\n    app = None", None),
        ("app = 1", None),
        ("from elsewhere import app", None),
        ("app = app", None),
        ("app = (", None),
    ],
)
def test_source_tells_what_a_callable_speaks(tmp_path: Path, text: str, spoken: str | None) -> None:
    (tmp_path / "app.py").write_text(text)
    assert Source(tmp_path).interface("app", "app") == spoken


def test_names_are_followed_through_the_modules_of_the_application(tmp_path: Path) -> None:
    package = tmp_path / "src" / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .factory import create\napp = create()")
    (package / "factory.py").write_text(f"{FLASK}def create():\n    return Flask('x')")
    (tmp_path / "main.py").write_text("from shop import app")
    source = Source(tmp_path, tmp_path / "src")
    assert source.interface("main", "app") == source.interface("shop", "app") == "wsgi"


def test_modules_of_a_wheel_are_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "shop.whl", "w") as wheel:
        wheel.writestr("shop/__init__.py", "")
        wheel.writestr("shop/asgi.py", "from quart import Quart\napp = Quart('x')")
    source = Source(zipfile.Path(tmp_path / "shop.whl"))
    assert source.packages() == ["shop"]
    assert source.interface("shop.asgi", "app") == "asgi"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def app(environ, start_response): ...", "wsgi"),
        ("async def app(scope, receive, send): ...", "asgi"),
        ("def app(scope, receive, send): ...", "asgi"),
        ("def app(*arguments): ...", "wsgi asgi"),
        ("async def app(*arguments): ...", "asgi"),
        (CALLED, "asgi"),
        ("async def app(item): ...", "a coroutine function with (item), where WSGI has 2"),
        ("def app(): ...", "a callable with (), where WSGI has 2"),
        ("app = 1", "no callable but of the type int"),
    ],
)
def test_server_asks_the_object_itself(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "app.py").write_text(text.replace("app = Mine", "print('imported')\napp = Mine"))
    command = [sys.executable, "-", "app:app"]
    done = subprocess.run(
        command, input=ASK.read_bytes(), cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout.decode().splitlines()[-1].startswith(said)
