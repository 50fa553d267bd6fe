"""The micro-benchmark: the engine's cost of a two-function transaction, as a multiple of the bare loop's cost in the
same run.
"""
