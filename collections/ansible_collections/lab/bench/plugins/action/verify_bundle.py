"""Action plugin lab.bench.verify_bundle; loadlab/bundle/verify.py does the work."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.bundle import signature, verify
from loadlab.bundle.archive import BundleError, refuse_absent


class ActionModule(ControllerAction):
    """Verifies the bundle in a temporary folder, which it then removes."""

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        refuse_absent(args["bundle"])
        archive = Path(args["bundle"])
        signers = Path(args["signers"]) if args["signers"] else None
        if signers:
            signature.refuse_signers(signers)
        with tempfile.TemporaryDirectory(prefix="loadlab-verify-") as scratch:
            try:
                outcome = verify.verify(archive, Path(args["root"]), Path(scratch), signers)
            except ValueError as problem:
                raise BundleError(
                    f"bundle: '{archive}' {problem}. It is refused; nothing of it was kept."
                ) from None
            folder = verify.keep(outcome, archive)
        return {
            "verified": outcome.verified,
            "refusal": outcome.refusal(folder),
            "lines": [*outcome.lines(), *verify.kept(folder)],
        }
