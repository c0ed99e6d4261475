"""Action plugin behind lab.bench.report: report.html of a run, made on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.lab.bench.plugins.module_utils import files

SPEC: dict[str, Any] = {
    "run_dir": {"type": "path", "required": True},
    "template": {"type": "path", "required": True},
}


def render(template: Path, document: dict[str, Any]) -> bytes:
    """The page: whatever is no figure is escaped, and a name the document lacks is an error."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.from_string(files.text(template)).render(document)
    return f"{page.strip()}\n".encode()


class ActionModule(ActionBase):
    """Build the report's numbers, render the template, write report.html whole or not at all."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, args = self.validate_argument_spec(SPEC)
        # Imports matplotlib, a second of CPU, and only here.
        from ansible_collections.lab.bench.plugins.module_utils import report

        run_dir = Path(args["run_dir"])
        path = run_dir / "report.html"
        try:
            document = report.build(run_dir)
            page = render(Path(args["template"]), document)
        except ValueError as problem:
            raise AnsibleActionFail(
                f"{problem}. Repair or remove that file in {run_dir}; "
                "ansible-playbook playbooks/collect.yml derives it anew from the raw files."
            ) from problem
        changed = not path.exists() or path.read_bytes() != page
        if changed and not self._task.check_mode:
            files.write(path, page)
        said = [headline["text"] for headline in document["headlines"]]
        return {**result, "changed": changed, "path": str(path), "headlines": said}
