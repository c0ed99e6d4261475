"""Filters about Amazon EC2; all they do stands in module_utils/aws.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import aws


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "aws_refusal": aws.refusal,
            "aws_unfit": aws.unfit,
            "aws_estimate": aws.estimate,
        }
