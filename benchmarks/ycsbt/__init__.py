"""YCSB-T: transfers between accounts, each two functions with two reads and two writes, and reads of several accounts.

`python -m benchmarks.ycsbt run` needs no service and no configuration; `--help` shows the rest.
"""
