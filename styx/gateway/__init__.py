"""The HTTP gateway: validates requests against the app, hands them to an engine and writes replies as JSON.

It never runs a function and never touches state; what it needs of an engine is in `service.py`.
"""
