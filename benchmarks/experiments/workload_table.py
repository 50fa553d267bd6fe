"""The table of the experiment `workloads`: the kinds of request, and their data.

A new kind is one more line. Its words are options of the workload's command that leave only this kind of request.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Kind(NamedTuple):
    """A kind of request by itself. `rate` is requests a second; None: a share of what the deployment manages."""

    name: str
    words: str
    rate: float | None = None


class DataSet(NamedTuple):
    """Data that several kinds are measured on, one after the other: `package` has a module `options`.

    It is loaded as `words` and the first kind's words say. The state is audited when all kinds are through.
    """

    name: str
    package: str
    words: str
    kinds: tuple[Kind, ...]


_TPCC: Final = (
    Kind("NewOrder", "--mix new-order"),
    Kind("Payment", "--mix payment"),
    Kind("OrderStatus", "--mix order-status"),
    Kind("StockLevel", "--mix stock-level"),
    # A low rate, because at a high one no orders would be left to deliver.
    Kind("Delivery", "--mix delivery", rate=10),
)
DATA_SETS: Final = (
    DataSet(
        "YCSB-T",
        "benchmarks.ycsbt",
        "--keys 10000 --overdraft 0",
        (
            Kind("transfer", ""),
            Kind("transfer, waiting", "--wait"),
            Kind("transfer, Zipf 0.99", "--zipf 0.99"),
            Kind("read of 2", "--read-only 1"),
        ),
    ),
    DataSet("TPC-C, 1 warehouse", "benchmarks.tpcc", "--warehouses 1", _TPCC),
    DataSet("TPC-C, 10 warehouses", "benchmarks.tpcc", "--warehouses 10", _TPCC),
    DataSet(
        "hotel",
        "benchmarks.deathstar.hotel",
        "",
        tuple(Kind(kind, f"--mix {kind}") for kind in ("search", "recommend", "login", "reserve")),
    ),
    DataSet(
        "movie",
        "benchmarks.deathstar.movie",
        "",
        tuple(Kind(kind, f"--mix {kind}") for kind in ("compose", "read-movie", "read-user")),
    ),
)
