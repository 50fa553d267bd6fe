"""`styx demo`: a bank served by a process that gets killed under load, and an audit of everything it ever answered.

The process that dies is an ordinary `styx dev` except for its output; the demo uses it only over HTTP.
"""
