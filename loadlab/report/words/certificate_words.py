"""Words for the newest certificate of a run's hosts."""

from __future__ import annotations

from loadlab.model import CertificateReference
from loadlab.run.formatting import plural


def reference(found: CertificateReference | None) -> str:
    """Return the newest certificate of a run's hosts in words."""
    if found is None:
        return (
            "none of hosts like these; ansible-playbook playbooks/certify.yml makes one in about "
            "ten minutes"
        )
    count = plural(found.tests, "test")
    untrue = [name for name in found.failed if name not in found.void]
    parts = [
        f", {len(names)} {word}: {', '.join(names)}"
        for names, word in ((untrue, "failed"), (found.void, "void by other work"))
        if names
    ]
    return f"{found.run_id} of {found.finished}: {count}{''.join(parts) or ', all passed'}"
