"""The background check of `styx dev`: every transaction is run again, alone and in the serial order, in a process that
imported the app anew. A difference is reported: a function depends on something other than its input.
"""
