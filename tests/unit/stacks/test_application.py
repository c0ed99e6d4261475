"""Applications from outside the tree: what is found in their folders, and what is refused."""

import json
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadlab.kinds import plan_run as planning
from loadlab.plan.plan_document import Plan
from loadlab.report.words import labels, planned_words
from loadlab.run.errors import PlanError
from loadlab.stacks import application, requirements
from loadlab.stacks.contract import Contract
from tests.unit import builders

ROOT = Path(__file__).parents[3]
FLASK = "from flask import Flask\napp = Flask(__name__)\n"


def folder(place: Path, **files: str) -> Path:
    """An application of these files; by default one of Flask, in app.py. Dots are underscores."""
    own = {"app_py": FLASK, "requirements_txt": "flask\n", **files}
    made = place / "my shop"
    for name, text in own.items():
        path = made.joinpath(*name.replace("_", ".").split("/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        if text:
            path.write_text(text)
    return made


def test_manifest_is_derived_from_a_folder(tmp_path: Path) -> None:
    found = application.manifest(ROOT, str(folder(tmp_path)))
    assert msgspec.to_builtins(found) == {
        "description": "my-shop, from outside the tree",
        "language": "python",
        "interface": "wsgi",
        "endpoints": ["root"],
        "pool_size": 0,
        "module": "app:app",
        "database": "none",
        "requirements": "requirements.txt",
    }


def test_django_project_is_found_by_its_package(tmp_path: Path) -> None:
    made = folder(tmp_path, app_py="")
    for name in ("wsgi", "asgi"):
        text = f"from django.core.{name} import get_{name}_application as get\napplication = get()"
        (made / "site").mkdir(exist_ok=True)
        (made / "site" / f"{name}.py").write_text(text)
    assert application.manifest(ROOT, str(made)).module == "site.wsgi:application"
    (made / "app.yml").write_text("interface: asgi")
    assert application.manifest(ROOT, str(made)).module == "site.asgi:application"
    given = application.manifest(ROOT, str(made), "site.wsgi:application")
    assert (given.module, given.interface) == ("site.wsgi:application", "asgi")


def test_whole_manifest_outside_the_tree_is_read_as_those_in_apps() -> None:
    found = application.manifest(ROOT, str(ROOT / "apps" / "flask"))
    assert found == application.manifest(ROOT, "apps/flask")
    assert not application.is_own(found)


def test_short_manifest_names_what_cannot_be_found(tmp_path: Path) -> None:
    said = (
        "database: postgresql\ndump: data.sql\nenvironment: prod.env\nmigrate: ./manage.py migrate"
    )
    made = folder(tmp_path, app_yml=said, data_sql="SELECT 1;", prod_env="# mine\nKEY=a b\n\n")
    found = application.manifest(ROOT, str(made))
    assert found.migrate == "./manage.py migrate"
    assert application.database(found) == "loadlab_app"
    (contract,) = application.contracts_of(ROOT, str(made), found).values()
    assert contract.needs == ["database"]
    excluded = application.rsync_excludes(found)
    kept_back = ("/prod.env", "/data.sql", ".env", ".git")
    assert {f"--exclude={name}" for name in kept_back} <= set(excluded)


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "nothing to install": ({"requirements_txt": ""}, "needs a requirements.txt, a pyproject.toml"),
    "broken project": ({"requirements_txt": "", "pyproject_toml": "["}, "cannot be read"),
    "dynamic": (
        {"requirements_txt": "", "pyproject_toml": '[project]\ndynamic = ["dependencies"]'},
        "has dynamic dependencies",
    ),
    "project of another form": (
        {"requirements_txt": "", "pyproject_toml": "project = 1"},
        "needs a requirements.txt, a pyproject.toml",
    ),
    "dependencies of another form": (
        {"requirements_txt": "", "pyproject_toml": "[project]\ndependencies = 'flask'"},
        "dependencies in .* is no list",
    ),
    "editable": ({"requirements_txt": "flask\n-e .\n"}, "'-e .' in .* is no package of an index"),
    "of git": (
        {"requirements_txt": "one @ git+https://user:swordfish@host/one"},
        "'one @ git\\+https://host/one'",
    ),
    "own index": (
        {"requirements_txt": "--index-url https://a:b@c\nflask"},
        "the option --index-url",
    ),
    "no callable": ({"app_py": "x = 1"}, "no application under a well-known name. Looked for"),
    "not told": ({"app_py": "import x\napp = x.make()"}, "Write 'interface: wsgi' or"),
    "typing error": ({"app_yml": "modul: app:app"}, "app.yml: .*unknown field `modul`"),
    "wrong database": ({"app_yml": "database: mysql"}, "Invalid enum value 'mysql'"),
    "no dump": ({"app_yml": "database: postgresql\ndump: x.sql"}, "x.sql is no file"),
    "dump of nothing": ({"app_yml": "dump: app.py"}, "needs a database"),
    "no environment": ({"app_yml": "environment: .env"}, "environment: .*is no file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_folder_that_cannot_be_run_is_refused_with_the_remedy(tmp_path: Path, name: str) -> None:
    files, words = REFUSED[name]
    made = folder(tmp_path, **files)
    with pytest.raises(PlanError, match=words) as refusal:
        builders.plan(framework="", app=str(made))
    assert "swordfish" not in str(refusal.value)


def test_endpoint_that_no_file_describes_is_refused(tmp_path: Path) -> None:
    mine = Path(shutil.copytree(ROOT / "apps/plain_wsgi", tmp_path / "mine"))
    manifest = mine / "app.yml"
    manifest.write_text(manifest.read_text().replace("[index,", "[indx,"))
    with pytest.raises(PlanError, match=r"app\.yml: endpoints: 'indx' is not known\. There are: "):
        builders.plan(framework="", app=str(mine))


def test_requirements_are_read_with_a_mark_before_them_and_in_no_other_encoding(
    tmp_path: Path,
) -> None:
    made = folder(tmp_path)
    (made / "requirements.txt").write_text("flask==3.1.3", encoding="utf-8-sig")
    assert requirements.wanted(made, "requirements.txt") == ["flask==3.1.3"]
    # What PowerShell 5 writes.
    (made / "requirements.txt").write_text("flask==3.1.3", encoding="utf-16")
    with pytest.raises(PlanError, match=r"requirements\.txt cannot be read: .* in UTF-8\."):
        builders.plan(framework="", app=str(made))


def test_refusal_of_an_environment_file_does_not_quote_it(tmp_path: Path) -> None:
    made = folder(tmp_path, app_yml="environment: prod.env", prod_env="A=1\nexport B=swordfish\n")
    with pytest.raises(PlanError, match="line 2 sets no variable") as refusal:
        application.manifest(ROOT, str(made))
    assert "swordfish" not in str(refusal.value)


def test_wrong_module_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"no module app there has other\. There are: app:app\."):
        builders.plan(framework="", app=str(folder(tmp_path)), module="app:other")


def test_folder_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = folder(tmp_path)
    (made / ".venv").mkdir()
    (made / ".venv" / "large").write_bytes(bytes(1000))
    monkeypatch.setattr(application, "FOLDER_BYTES_MAX", 500)
    application.manifest(ROOT, str(made))
    (made / "large").write_bytes(bytes(1000))
    with pytest.raises(PlanError, match="the most that is copied"):
        application.manifest(ROOT, str(made))


def test_lock_is_of_what_the_application_asks_for(tmp_path: Path) -> None:
    made = folder(
        tmp_path, requirements_txt="# mine\nflask==3.1.3 \\\n  --hash=sha256:aa\n-r more.txt"
    )
    (made / "more.txt").write_text("psycopg[binary]>=3 # new\n")
    assert requirements.wanted(made, "requirements.txt") == ["flask==3.1.3", "psycopg[binary]>=3"]
    before = requirements.lock(ROOT, made, "requirements.txt")
    (made / "app.py").write_text("changed")
    assert requirements.lock(ROOT, made, "requirements.txt") == before
    (made / "more.txt").write_text("psycopg[binary]>=3.2\n")
    assert requirements.lock(ROOT, made, "requirements.txt") != before


def test_wheel_is_an_application(tmp_path: Path) -> None:
    made = folder(tmp_path, requirements_txt="", app_py="")
    with zipfile.ZipFile(made / "shop-1.whl", "w") as wheel:
        wheel.writestr("shop/__init__.py", FLASK)
        needs = "Requires-Dist: flask>=3\nRequires-Dist: pytest; extra == 'test'\n"
        wheel.writestr(
            "shop-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: shop\nVersion: 1\n{needs}\n"
        )
    found = application.manifest(ROOT, str(made))
    assert (found.module, found.requirements) == ("shop:app", "shop-1.whl")
    assert requirements.wanted(made, "shop-1.whl") == ["flask>=3"]
    assert requirements.own_pin(made, "shop-1.whl").startswith("shop==1 --hash=sha256:")


def test_plan_of_an_own_application(tmp_path: Path) -> None:
    said: dict[str, Any] = {"root": "/", "add": {"path": "/", "method": "POST", "body": {"a": 1}}}
    made = folder(tmp_path, requests_yml=json.dumps(said))
    plan = builders.plan(framework="", app=str(made), endpoint="root,add")
    stack = builders.present(plan.stack)
    assert plan.run_id.endswith("-my-shop")
    assert (stack.framework, stack.server, stack.worker_class) == (
        "my-shop", "gunicorn", "gthread",
    )  # fmt: skip
    assert plan.endpoints["add"].headers == {
        "Host": "localhost",
        "Content-Type": "application/json",
    }
    assert planned_words.applications(plan) == [
        f"Application {made}: app:app speaks WSGI; packages of requirements.txt; no database of "
        "the lab; measured: /, POST / (app.yml and requests.yml there can say otherwise)"
    ]


@pytest.mark.parametrize("option", ["app", "base"])
def test_a_folder_may_be_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """A shell leaves the ~ of -e app=~/mine."""
    made = folder(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    mine = f"~/{made.name}"
    options = {"app": mine}
    if option == "base":
        options = {"base": f"app={mine},workers=1", "head": f"app={mine},workers=2"}
    plan = builders.plan(framework="", endpoint="root", **options)
    assert {stack.source for stack in plan.stacks.values()} == {str(made)}


def test_paths_of_requests_that_are_alike_have_their_names() -> None:
    paths = {"a": "/x", "b": "/x", "c": "/y"}
    several = {name: Contract(path=path) for name, path in paths.items()}
    assert labels.paths(several) == {"a": "/x (a)", "b": "/x (b)", "c": "/y"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"generator": "python-async"}, "Give -e generator=metronome"),
        ({"http2": True, "tls": True}, "the header Host, which HTTP/2 replaces"),
        ({"server": "hypercorn"}, "hypercorn runs no WSGI applications"),
        ({"endpoint": "index"}, "There are: root"),
    ],
)
def test_options_that_an_own_application_cannot_have_are_refused(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(PlanError, match=words):
        builders.plan(
            **{"framework": "", "endpoint": "root", "app": str(folder(tmp_path)), **options}
        )


def test_variants_of_an_own_application_are_its_git_refs(tmp_path: Path) -> None:
    made = folder(tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(made)]
    for text in (FLASK, FLASK + "changed = 1\n"):
        (made / "app.py").write_text(text)
        for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "x"]):
            subprocess.run([*git, *words], check=True)
    own = {"app": str(made), "endpoint": "root", "head": "ref=HEAD"}

    def planned(**options: str) -> Plan:
        return planning.plan(builders.request({**own, **options}, user=[*own, *options]))

    stacks = [*planned(base="ref=HEAD~1").stacks.values()]
    assert {stack.framework for stack in stacks} == {"my-shop"}
    assert len({stack.source for stack in stacks}) == 2
    pinned = planned(base="flask==3").stacks.values()
    assert len({stack.lock for stack in pinned}) == 2
    with pytest.raises(PlanError, match="would change nothing: each cell of the comparison has"):
        planned(base=f"app={made}", head=f"app={made},ref=HEAD")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("language: cobol", "Invalid enum value 'cobol' - at `$.language`"),
        ("language: go", "missing required field"),
        ("- 1", "Expected `object`, got `array`"),
    ],
)
def test_a_wrong_manifest_is_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "apps" / "one").mkdir(parents=True)
    (tmp_path / "apps" / "one" / "app.yml").write_text(text)
    with pytest.raises(PlanError) as refusal:
        application.manifest(tmp_path, "apps/one")
    assert str(refusal.value).startswith("apps/one/app.yml: ")
    assert words in str(refusal.value)
