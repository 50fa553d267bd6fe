"""Deployable apps: packing an app with its code, unpacking it elsewhere, and the versions that a store has."""
