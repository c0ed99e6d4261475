"""Lookup lab.bench.aws_region: the region that AWS's own places name."""

import functools
import os

import boto3
from ansible.plugins.lookup import LookupBase
from botocore.exceptions import ProfileNotFound

DOCUMENTATION = """
name: aws_region
short_description: Return the region of AWS_REGION, AWS_DEFAULT_REGION or the profile
description:
  - A list of one name. The profile is that of AWS_PROFILE, or default, in AWS's configuration file.
    Where nothing names a region, it is us-east-1.
author: the lab's developers
"""

# Where nothing names a region, and where a later refusal tells that there is no such profile.
DEFAULT = "us-east-1"


@functools.cache
def region() -> str:
    """Return the region; the first call reads AWS's files."""
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if named:
        return named
    try:
        return str(boto3.Session().region_name or DEFAULT)
    except ProfileNotFound:
        return DEFAULT


class LookupModule(LookupBase):  # type: ignore[misc]
    def run(self, terms: list[object], variables: object = None, **options: object) -> list[str]:
        return [region()]
