"""Unique ids: text made of a transaction's id, a call path and a number within the invocation, and of nothing else.

No state is needed, so ids never conflict, and every run of a transaction makes the same. The text is in Crockford's
base 32, five bits a character:

    13 characters      4 to 20 bits for each step of the call path         4 bits    4 bits or more
    transaction id     the call's index + 1, in a prefix code              0         the number, in the same code

In the prefix code no code begins another one, and codes sort as their numbers do. Two ids of one deployment therefore
differ within the bits of both of them, so that zeros behind the bits change neither equality nor order: ids are equal
only if all three parts are, and their text sorts by transaction, then call path, then number. Nothing is hashed.
"""

from __future__ import annotations

from typing import Final

CHARS_MIN: Final = 26
"""The usual length. 57 bits are left for the call path: seven steps for calls with an index below 71, fourteen for
those with one below 7. Below longer chains of calls the text is longer; shorter it never is.
"""
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS: Final = tuple([high + low for high in _ALPHABET for low in _ALPHABET])
_SIZES: Final = (3, 6, 11, 17)
"""Bits of a number behind its prefix: as many one bits as the place of its size here, and a zero bit."""
_LAST_SIZE: Final = 64
"""Bits of a larger number, behind as many one bits as there are sizes."""


def unique_id(tid: int, path: bytes, number: int) -> str:
    """The id number `number`, from 0 on, of the invocation at `path` of transaction `tid`."""
    bits, length = 0, 0
    for start in range(0, len(path), 2):
        bits, length = _with(path[start] * 256 + path[start + 1] + 1, bits, length)
    bits, length = _with(0, bits, length)  # the end of the path sorts before each further step
    bits, length = _with(number, bits, length)
    chars = -(-length // 5)
    bits <<= 5 * chars - length
    behind = "".join([_ALPHABET[(bits >> shift) & 31] for shift in range(5 * chars - 5, -5, -5)])
    before = "".join([_PAIRS[(tid >> shift) & 1023] for shift in (50, 40, 30, 20, 10, 0)])
    return (_ALPHABET[tid >> 60] + before + behind).ljust(CHARS_MIN, "0")


def _with(number: int, bits: int, length: int) -> tuple[int, int]:
    """`bits` with the code of `number` behind them, and their new length."""
    ones = 0
    for size in _SIZES:
        if number < 1 << size:
            return (((bits << ones) | ((1 << ones) - 1)) << (1 + size)) | number, length + ones + 1 + size
        number -= 1 << size
        ones += 1
    return (((bits << ones) | ((1 << ones) - 1)) << _LAST_SIZE) | number, length + ones + _LAST_SIZE
