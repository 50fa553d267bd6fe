"""Micro-benchmark: what a two-function transaction costs the engine, as a multiple of the bare work in the same run."""
