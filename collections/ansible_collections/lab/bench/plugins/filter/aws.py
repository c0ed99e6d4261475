"""Filters about Amazon EC2, from loadlab/hosts/ec2.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadlab.hosts import ec2


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "aws_refusal": ec2.refusal,
            "aws_unfit": ec2.unfit,
            "aws_estimate": ec2.estimate,
        }
