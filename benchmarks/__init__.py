"""Measurements of the engine; each sub-package is one benchmark with one command."""
