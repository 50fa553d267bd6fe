"""The embedded engine: coordinator, one worker, log and store in the caller's process, on its event loop.

A shell around the same protocol cores that a cluster runs.
"""
