"""Extreme contention: random programs on a few entities, whose calls depend on what they read."""
