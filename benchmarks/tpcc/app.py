"""The app of TPC-C: its tables, and the functions of its five transactions, which their files register with them."""

from __future__ import annotations

from benchmarks.tpcc import by_name, delivery, new_order, order_status, payment, reads, stock_level, tables
from styx import App

TRANSACTIONS = (new_order, payment, order_status, delivery, stock_level, by_name, reads)
"""Their files, each of which names its clause of the standard; without these imports there would be no functions."""

app = App(
    "tpcc",
    [
        tables.warehouse,
        tables.district,
        tables.customer,
        tables.history,
        tables.new_order,
        tables.order,
        tables.order_line,
        tables.item,
        tables.stock,
        tables.customer_name,
        tables.customer_order,
        tables.undelivered,
    ],
)
