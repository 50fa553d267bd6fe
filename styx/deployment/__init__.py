"""Deployable apps: packing an app with its code, describing it, and deciding whether it may replace another one.

Nothing here talks to a log or a store: whoever deploys moves the bytes.
"""
