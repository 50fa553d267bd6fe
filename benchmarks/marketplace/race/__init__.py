"""The race of one cart: it is checked out again and again while what it holds is repriced, replaced and taken off the
market. `race.py` runs it, the audit judges it; `python -m benchmarks.marketplace.race` is the command.
"""
