"""Processor lists as the kernel prints them."""

from __future__ import annotations


def cpu_list(text: str) -> list[int]:
    """'0-2,5' -> [0, 1, 2, 5]. Raises ValueError on anything else."""
    found: list[int] = []
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found
