"""Acknowledgement shares: how a root knows, exactly, that every branch of its transaction has ended.

A root holds the whole (1). A function that makes n calls splits its share among them; a function that makes none
returns its share to the root. A share is a power of two held as its exponent, so that sums are exact integers
whatever the depth and fan-out; floats never appear. Paper section 5.3.
"""

from __future__ import annotations


def split(share: int, n: int) -> list[int]:
    """Exponents of `n` >= 1 shares that add up to 2^-`share`, as equal as powers of two allow."""
    if n == 1:
        return [share]
    depth = (n - 1).bit_length()
    wide = (1 << depth) - n
    return [share + depth - 1] * wide + [share + depth] * (n - wide)


class Outstanding:
    """The share that has not come back to a root yet: `missing` / 2^`scale`."""

    __slots__ = ("missing", "scale")

    def __init__(self) -> None:
        self.missing = 1
        self.scale = 0

    def give_back(self, share: int, scale: int) -> bool:
        """Takes `share` / 2^`scale` back; True when nothing is missing any more."""
        if scale > self.scale:
            self.missing <<= scale - self.scale
            self.scale = scale
        self.missing -= share << (self.scale - scale)
        assert self.missing >= 0, "more acknowledgement shares returned than were given out"
        return self.missing == 0


def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """Sum of two shares given as (numerator, scale)."""
    if a[1] < b[1]:
        a, b = b, a
    return a[0] + (b[0] << (a[1] - b[1])), a[1]
