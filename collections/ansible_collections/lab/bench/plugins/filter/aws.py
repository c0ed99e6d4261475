"""Filters about Amazon EC2, from loadlab/hosts/ec2.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.records import decode

from loadlab.hosts import ec2


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "aws_refusal": ec2.refusal,
            "aws_unfit": lambda offer, *asked: ec2.unfit(decode(offer, ec2.Offer), *asked),
            "aws_estimate": lambda prices, *asked: ec2.estimate(decode(prices, ec2.Prices), *asked),
        }
