"""Committed state: a table for each operator of a slot, which alone reads and writes that operator's entities there."""
