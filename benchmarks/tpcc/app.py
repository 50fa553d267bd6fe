"""The app of TPC-C: its tables, with the functions of its five transactions and those that the audit reads with."""

from __future__ import annotations

from benchmarks.tpcc import delivery, new_order, order_status, payment, reads, stock_level, tables
from styx import App

FILES = (new_order, payment, order_status, delivery, stock_level, reads)
"""The modules of the functions. Importing a module registers its functions with the tables."""

app = App("tpcc", [tables.warehouse, tables.district])
