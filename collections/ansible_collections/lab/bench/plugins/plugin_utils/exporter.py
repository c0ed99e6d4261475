"""A host's node_exporter, asked from the controller."""

from __future__ import annotations

import time
import urllib.request

from ansible_collections.lab.bench.plugins.module_utils import telemetry


def page(url: str) -> str:
    """One scrape, as text or as a failure that the recording keeps."""
    now = time.time()
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return telemetry.block(now, answer.read().decode())
    except OSError as problem:
        return telemetry.failed_block(now, str(problem))
