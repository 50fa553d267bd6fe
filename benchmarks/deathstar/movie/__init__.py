"""DeathStarBench's movie review: composing a review is one transaction across nine services, and pages read them.

`python -m benchmarks.deathstar.movie run` needs no service and no configuration; `--help` shows the rest.
"""
