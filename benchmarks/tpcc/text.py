"""Random text as clause 4.3.2 has it: a-strings, n-strings, zip codes, last names, and "ORIGINAL" in some of the data.

Characters are drawn by the thousand, and strings are cut off one after the other: a string costs a slice. All
characters are equally likely, and none is used twice.
"""

from __future__ import annotations

import random
from string import ascii_letters, digits
from typing import Final

BLOCK: Final = 4_096
"""Random bytes that are drawn at once."""
ORIGINAL: Final = "ORIGINAL"
SYLLABLES: Final = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")
"""The syllables of last names, by digit (clause 4.3.2.3)."""


class Text:
    """Draws strings over `alphabet`, at most 256 characters of ASCII."""

    def __init__(self, alphabet: str, rng: random.Random) -> None:
        self._uniform = rng.random
        self._randbytes = rng.randbytes
        # As many bytes for each character; those that are left over stand for none.
        each = 256 // len(alphabet)
        self._table = (alphabet * each).ljust(256).encode("ascii")
        self._dropped = bytes(range(each * len(alphabet), 256))
        self._block = ""
        self._at = 0

    def take(self, length: int) -> str:
        """A string of that length, at most a tenth of `BLOCK`."""
        start = self._at
        end = self._at = start + length
        if end <= len(self._block):
            return self._block[start:end]
        self._block = self._randbytes(BLOCK).translate(self._table, self._dropped).decode("ascii")
        self._at = length
        return self._block[:length]

    def between(self, low: int, high: int) -> str:
        """A string whose length is uniform from `low` to `high`."""
        return self.take(low + int(self._uniform() * (high - low + 1)))


def a_strings(rng: random.Random) -> Text:
    """Draws letters and digits."""
    return Text(ascii_letters + digits, rng)


def n_strings(rng: random.Random) -> Text:
    """Draws digits."""
    return Text(digits, rng)


def zip_code(numbers: Text) -> str:
    """Four random digits and five ones (clause 4.3.2.7)."""
    return numbers.take(4) + "11111"


def last_name(number: int) -> str:
    """The last name of that number, from 0 to 999: a syllable for each of its digits."""
    return SYLLABLES[number // 100] + SYLLABLES[number // 10 % 10] + SYLLABLES[number % 10]


def with_original(data: str, rng: random.Random) -> str:
    """The data, with ORIGINAL somewhere in it."""
    at = int(rng.random() * (len(data) - len(ORIGINAL) + 1))
    return data[:at] + ORIGINAL + data[at + len(ORIGINAL) :]
