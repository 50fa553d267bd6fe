"""TPC-C: a wholesaler's warehouses, districts, customers, orders and stock, and all five of its transactions.

`python -m benchmarks.tpcc run` needs no service and no configuration; `--help` shows the rest.
"""
