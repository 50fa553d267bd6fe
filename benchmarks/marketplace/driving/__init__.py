"""The load on the marketplace: mixes, sessions, the mirror of products, and what is recorded of them.

`settings.py` has the options, `mixes.py` the files of shares, `generator.py` the requests of one client process.
"""
