"""Scenario A under faults: while the load goes on, one process after the other is killed, stopped or frozen, and comes
back. `run.py` runs it, the audit judges it; `python -m benchmarks.marketplace.faults` is the command.
"""
