"""What `styx dev` does beside serving: every transaction is run again, alone and in the serial order, in a process that
imported the app anew. What differs then is told: a function that depends on something else than its input.
"""
