"""The data that a marketplace has before any request, a file for each group of rows; `whole.py` has all of it.

Rows are made as they are read, and are the same whenever they are made again. Events of them there are none: what is
here from the start was told to nobody.
"""
