"""Filters about Amazon EC2, from ec2, ec2_launch, ec2_price in loadlab/hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.records import decode

from loadlab.hosts import ec2, ec2_launch, ec2_price


def images(pinned: str, there: object, run: object, types: object) -> dict[str, str]:
    """Return loadlab/hosts/ec2_launch.py's images() of plain values."""
    return ec2_launch.images(
        str(pinned),
        decode(there, list[ec2_launch.There]),
        decode(run, list[ec2_launch.RunInstance]),
        decode(types, dict[str, ec2.InstanceType]),
    )


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "aws_unfit": lambda offer, *asked: ec2.unfit(decode(offer, ec2.Offer), *asked),
            "aws_estimate": lambda prices, *asked: ec2_price.estimate(
                decode(prices, ec2_price.Prices), *asked
            ),
            "aws_images": images,
            "aws_needed_s": lambda load_s: ec2_price.needed_s(float(load_s)),
        }
