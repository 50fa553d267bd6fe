"""SASLprep (RFC 4013): different spellings of one password in Unicode become one. As PostgreSQL does, a password that
it forbids, and one that is no UTF-8, is taken as it stands.
"""

from __future__ import annotations

import stringprep
import unicodedata

_FORBIDDEN = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)


def prepared(password: str) -> bytes:
    """The password as it is hashed."""
    mapped = "".join(
        " " if stringprep.in_table_c12(each) else each for each in password if not stringprep.in_table_b1(each)
    )
    found = unicodedata.normalize("NFKC", mapped)
    if not found or any(forbids(each) for each in found for forbids in _FORBIDDEN) or not _direction(found):
        found = password
    return found.encode(errors="surrogatepass")


def _direction(text: str) -> bool:
    """Whether text from right to left is so from its beginning to its end (RFC 3454, section 6)."""
    if not any(map(stringprep.in_table_d1, text)):
        return True
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return ends and not any(map(stringprep.in_table_d2, text))
