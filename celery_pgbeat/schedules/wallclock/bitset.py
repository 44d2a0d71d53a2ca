"""Sets of small numbers as integers: bit n is set when n belongs to the set."""

from __future__ import annotations

from functools import lru_cache
from re import finditer


def number_range(low: int, high: int, step: int = 1) -> int:
    """Return the set {low, low + step, ...} up to and including `high`."""
    if step == 1:
        return (1 << (high + 1)) - (1 << low)
    return sum(1 << number for number in range(low, high + 1, step))


def lowest(bits: int) -> int:
    """Return the smallest member of a set that is not empty."""
    return (bits & -bits).bit_length() - 1


def highest(bits: int) -> int:
    """Return the largest member of a set that is not empty."""
    return bits.bit_length() - 1


def members(bits: int) -> list[int]:
    """Return the members in ascending order."""
    return [bit.start() for bit in finditer("1", f"{bits:b}"[::-1])]


@lru_cache(maxsize=1024)
def members_of(bits: int) -> tuple[int, ...]:
    """Return the same, remembered: for sets of days, which repeat."""
    return tuple(members(bits))


def tiled(tile: int, size: int, total: int) -> int:
    """Return the set `tile`, repeated every `size` numbers up to `total` at least."""
    while size < total:
        tile |= tile << size
        size *= 2
    return tile
