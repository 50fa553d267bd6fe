"""The payment provider: a process of its own, which the marketplace reaches by HTTP alone.

`python -m benchmarks.marketplace.provider` runs it. `book.py` decides and remembers, `server.py` answers, `own.py`
starts one for a benchmark's command.
"""
