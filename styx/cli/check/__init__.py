"""The background check of `styx dev`: every transaction is run again, alone and in the serial order, in a process that
imported the app anew. A difference is reported: it shows that a function depends on more than its input.
"""
