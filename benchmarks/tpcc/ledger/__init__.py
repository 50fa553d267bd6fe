"""The rows that must exist after a run, by the initial data and the clients' replies.

The consistency conditions are not enough: a state that has lost whole transactions can satisfy them. A request without
an answer has happened or not. A row that no reply explains must be a row that such a request would have written, and
each such request explains only one row.
"""
