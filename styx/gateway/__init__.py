"""The HTTP gateway: validates requests against the app, hands them to an engine and writes replies as JSON.

`engine.py` declares the interface of an engine.
"""
