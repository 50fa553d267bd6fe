"""The initial rows of TPC-C's tables (clause 4.3.3.1), a file for each group of them; `whole.py` has all of them.

Every function of this package makes its rows as they are read. Rows are of one warehouse or district, and the same
whenever they are made again.
"""
