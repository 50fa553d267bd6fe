"""The settings of the load and its data: values, defaults and checks. The application's own are in its environment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from benchmarks.driver.settings import require, require_shares, setting, share
from benchmarks.driver.zipf import STEEPEST
from benchmarks.marketplace import settings as application
from benchmarks.marketplace.driving.mixes import NAMES, Mix, read_mix

OF_SIZE_1: Final = 10_000
"""Customers, and products, of size factor 1."""
SIZE_MAX: Final = 1_000.0
ORDERS_MAX: Final = 1_000
PIECES_MAX: Final = 1_000_000_000
TRANSACTION: Final = "transaction"
READ: Final = "read"
SQL: Final = "sql"
WAYS: Final = (TRANSACTION, READ, SQL)
"""In which a dashboard is asked for."""


@dataclass(frozen=True)
class Settings:
    """The options of a load; raises `ConfigurationError` for what cannot be. `run` names a run on its data: its
    checkout ids and versions begin with it. `mirror_file` is where several clients keep their mirror together.
    """

    mix: str = setting("a", f"a file of shares, or one of {', '.join(NAMES)} (default %(default)s)", metavar="MIX")
    size: float = setting(
        0.05,
        f"size factor: {OF_SIZE_1} customers and as many products for each 1 (default %(default)s)",
        metavar="FACTOR",
    )
    products_per_seller: int = setting(10, "(default %(default)s)")
    pieces: int = setting(10_000, "of each product in stock (default %(default)s)")
    orders: int = setting(
        1, "for each customer that are there from the start; the specification has 10 (default %(default)s)"
    )
    undelivered: float = share(0.5, "of these orders: those that wait for their delivery (default %(default)s)")
    seller_zipf: float | None = setting(
        None, "how the sellers' popularity is skewed, 0 for not (default: the mix's)", kind=float, metavar="EXPONENT"
    )
    product_zipf: float | None = setting(
        None, "the same of a seller's products (default: the mix's)", kind=float, metavar="EXPONENT"
    )
    without: str = setting(
        "", "a kind of transaction that is left out of the mix, such as dashboard (default: none)", metavar="KIND"
    )
    abandoned: float | None = share(None, "of the carts: those that are never checked out (default: the mix's)")
    resent: float = share(0.0, "of the checkouts: those that are sent twice, at once (default %(default)s)")
    dashboards_kept: float = share(
        0.05, "of the dashboards: those that are recorded with all entries (default %(default)s)"
    )
    dashboard: str = setting(
        TRANSACTION,
        "how a dashboard is asked for: as a transaction; read, outside the log, on a cluster with --gateway; or sql, "
        "of a --replica (default %(default)s)",
        metavar="transaction|read|sql",
    )
    epoch: float = setting(10.0, "of the summary, which has a line for each (default %(default)s)", metavar="SECONDS")
    data_seed: int = setting(1, "the same one makes the same data (default %(default)s)")
    run: str = "run"
    mirror_file: str = ""

    def __post_init__(self) -> None:
        require(
            1 / OF_SIZE_1 <= self.size <= SIZE_MAX,
            f"the size factor is from {1 / OF_SIZE_1:g}, which is one customer, to {SIZE_MAX:g}, got {self.size}",
        )
        require(self.products_per_seller >= 1, f"a seller has at least 1 product, got {self.products_per_seller}")
        require(1 <= self.pieces <= PIECES_MAX, f"--pieces is from 1 to {PIECES_MAX}, got {self.pieces}")
        require(0 <= self.orders <= ORDERS_MAX, f"--orders is from 0 to {ORDERS_MAX}, got {self.orders}")
        require_shares(self, "0.05 for 5 %", "undelivered", "abandoned", "resent", "dashboards_kept")
        for name in ("seller_zipf", "product_zipf"):
            value = getattr(self, name)
            good = value is None or 0 <= value <= STEEPEST
            require(good, f"--{name.replace('_', '-')} is an exponent from 0 to {STEEPEST:g}, got {value}")
        require(self.dashboard in WAYS, f"--dashboard is one of {', '.join(WAYS)}, got {self.dashboard}")
        require(self.epoch > 0, f"--epoch is a number of seconds above 0, got {self.epoch}")
        planned = read_mix(self.mix).planned
        known = not self.without or {self.without} < {*planned}
        require(known, f"--without leaves one of several kinds out; {self.mix} has {', '.join(planned)}")

    @cached_property
    def mixed(self) -> Mix:
        """The mix, with what the options say instead. Raises `ConfigurationError`."""
        mix = read_mix(self.mix)
        carts = {} if self.abandoned is None else {"abandoned": self.abandoned}
        zipfs = {"sellers": self.seller_zipf, "products": self.product_zipf}
        skew = {name: value for name, value in zipfs.items() if value is not None}
        return msgspec.structs.replace(
            mix,
            shares={kind: share for kind, share in mix.shares.items() if kind.value != self.without},
            carts=msgspec.structs.replace(mix.carts, **carts),
            skew=msgspec.structs.replace(mix.skew, **skew),
        )

    @property
    def customers(self) -> int:
        """How many there are; their ids are from 1 on."""
        return max(round(self.size * OF_SIZE_1), 1)

    @property
    def products(self) -> int:
        """How many there are, of all sellers."""
        return self.customers

    @property
    def sellers(self) -> int:
        """How many there are; the last one may have fewer products."""
        return -(-self.products // self.products_per_seller)

    def products_of(self, seller_id: int) -> int:
        """How many products a seller has."""
        return min(self.products_per_seller, self.products - (seller_id - 1) * self.products_per_seller)

    def shown(self) -> dict[str, Any]:
        """All of them, as in a result file, with those of the application in this process's environment."""
        mix = self.mixed
        options = {name: value for name, value in asdict(self).items() if name not in ("run", "mirror_file")}
        return {
            **options,
            "title": mix.title,
            "planned": dict(mix.planned),
            "carts": msgspec.to_builtins(mix.carts),
            "skew": msgspec.to_builtins(mix.skew),
            "application": {
                "replication": application.REPLICATION,
                "reprice": application.REPRICE,
                "payment": application.PAYMENT,
                "archive": application.ARCHIVE,
                "rejected": application.REJECTED,
                "provider": bool(application.PROVIDER),
            },
        }
