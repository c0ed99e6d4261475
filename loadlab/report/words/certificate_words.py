"""Words for the newest certificate of a run's hosts."""

from __future__ import annotations

from loadlab.model import CertificateReference
from loadlab.run.formatting import plural


def reference(certificate: CertificateReference | None) -> str:
    """Return the newest certificate of a run's hosts in words."""
    if certificate is None:
        return (
            "none of hosts like these; ansible-playbook playbooks/certify.yml makes one in about "
            "ten minutes"
        )
    count = plural(certificate.tests, "test")
    untrue = [name for name in certificate.failed if name not in certificate.void]
    parts = [
        f", {len(names)} {word}: {', '.join(names)}"
        for names, word in ((untrue, "failed"), (certificate.void, "void by other work"))
        if names
    ]
    return (
        f"{certificate.run_id} of {certificate.finished}: {count}{''.join(parts) or ', all passed'}"
    )
