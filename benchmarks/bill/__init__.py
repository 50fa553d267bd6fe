"""The bill of an epoch: what the processes of a cluster, its broker and its client do for one, `python -m
benchmarks.bill`.
"""
