"""What every row must be after a run: what it was at the start, and what clients were told of the run.

Beyond the consistency conditions, which a state can satisfy that has lost whole transactions. A request without an
answer has happened or not: a row that nobody was told of must be the one that such a request would have written, and
each of them accounts for one row only.
"""
