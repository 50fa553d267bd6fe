"""The columns of answers that no transaction writes, such as names, taxes and prices, as checksums: so a witness does
not keep them, and the audit can still compare them with the rows.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from zlib import crc32

import msgspec

_encode: Final = msgspec.msgpack.Encoder().encode


class Buyer(NamedTuple):
    """The customer's columns in a NewOrder's result; `discount` in ten-thousandths."""

    last: str
    credit: str
    discount: int


class Good(NamedTuple):
    """The columns of a line's item in a NewOrder's result; `price` in cents, `brand_generic` B or G."""

    name: str
    price: int
    brand_generic: str


class Payer(NamedTuple):
    """The customer's columns in a Payment's result; `discount` in ten-thousandths."""

    first: str
    middle: str
    last: str
    credit: str
    discount: int


def of_terms(buyer: Buyer, w_tax: int, d_tax: int) -> int:
    """The checksum of a NewOrder's columns of customer, warehouse and district."""
    return crc32(_encode((buyer, w_tax, d_tax)))


def of_goods(goods: list[Good]) -> int:
    """The checksum of a NewOrder's columns of its lines' items, in their order."""
    return crc32(_encode(goods))


def of_payment(w_name: str, d_name: str, payer: Payer) -> int:
    """The checksum of a Payment's columns of warehouse, district and customer."""
    return crc32(_encode((w_name, d_name, payer)))
