"""The plan.json of a resumed run."""

from __future__ import annotations

from msgspec.structs import replace

from loadlab.plan.plan_document import Resumption, Run


def resumed(earlier: Run, now: Run) -> Run:
    """Return plan.json of a resumed run: the new plan, with the original start and hosts.

    ``earlier``: its present content. ``now``: what plan.json would be for a new run. Earlier
    comparisons and A/A controls are kept.
    """
    before, plan = earlier.plan, now.plan
    plan = replace(
        plan,
        comparisons=[*dict.fromkeys([*before.comparisons, *plan.comparisons])],
        aa_controls=[*dict.fromkeys([*before.aa_controls, *plan.aa_controls])],
    )
    call = Resumption(started=now.started, argv=now.argv)
    return replace(earlier, plan=plan, resumed=[*(earlier.resumed or ()), call])
