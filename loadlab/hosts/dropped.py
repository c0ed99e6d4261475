"""Say why Ansible dropped hosts from a play: lost, or a task failed on them."""

from __future__ import annotations

from collections.abc import Mapping


def refusal(answers: Mapping[str, bool], go_on: str) -> str:
    """Return why a run ends; ``answers``: dropped host -> whether it still answers.

    ``go_on``: the options that resume the run.
    """
    failed = [host for host, answered in answers.items() if answered]
    lost = [host for host, answered in answers.items() if not answered]
    words = []
    if failed:
        words.append(
            f"A task failed on {', '.join(failed)}, which answers; the reason stands above."
        )
    if lost:
        words.append(f"{', '.join(lost)}: lost in the middle of the run, the reason stands above.")
    return " ".join(
        [
            *words,
            "What was measured is kept.",
            "When the host answers again, go on" if lost else "Go on",
            f"with ansible-playbook lab.yml {go_on}",
        ]
    )
