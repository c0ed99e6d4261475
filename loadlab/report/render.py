"""A page from its template."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from loadlab.report.html import UNSEEN, policy_hash
from loadlab.run import documents

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: Path, page: object) -> bytes:
    """Return the page as UTF-8, with report.css and report.js from beside the template.

    A script with the template's own name follows report.js. The page's policy allows style and
    script alone, by their hashes. Everything except figures is escaped, and invisible characters
    are replaced. Raises jinja2.UndefinedError for a name that the page lacks.
    """
    from markupsafe import Markup

    scripts = dict.fromkeys(["report.js", f"{template.name.partition('.')[0]}.js"])
    style, script = (
        "\n".join(documents.text(template.with_name(name)).strip() for name in names)
        for names in (["report.css"], scripts)
    )
    text = (
        _templates(template.parent)
        .get_template(template.name)
        .render(
            page=page,
            style=Markup(style),
            script=Markup(script),
            style_hash=policy_hash(style),
            script_hash=policy_hash(script),
        )
    )
    return UNSEEN.sub("\ufffd", f"{text.strip()}\n").encode()


@cache
def _templates(folder: Path) -> Environment:
    """Return the folder's templates, each of which is compiled once."""
    import jinja2

    return jinja2.Environment(
        autoescape=True,
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
