"""`styx demo`: a bank served by a process that gets killed under load, and an audit of everything it ever answered.

The process that dies is an ordinary `styx dev` in all but its output; this package never reaches into it.
"""
