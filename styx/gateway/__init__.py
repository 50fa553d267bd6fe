"""The HTTP gateway: validates requests against the app, hands them to an engine and writes replies as JSON.

`service.py` declares what it needs of an engine.
"""
