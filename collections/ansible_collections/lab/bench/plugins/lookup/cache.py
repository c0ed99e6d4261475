"""Lookup lab.bench.cache; loadlab/hosts/cache.py does the work."""

import os
from pathlib import Path

from ansible.plugins.lookup import LookupBase

from loadlab.hosts import cache

DOCUMENTATION = """
name: cache
short_description: Find the controller's folder for what it built or downloaded
description:
  - Returns /var/cache/loadlab for root, and for any other user loadlab below XDG_CACHE_HOME, which
    is ~/.cache where it is not set.
author: the lab's developers
"""


class LookupModule(LookupBase):  # type: ignore[misc]
    def run(self, terms: list[object], variables: object = None, **kwargs: object) -> list[str]:
        return [str(cache.folder(os.geteuid(), os.environ, Path.home()))]
