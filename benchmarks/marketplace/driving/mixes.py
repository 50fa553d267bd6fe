"""Mixes: which share of the transactions is of which kind, what carts are like, and how popular sellers and products
are. A mix is a TOML file: one of `mixes/`, by its name, or any other one, by its path.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from benchmarks.driver.zipf import STEEPEST
from benchmarks.marketplace.record import Kind
from benchmarks.marketplace.services.cart.filling import ITEMS_MAX
from styx.errors import ConfigurationError

FOLDER: Final = Path(__file__).parent / "mixes"
NAMES: Final = tuple(sorted(file.stem for file in FOLDER.glob("*.toml")))
TRANSACTIONS: Final = (
    Kind.CHECKOUT,
    Kind.DELIVERY,
    Kind.DASHBOARD,
    Kind.PRICE,
    Kind.REPLACE,
    Kind.WITHDRAW,
    Kind.RESTOCK,
)
"""The kinds that a mix has shares of."""

Weight = Annotated[float, Meta(ge=0)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Exponent = Annotated[float, Meta(ge=0, le=STEEPEST)]
Count = Annotated[int, Meta(ge=1)]


class Carts(Struct, frozen=True, forbid_unknown_fields=True):
    """`products` in a cart and `pieces` of each are uniform from the least to the most. `voucher` is the share of lines
    with one, of at most a tenth of the price. `abandoned` is the share of carts that are never checked out.
    `one_seller`: all of a cart is of one seller.
    """

    products: tuple[Count, Count] = (1, 10)
    pieces: tuple[Count, Count] = (1, 10)
    voucher: Fraction = 0.0
    abandoned: Fraction = 0.0
    one_seller: bool = False


class Skew(Struct, frozen=True, forbid_unknown_fields=True):
    """Zipf exponents, 0 for uniform: a seller is drawn, then one of its products."""

    sellers: Exponent = 0.0
    products: Exponent = 0.0


class Mix(Struct, frozen=True, forbid_unknown_fields=True):
    """A mix; `shares` are weights of any sum."""

    title: str
    shares: dict[Kind, Weight]
    carts: Carts = Carts()
    skew: Skew = Skew()

    @property
    def planned(self) -> Mapping[str, float]:
        """The shares, with a sum of 1."""
        whole = sum(self.shares.values())
        return {kind.value: share / whole for kind, share in self.shares.items() if share}


def read_mix(name: str) -> Mix:
    """The mix of a name or a path. Raises `ConfigurationError`."""
    path = FOLDER / f"{name}.toml" if name in NAMES else Path(name)
    try:
        mix = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Mix)
    except FileNotFoundError:
        raise ConfigurationError(f"there is no mix {name}: give a file, or {', '.join(NAMES)}") from None
    except OSError as error:
        raise ConfigurationError(f"the mix {name} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is no mix: {error}") from None
    _check(path, mix)
    return mix


def _check(path: Path, mix: Mix) -> None:
    wrong = [kind.value for kind in mix.shares if kind not in TRANSACTIONS]
    if wrong:
        raise ConfigurationError(
            f"{path}: {', '.join(wrong)} is no transaction; shares are of "
            + ", ".join(kind.value for kind in TRANSACTIONS)
        )
    if not sum(mix.shares.values()) > 0:
        raise ConfigurationError(f"{path}: all shares are 0")
    for name, (least, most) in (("products", mix.carts.products), ("pieces", mix.carts.pieces)):
        if least > most:
            raise ConfigurationError(f"{path}: {name} goes from {least} to {most}; the least comes first")
    if mix.carts.products[1] > ITEMS_MAX:
        raise ConfigurationError(f"{path}: a cart takes {ITEMS_MAX} products at most, got {mix.carts.products[1]}")
