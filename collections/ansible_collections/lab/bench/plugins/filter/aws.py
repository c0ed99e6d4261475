"""Filters about Amazon EC2, from the modules ec2* in loadlab/hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.records import decode

from loadlab.hosts import ec2, ec2_access, ec2_launch, ec2_price, ec2_quota


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
            "aws_named_sources": lambda text: msgspec.to_builtins(
                ec2_access.named_sources(str(text))
            ),
            "aws_own_source": lambda text: msgspec.to_builtins(ec2_access.own_source(str(text))),
            "aws_shut_out": ec2_access.shut_out,
            "aws_remarks": lambda offer, *asked: ec2.remarks(decode(offer, ec2.Offer), *asked),
            "aws_over_quota": lambda offer, *asked: ec2_quota.over_quota(
                decode(offer, ec2.Offer), *asked
            ),
            "aws_lifetime_s": ec2_price.lifetime_s,
            "aws_budget_refusal": ec2_price.budget_refusal,
            "aws_unfit": lambda offer, *asked: ec2.unfit(decode(offer, ec2.Offer), *asked),
            "aws_estimate": lambda prices, *asked: ec2_price.estimate(
                decode(prices, ec2_price.Prices), *asked
            ),
            "aws_images": images,
            "aws_image": ec2_launch.image,
            "aws_no_image": ec2_launch.no_image,
            "aws_needed_s": lambda load_s: ec2_price.needed_s(float(load_s)),
        }
